"""Turns the text of a docstring into the paragraphs of English prose it holds, as plain text.

Docstrings mix prose with signatures, parameter lists, tables, code and headings, in four dialects (numpy, Google,
reST, Hugging Face) and none. The text goes through three steps, each a pure function:

1. `_sections`: cut at underlined headings; sections that list things (Parameters, Examples, References) go.
2. `_BlockReader`: read line by line; lists of parameters, directives, doctests and indented blocks go, the rest
   becomes blocks of lines that belong together.
3. `_plain` and `_is_prose`: join the lines of a block, take the inline mark-up off, keep it if it reads like prose.

When in doubt a paragraph is left out: there is more prose than a demo needs, and no list may pass for a sentence.
"""

import inspect
import re
from collections.abc import Iterator

MIN_WORDS = 5
MIN_INTRODUCTION_WORDS = 12  # of a sentence that ends with a colon: shorter ones only announce the code below them
MIN_PLAIN_SHARE = 0.8  # of the tokens that are ordinary words, not identifiers, numbers or formulas
MIN_FUNCTION_SHARE = 0.15  # of the tokens that match _FUNCTION_WORD; lists of names have next to none
MAX_SYMBOL_SHARE = 0.03  # of the characters
FREE_SYMBOLS = 2  # a short sentence may still hold one pair of brackets

_FUNCTION_WORD = re.compile(
    r"a|about|all|also|an|and|any|are|as|at|be|been|but|by|can|do|does|each|for|from|had|has|have|how|if|in|into|is|it"
    r"|its|may|more|must|no|not|of|on|one|only|or|other|should|so|some|such|than|that|the|their|them|then|there|these"
    r"|they|this|to|two|up|use|used|was|we|were|what|when|where|whether|which|while|who|will|with|would|you|your"
)

_LIST_NAMES = (
    r"args?|arguments?|(?:\w+ )?param(?:eter)?s?|(?:other|optional|keyword|positional|additional|class|init)[ -]"
    r"(?:args?|arguments?|attributes?|parameters?|keywords?)|kwargs|keywords|returns?|yields?|raises?|receives|warns"
    r"|exceptions?|attributes?|(?:\w+ )?attributes|properties|(?:\w+ )?methods|members|fields|variables"
    r"|functions|classes|(?:basic |usage |code |more )?examples?(?: \w+){0,2}|usage(?: \w+){0,2}|demo|doctests?"
    r"|see also"
    r"|seealso|references?|bibliography|citations?|literature|links|authors?|copyright|license|changelog|history|version|todo|shapes?"
    r"|inputs?|outputs?|options|commands|requirements|dependencies|constants|signature|syntax|resources|routines"
    r"|side effects?|contents|table of contents|data|type|types|values|results?|tests?|credits|maintainers?|aliases"
)
_LIST_TITLE = re.compile(rf"(?:{_LIST_NAMES})s?:?", re.IGNORECASE)
_LIST_HEADER = re.compile(
    rf"(?:\*\*)?(?:{_LIST_NAMES})(?: *\([^)]*\))? *(?:::?\*\*|\*\*::?|::?)(?: |$)", re.IGNORECASE
)
_UNDERLINE = re.compile(r" *([=\-~^\"*#+`'.:_])\1{2,} *")
_FENCE = re.compile(r" *(```|~~~)")

_ADMONITIONS = "note|notes|warning|warnings|tip|important|caution|hint|attention|danger|remark|remarks|nb"
_ADMONITION = re.compile(
    rf"(?:\.\. (?:{_ADMONITIONS})::|(?:\*\*)?(?:{_ADMONITIONS})(?:\*\*)?::?(?:\*\*)?) *",
    re.IGNORECASE,
)
_TAG_LINE = re.compile(r"</?[A-Za-z][^>]*>$|\[\[.*\]\]$|> \[!\w+\]$")
_BULLET = re.compile(r"(?:[-*+•‣o]|\(?(?:\d{1,2}|[a-zA-Z])[.)]|#\.) +(?=\S)")
_DROPPED_WITH_BODY = re.compile(
    r"\.\. ?|\.\.$"  # directives, footnotes, link targets and comments of reST
    r"|:\w[^:`]*:(?: |$)"  # reST fields, `:param x: ...`
    r"|@\w+\b"  # epydoc fields and decorators
    # Hugging Face's parameters, `x (`int`, *optional*): ...`
    r"|\\?\*{0,2}[\w.\[\]/`]+(?:, ?\*{0,2}[\w.`]+)* *\(.*(?:`|optional|default|type).*\) *(?::|--|—|-)"
    r"|`{0,2}[\w*.]+`{0,2}(?:, ?`{0,2}[\w*.]+`{0,2})* :(?: |$)"  # numpy parameters, `x, y : array_like`
    r"|[+|]|[┌│├└╭╰]"  # tables and drawings
    r"|\$|%|#|<|\{|\}"  # shell, comments, mark-up, data
)
_TABLE_RULE = re.compile(r" *[=\-]{2,}(?: +[=\-]{2,})+ *")
_COLUMNS = re.compile(r"\S {3,}\S")
_ENTRY_LINE = re.compile(r" *[\w.*`'\"\[\]()-]+ *(?:--?|=|:|—|->|=>) ")

