"""Build the page with Gradio, from what content.py shows."""

from collections.abc import Callable
from typing import Any

from ctxsim_hf.page.content import MAX_CHARS, Comparison, Documents
from ctxsim_hf.runtime.errors import UserError

NOTE = """Two sentences are alike if they fit the same contexts. This similarity was learned from documents, and
says how alike sentences are *there*: 1 for equal ones, around 0 for unrelated ones. A sentence and its negation are
alike."""
NARROW = 280  # pixels: boxes stand below each other where there is no room for two of this width


def import_gradio() -> Any:
    """Import Gradio, or say how to install it."""
    try:
        import gradio
    except ImportError as error:
        raise UserError("the page needs Gradio: pip install 'ctxsim-hf[app]'") from error
    return gradio


def build_page(title: str, comparison: Comparison, documents: Documents | None = None) -> Any:
    """Return a page of Gradio.

    Args:
        title (`str`): Heading of the page.
        comparison ([`Comparison`]): Compares two sentences.
        documents ([`Documents`], *optional*): Documents to search. None leaves search and duplicates out.
    """
    gr = import_gradio()
    examples = (documents.examples if documents is not None else []) or comparison.examples
    with gr.Blocks(title=title, analytics_enabled=False) as page:
        gr.Markdown(f"# {title}\n{NOTE}")
        with gr.Tab("Compare"):
            _compare_tab(gr, comparison, examples)
        if documents is not None:
            with gr.Tab("Search"):
                _search_tab(gr, documents, [first for first, _ in examples])
            with gr.Tab("Duplicates"):
                _duplicates_tab(gr, documents)
    return page


def _compare_tab(gr: Any, comparison: Comparison, examples: list[tuple[str, str]]) -> None:
    with gr.Row():
        boxes = [
            gr.Textbox(label=label, value=value, lines=2, max_length=MAX_CHARS, min_width=NARROW)
            for label, value in zip(("First sentence", "Second sentence"), examples[0], strict=True)
        ]
    button = gr.Button("Compare", variant="primary")
    shown = gr.HTML()
    gr.Examples([list(pair) for pair in examples], boxes, label="From the documents")
    gr.on([button.click, *(box.submit for box in boxes)], _answer(gr, comparison.explain), boxes, shown)


def _search_tab(gr: Any, documents: Documents, examples: list[str]) -> None:
    query = gr.Textbox(label="What to look for", max_length=MAX_CHARS)
    button = gr.Button("Search", variant="primary")
    shown = gr.HTML()
    gr.Examples([[example] for example in examples], query, label="From the documents")
    gr.on([button.click, query.submit], _answer(gr, documents.search), query, shown)


def _duplicates_tab(gr: Any, documents: Documents) -> None:
    gr.Markdown("Pairs of sentences that are so alike that it is hardly by chance.")
    button = gr.Button("Find duplicates", variant="primary")
    shown = gr.HTML()
    button.click(_answer(gr, documents.duplicates_html), None, shown)


def _answer(gr: Any, function: Callable[..., str]) -> Callable[..., str]:
    """Show what a user can fix as a message on the page."""

    def answer(*texts: str) -> str:
        try:
            return function(*texts)
        except UserError as error:
            raise gr.Error(str(error)) from error

    return answer
