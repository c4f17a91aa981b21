"""A folder here, else what a Hub has, else one line that says what was expected."""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hub_processes import environment, run_python
from loopback_hub import Blob, LoopbackHub, Repository
from unfinished import unfinished

from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder, fetch_model, hub_id

FETCH = """
import json, sys
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_folder
said = []
for settings in json.loads(sys.argv[1]):
    try:
        folder = fetch_folder(settings.pop("name"), "a toy", **settings)
        said.append({str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()})
    except UserError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def test_a_folder_comes_first_and_an_unfinished_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    unfinished(tmp_path / "whole").mkdir()  # of a run that makes it anew
    unfinished(tmp_path / "half").mkdir()
    assert fetch_folder(tmp_path / "whole", "a toy") == tmp_path / "whole"
    with pytest.raises(UserError, match=r"half' is not finished yet; run the command that makes it again"):
        fetch_folder(tmp_path / "half", "a toy")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", str(tmp_path / "file"), "a/b/c"):
        with pytest.raises(
            UserError, match=rf"^expected a toy or its id on the Hub, but '{name}' is not a local folder"
        ):
            fetch_folder(name, "a toy")


def test_from_a_hub_and_offline_from_its_cache(tmp_path: Path) -> None:
    with LoopbackHub() as hub:
        for kind in ("models", "datasets"):
            repository = hub.repositories[kind, "ctxsim/toy"] = Repository(private=False)
            first = repository.commit({"a.json": Blob(b"1", False), "b.bin": Blob(b"old", False)})
            repository.commit({"a.json": Blob(kind.encode(), False), "b.bin": Blob(b"new", False)})
        wanted = [
            {"name": "ctxsim/toy"},
            {"name": "ctxsim/toy", "revision": first},
            {"name": "ctxsim/toy", "repo_type": "dataset", "allow_patterns": ["*.json"]},
            {"name": "ctxsim/nowhere"},
        ]
        env = environment(hub.endpoint, tmp_path / "home")
        online = run_python(FETCH, env, tmp_path, json.dumps(wanted))
    assert online[0].items() >= {"a.json": "models", "b.bin": "new"}.items()
    assert online[1].items() >= {"a.json": "1", "b.bin": "old"}.items()
    assert online[2] == {"a.json": "datasets"}
    assert "'ctxsim/nowhere' is not a local folder and could not be downloaded (RepositoryNotFoundError)" in online[3]
    offline = environment(hub.endpoint, tmp_path / "home", offline=True)
    assert run_python(FETCH, offline, tmp_path, json.dumps(wanted))[:3] == online[:3]


FETCH_MODELS = """
import json, sys
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.fetch import fetch_model
said = []
for name, patterns in json.loads(sys.argv[1]):
    try:
        path = fetch_model(name, "a toy", patterns)
        found = [path] if path.is_file() else path.rglob("*")
        said.append(sorted(file.name for file in found if file.is_file()))
    except UserError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def test_of_a_repository_at_most_one_gguf_file_is_downloaded(tmp_path: Path) -> None:
    with LoopbackHub() as hub:
        for name, files in {
            "both": ["config.json", "model.safetensors", "a.gguf", "b.gguf"],
            "several": ["config.json", "a.gguf", "deep/b.gguf"],
            "one": ["config.json", "a.gguf"],
            "deep": ["config.json", "deep/a.gguf", "deep/context_model.json"],
            "none": ["config.json"],
        }.items():
            repository = hub.repositories["models", f"me/{name}"] = Repository(private=False)
            repository.commit({file: Blob(file.encode(), False) for file in files})
        wanted = [(f"me/{name}", None) for name in ("both", "several", "one", "deep", "none")]
        wanted += [("me/both", ["*.json", "*.safetensors", "*.gguf"]), ("me/several/deep/b.gguf", None)]
        wanted += [("me/one/absent.gguf", None), ("me/nowhere/a.gguf", None)]
        env = environment(hub.endpoint, tmp_path / "home")
        online = run_python(FETCH_MODELS, env, tmp_path, json.dumps(wanted))
    files, absent = online[:-2], online[-2:]
    refusal = "expected one GGUF file in 'me/several', found a.gguf, deep/b.gguf; name one, such as me/several/a.gguf"
    assert files == [
        ["config.json", "model.safetensors"],
        refusal,
        ["a.gguf", "config.json"],
        ["a.gguf", "context_model.json"],
        ["config.json"],
        ["config.json", "model.safetensors"],
        ["b.gguf"],
    ]
    for said in absent:
        assert said.startswith("expected a toy or its id on the Hub, but 'me/") and "could not be downloaded" in said
    downloaded = [request.split("/")[1:3] for request in hub.requests if re.match("GET.*resolve.*gguf", request)]
    assert sorted(name for _, name in downloaded) == ["deep", "one", "several"]
    offline = environment(hub.endpoint, tmp_path / "home", offline=True)
    said = run_python(FETCH_MODELS, offline, tmp_path, json.dumps(wanted))
    assert [said[place] for place in (0, 2, 4, 5, 6)] == [online[place] for place in (0, 2, 4, 5, 6)]


def test_a_server_that_is_no_hub_is_one_line(tmp_path: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = environment(f"http://127.0.0.1:{server.server_port}", tmp_path / "home")
        (said,) = run_python(FETCH, env, tmp_path, json.dumps([{"name": "ctxsim/toy"}]))
        server.shutdown()
    assert said.startswith("expected a toy or its id on the Hub, but 'ctxsim/toy' is not a local folder")


def test_inside_an_installed_package_whose_code_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "fetched_package/inner"
    (inner / "model").mkdir(parents=True)
    (inner / "model.gguf").touch()
    for folder in (inner, inner.parent):
        (folder / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("fetched_package/inner", "fetched_package.inner"):
        assert fetch_folder(f"package:{name}/model", "a toy") == inner / "model"
        assert fetch_model(f"package:{name}/model", "a toy") == inner / "model"
        assert fetch_model(f"package:{name}/model.gguf", "a toy") == inner / "model.gguf"
    assert not [name for name in sys.modules if name.startswith("fetched_package")]
    for name, message in {
        "package:fetched_package/absent": "expected 'absent' in an installed package 'fetched_package', found none",
        "package:no_such_package/x": "expected 'x' in an installed package 'no_such_package', found no package",
        "package:": "expected '' in an installed package '', found no package",
    }.items():
        with pytest.raises(UserError, match=f"^{message}$"):
            fetch_model(name, "a toy")


def test_of_files_only_gguf_is_a_model(tmp_path: Path) -> None:
    for name in ("model.gguf", "model.bin"):
        (tmp_path / name).touch()
    assert fetch_model(tmp_path / "model.gguf", "a toy") == tmp_path / "model.gguf"
    for name in ("model.bin", "absent.gguf"):
        with pytest.raises(UserError, match=rf"^expected a toy or its id on the Hub, but '.*{name}' is not a local"):
            fetch_model(tmp_path / name, "a toy")


def test_what_a_record_says_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    assert hub_id(tmp_path / "model.gguf") == hub_id(tmp_path) == {}
    assert hub_id("me/model") == {"id": "me/model"}
    assert hub_id("me/model/deep/a.gguf") == {"id": "me/model", "file": "deep/a.gguf"}