_CITING = (
    r"\b(?i:in|by|from|of|to|see|and|or|with|follow|follows|following|per|on|using|also|the|paper|like|than|is|both)"
)
_FOOTNOTES = r"(\[#?\w+\])_(?:(?:,? and |,? ?)\[#?\w+\]_)*"
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"!\[[^\]]*\]\([^)]*\)", ""),  # Markdown image
        # Classes lose their modules, `logging.Logger` and collections.OrderedDict: a sentence would be cut there.
        (r"`~?\.?(?:[a-z_]\w*\.)*(?=[A-Z])", "`"),
        (r"(?<![\w.])(?:[a-z_]\w*\.)+(?=[A-Z][a-z]+[A-Z])", ""),
        (r"\[`~(?:[\w]+\.)*(\w+(?:\(\))?)`\](?:\([^)]*\))?", r"\1"),  # [`~a.b.C`] -> C
        (r"\[(`?)([^\]\[]+)\1\]\([^)\s]*\)", r"\2"),  # [text](url) -> text
        (r"\[`([^`\]]+)`\]", r"\1"),  # [`a.b.C`] -> a.b.C
        (rf"({_CITING}) {_FOOTNOTES}", r"\1 \2"),  # as shown in [1]_ -> as shown in [1]
        (rf" ?{_FOOTNOTES}", ""),  # reST footnote mark that is no part of the sentence
        (r":rfc:`(\d+)`", r"RFC \1"),
        (r":pep:`(\d+)`", r"PEP \1"),
        (r":[\w:+-]+:`~(?:[\w]+\.)*([^`<]+)`", r"\1"),  # :class:`~a.b.C` -> C
        (r":[\w:+-]+:`([^`<]+?) *<[^`>]*>`", r"\1"),  # :ref:`text <label>` -> text
        (r":[\w:+-]+:`!?\.?([^`]+)`", r"\1"),  # :class:`Foo` -> Foo
        (r"`([^`<]+?)\s*<[^`>]+>`_{1,2}", r"\1"),  # `text <url>`_ -> text
        (r"``([^`]+(?:`[^`]+)*)``", r"\1"),
        (r"`([^`]+)`_{0,2}", r"\1"),
        (r"(?<![\w*])\*\*(?=\S)([^*]+?)(?<=\S)\*\*(?![\w*])", r"\1"),
        (r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"\1"),
        (r"(?<![\w_])__?(?=[A-Za-z])([A-Za-z ,'-]+?)(?<=\w)__?(?![\w_(])(?!\.\w)", r"\1"),  # _text_ -> text
        (r"\|(@?[A-Za-z][\w. ]*)\|_{0,2}", r"\1"),  # reST substitution
        (r"</?(?:b|i|em|strong|code|tt|br|p|u|sup|sub)\s*/?>", ""),
        (r"(?<=\w)_(?=[\s.,;:)])", ""),  # Reference_ -> Reference
        (r"\\([*_`|])", r"\1"),
        (r"\\ |`", ""),
        (r"::$", ":"),
        (r"\s+", " "),
        (r" (?=[.,;:](?:\s|$))", ""),
        (r"(?<=[.!?]) [^.!?]{1,60}:$", ""),  # ... For example: (and the code below it)
    )
)

