"""Search documents: by the vectors of their sentences and by their words (BM25), fused by reciprocal rank.

    index.json            which data count, how many additions of them, and which documents are deleted
    data-<n>/sentences/   the sentences of all documents, a `SearchIndex`
    data-<n>/000000/ ...  what each addition brought: documents.arrow and the words of its documents

Additions are written once. index.json is replaced last, so that a killed run changes nothing, and an index that is
open goes on answering by what it opened. `compact` writes new data without what was deleted.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.origin.tfidf_build import build_segment
from ctxsim_hf.origin.tfidf_segment import TfidfSegment
from ctxsim_hf.runtime.cache import check_digests, write_digests
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import whole_folder
from ctxsim_hf.runtime.validation import Count, check_value
from ctxsim_hf.runtime.working import writing_into
from ctxsim_hf.surrogate.document_contents import SENTENCES, DocumentContents, data_folders
from ctxsim_hf.surrogate.document_file import SearchDocument
from ctxsim_hf.surrogate.document_table import TABLE, DocumentSentences, make_table, map_table, ranges, write_table
from ctxsim_hf.surrogate.search_index import INDEX_FILE, REMEDY, Part, SearchIndex, nothing_indexed
from ctxsim_hf.surrogate.word_search import WORDS, WordSearch
from ctxsim_hf.text.rank_fusion import reciprocal_ranks
from ctxsim_hf.text.sentence_checks import check_sentences

FIRST = "000000"  # the name of the first addition
MIN_CANDIDATES = 100  # documents that each of the two ways may propose
SENTENCES_PER_PART = 10_000


class DocumentHit(NamedTuple):
    """A document that a search found."""

    similarity: float  # cosine of the query and the best sentence
    id: str
    title: str
    sentence: str  # the one most similar to the query


class DocumentIndex:
    """A folder of documents to search. It is opened once and answers any number of times.

    Args:
        folder (`str` or `Path`): Folder of the index. If it does not exist, `encoder` starts one.
        encoder ([`SentenceEncoder`], *optional*): The encoder that made it. None opens it from the recorded path.
        language (`str`): Language code for the sentence splitter, when documents are added.
    """

    def __init__(self, folder: str | Path, encoder: SentenceEncoder | None = None, language: str = "en") -> None:
        self.folder, self.language = Path(folder), language
        self._open(encoder)

    def _open(self, encoder: SentenceEncoder | None) -> None:
        self._contents = DocumentContents.load(self.folder)
        if encoder is None and not self._contents.added:
            raise nothing_indexed(self.folder)
        self.sentences = SearchIndex(self._data / SENTENCES, encoder)
        for name in self._contents.added:
            check_digests(self._data / name, REMEDY)
        for name in ("_documents", "_words", "_ends", "_live"):
            self.__dict__.pop(name, None)

    @property
    def _data(self) -> Path:
        return self.folder / self._contents.data

    def __len__(self) -> int:
        return int(self._live.sum())

    @cached_property
    def _documents(self) -> pa.Table:
        tables = [map_table(self._data / name / TABLE) for name in self._contents.added]
        return pa.concat_tables(tables) if tables else make_table([])

    @cached_property
    def _ends(self) -> np.ndarray:
        """The sentence after the last of each document."""
        return np.cumsum(self._documents["sentences"].to_numpy())

    @cached_property
    def _live(self) -> np.ndarray:
        live, deleted = np.ones(len(self._documents), dtype=bool), np.array(self._contents.deleted, dtype=np.int64)
        if deleted.max(initial=-1) >= len(live):
            raise UserError(
                f"{str(self.folder / INDEX_FILE)!r} is damaged: it has only {len(live)} documents; {REMEDY}"
            )
        live[deleted] = False
        return live

    @cached_property
    def _words(self) -> WordSearch:
        return WordSearch([TfidfSegment.open(self._data / name / WORDS) for name in self._contents.added], self._live)

    def add(self, documents: Iterable[SearchDocument], num_processes: int = 1) -> None:
        """Add documents, each with an id of its own. The same call goes on after an interruption.

        Args:
            documents (`Iterable[SearchDocument]`): The documents, read more than once.
            num_processes (`int`): Number of processes that encode.
        """
        if iter(documents) is documents:
            raise UserError("documents are read more than once; expected a list or a DocumentFile, got an iterator")
        if next(iter(documents), None) is None:
            raise UserError("expected documents to add, but there are none")
        with writing_into(self.folder):
            self._open(self.sentences.encoder)
            self.folder.mkdir(exist_ok=True)
            self._contents.save(self.folder)  # first, since data without it are damaged
            number = len(self._contents.added)
            target = self._data / f"{number:06d}"
            shutil.rmtree(target, ignore_errors=True)  # of a run that was killed
            self.sentences.keep(number)
            flat = DocumentSentences(documents, self.language)
            with whole_folder(target) as folder:
                build_segment(flat.by_document(), folder / WORDS, WORDS)
                write_table(folder / TABLE, flat.table)
                self._refuse_known(flat.table)
                write_digests(folder)
            self.sentences.add(flat, num_processes)
            self._replace(added=[*self._contents.added, target.name])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents by their ids; refuse ids that no document has."""
        check_sentences(ids, "a list of ids")
        with writing_into(self.folder):
            self._open(self.sentences.encoder)
            numbers = {id: n for n, id in enumerate(self._documents["id"].to_pylist()) if self._live[n]}
            if unknown := [id for id in ids if id not in numbers]:
                raise UserError(f"no document of {str(self.folder)!r} has the id {unknown[0]!r}; nothing was deleted")
            deleted = {*self._contents.deleted, *(numbers[id] for id in ids)}
            if len(deleted) == len(self._documents):
                raise UserError(f"these are all documents of {str(self.folder)!r}; remove the folder instead")
            self._replace(deleted=sorted(deleted))

    def compact(self) -> None:
        """Write new data without deleted documents, as one addition; nothing is encoded again."""
        with writing_into(self.folder):
            self._open(self.sentences.encoder)
            self._remove_unused()
            if self._contents.added == [FIRST] and not self._contents.deleted:
                return
            name = self._contents.next_data
            live = np.flatnonzero(self._live)
            rows = ranges(self._ends - self._documents["sentences"].to_numpy(), self._ends, live)
            texts = [self.sentences.sentence(row) for row in rows.tolist()]
            table = self._documents.take(pa.array(live)).combine_chunks()
            with whole_folder(self.folder / name / FIRST) as folder:
                starts = np.cumsum([0, *table["sentences"].to_pylist()])
                build_segment((texts[a:b] for a, b in pairwise(starts.tolist())), folder / WORDS, WORDS)
                write_table(folder / TABLE, table)
                write_digests(folder)

            def parts(first: int) -> Iterator[Part]:
                for start in range(first, len(rows), SENTENCES_PER_PART):
                    block = slice(start, start + SENTENCES_PER_PART)
                    yield texts[block], self.sentences.vectors()[rows[block]]

            SearchIndex(self.folder / name / SENTENCES, self.sentences.encoder).append(texts, parts)
            self._replace(data=name, added=[FIRST], deleted=[])
            self._remove_unused()

    def _remove_unused(self) -> None:
        """Remove data that do not count: those before they were compacted, and those of a run that was killed."""
        for path in data_folders(self.folder):
            if path != self._data:
                shutil.rmtree(path)

    def _replace(self, **changes: Any) -> None:
        replace(self._contents, **changes).save(self.folder)
        self._open(self.sentences.encoder)

    def _refuse_known(self, table: pa.Table) -> None:
        ids = table["id"].to_pylist()
        known = {id for n, id in enumerate(self._documents["id"].to_pylist()) if self._live[n]}
        seen: set[str] = set()
        for id in ids:
            if id in known or id in seen:
                where = "given twice" if id in seen else f"in {str(self.folder)!r} already; delete it first"
                raise UserError(f"the document with the id {id!r} is {where}")
            seen.add(id)

    def search(self, queries: list[str], top_k: int = 10, fuse: bool = True) -> list[list[DocumentHit]]:
        """Return the best documents for each query, best first.

        Args:
            queries (`list[str]`): What to look for.
            top_k (`int`): Number of documents.
            fuse (`bool`): Whether words count too, by reciprocal rank; otherwise the most similar sentence decides.
        """
        check_sentences(queries, "a list of queries")
        check_value("top_k", top_k, Count)
        if not len(self):
            raise UserError(f"nothing is indexed in {str(self.folder)!r} yet")
        vectors = np.asarray(self.sentences.encoder.encode(queries, normalize_embeddings=True))
        return [self._search(query, vector, top_k, fuse) for query, vector in zip(queries, vectors, strict=True)]

    def _search(self, query: str, vector: np.ndarray, top_k: int, fuse: bool) -> list[DocumentHit]:
        number = min(len(self), max(MIN_CANDIDATES, 5 * top_k))
        candidates = self._nearest(vector, number)
        if fuse:
            scores = self._words.scores(query)
            best = np.argsort(-scores, kind="stable")[:number]
            candidates = np.unique(np.concatenate([candidates, best[scores[best] > 0]]))
        places, similarities = self._best_sentences(vector, candidates)
        ranks = reciprocal_ranks(similarities[None])[0]
        if fuse:
            found = scores[candidates]
            ranks = ranks + reciprocal_ranks(np.where(found > 0, found, -np.inf)[None])[0]
        order = np.lexsort((candidates, -similarities, -ranks))[:top_k]
        return [self._hit(int(candidates[n]), int(places[n]), float(similarities[n])) for n in order.tolist()]

    def _hit(self, document: int, place: int, similarity: float) -> DocumentHit:
        row = self._documents.slice(document, 1).to_pylist()[0]
        return DocumentHit(similarity, row["id"], row["title"], self.sentences.sentence(place))

    def _nearest(self, vector: np.ndarray, number: int) -> np.ndarray:
        """Return so many documents with the most similar sentences; more sentences are asked for until they do."""
        rows, total = 4 * number, int(self._ends[-1])
        while True:
            _, (places,) = self.sentences.search_vectors(vector[None], rows)
            documents = np.searchsorted(self._ends, places[(places >= 0) & (places < total)], side="right")
            found = np.array(list(dict.fromkeys(documents[self._live[documents]].tolist())), np.int64)
            if len(found) >= number or rows >= len(self.sentences):
                return found[:number]
            rows *= 2

    def _best_sentences(self, vector: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of the most similar sentence of each document, and its similarity."""
        starts = self._ends - self._documents["sentences"].to_numpy()
        rows = ranges(starts, self._ends, documents)
        cosines = self.sentences.vectors()[rows] @ vector.astype(np.float32)
        edges = np.cumsum([0, *(self._ends[documents] - starts[documents])])
        best = [first + int(cosines[first:last].argmax()) for first, last in pairwise(edges.tolist())]
        return rows[best], cosines[best].astype(np.float64)
