"""Sentences -> communities of similar sentences, each with its most typical one: `ctxsim cluster`."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge
from transformers.hf_argparser import HfArg

from ctxsim_hf.mining.communities import find_communities
from ctxsim_hf.mining.findings import Findings
from ctxsim_hf.mining.mining_arguments import MiningArguments, Threshold
from ctxsim_hf.text.html_page import escape

SHOWN = 10  # communities in a terminal
MEMBERS_ON_PAGE = 100


@dataclass(kw_only=True)
class ClusterArguments(MiningArguments):
    """The arguments of `ctxsim cluster`."""

    min_size: Annotated[int, Ge(2)] = HfArg(default=3, help="The lowest number of sentences in a community.")

    unrelated_neighbours: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Member:
    """A sentence of a community, where it stands first, and its similarity to the centre."""

    sentence: str
    place: str
    similarity: float


@dataclass(frozen=True)
class SentenceCommunity:
    """Similar sentences: the centre first, to which all others are similar, then the most similar to it."""

    typical: str  # the sentence nearest to the mean of all
    members: list[Member]

    @property
    def size(self) -> int:
        """The number of sentences."""
        return len(self.members)


@dataclass(frozen=True, repr=False)
class Communities(Findings):
    """Communities, the largest first."""

    title = "Communities"
    shown_in_notebook, shown_on_page = 30, 1000

    communities: list[SentenceCommunity]
    threshold: Threshold
    num_sentences: int

    def __len__(self) -> int:
        return len(self.communities)

    def __iter__(self) -> Iterator[SentenceCommunity]:
        return iter(self.communities)

    @property
    def summary(self) -> str:
        """How many communities there are, and what makes one."""
        inside = sum(community.size for community in self.communities)
        return (
            f"{len(self):,} communities of {inside:,} among {self.num_sentences:,} different sentences: "
            f"{self.threshold}"
        )

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"{found.size:6,}  {found.typical}" for found in self.communities[:SHOWN])])

    def body(self, number: int) -> str:
        rest = f" The first {number:,} are shown." if len(self) > number else ""
        return f"<p>{escape(self.summary)}.{rest}</p>" + "".join(map(_community_html, self.communities[:number]))

    def json_lines(self) -> Iterator[str]:
        """Yield a line for each community."""
        for found in self.communities:
            yield json.dumps({"size": found.size} | asdict(found), ensure_ascii=False) + "\n"

    def tab_lines(self) -> Iterator[str]:
        """Yield a line for each sentence."""
        yield "community\tsize\tsimilarity\ttypical\tsentence\tplace\n"
        for number, found in enumerate(self.communities, 1):
            for member in found.members:
                cells = [number, found.size, f"{member.similarity:.6f}", int(member.sentence == found.typical)]
                texts = (" ".join(text.split()) for text in (member.sentence, member.place))
                yield "\t".join([*map(str, cells), *texts]) + "\n"


def _community_html(found: SentenceCommunity) -> str:
    """Return a community as a line that opens to show its members."""
    members = "".join(
        f"<li>{escape(member.sentence)} "
        f'<span class="quiet number">{member.similarity:.3f} {escape(member.place)}</span></li>'
        for member in found.members[:MEMBERS_ON_PAGE]
    )
    more = f"<li>and {found.size - MEMBERS_ON_PAGE:,} others</li>" if found.size > MEMBERS_ON_PAGE else ""
    return (
        f'<details class="card"><summary><b class="number">{found.size:,}</b> {escape(found.typical)}</summary>'
        f"<ul>{members}{more}</ul></details>"
    )


def run(arguments: ClusterArguments) -> Communities:
    """Find communities, write them, and return them."""
    sentences = arguments.read()
    with arguments.vectors(sentences) as vectors:
        threshold = arguments.choose_threshold(vectors)
        found = find_communities(vectors, threshold.similarity, arguments.min_size)
    texts, places = sentences.texts, sentences.places
    communities = [
        SentenceCommunity(
            texts[community.typical],
            [
                Member(texts[place], places[place], similarity)
                for place, similarity in zip(community.members.tolist(), community.similarities.tolist(), strict=True)
            ],
        )
        for community in found
    ]
    result = Communities(communities, threshold, len(sentences))
    for path in arguments.output:
        result.save(path)
    return result
