"""A folder, or a repository of the Hub -> its configuration, and files that it may lack."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig
from transformers.utils import cached_file

HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token")


def hub_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments of a `from_pretrained` that say where files are."""
    return {name: arguments[name] for name in HUB_ARGUMENTS if name in arguments}


def resolve_config(model: str | os.PathLike[str], config: Any, hub: Mapping[str, Any]) -> PreTrainedConfig:
    """Return the configuration that was passed to a `from_pretrained`, or open it.

    Args:
        model (`str` or `os.PathLike`): The folder, or an id on the Hub.
        config: A configuration, or where it is. None means with the model.
        hub: What `hub_arguments` returned.
    """
    if isinstance(config, PreTrainedConfig):
        return config
    return AutoConfig.from_pretrained(config or model, trust_remote_code=False, **hub)


def optional_file(model: str | os.PathLike[str], name: str, hub: Mapping[str, Any]) -> Path | None:
    """Return the path of a file, downloaded if necessary, or None if there is none."""
    quietly = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    path = cached_file(model, name, **quietly, **hub)
    return None if path is None else Path(path)
