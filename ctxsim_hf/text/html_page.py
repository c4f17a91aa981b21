"""Parts of a page of HTML that needs nothing but itself: no script, no font and no picture from elsewhere.

Every text of a user goes through `escape` or `mark_words`. Colours are half transparent, so that a page can be read on
a light and on a dark background, as in a notebook.
"""

from collections.abc import Collection, Iterable
from html import escape
from pathlib import Path

from ctxsim_hf.runtime.working import writing_output
from ctxsim_hf.text.words import word_spans, words

STYLE = """
.ctxsim { font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
.ctxsim h2 { font-size: 1.15rem; margin: 1.4rem 0 .4rem; }
.ctxsim h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
.ctxsim table { border-collapse: collapse; width: 100%; font-size: inherit; }
.ctxsim table, .ctxsim tr { border: 0 !important; }
.ctxsim th, .ctxsim td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border: solid rgba(128,128,128,.3) !important; border-width: 0 0 1px !important; background: none; color: inherit; }
.ctxsim th { overflow-wrap: normal; }
.ctxsim .number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.ctxsim .quiet { opacity: .7; font-size: .9em; font-weight: normal; }
.ctxsim .two { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: .5rem 1.2rem; }
.ctxsim .card { border: 1px solid rgba(128,128,128,.35); border-radius: 8px; padding: .5rem .8rem; margin: .4rem 0; }
.ctxsim .bar { height: .6rem; border-radius: 3px; background: rgba(128,128,128,.2); overflow: hidden; }
.ctxsim .bar > i { display: block; height: 100%; background: rgba(60,110,220,.8); }
.ctxsim .bar > i.below { background: rgba(200,80,60,.8); }
.ctxsim mark { background: rgba(245,190,40,.4); color: inherit; border-radius: 3px; padding: 0 .1em; }
.ctxsim mark.first { background: rgba(60,110,220,.28); }
.ctxsim mark.second { background: rgba(220,110,40,.3); }
.ctxsim .gap { border: 1px dashed rgba(128,128,128,.8); border-radius: 4px; padding: 0 .4em; opacity: .8;
  white-space: nowrap; }
"""


def mark_words(text: str, marked: Collection[str], kind: str = "") -> str:
    """Escape a text, and mark its words that are in a collection of words in lower case."""
    opened = f'<mark class="{kind}">' if kind else "<mark>"
    parts, last = [], 0
    for start, end in word_spans(text, marked):
        parts += [escape(text[last:start]), f"{opened}{escape(text[start:end])}</mark>"]
        last = end
    return "".join([*parts, escape(text[last:])])


def mark_differences(first: str, second: str) -> tuple[str, str]:
    """Escape two sentences, and mark the words of each that the other does not have."""
    words1, words2 = set(words(first)), set(words(second))
    return mark_words(first, words1 - words2, "first"), mark_words(second, words2 - words1, "second")


def bar(share: float) -> str:
    """Return a bar that is filled by a share from -1 to 1; below 0 it has another colour."""
    kind = ' class="below"' if share < 0 else ""
    return f'<div class="bar"><i{kind} style="width:{100 * min(1.0, abs(share)):.1f}%"></i></div>'


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of cells that are HTML already."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def fragment(body: str) -> str:
    """Return a part of a page with its style, as a notebook shows it."""
    return f'<div class="ctxsim"><style>{STYLE}</style>{body}</div>'


def write_page(path: str | Path, title: str, body: str) -> None:
    """Write a whole page to a file."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    frame = "body { max-width: 62rem; margin: 1rem auto; padding: 0 1rem; }"
    scheme = f"<style>:root {{ color-scheme: light dark; }} {frame}</style>"
    text = (
        f'<!doctype html><html lang="en"><head>{head}<title>{escape(title)}</title>{scheme}</head>'
        f"<body>{fragment(body)}</body></html>\n"
    )
    with writing_output(path) as temporary:
        temporary.write_text(text, "utf-8")
