"""Turn the stage.json and results.json of a folder into its card: `ctxsim card`.

Every number of a card comes from these two files and from the settings next to them. The templates are in the
top-level folder model_cards/. dataset_scripts/build_harvested_pairs.py writes the card of a dataset, and the card of
the metric is next to its script.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from huggingface_hub import ModelCard, ModelCardData
from transformers.hf_argparser import HfArg

from ctxsim_hf.context_models.reading_settings import SETTINGS_FILE as CONTEXT_MODEL_SETTINGS
from ctxsim_hf.encoder.modeling_cross_surrogate import CrossSurrogateModel
from ctxsim_hf.evaluation.tables import as_markdown
from ctxsim_hf.hub.publication import CARD_FILE, Publication
from ctxsim_hf.hub.publish import check_repo_id, one_folder
from ctxsim_hf.hub.results import Results, eval_results, read_results, results_table
from ctxsim_hf.origin.chosen_weights import ChosenWeights
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.files import digest_file, read_json, writing
from ctxsim_hf.runtime.record import STAGE_FILE, check_if_stage
from ctxsim_hf.runtime.working import writing_into

TEMPLATES = "ctxsim_hf.hub.model_cards"  # the top-level folder model_cards/, installed as this package
UNKNOWN_LICENCE = "The weights were learned from the texts named above, whose licences may bear on them."
# Library and pipeline tag on the Hub; those of a cross-encoder are the ones that sentence-transformers sets.
LIBRARIES = {
    "context-model": ("transformers", "text-generation"),
    "surrogate": ("sentence-transformers", "sentence-similarity"),
    "cross-encoder": ("sentence-transformers", "text-ranking"),
}


@dataclass(kw_only=True)
class CardArguments(Arguments):
    """The arguments of `ctxsim card`."""

    repo_id: str | None = HfArg(
        default=None, help="Name on the Hub that the examples load; by default ctxsim/ and the folder's name."
    )
    license: str = HfArg(default="other", help="Licence of the weights, as the Hub names it.")
    language: str = HfArg(default="en", help="Language of the documents.")
    overwrite: bool = HfArg(default=False, help="Replace a card that says something else.")
    folders: list[str] = field(init=False, default_factory=list)

    positional: ClassVar[tuple[str, str]] = ("folders", "Folder made by ctxsim train or ctxsim index.")


def run(arguments: CardArguments) -> str:
    """Write the card and return a line that says so."""
    publication = Publication.open(one_folder(arguments.folders))
    path = publication.folder / CARD_FILE
    if not publication.record:
        raise UserError(f"{str(path)!r} exists already: the card of a {publication.kind.name} comes with its files")
    check_if_stage(publication.folder)
    with writing_into(publication.folder):
        _write(path, str(make_card(publication, arguments)) + "\n", arguments.overwrite)
    return f"{path} is written; read it before you publish it"


def _write(path: Path, card: str, overwrite: bool) -> None:
    if path.exists() and path.read_text("utf-8") != card and not overwrite:
        raise UserError(f"{str(path)!r} says something else; replace it with --overwrite")
    with writing(path) as temporary:
        temporary.write_text(card, "utf-8")


def remove_card(folder: str | Path, language: str) -> None:
    """Remove the card of a folder that is about to change, if there is one; refuse one that somebody edited."""
    path = Path(folder, CARD_FILE)
    if path.exists():
        card = make_card(Publication.open(Path(folder)), CardArguments(language=language))
        if path.read_text("utf-8") != f"{card}\n":
            raise UserError(f"{str(path)!r} says something else than `ctxsim card` does; move it away and run again")
        path.unlink()


def make_card(publication: Publication, arguments: CardArguments) -> ModelCard:
    """Fill the template of a folder's kind."""
    repo_id = arguments.repo_id or f"ctxsim/{publication.folder.resolve().name}"
    check_repo_id(repo_id)
    results = read_results(publication.folder)
    record, kind = publication.record, publication.kind.name
    template = files(TEMPLATES) / f"{kind}.md"
    config = read_json(publication.folder / "config.json")
    cross = CrossSurrogateModel.__name__ in config.get("architectures", ())
    chosen = ChosenWeights.load(publication.folder)  # of an origin
    card_data = _card_data("cross-encoder" if cross else kind, repo_id, arguments, record, results)
    return ModelCard.from_template(
        card_data,
        template_str=template.read_text("utf-8"),
        title=repo_id.split("/")[1],
        repo_id=repo_id,
        made=as_plain_text(record["arguments"]),
        inputs=as_plain_text(record["inputs"]),
        counts=as_plain_text(record["counts"]),
        config=config,
        sentence_config=read_json(publication.folder / "sentence_bert_config.json"),
        settings=read_json(publication.folder / "origin.json") | ({"signals": chosen.signals} if chosen else {}),
        reading=read_json(publication.folder / CONTEXT_MODEL_SETTINGS),
        layout=read_json(publication.folder / "layout.json"),
        cross=cross,
        same_documents=same_documents(record["inputs"]),
        corpora=corpora(as_plain_text([record["inputs"], record.get("history", [])])),
        arguments=as_markdown([("argument", "value"), *_table_rows(as_plain_text(record["arguments"]))]),
        figures=as_markdown([("figure", "value"), *_table_rows(as_plain_text(record["counts"]))]),
        results=results_table(results.rows),
        signature=results.signature,
        recipe=digest_file(publication.folder / STAGE_FILE),
        versions=", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        licence=UNKNOWN_LICENCE if arguments.license == "other" else f"{arguments.license}.",
    )


def _card_data(
    kind: str, repo_id: str, arguments: CardArguments, record: dict[str, Any], results: Results
) -> ModelCardData:
    start = record["inputs"].get("init")  # was once only the id, if it was one
    public_data = record["inputs"].get("data", {}).get("name")
    library, pipeline = LIBRARIES.get(kind, ("ctxsim_hf", None))
    return ModelCardData(
        language=arguments.language,
        license=arguments.license,
        tags=["ctxsim", kind],
        base_model=start.get("id") if isinstance(start, dict) else start,
        datasets=[public_data] if public_data else None,
        model_name=repo_id.split("/")[1],
        eval_results=list(eval_results(results.rows)) or None,
        library_name=library,
        pipeline_tag=pipeline,
    )


def _table_rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and formatted values, without those that are None."""
    return [(f"`{name}`", _plain(value)) for name, value in values.items() if value is not None]


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def as_plain_text(value: Any) -> Any:
    """Return a JSON value in which no text, such as the name of a corpus, is markup of HTML or Markdown."""
    if isinstance(value, dict):
        return {as_plain_text(key): as_plain_text(found) for key, found in value.items()}
    if isinstance(value, list):
        return [as_plain_text(found) for found in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"[<>`|\[\]]", lambda found: f"&#{ord(found[0])};", " ".join(value.split()))


def corpora(inputs: Any) -> list[dict[str, Any]]:
    """Return the corpora that the inputs, or their own inputs, were made from, each once."""
    return list({json.dumps(corpus): corpus for corpus in _corpora(inputs)}.values())


def _corpora(inputs: Any) -> Iterator[dict[str, Any]]:
    if isinstance(inputs, dict):
        for key, value in inputs.items():
            yield from value if key == "corpus" else _corpora(value)
    elif isinstance(inputs, list):
        for value in inputs:
            yield from _corpora(value)


def same_documents(inputs: dict[str, Any]) -> bool:
    """Return whether the models of an origin were trained on the chunks that it indexes."""
    models = inputs.get("context_models", ())
    return all(model.get("inputs", {}).get("chunks") == inputs.get("chunks") for model in models)
