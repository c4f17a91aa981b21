"""What was let in, or out."""

import gzip
import json
import sys
from pathlib import Path

from faults.attempts.attempt import LINE, TRACEBACK, Place, attempt


def stranger(folder: Path) -> Path:
    """Make a folder with `auto_map` and an unknown model type, whose code leaves a file `was_run`."""
    (folder / "code.py").write_text(
        f"open({str(folder.parent / 'was_run')!r}, 'w')\n"
        "from transformers import PreTrainedConfig as Config, PreTrainedModel as Model\n"
    )
    config = json.loads((folder / "config.json").read_text())
    auto_map = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "stranger", "auto_map": auto_map}))
    return folder


NOT_RUN = r"needs code of its own \(.auto_map.\), which is not run"


@attempt(
    "16", "`yes \\| similarity --surrogate` of a folder with `auto_map` and code", "ran the code", refused=NOT_RUN
)
def _surrogate_with_code(place: Place) -> str:
    folder = stranger(place.copy("surrogate"))
    (folder / "stage.json").unlink()  # else the added file is refused
    try:
        return place.shell(f"yes | ctxsim similarity --surrogate {folder} a b")
    finally:
        if (place.here / "was_run").exists():
            raise RuntimeError("its code was run")


@attempt(
    "16",
    "`similarity --origin` of an origin whose generator has such code",
    "ran the code",
    refused="light_generator/config.json' is damaged: expected",
)
def _origin_with_code(place: Place) -> str:
    origin = place.copy("origin")
    (generator,) = {path.parent for path in origin.rglob("light_generator/config.json")}
    stranger(generator)
    return place.run("similarity", "--origin", origin, "a", "b")


@attempt(
    "16",
    "`index --context-model` of a folder with such code",
    "ran the code",
    refused="no context model is known for the model type 'stranger'",
)
def _context_model_with_code(place: Place) -> str:
    folder = stranger(place.copy("language-model"))
    try:
        return place.run(
            "index", "--chunks", place.root / "chunks", "--context-model", folder, "--output", place.here / "out"
        )
    finally:
        if (place.here / "was_run").exists() or any("stranger" in name for name in sys.modules):
            raise RuntimeError("its code was run")


@attempt(
    "17",
    "`publish --dry-run` of a surrogate with `backup.safetensors`, `my_secrets.py`, `data/private.parquet` and "
    "`leak.safetensors -> /etc/passwd`",
    "sent them",
    answer=r"^me/it \(model, private\)(?!.*(backup|secret|private\.parquet|leak)).*nothing was sent",
)
def _unlisted(place: Place) -> str:
    folder = place.copy("surrogate")
    place.run("card", folder, "--repo-id", "me/it", "--overwrite")
    (folder / "data").mkdir()
    for name in ("backup.safetensors", "my_secrets.py", "data/private.parquet"):
        (folder / name).write_text("mine")
    (folder / "leak.safetensors").symlink_to("/etc/passwd")
    return " ".join(place.run("publish", folder, "--repo-id", "me/it", "--dry-run").split())


@attempt(
    "17",
    "`publish` of a surrogate whose `thresholds.json` is a link",
    "sent what it points to",
    refused="thresholds.json' is a link; only real files inside the folder are published",
)
def _link(place: Place) -> str:
    folder = place.copy("surrogate")
    place.run("card", folder, "--repo-id", "me/it", "--overwrite")
    (folder / "thresholds.json").unlink()
    (folder / "thresholds.json").symlink_to("/etc/passwd")
    return place.run("publish", folder, "--repo-id", "me/it", "--dry-run")


@attempt(
    "17",
    "`publish` of a folder whose stage.json lists `../private.txt`",
    "listed it",
    refused="private.txt' lies outside the folder; only real files inside the folder are published",
)
def _outside(place: Place) -> str:
    from ctxsim_hf.runtime.files import describe_file, seal, write_json

    folder = place.copy("surrogate")
    place.run("card", folder, "--repo-id", "me/it", "--overwrite")
    (place.here / "private.txt").write_text("mine")
    record = {
        key: value for key, value in json.loads((folder / "stage.json").read_text()).items() if key != "xxh3_128"
    }
    record["files"]["../private.txt"] = describe_file(place.here / "private.txt")
    write_json(folder / "stage.json", seal(record))
    return place.run("publish", folder, "--repo-id", "me/it", "--dry-run")


