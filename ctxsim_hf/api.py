"""Offer every stage as a function: `ctxsim_hf.chunk(...)`, `train_context_model(...)`, `adapt(...)` and the others.

Each function builds the arguments of a verb and runs its stage, as `ctxsim` does, with the same defaults, checks and
folders. The module of a stage is imported when its function is called.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.verbs import VERBS, build_arguments

if TYPE_CHECKING:
    from ctxsim_hf.mining.cluster import Communities
    from ctxsim_hf.mining.duplicates import Duplicates
    from ctxsim_hf.recipes.adapt import Adapted
    from ctxsim_hf.runtime.blocks import Executor

Location = str | PathLike[str]
# Kind of context model -> its verb, and the arguments that select the kind.
CONTEXT_MODELS: dict[str, tuple[str, dict[str, str]]] = {
    "discriminator": ("train discriminator", {}),
    "light": ("train generator", {"kind": "light"}),
    "seq2seq": ("train generator", {"kind": "seq2seq"}),
    "causal": ("train context-model", {}),
}


def chunk(
    corpus: Location | Sequence[Location],
    *,
    output: Location,
    text_column: str | None = None,
    language: str | None = None,
    held_out: float | None = None,
    workers: int | None = None,
    executor: "Executor | None" = None,
    **options: Any,
) -> dict[str, Any]:
    """Cut documents into chunks of consecutive sentences.

    Args:
        corpus: What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of datasets;
            one of these or a list.
        output: Folder to write. The same call resumes after an interruption.
        text_column: Column that holds the text. None means the default of ChunkArguments.
        language: Language code for the sentence splitter. None means the default of ChunkArguments.
        held_out: Share of documents kept for evaluation. None means the default of ChunkArguments.
        workers: Processes; the output is the same for any number. None means the default of ChunkArguments.
        executor: Runs the work elsewhere, such as a `DatatroveExecutor`. None means this machine.
        **options: Any field of `ctxsim_hf.text.chunking.ChunkArguments`. None means its default.

    Returns:
        The counts of documents, chunks, sentences and contexts.
    """
    named = {"text_column": text_column, "language": language, "held_out": held_out, "workers": workers}
    return _run("chunk", {"corpus": corpus, "output": output, **named}, options, executor)


def train_tokenizer(
    chunks: Location,
    *,
    output: Location,
    vocab_size: int | None = None,
    lowercase: bool | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train a fast tokenizer on chunks.

    Args:
        chunks: Folder made by `chunk`.
        output: Folder to write.
        vocab_size: Size of the vocabulary, special tokens included. None means the default of TokenizerArguments.
        lowercase: Whether the tokenizer folds case. None means the default of TokenizerArguments.
        **options: Any field of `ctxsim_hf.text.tokenizer.TokenizerArguments`. None means its default.

    Returns:
        The size of the vocabulary and of the sample it was trained on.
    """
    named = {"vocab_size": vocab_size, "lowercase": lowercase}
    return _run("train-tokenizer", {"chunks": chunks, "output": output, **named}, options)


