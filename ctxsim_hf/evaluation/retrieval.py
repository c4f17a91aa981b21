"""Queries and documents that people judged relevant -> nDCG@10 and MRR@10 of a system's rankings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ctxsim_hf.evaluation.examples import Similarity, spread
from ctxsim_hf.evaluation.ranking import top_documents
from ctxsim_hf.runtime.estimates import Estimate, bootstrap

DEPTH = 10


@dataclass(frozen=True)
class Retrieval:
    """Queries, the documents of a corpus, and how relevant some of them are to each query."""

    task: str
    split: str
    queries: Sequence[str]
    ids: Sequence[str]  # of documents
    documents: Sequence[str]
    grades: Sequence[Mapping[str, float]]  # of each query, by the id of a document; 0 for the others

    @property
    def remarks(self) -> Sequence[str]:
        about = f"{self.task}: {len(self):,} queries, {len(self.documents):,} documents (title and text)"
        known = set(self.ids)
        missing = sum(grade > 0 and id not in known for grades in self.grades for id, grade in grades.items())
        return [about + (f"; relevant ones that the corpus lacks, counted as missed: {missing:,}" if missing else "")]

    def __len__(self) -> int:
        return len(self.queries)

    def rank(self, system: Similarity) -> np.ndarray:
        """Return the places of the first documents of each query: (queries, 10 at most)."""
        return top_documents(system, self.queries, self.documents, DEPTH)

    def judge(self, scores: np.ndarray) -> dict[str, Estimate]:
        """Return the figures of what `rank` gave. Gains are grades and discounts log2(rank + 1), as in trec_eval."""
        pairs = zip(self.grades, scores, strict=True)
        gains = np.array([[grades.get(self.ids[place], 0) for place in row] for grades, row in pairs]).clip(min=0)
        discounts = 1 / np.log2(np.arange(DEPTH) + 2)
        best = [sorted(grades.values(), reverse=True)[:DEPTH] for grades in self.grades]
        ideal = np.array([np.dot(np.clip(row, 0, None), discounts[: len(row)]) for row in best])
        found = (gains > 0).any(axis=1)
        reciprocal_ranks = found / (1 + np.argmax(gains > 0, axis=1))
        by_query = {"ndcg_at_10": gains @ discounts[: gains.shape[1]] / ideal, "mrr_at_10": reciprocal_ranks}
        return {measure: _mean(values) for measure, values in by_query.items()}

    def some(self, number: int) -> Self:
        rows = spread(len(self), number)
        return replace(self, queries=[self.queries[r] for r in rows], grades=[self.grades[r] for r in rows])


def _mean(values: np.ndarray) -> Estimate:
    return bootstrap(lambda draw: values[draw].mean(axis=-1), len(values))
