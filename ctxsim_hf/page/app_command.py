"""Serve a page for a folder made by `ctxsim adapt`: `ctxsim app`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from transformers.hf_argparser import HfArg

from ctxsim_hf.origin.similarity import OriginSimilarity
from ctxsim_hf.page.build import build_page, import_gradio
from ctxsim_hf.page.content import Comparison, open_documents
from ctxsim_hf.recipes.adapted_folder import AdaptedFolder
from ctxsim_hf.runtime.arguments import Arguments


@dataclass(kw_only=True)
class AppArguments(Arguments):
    """The arguments of `ctxsim app`."""

    adapted: str = HfArg(help="Folder made by ctxsim adapt. The first start adds an index for search, DIR/search.")
    host: str = HfArg(
        default="127.0.0.1", help="Address to listen on; any other than this machine's own lets others read the texts."
    )
    port: Annotated[int, Ge(0), Le(65535)] = HfArg(default=7860, help="Port to listen on.")


def run(arguments: AppArguments) -> str:
    """Serve the page until it is interrupted."""
    import_gradio()  # before anything that takes long
    folder = AdaptedFolder.find(arguments.adapted)
    documents = open_documents(folder.place("chunks"), folder.surrogate, Path(folder.place("search")))
    comparison = Comparison(OriginSimilarity.from_pretrained(folder.origin))
    page = build_page(Path(arguments.adapted).resolve().name, comparison, documents)
    page.launch(server_name=arguments.host, server_port=arguments.port, share=False)
    return "stopped"