def train_context_model(
    kind: str,
    *,
    chunks: Location,
    output: Location,
    tokenizer: Location | None = None,
    init: Location | None = None,
    preset: str | None = None,
    max_train_minutes: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train a model that answers terms of the fit score of a sentence and a context (Eq. 3).

    Args:
        kind: "discriminator" (which sentence fits a context), "light" (all three generative terms, in minutes on one
            machine), "seq2seq" (the paper's; needs `direction`) or "causal" (a pretrained language model, trained
            further; needs `init`).
        chunks: Folder made by `chunk`.
        output: Folder to write. The same call goes on from the last checkpoint.
        tokenizer: Folder made by `train_tokenizer`, or any folder with a fast tokenizer. None for "causal", which
            brings its own.
        init: Model to start from, for "causal" and "seq2seq". None means a new model.
        preset: Sizes for what is not set: tiny, light, small, base or large. None means the default of the kind.
        max_train_minutes: Stop after so many minutes. None means no limit.
        **options: Any field of `DiscriminatorArguments` (ctxsim_hf.context_models.discriminator.training),
            `GeneratorArguments` (ctxsim_hf.context_models.generator_arguments) or `ContextModelArguments`
            (ctxsim_hf.context_models.causal.training_arguments). None means its default.

    Returns:
        The steps of the training and the figures on held-out documents.
    """
    if kind not in CONTEXT_MODELS:
        raise UserError(f"unknown kind {kind!r}; expected one of {', '.join(CONTEXT_MODELS)}")
    verb, implied = CONTEXT_MODELS[kind]
    named: dict[str, Any] = {"chunks": chunks, "output": output, **implied, "max_train_minutes": max_train_minutes}
    for name, value in {"tokenizer": tokenizer, "init": init, "preset": preset}.items():
        if value is not None:  # not every kind has them
            named[name] = value
    return _run(verb, named, options)


def build_index(
    chunks: Location,
    *,
    output: Location,
    discriminator: Location | None = None,
    generator: Location | Sequence[Location] | None = None,
    workers: int | None = None,
    executor: "Executor | None" = None,
    **options: Any,
) -> dict[str, Any]:
    """Put chunks and trained context models into an origin folder, which `OriginSimilarity` opens.

    Args:
        chunks: Folder made by `chunk`.
        output: Folder to write.
        discriminator: Folder of a discriminator made by `train_context_model`. None keeps the order of TF-IDF.
        generator: Folder of a light or seq2seq model, or a list with one for each direction. None means the default of
            IndexArguments.
        workers: Processes; the output is the same for any number. None means the default of IndexArguments.
        executor: Tokenises and runs context models elsewhere, such as a `DatatroveExecutor`. None means this machine.
        **options: Any field of `ctxsim_hf.origin.indexing.IndexArguments`. None means its default.

    Returns:
        The counts of chunks, sentences and contexts.
    """
    named = {"discriminator": discriminator, "generator": generator, "workers": workers}
    return _run("index", {"chunks": chunks, "output": output, **named}, options, executor)


def grow_index(
    origin: Location,
    *,
    corpus: Location | Sequence[Location] | None = None,
    chunks: Location | None = None,
    delete: Sequence[str] | None = None,
    compact: bool | None = None,
    workers: int | None = None,
    executor: "Executor | None" = None,
) -> dict[str, Any]:
    """Add documents to an origin, delete some, or merge its segments; one of these in a call.

    A process that has the origin open goes on with the version it opened. If the call is killed, the origin is as it
    was, and the same call finishes the change.

    Args:
        origin: Folder made by `build_index`.
        corpus: Documents to add: files, folders or ids of datasets, cut as those before. None adds none.
        chunks: Folder made by `chunk`, to add instead of a corpus. None adds none.
        delete: Ids of documents to delete. None deletes none.
        compact: Whether to merge all segments into one, without what was deleted. None means no.
        workers: Processes; the output is the same for any number. None means the default of IndexArguments.
        executor: Tokenises and runs context models elsewhere. None means this machine.

    Returns:
        The counts of chunks, sentences, contexts and segments.
    """
    named = {"corpus": corpus, "chunks": chunks, "delete": delete, "compact": compact, "workers": workers}
    add = corpus is not None or chunks is not None
    return _run("index", {"origin": origin, "add": add, **named}, {}, executor)


def harvest(
    origin: Location,
    *,
    pairs: int,
    output: Location,
    mode: str | None = None,
    at_most: bool | None = None,
    executor: "Executor | None" = None,
    **options: Any,
) -> dict[str, Any]:
    """Pair sentences of an origin and label them with its similarity.

    Args:
        origin: Folder made by `build_index`, or its id on the Hub.
        pairs: Number of pairs, in three splits of 98, 1 and 1 %.
        output: Folder to write. The same call resumes after an interruption.
        mode: "pair" (contexts of the two sentences, as in the paper) or "group" (one pool for many sentences, much
            faster). None means the default of HarvestArguments.
        at_most: Whether fewer pairs are accepted if there are too few sentences. None means the default of
            HarvestArguments.
        executor: Runs the work elsewhere, such as a `DatatroveExecutor`. None means the processes of this launch.
        **options: Any field of `ctxsim_hf.harvest.harvest_arguments.HarvestArguments`. None means its default.

    Returns:
        The counts of pairs and a summary of their scores; for one shard of several, while others are still to come, a
        sentence that says so.
    """
    named = {"origin": origin, "pairs": pairs, "output": output, "mode": mode, "at_most": at_most}
    return _run("harvest", named, options, executor)


def harvest_vectors(
    origin: Location,
    *,
    output: Location,
    sentences: int | None = None,
    workers: int | None = None,
    executor: "Executor | None" = None,
    **options: Any,
) -> dict[str, Any]:
    """Compute vectors of an origin's sentences whose dot products are its similarities, for a surrogate to learn from.

    Args:
        origin: Folder made by `build_index`, or its id on the Hub. Each of its signals must have vectors.
        output: Folder to write. The same call resumes after an interruption.
        sentences: Number of sentences to train on. None means the default of VectorArguments.
        workers: Processes, each with the models in memory. None means the default of VectorArguments.
        executor: Makes the files elsewhere, such as a `DatatroveExecutor`. None means this machine.
        **options: Any field of `ctxsim_hf.harvest.vector_arguments.VectorArguments`. None means its default.

    Returns:
        The counts of sentences and the shares of the signals.
    """
    named = {"origin": origin, "output": output, "sentences": sentences, "workers": workers}
    return _run("harvest-vectors", named, options, executor)


def train_surrogate(
    pairs: Location | None = None,
    *,
    output: Location,
    vectors: Location | None = None,
    tokenizer: Location | None = None,
    init: Location | None = None,
    preset: str | None = None,
    objective: str | None = None,
    max_train_minutes: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train a surrogate, a fast encoder whose cosines approximate the scores of an origin.

    Args:
        pairs: Folder made by `harvest`, or the id of such a dataset. None if the objective reads a public dataset.
        output: Folder to write. The same call resumes from the last checkpoint.
        vectors: Folder made by `harvest_vectors`, for the objective "teacher". None for the others.
        tokenizer: Folder with a fast tokenizer, or its id. None means that of `init`.
        init: Checkpoint to start from. None means a new model of the sizes of `preset`.
        preset: Sizes of a new model: tiny, light, small, base or large. None means the default of SurrogateArguments.
        objective: What to learn. None means the default of SurrogateArguments, the scores of `pairs`.
        max_train_minutes: Minutes after which training stops. None means no limit.
        **options: Any field of `ctxsim_hf.surrogate.training_arguments.SurrogateArguments`. None means its default.

    Returns:
        The steps of the training and the figures on validation pairs.
    """
    named = {"preset": preset, "objective": objective, "max_train_minutes": max_train_minutes}
    data = {"pairs": pairs, "vectors": vectors, "output": output, "tokenizer": tokenizer, "init": init}
    return _run("train surrogate", {**data, **named}, options)


def find_duplicates(
    surrogate: Location,
    *,
    chunks: Location | None = None,
    corpus: Location | None = None,
    input: Location | None = None,
    threshold: float | None = None,
    percentile: float | None = None,
    max_pairs: int | None = None,
    output: Location | Sequence[Location] | None = None,
    **options: Any,
) -> "Duplicates":
    """Find pairs of sentences that say the same.

    Args:
        surrogate: Folder or id of a surrogate, or of any encoder that SentenceTransformer opens.
        chunks: Folder made by `chunk`, to read its sentences. None if another source is given.
        corpus: Documents to read: a file, a folder of files or the id of a dataset. None if another source is given.
        input: Text file with one sentence per line. None if another source is given.
        threshold: The lowest similarity. None means the one that `percentile` gives.
        percentile: The lowest similarity as a percentile of that of unrelated pairs of the corpus. None means one so
            high that unrelated pairs are rare among all pairs.
        max_pairs: The highest number of pairs: those of the highest similarity. None means the default of
            DuplicatesArguments.
        output: .jsonl, .tsv and .html files to write. None writes none.
        **options: Any field of `ctxsim_hf.mining.duplicates.DuplicatesArguments`. None means its default.

    Returns:
        The pairs, the most similar first, to iterate over; a notebook shows them as a table.
    """
    source = {"chunks": chunks, "corpus": corpus, "input": input}
    limits = {"threshold": threshold, "percentile": percentile, "max_pairs": max_pairs}
    found: Duplicates = _run("duplicates", {"surrogate": surrogate, **source, **limits, "output": output}, options)
    return found


def cluster(
    surrogate: Location,
    *,
    chunks: Location | None = None,
    corpus: Location | None = None,
    input: Location | None = None,
    threshold: float | None = None,
    percentile: float | None = None,
    min_size: int | None = None,
    output: Location | Sequence[Location] | None = None,
    **options: Any,
) -> "Communities":
    """Find communities of similar sentences.

    Args:
        surrogate: Folder or id of a surrogate, or of any encoder that SentenceTransformer opens.
        chunks: Folder made by `chunk`, to read its sentences. None if another source is given.
        corpus: Documents to read: a file, a folder of files or the id of a dataset. None if another source is given.
        input: Text file with one sentence per line. None if another source is given.
        threshold: The lowest similarity to the centre of a community. None means the one that `percentile` gives.
        percentile: That similarity as a percentile of that of unrelated pairs of the corpus. None means one at which a
            sentence has about one unrelated neighbour.
        min_size: The lowest number of sentences in a community. None means the default of ClusterArguments.
        output: .jsonl, .tsv and .html files to write. None writes none.
        **options: Any field of `ctxsim_hf.mining.cluster.ClusterArguments`. None means its default.

    Returns:
        The communities, the largest first, each with its most typical sentence and its members.
    """
    source = {"chunks": chunks, "corpus": corpus, "input": input}
    limits = {"threshold": threshold, "percentile": percentile, "min_size": min_size}
    found: Communities = _run("cluster", {"surrogate": surrogate, **source, **limits, "output": output}, options)
    return found


def adapt(
    corpus: Location | Sequence[Location],
    *,
    output: Location,
    minutes: float | None = None,
    preset: str | None = None,
    context_model: Location | None = None,
    start: Location | None = None,
    language: str | None = None,
    workers: int | None = None,
    **options: Any,
) -> "Adapted":
    """Turn documents into a surrogate for their domain by running every stage in a row.

    Args:
        corpus: What to read: .txt, .txt.gz, .jsonl, .jsonl.gz or .parquet files, folders of them, or ids of datasets;
            one of these or a list.
        output: Folder to write. The same call resumes after an interruption.
        minutes: About how long the whole run may take. None means the default of AdaptArguments.
        preset: Sizes of all models: tiny, light, small, base or large. None means the default of AdaptArguments.
        context_model: Causal language model that labels the pairs, as for `build_index`. None trains a generator.
        start: Encoder that the surrogate starts from, folder or id. None starts from vectors of words.
        language: Language code for the sentence splitter. None means the default of AdaptArguments.
        workers: Processes, where a stage can use several. None means all cores.
        **options: Any field of `ctxsim_hf.recipes.adapt.AdaptArguments`. None means its default.

    Returns:
        The folders `surrogate` and `origin`, the method `encoder()`, and as a string how good the surrogate is.
    """
    named = {"minutes": minutes, "preset": preset, "context_model": context_model, "start": start}
    named |= {"language": language, "workers": workers}
    adapted: Adapted = _run("adapt", {"corpus": corpus, "output": output, **named}, options)
    return adapted


def _run(verb: str, named: dict[str, Any], options: dict[str, Any], executor: "Executor | None" = None) -> Any:
    elsewhere = {} if executor is None else {"executor": executor}
    return VERBS[verb].run(build_arguments(VERBS[verb].arguments_class, named | options), **elsewhere)