_PLAIN_WORD = re.compile(r"[(\"'“\u2018]*[A-Za-z]+(?:[-'\u2019/][A-Za-z]+)*[)\"'”\u2019]*[.,;:!?]*[)\"'”\u2019]*")
_WORD_CORE = re.compile(r"[A-Za-z]+")
_START = re.compile(r"[\"'“\u2018(]?(?:[A-Z]|[a-z]\w*[._(\d]\w*[\w.()]* [a-z]+ )")
_END = re.compile(r"[.!?:][\"'”\u2019)]*$")
_MAY_END = re.compile(r"[.!?:]\W*_*\s*$")
_SYMBOL = re.compile(r"[^\w\s.,;:!?'\"()“”\u2018\u2019\u2013—-]|_")
_NOT_PROSE = re.compile(
    r"https?:|www\.|\w@\w|\\[A-Za-z]|>>>|::|[${}^]|->|=>|==|[<>]=|\.\.\.\.|--{2,}|…"  # addresses, formulas, code
    r"|\b(?:TODO|FIXME|XXX|HACK)\b"
    # references
    r"|\b(?:pp?|[Vv]ol|[Ee]ds?|[Pp]roc|no)\.? ?\(?\d|\bpp\. |\b(?:doi|DOI|ISBN|arXiv)\b|\bet al\.?,? \(?\d{4}"
    r"|\(c\)|©|(?i:copyright|all rights reserved|licen[cs]ed? |hereby granted|redistribution)"
    r"|^[\w.]+\([^)]*\) *(?:->|:|--|=|is equivalent)"  # signatures
    r"|^[a-z][\w.]* *(?::|--?) "  # entries of a list of names
    r"|^(?:Authors?|Usage|Synopsis|Created|Last|Version|Date|Source|Ref|Based on code|Written by|Contact)\b[^.]*:"
    r"|^[A-Z][A-Z ]+:"
)
_TERM = re.compile(r"[^.,]{0,48}?(?::| --? | — | \u2013 |=)")  # how an entry `term: meaning` opens
_SENTENCE_END = re.compile(r"[.!?][\"'”\u2019)]*(?=\s|$)")


def prose_paragraphs(text: str, *, keep_indented: bool = False) -> list[str]:
    """The prose paragraphs of `text`, in order, each on one line and without mark-up.

    `keep_indented` also considers indented blocks, which in a docstring are code or lists, but in the rendered
    pages of `pydoc_data.topics` hold the descriptions of methods and statements.
    """
    paragraphs = []
    for section in _sections(_without_fences(inspect.cleandoc(text).splitlines())):
        for lines, is_item in _BlockReader(keep_indented).read(section):
            if not _MAY_END.search(lines[-1]):  # spares most lists the work below
                continue
            paragraph = _plain(lines)
            if _is_prose(paragraph) and not (is_item and _TERM.match(paragraph)):
                paragraphs.append(paragraph)
    return paragraphs


def count_sentences(paragraph: str) -> int:
    """How many sentence ends `paragraph` has: a rough count, meant for leaving out documents that are too short."""
    return len(_SENTENCE_END.findall(paragraph))


def _without_fences(lines: list[str]) -> Iterator[str]:
    """`lines` without Markdown's fenced blocks; a fence that is never closed runs to the end."""
    fence: str | None = None
    for line in lines:
        match = _FENCE.match(line)
        if match and fence is None:
            # An inline ```x``` opens nothing.
            fence = None if match[1] in line[match.end() :] else match[1]
            yield ""
        elif match and match[1] == fence:
            fence = None
        elif fence is None:
            yield line


def _sections(lines: Iterator[str]) -> Iterator[list[str]]:
    """The bodies between underlined headings, headings left out, without the sections that only list things."""
    body: list[str] = []
    keep = True
    for line in lines:
        if not _UNDERLINE.fullmatch(line):
            body.append(line)
            continue
        title = body.pop().strip() if body else ""
        if keep:
            yield body
        # An overline, or a rule across the page, has no title above it and changes nothing.
        keep = keep if not title else not _LIST_TITLE.fullmatch(title)
        body = []
    if keep:
        yield body


