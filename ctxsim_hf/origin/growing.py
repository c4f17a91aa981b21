"""Change an origin in place: `ctxsim index --origin DIR` with --add, --delete or --compact.

A change is prepared in the working folder beside the origin, moved into the origin under new names, and counts from
the moment stage.json is replaced. A run that is killed leaves the version before, and the same command goes on.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ctxsim_hf import __version__
from ctxsim_hf.encoder.thresholds import THRESHOLDS_FILE
from ctxsim_hf.origin.background_thresholds import write_background_thresholds
from ctxsim_hf.origin.context_index import map_texts, open_joined
from ctxsim_hf.origin.document_ids import DocumentIds, chunk_ids
from ctxsim_hf.origin.index_arguments import IndexArguments
from ctxsim_hf.origin.segment_build import count_sentences, merge_segments, sentences_of, write_segment
from ctxsim_hf.origin.segments import SEGMENTS, VERSIONS, WORDS, Version, is_short_digest, short_digest, version_name
from ctxsim_hf.origin.version_build import write_version
from ctxsim_hf.runtime.blocks import Executor, LocalExecutor
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import describe_file, digest_file, move_folder, read_json, write_json
from ctxsim_hf.runtime.record import STAGE_FILE, open_stage, read_counts, read_stage, replace_record
from ctxsim_hf.runtime.working import WorkingFolder
from ctxsim_hf.text.chunk_arguments import ChunkArguments
from ctxsim_hf.text.chunking import run as run_chunk
from ctxsim_hf.text.chunks import describe_chunks
from ctxsim_hf.text.lexical import TfidfCosine
from ctxsim_hf.text.pipes import keep_pipes

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
SHRINKING = 3  # from one segment to the next
CHUNKS, ASKED = "chunks", "change.json"  # in the working folder, beside new segments and versions


def grow(arguments: IndexArguments, executor: Executor | None = None) -> dict[str, Any]:
    """Make the change that is asked for; return the counts that stage.json records afterwards."""
    origin = Path(str(arguments.origin))
    read_stage(origin, "index")  # refuses anything else before a folder is made beside it
    with WorkingFolder(origin) as working:
        change = Change(working.output, open_stage(origin, "index"), working.partial)
        change.remove_unused()
        if arguments.add:
            change.add(arguments, executor)
        elif arguments.delete:
            change.delete(arguments.delete)
        else:
            change.compact()
        Change(working.output, read_stage(origin), working.partial).remove_unused()
        working.discard()
        counts = read_counts(origin)
    write_background_thresholds(origin)
    return counts


@dataclass(frozen=True)
class Change:
    """A change of an origin to which no other process writes."""

    origin: Path
    record: Mapping[str, Any]
    folder: Path  # to prepare the change in

    @property
    def before(self) -> Version:
        """The version to change."""
        return Version.current(self.origin, self.record)

    def add(self, arguments: IndexArguments, executor: Executor | None) -> None:
        """Add the documents of a corpus, or of a folder of chunks, as a segment."""
        if not arguments.corpus:
            chunks = Path(str(arguments.chunks))
            self._prepare({"chunks": describe_chunks(chunks)["xxh3_128"]})
            self._add(chunks, executor, arguments.workers)
            return
        with keep_pipes(arguments.corpus) as corpus:
            chunking = self._chunking(corpus, arguments.workers)
            self._prepare({"corpus": [part.fingerprint() for part in chunking.corpora()]})
            run_chunk(chunking, executor)
        self._add(Path(chunking.output), executor, arguments.workers)

    def _chunking(self, corpus: list[str], workers: int) -> ChunkArguments:
        made = self.record["inputs"]["chunking"]
        if made["command"] != "chunk":
            raise UserError(
                f"the documents of {str(self.origin)!r} are a sample, so nothing tells how to cut others; "
                "run ctxsim chunk and add its folder with --chunks"
            )
        output = str(self.folder / CHUNKS)
        return ChunkArguments(corpus=corpus, output=output, workers=workers, **made["arguments"])

    def _add(self, chunks: Path, executor: Executor | None, workers: int) -> None:
        about, before = describe_chunks(chunks), self.before
        if self._is_there_already(chunk_ids(chunks), about["xxh3_128"]):
            return
        segment = self.folder / SEGMENTS / short_digest([about["xxh3_128"], before.name])
        storing = executor or LocalExecutor(workers, "contexts")
        write_segment(segment, self.origin, chunks, self.record["arguments"]["ngrams"], executor, storing)
        words = TfidfCosine.load(before.folder / WORDS) + _count_words(map_texts(segment))
        versions = {"ctxsim_hf": __version__} | {name: package_version(name) for name in PACKAGES}
        segments = self._merged([*before.segments, segment])
        self._publish(segments, before.deleted, words, {"add": about, "versions": versions})

    def _merged(self, segments: Sequence[Path]) -> list[Path]:
        """Merge the last segments, if there are too many small ones. Chunks keep their numbers, deleted ones too."""
        count = count_to_merge([count_sentences(segment)["chunks"] for segment in segments])
        if count == 1:
            return list(segments)
        kept, last = segments[:-count], segments[-count:]
        merged = self.folder / SEGMENTS / short_digest(["merge", *(segment.name for segment in last)])
        merge_segments(merged, last, np.zeros(0, np.int64))
        return [*kept, merged]

    def _is_there_already(self, new: pa.Array, digest: str) -> bool:
        """Return whether an equal run has added these documents; refuse documents some of which are there."""
        there = DocumentIds(self.before).among(new)
        added = [self.record["inputs"]["chunks"], *(e["add"] for e in self.record.get("history", []) if "add" in e)]
        if there and len(there) == len(new) and digest in {one["xxh3_128"] for one in added}:
            return True
        if there:
            raise UserError(
                f"{len(there)} of {len(new)} documents are in {str(self.origin)!r} already, such as {there[0]!r}; "
                "delete them first with --delete, or leave them out"
            )
        return False

    def delete(self, ids: Sequence[str]) -> None:
        """Mark the chunks of documents as deleted."""
        before = self.before
        self._prepare({"delete": sorted(ids)})
        held_out = self.record["inputs"]["chunking"]["arguments"].get("held_out", 0)
        chosen = DocumentIds(before).chunks_of(ids, held_out)
        deleted = np.union1d(before.deleted, chosen)
        if len(deleted) == len(before.deleted):
            return  # an equal run has deleted them
        texts = pa.concat_tables([map_texts(segment) for segment in before.segments])
        if len(deleted) == len(texts):
            raise UserError(f"these are all documents of {str(self.origin)!r}; remove the folder instead")
        new = np.setdiff1d(deleted, before.deleted)
        removed = pa.concat_tables([texts.slice(number, 1) for number in new.tolist()])
        words = TfidfCosine.load(before.folder / WORDS) - _count_words(removed)
        entry = {"delete": {"documents": len(set(ids)), "xxh3_64": short_digest(sorted(ids))}}
        self._publish(before.segments, deleted, words, entry)

    def compact(self) -> None:
        """Merge all segments into one without what is deleted, and remove everything else."""
        before = self.before
        self._prepare({"compact": before.name})
        if len(before.segments) > 1 or len(before.deleted):
            segment = self.folder / SEGMENTS / short_digest(["compact", before.name])
            merge_segments(segment, before.segments, before.deleted)
            words, nothing = TfidfCosine.load(before.folder / WORDS), np.zeros(0, np.int64)
            self._publish([segment], nothing, words, {"compact": len(before.segments)})
        record = {name: value for name, value in read_stage(self.origin).items() if name != "previous"}
        replace_record(self.origin, record)

    def _prepare(self, asked: Mapping[str, Any]) -> None:
        """Keep what an equal run left unfinished, and nothing else."""
        asked = {**asked, "ctxsim_hf": __version__, "before": digest_file(self.origin / STAGE_FILE)}
        if read_json(self.folder / ASKED) != asked:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            write_json(self.folder / ASKED, asked)

    def _publish(
        self, segments: Sequence[Path], deleted: np.ndarray, words: TfidfCosine, entry: Mapping[str, Any]
    ) -> None:
        """Write the version of these segments, the last of which may be a new one, and let it count."""
        before, arguments = self.before, self.record["arguments"]
        version = self.folder / VERSIONS / version_name([segment.name for segment in segments], deleted)
        if not version.exists():
            background = arguments["background"], arguments["seed"]
            write_version(version, self.origin, segments, deleted, words, background, before)
        if segments[-1].is_relative_to(self.folder):
            move_folder(segments[-1], self.origin / SEGMENTS / segments[-1].name)
        move_folder(version, self.origin / VERSIONS / version.name)
        after = Version.open(self.origin, version.name)
        (self.origin / THRESHOLDS_FILE).unlink(missing_ok=True)  # of other scores
        history = [*self.record.get("history", []), dict(entry)]
        more = {"version": after.name, "previous": before.name, "history": history}
        replace_record(self.origin, {**self.record, **more, "counts": _counts(after), "files": self._files(after)})

    def _files(self, version: Version) -> dict[str, Any]:
        """Return the digests of all files; those of files that never change are known."""
        known = self.record["files"]
        files = {name: known[name] for name in known if name.partition("/")[0] not in (SEGMENTS, VERSIONS)}
        for folder in version.folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    name = path.relative_to(self.origin).as_posix()
                    files[name] = known[name] if name in known else describe_file(path)
        return files

    def remove_unused(self) -> None:
        """Remove what no version needs: that of killed runs, and that of versions before the previous one."""
        names = [self.record[key] for key in ("version", "previous") if key in self.record]
        kept = {path for name in names for path in Version.open(self.origin, name).folders}
        for folder in (self.origin / SEGMENTS, self.origin / VERSIONS):
            for path in folder.iterdir():
                if path not in kept and is_short_digest(path.name) and not path.is_symlink():
                    shutil.rmtree(path)


def count_to_merge(sizes: Sequence[int]) -> int:
    """Return how many of the last segments to merge, so that each is several times as large as the one after it."""
    count, total = 1, sizes[-1]
    for size in reversed(sizes[:-1]):
        if size >= SHRINKING * total:
            break
        count, total = count + 1, total + size
    return count


def _count_words(texts: pa.Table) -> TfidfCosine:
    return TfidfCosine.from_sentences(sentence for row in sentences_of(texts) for sentence in row)


def _counts(version: Version) -> dict[str, int]:
    joined = open_joined(version.segments, version.deleted)
    kinds = {"chunks": joined.chunks, "sentences": joined.sentences, "contexts": joined.contexts}
    return {name: int(runs.firsts[-1]) for name, runs in kinds.items()} | {"segments": len(version.segments)}
