"""A folder with a corpus and queries -> a retrieval task.

`corpus` and `queries` are each a folder that `load_dataset` opens, or a file. Queries have the documents that are
relevant to them in a column `relevant`, {id: grade} or a list of ids; or, as in BEIR, these stand in `qrels/SPLIT.tsv`
with columns query-id, corpus-id and score.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ctxsim_hf.evaluation.own_data import ENDINGS, find_column, read_rows, split_name, split_of
from ctxsim_hf.evaluation.retrieval import Retrieval
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.text.rows import Row
from ctxsim_hf.text.sentence_checks import check_sentence

ID, QUERY, RELEVANT = ("id", "_id"), ("query", "text"), "relevant"
Grades = dict[str, dict[str, float]]  # by query and document


def load_retrieval(spelling: str, split: str = "test") -> Retrieval:
    """Read queries that have a relevant document, and all documents.

    Args:
        spelling (`str`): `DIR` or `NAME=DIR`.
        split (`str`): Split of a folder of queries, or of qrels.
    """
    name, folder = split_name(spelling)
    if not Path(folder).is_dir():
        raise UserError(f"expected a folder with corpus and queries, but {folder!r} is none")
    documents = _documents(_find(folder, "corpus"))
    location = _find(folder, "queries")
    judged_apart = (Path(folder) / "qrels").is_dir()
    rows = read_rows(location, None if judged_apart else split)
    queries = _texts(rows, QUERY, location)
    grades = _qrels(Path(folder) / "qrels", split) if judged_apart else _grades(rows, location)
    asked = [id for id in queries if any(grade > 0 for grade in grades.get(id, {}).values())]
    if not any(document in documents for id in asked for document in grades[id]):
        raise UserError(f"expected queries with relevant documents of the corpus in {folder!r}, found none")
    return Retrieval(
        name,
        split if judged_apart else split_of(location, split),
        [queries[id] for id in asked],
        list(documents),
        list(documents.values()),
        [grades[id] for id in asked],
    )


def _find(folder: str, name: str) -> str:
    paths = [Path(folder) / f"{name}{ending}" for ending in ("", *ENDINGS)]
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        raise UserError(f"expected {name!r} in {folder!r}, a folder or a file that ends in {', '.join(ENDINGS)}")
    return str(found)


def _documents(location: str) -> dict[str, str]:
    rows = read_rows(location)
    texts = _texts(rows, ("text",), location)
    titles = [cast(dict[str, Any], row.values).get("title") or "" for row in rows]
    return {id: f"{title} {text}".strip() for title, (id, text) in zip(titles, texts.items(), strict=True)}


def _texts(rows: Sequence[Row], columns: Sequence[str], location: str) -> dict[str, str]:
    """Return texts by their ids."""
    id_column, column = find_column(rows, ID, location), find_column(rows, columns, location)
    texts: dict[str, str] = {}
    for row in rows:
        values = cast(dict[str, Any], row.values)
        check_sentence(values.get(column), f"{column} of {row.place}")
        if (id := str(values.get(id_column))) in texts:
            raise UserError(f"{row.place}: the id {id!r} is that of another row; expected each once")
        texts[id] = values[column]
    return texts


def _grades(rows: Sequence[Row], location: str) -> Grades:
    find_column(rows, [RELEVANT], location)
    id_column = find_column(rows, ID, location)
    grades: Grades = {}
    for row in rows:
        values = cast(dict[str, Any], row.values)
        relevant = values.get(RELEVANT) or {}
        if isinstance(relevant, list):
            relevant = dict.fromkeys(relevant, 1)
        if not isinstance(relevant, dict):
            wanted = f"{{id: grade}} or a list of ids in {RELEVANT!r}"
            raise UserError(f"{row.place}: expected {wanted}, got {str(relevant)[:60]!r}")
        # Some readers give every row the keys of all rows, with None for those it has not.
        judged = {str(id): grade for id, grade in relevant.items() if grade is not None}
        grades[str(values[id_column])] = {id: _grade(grade, row.place) for id, grade in judged.items()}
    return grades


def _qrels(folder: Path, split: str) -> Grades:
    location = _find(str(folder), split)
    rows = read_rows(location)
    names = [find_column(rows, [name], location) for name in ("query-id", "corpus-id", "score")]
    grades: Grades = {}
    for row in rows:
        query, document, grade = (cast(dict[str, Any], row.values).get(name) for name in names)
        grades.setdefault(str(query), {})[str(document)] = _grade(grade, row.place)
    return grades


def _grade(value: Any, place: str) -> float:
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = float("nan")
    if not abs(grade) < float("inf"):
        raise UserError(f"{place}: expected a number as the grade of a document, got {value!r}")
    return grade
