"""Docstrings in every dialect, and the prose that must come out of them, word for word."""

import pytest
from prose import count_sentences, prose_paragraphs

NUMPY = """Compute the mean along the
    given axis of the array.

    The mean is the sum of the elements
    divided by their number.

    Parameters
    ----------
    x : array_like
        The array whose mean is to be computed.

    Returns
    -------
    The mean of all the elements of the array.

    Notes
    -----
    The sum is computed in double precision, as in [1]_.

    References
    ----------
    .. [1] Some Author, "The mean of it all is a number that we like."

    Examples
    --------
    This is how the function is used by most people:

    >>> mean([1, 2])
    """

GOOGLE = """Read the rows of a table from a file.

    The rows are read lazily, one at a time.

    Args:
        path: The path of the file that is to be read.

            It may be a directory, in which case all files are read.
        limit (int): How many rows are to be read at most.

    Returns:
        A list of all the rows that were read.

    Note:
        The file must not change while it is being read.

    Raises:
        ValueError: If the file is not a table at all.
    """

REST = """Send a request to the :class:`~pkg.server.Server` and wait for it.

    See :ref:`the manual <manual>` or the `home page <https://example.org>`_ for more.

    :param url: The address that the request is sent to.
    :type url: str
    :returns: The response of the server to the request.

    .. code-block:: python

        send("This is a sentence in a block of code.")

    .. note:: A request is sent only once in the life of a session.

    .. versionadded:: 2.0
       The parameter that was missing until this version.
    """

HUGGING_FACE = """
    Construct a tokenizer that is **fast**, based on [`~tokenizers.Tokenizer`] and [`a.b.C`].

    <Tip>

    This tokenizer inherits from [PreTrained](./main) and you should read its documentation.

    </Tip>

    vocab_file (`str`, *optional*, defaults to `None`):
        The file that the vocabulary is read from.

    ```python
    This is code and it is not a sentence.
    ```
    """

LISTS = """The options of the command are described in the following list of names:

    - verbose
    - quiet: the output is kept to the minimum.
    * `name` - the name of the thing that is printed.
    1. The value is checked against all of the rules before
       it is stored in the table.

    term
        The meaning of the term in a definition list.

    ====  =====
    a     b
    ====  =====
    This is a row of the table and not a sentence.

    +---+ the border of a table is not a sentence.
    """

DOCTEST = """mean(x, axis=None) -> float

    Return the mean of the numbers in the list.

    >>> mean([1, 2])
    This is the output of the example and no prose.

    Example::

        The block below a double colon is left out.

    A Heading
    =========

    licensed under the terms of the licence.

    Licensed under the terms of the licence that is in the file.

    TODO: this has to be done by one of us.

    See https://example.org for more on the subject.

    A | table | in | the | text | is | left out.
    """


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        pytest.param(
            NUMPY,
            [
                "Compute the mean along the given axis of the array.",
                "The mean is the sum of the elements divided by their number.",
                "The sum is computed in double precision, as in [1].",
            ],
            id="numpy",
        ),
        pytest.param(
            GOOGLE,
            [
                "Read the rows of a table from a file.",
                "The rows are read lazily, one at a time.",
                "The file must not change while it is being read.",
            ],
            id="google",
        ),
        pytest.param(
            REST,
            [
                "Send a request to the Server and wait for it.",
                "See the manual or the home page for more.",
                "A request is sent only once in the life of a session.",
            ],
            id="rest",
        ),
        pytest.param(
            HUGGING_FACE,
            [
                "Construct a tokenizer that is fast, based on Tokenizer and C.",
                "This tokenizer inherits from PreTrained and you should read its documentation.",
            ],
            id="hugging-face",
        ),
        pytest.param(
            LISTS,
            [
                "The options of the command are described in the following list of names:",
                "The value is checked against all of the rules before it is stored in the table.",
            ],
            id="lists-and-tables",
        ),
        pytest.param(DOCTEST, ["Return the mean of the numbers in the list."], id="doctest"),
        pytest.param("", [], id="empty"),
    ],
)
def test_only_prose_is_kept(docstring: str, expected: list[str]) -> None:
    assert prose_paragraphs(docstring) == expected


@pytest.mark.parametrize(
    ("marked_up", "plain"),
    [
        ("It calls ``f`` and `g` in that order.", "It calls f and g in that order."),
        ("It is a :class:`Foo` and not a `Bar`_ at all.", "It is a Foo and not a Bar at all."),
        ("It is *very* **important** to _stop_ in time.", "It is very important to stop in time."),
        ("It takes *args as they are given.", "It takes *args as they are given."),
        ("The method is fast [1]_, [2]_ and it is exact.", "The method is fast and it is exact."),
        ("It returns a `logging.Logger` and a ``.Axes`` of its own.", "It returns a Logger and a Axes of its own."),
        ("It is a collections.OrderedDict with a size.", "It is a OrderedDict with a size."),
        ("It is the first of all things. For example:", "It is the first of all things."),
        ("The format is that of :rfc:`3986` and no other.", "The format is that of RFC 3986 and no other."),
    ],
)
def test_inline_markup_is_made_plain(marked_up: str, plain: str) -> None:
    assert prose_paragraphs(marked_up) == [plain]


def test_indented_descriptions_are_kept_on_request() -> None:
    page = "Methods of objects\n\nobject.__len__(self)\n\n"
    page += "   Called to compute the length of the object.\n\n      x = len(self)\n"
    assert prose_paragraphs(page) == []
    assert prose_paragraphs(page, keep_indented=True) == ["Called to compute the length of the object."]


def test_sentences_are_counted() -> None:
    assert count_sentences('It is 1.5 wide. "Is it so?" Yes (it is.) It ends in:') == 3