class _BlockReader:
    """Reads lines into blocks `(lines, is_item)`: paragraphs and list items that may be prose."""

    def __init__(self, keep_indented: bool) -> None:
        self.keep_indented = keep_indented
        self.bases = [0]  # columns where prose may start: the margin, then each open admonition or list item
        self.skip_deeper: int | None = None  # drop lines to the right of this column
        self.skip_block = False  # drop lines up to the next blank one
        self.body_of: int | None = None  # column of an admonition whose first line is still to come
        self.lines: list[str] = []
        self.is_item = False

    def read(self, lines: list[str]) -> Iterator[tuple[list[str], bool]]:
        for line in [*lines, ""]:
            if not line.strip():
                yield from self._flush()
                self.skip_block = False
            elif not self._is_skipped(line):
                yield from self._take(line)

    def _is_skipped(self, line: str) -> bool:
        indent = _indent(line)
        if self.skip_deeper is not None and indent <= self.skip_deeper:
            self.skip_deeper = None
        return self.skip_block or self.skip_deeper is not None

    def _take(self, line: str) -> Iterator[tuple[list[str], bool]]:
        indent, content = _indent(line), line.strip()
        admonition, bullet = _ADMONITION.match(content), _BULLET.match(content)
        if content.startswith(">>>") or _TABLE_RULE.fullmatch(line):
            self.skip_block = True
            yield from self._flush()
        elif _TAG_LINE.match(content):
            yield from self._flush()
        elif admonition:
            yield from self._flush()
            self._open_body(indent, content[admonition.end() :])
        elif _LIST_HEADER.match(content) or _DROPPED_WITH_BODY.match(content):
            yield from self._flush()
            # What follows a header on its own line may stand at the same column.
            self.skip_deeper, self.skip_block = indent, True
        elif bullet:
            yield from self._flush()
            self._start(indent + bullet.end(), content[bullet.end() :], is_item=True)
        else:
            self._continue(indent, line)

    def _open_body(self, indent: int, first_words: str) -> None:
        """Starts an admonition: its body is prose although it is indented."""
        self.body_of = indent
        self._close_bases(indent)
        if first_words:
            self.lines = [first_words]

    def _continue(self, indent: int, line: str) -> None:
        """Adds `line` to the open block or starts one; a block that is indented without a reason is dropped."""
        if self.body_of is not None:
            if indent > self.body_of:
                self.bases.append(indent)
            self.body_of = None
        self._close_bases(indent)
        if indent > self.bases[-1] and not (self.keep_indented and not self.lines):
            # Code or a quotation; right under a line of text, the meaning of a term in a definition list.
            self.lines, self.skip_block, self.skip_deeper = [], True, self.bases[-1]
        elif self.lines:
            self.lines.append(line)
        else:
            self._start(indent, line, is_item=False)

    def _start(self, base: int, line: str, *, is_item: bool) -> None:
        self.body_of = None
        self._close_bases(base)
        if base > self.bases[-1]:
            self.bases.append(base)
        self.lines, self.is_item = [line], is_item

    def _close_bases(self, indent: int) -> None:
        while indent < self.bases[-1]:
            self.bases.pop()

    def _flush(self) -> Iterator[tuple[list[str], bool]]:
        lines, self.lines = self.lines, []
        entries = sum(bool(_ENTRY_LINE.match(line)) for line in lines)
        if lines and entries < 2 and not any(_COLUMNS.search(line.strip()) for line in lines):
            yield lines, self.is_item
        self.is_item = False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _plain(lines: list[str]) -> str:
    """The lines of one block as one line, inline mark-up of reST and Markdown taken off."""
    text = " ".join(line.strip() for line in lines)
    for pattern, plain in _INLINE:
        text = pattern.sub(plain, text)
    return text.strip()


def _is_prose(paragraph: str) -> bool:
    """Whether a plain paragraph reads like one or more English sentences."""
    if not _START.match(paragraph) or not _END.search(paragraph) or _NOT_PROSE.search(paragraph):
        return False
    tokens = paragraph.split()
    if paragraph.endswith(":") and len(tokens) < MIN_INTRODUCTION_WORDS:
        return False
    plain = [token for token in tokens if _PLAIN_WORD.fullmatch(token)]
    if len(plain) < max(MIN_WORDS, MIN_PLAIN_SHARE * len(tokens)):
        return False
    if len(_SYMBOL.findall(paragraph)) > max(FREE_SYMBOLS, MAX_SYMBOL_SHARE * len(paragraph)):
        return False
    cores = [match[0].lower() for token in plain if (match := _WORD_CORE.search(token))]
    return sum(_FUNCTION_WORD.fullmatch(core) is not None for core in cores) >= MIN_FUNCTION_SHARE * len(tokens)
