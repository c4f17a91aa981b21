"""Show the similarity of two sentences, its spread and the contexts that explain it: the page of the Space."""

import os

import gradio as gr

from ctxsim_hf import OriginSimilarity
from ctxsim_hf.origin.similarity import DEFAULT_ORIGIN
from ctxsim_hf.runtime.errors import UserError

COLUMNS = ["who fits", "context", "fit of the first", "fit of the second", "document"]
WIDTHS = ["10%", "50%", "12%", "12%", "16%"]
NOTE = """
Two sentences are alike if they fit the same contexts. The **similarity** is 1 for equal sentences and around 0 for
unrelated sentences (far above 0 where the origin compares by `cosine`).
The **spread** is its standard deviation when other contexts are drawn.
A **fit** is given in standard deviations above the mean of background sentences of the corpus in the same context.
"""

origin = OriginSimilarity.from_pretrained(os.environ.get("CTXSIM_ORIGIN", DEFAULT_ORIGIN))


def compare(sentence1: str, sentence2: str) -> tuple[str, str, list[list[str]]]:
    """Return the similarity, its spread and rows of the contexts that explain it."""
    if not sentence1.strip() or not sentence2.strip():
        raise gr.Error("Type two sentences.")
    try:
        explanation = origin.explain(sentence1, sentence2)
    except UserError as error:
        raise gr.Error(str(error)) from error
    lists = {
        "both": explanation.both,
        "first better": explanation.first_better,
        "second better": explanation.second_better,
    }
    rows = [
        [
            who,
            f"{' '.join(found.context.left)} [...] {' '.join(found.context.right)}",
            *(f"{fit:+.1f}" for fit in found.fit),
            found.doc_id,
        ]
        for who, contexts in lists.items()
        for found in contexts
    ]
    return f"{explanation.similarity:.3f}", f"{explanation.spread:.3f}", rows


with gr.Blocks(title="Origin") as demo:
    gr.Markdown("# Origin: how alike are two sentences?\n" + NOTE)
    with gr.Row():
        first = gr.Textbox(label="First sentence", value="A man plays a guitar.")
        second = gr.Textbox(label="Second sentence", value="Someone makes music.")
    button = gr.Button("Compare", variant="primary")
    with gr.Row():
        similarity = gr.Textbox(label="Similarity", interactive=False)
        spread = gr.Textbox(label="Spread", interactive=False)
    contexts = gr.Dataframe(
        headers=COLUMNS,
        label="Contexts that explain it",
        wrap=True,
        interactive=False,
        column_widths=WIDTHS,
        max_height=1000,
    )
    gr.on([button.click, first.submit, second.submit], compare, [first, second], [similarity, spread, contexts])

if __name__ == "__main__":
    demo.launch()