ECHO = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ANSWER(self)
        self.send_response(STATUS)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Error-Message", str(self.headers["Authorization"]) + " is bad")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())
    do_POST = do_GET
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def _publish_to(place: Place, status: int, answer: str) -> str:
    """Publish to a server that gives one answer to everything."""
    folder = place.copy("surrogate")
    place.run("card", folder, "--repo-id", "me/it", "--overwrite")
    (place.here / "server.py").write_text(ECHO.replace("STATUS", str(status)).replace("ANSWER", answer))
    return place.shell(
        "exec 3< <(exec python server.py 2> /dev/null); server=$!; trap 'kill $server' EXIT; read -u 3 port\n"
        'HF_ENDPOINT=http://127.0.0.1:$port ctxsim publish "$H/surrogate" --repo-id me/it',
        HF_TOKEN="hf_secret",
        HF_HUB_OFFLINE="0",
    )


@attempt(
    "18",
    "`publish` to a server that echoes the token",
    "printed the token",
    refused=r"^(?!.*hf_secret).*the Hub refused to publish .*\*\*\*",
)
def _echo(place: Place) -> str:
    return _publish_to(place, 400, "(lambda self: '{\"error\": \"' + self.headers['Authorization'] + ' is bad\"}')")


@attempt(LINE, "`publish` to a Hub that answers `{}`", TRACEBACK, refused="the server did not answer as a Hub would")
def _empty(place: Place) -> str:
    return _publish_to(place, 200, "(lambda self: '{}')")


@attempt(
    "19",
    "`similarity --surrogate package:a.b/x`, where importing `a` leaves a file",
    "imported `a`",
    refused="expected 'x' in an installed package 'a.b', found none",
)
def _package(place: Place) -> str:
    (place.here / "a/b").mkdir(parents=True)
    for name in ("a/__init__.py", "a/b/__init__.py"):
        (place.here / name).write_text(f"open({str(place.here / 'was_run')!r}, 'w')")
    sys.path.insert(0, str(place.here))
    try:
        return place.run("similarity", "--surrogate", "package:a.b/x", "one", "two")
    finally:
        if (place.here / "was_run").exists():
            raise RuntimeError("its code was run")


@attempt(
    "20",
    "`card` of a surrogate of a corpus named `<script>alert(1)</script> # Heading`",
    "copied it as it is",
    answer="^(?!.*<script).*&#60;script&#62;alert",
)
def _card(place: Place) -> str:
    from ctxsim_hf.runtime.files import seal, write_json

    folder = place.copy("surrogate")
    (folder / "results.json").unlink()  # the figures of the surrogate by its old name
    text = (folder / "stage.json").read_text().replace('"texts.jsonl"', '"<script>alert(1)</script> # Heading"')
    write_json(folder / "stage.json", seal({k: v for k, v in json.loads(text).items() if k != "xxh3_128"}))
    place.run("card", folder, "--repo-id", "me/it", "--overwrite")
    card = (folder / "README.md").read_text()
    where = card.find("script")
    return " ".join(card.split()) if "<script" in card else card[max(0, where - 60) : where + 80].replace("\n", " ")


@attempt(
    "21",
    "`chunk` of a jsonl.gz of one line of 3.6 GB",
    "MemoryError",
    refused="line 1: .*--max-document-mb",
)
def _endless_line(place: Place) -> str:
    path = place.here / "endless.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"text": "')
        for _ in range(3600):
            file.write(b"x" * 1_000_000)
    before = _peak_memory()
    try:
        return place.run("chunk", "--corpus", path, "--output", place.here / "out")
    finally:
        if (grown := _peak_memory() - before) > 500_000:
            raise RuntimeError(f"memory grew by {grown} kB")


def _peak_memory() -> int:
    """Return the most memory that this process has had, in kB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
