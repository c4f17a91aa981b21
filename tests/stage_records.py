"""Change the stage.json of a folder as if a stage had written it so."""

import json
from pathlib import Path
from typing import Any

from ctxsim_hf.runtime.files import describe_file, seal, write_json


def rewrite_stage(folder: Path, **changes: Any) -> None:
    """Change entries of stage.json, or make one, with the digests of the files as they are now and one of its own."""
    path = folder / "stage.json"
    record = {"arguments": {}, "inputs": {}, "versions": {}, "counts": {}}
    record |= json.loads(path.read_text()) if path.exists() else {}
    record.pop("xxh3_128", None)
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("stage.json", "stage.log")]
    files = {path.relative_to(folder).as_posix(): describe_file(path) for path in paths}
    write_json(path, seal(record | {"files": files} | changes))
