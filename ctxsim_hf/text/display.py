"""A folder of chunks -> some of its contexts as text: `ctxsim contexts`."""

import textwrap
from dataclasses import dataclass

import xxhash
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.validation import Count, Seed
from ctxsim_hf.text.chunks import Chunk, Context, read_chunks


@dataclass(kw_only=True)
class ContextsArguments(Arguments):
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    number: Count = HfArg(default=3, help="Number of contexts to show.")
    width: Count = HfArg(default=1, help="Sentences on each side.")
    seed: Seed = HfArg(default=0, help="Seed of the choice.")


def run(arguments: ContextsArguments) -> str:
    """Return some contexts, each from a different chunk, as text for a terminal."""
    chunks = read_chunks(arguments.chunks)

    def order(row: int) -> int:
        return xxhash.xxh3_64_intdigest(row.to_bytes(8, "little"), arguments.seed)

    rows = sorted(range(len(chunks)), key=order)[: arguments.number]
    return "\n\n".join(
        _format(_pick_context(Chunk.from_row(chunks[row]), order(row), arguments.width)) for row in rows
    )


def _pick_context(chunk: Chunk, number: int, width: int) -> Context:
    contexts = list(chunk.contexts(width))
    return contexts[number % len(contexts)]


def _format(context: Context) -> str:
    lines = [f"{context.chunk_id}, sentence {context.position + 1}"]
    for sign, sentences in ((" ", context.left), (">", (context.sentence,)), (" ", context.right)):
        for sentence in sentences:
            lines += textwrap.wrap(sentence, 110, initial_indent=f"  {sign} ", subsequent_indent="    ")
    return "\n".join(lines)
