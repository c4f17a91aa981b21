"""`ctxsim publish` against the loopback Hub: what goes, what is refused, and what an upload that breaks off leaves."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_processes import environment, run_python
from loopback_hub import READER, WRITER, LoopbackHub

Run = Callable[..., tuple[int, str, str]]
Publish = Callable[..., list[tuple[int, str, str]]]
MUST_NOT_GO = {".env", "checkpoints", "__pycache__", "notes.txt", "stage.log", "history.json", "results.json"}
NOWHERE = "http://127.0.0.1:9"


def copy(folder: Path, target: Path) -> Path:
    """Under the name of the target and the folder it is in, which its card then has too."""
    copied = Path(shutil.copytree(folder, target))
    card = copied / "README.md"
    name = f"{target.parent.name}/{target.name}"
    card.write_text(card.read_text().replace(f'"ctxsim/{folder.name}"', f'"{name}"'))
    return copied


def put_what_must_not_go(copied: Path) -> None:
    """A secret, a log, traces of training and of Python."""
    for name in ("checkpoints", "__pycache__", "data"):
        (copied / name).mkdir(exist_ok=True)
    (copied / ".env").write_text("HF_TOKEN=hf_secret")
    (copied / "checkpoints/model.safetensors").write_text("half trained")
    (copied / "__pycache__/app.py").write_text("")
    (copied / "data/notes.txt").write_text("mine")
    for name in ("stage.log", "history.json", "results.json"):
        (copied / name).write_text("[]")


def test_dry_run_lists_and_sends_nothing(ctxsim: Run, folders: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without any network: this process is offline."""
    for name, kind in (("surrogate-large", "model"), ("harvested-pairs", "dataset"), ("origin", "space")):
        code, out, _ = ctxsim("publish", folders / "ctxsim" / name, "--repo-id", f"ctxsim/{name}", "--dry-run")
        assert code == 0 and out.startswith(f"ctxsim/{name} ({kind}, private), ")
        assert out.endswith("nothing was sent (--dry-run)\n")
    assert "verbatim" in caplog.text and "'surrogate-large'" not in caplog.text
    caplog.clear()
    code, out, _ = ctxsim(
        "publish", folders / "ctxsim/origin-light", "--repo-id", "ctxsim/origin-light", "--public", "--dry-run"
    )
    assert "(model, public)" in out and "/chunks.arrow\n" in out and "/background.json\n" in out
    assert "holds sentences of your documents verbatim" in caplog.text


KINDS = {
    "surrogate-large": "models",
    "surrogate-static": "models",
    "generator-small": "models",
    "origin-light": "models",
    "harvested-pairs": "datasets",
    "origin": "spaces",
}


def test_only_what_is_listed_goes(hub: LoopbackHub, publish: Publish, folders: Path, tmp_path: Path) -> None:
    """Of each kind; and again sends nothing. The metric's name is that of its script, so its owner is another."""
    ids = {name: "ctxsim/listed-" + name if name != "origin" else "listed/origin" for name in KINDS}
    copies = {name: copy(folders / "ctxsim" / name, tmp_path / ids[name]) for name in KINDS}
    for folder in copies.values():
        put_what_must_not_go(folder)
    commands = [(WRITER, [copies[name], "--repo-id", ids[name]]) for name in KINDS]
    said = publish(*commands, *commands)
    for name, (code, out, err), (again, out_again, _) in zip(KINDS, said, said[len(KINDS) :], strict=False):
        repository = hub.repository(ids[name], KINDS[name])
        assert (code, again) == (0, 0) and repository.private, err
        listed = {line.split(" ")[-1]: line.split()[0] for line in out.splitlines() if line.startswith("  ")}
        assert {path: f"{len(content):,}" for path, content in repository.files.items()} == listed
        assert "README.md" in listed
        assert not {path for path in listed if MUST_NOT_GO & set(path.split("/"))}
        assert out_again.endswith(f"{ids[name]} holds exactly this already, revision {repository.main}\n")
        assert len(repository.commits) == 2
        holds_text = name in ("origin-light", "harvested-pairs")
        assert err.count("\n") == err.count("holds sentences of your documents verbatim") == holds_text
        assert WRITER not in out + err
        assert all(WRITER.encode() not in content for content in repository.files.values())
    published = hub.repository("ctxsim/listed-surrogate-large").files
    assert {"stage.json", "thresholds.json", "1_Pooling/config.json", "model.safetensors"} <= published.keys()
    static = hub.repository("ctxsim/listed-surrogate-static").files
    assert {"stage.json", "modules.json", "config.json", "tokenizer.json", "model.safetensors"} <= static.keys()
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and WRITER.encode() in path.read_bytes()]
    assert kept == []


def test_what_is_refused_is_told_in_a_line(
    hub: LoopbackHub, publish: Publish, folders: Path, published: Any, tmp_path: Path
) -> None:
    surrogate, origin = folders / "ctxsim/surrogate-large", folders / "ctxsim/origin-light"
    new, unlicensed = (copy(surrogate, tmp_path / "ctxsim" / name) for name in ("new", "unlicensed"))
    (unlicensed / "README.md").write_text((new / "README.md").read_text().replace("license: other", "license: mine"))
    others = [copy(folders / "ctxsim" / name, tmp_path / "ctxsim" / name) for name in KINDS]
    for folder in others:
        (folder / "README.md").write_text((folder / "README.md").read_text() + "More.\n")
    half = copy(surrogate, tmp_path / "ctxsim/half")
    (half / "tokenizer.json").unlink()
    before = {key: repository.main for key, repository in hub.repositories.items()}
    hub.repository("ctxsim/discriminator-light").private = False
    hub.refused_commits = 1
    said = publish(
        ("hf_nobody", [new, "--repo-id", "ctxsim/new"]),
        (READER, [new, "--repo-id", "ctxsim/new"]),
        *((WRITER, [folder, "--repo-id", f"ctxsim/{folder.name}"]) for folder in others),
        (READER, [others[0], "--repo-id", "ctxsim/surrogate-large", "--overwrite"]),
        (WRITER, [others[0], "--repo-id", "ctxsim/surrogate-large", "--overwrite"]),
        (WRITER, [unlicensed, "--repo-id", "ctxsim/new"]),
        (WRITER, [folders / "ctxsim/discriminator-light", "--repo-id", "ctxsim/discriminator-light"]),
        (WRITER, [surrogate, "--repo-id", "ctxsim/another"]),
        (WRITER, [origin, "--repo-id", "origin-light"]),
        (WRITER, [folders / "pairs", "--repo-id", "ctxsim/harvested-pairs"]),
        (WRITER, [tmp_path, "--repo-id", "ctxsim/x"]),
        (WRITER, [half, "--repo-id", "ctxsim/half"]),
    )
    expected = [
        "the Hub does not know this token",
        "this token may not write to 'ctxsim/new'",
        *(f"'ctxsim/{name}' exists with other content (1 files, e.g. README.md)" for name in KINDS),
        "this token may not write to 'ctxsim/surrogate-large'",
        "the Hub refused to publish 'ctxsim/surrogate-large': Private repository storage limit reached",
        'unlicensed/README.md\': "license" must be one of those known',
        "'ctxsim/discriminator-light' is public; add --public",
        "load something other than 'ctxsim/another'",
        "expected --repo-id OWNER/NAME, got 'origin-light'",
        "is a harvest; make a dataset with a card of it first",
        "has neither stage.json nor README.md",
        "tokenizer.json' is missing",
    ]
    for (code, out, err), message in zip(said, expected, strict=True):
        *warning, line = err.splitlines()
        assert (code, out, message in line) == (2, "", True), (err, message)
        assert line.startswith("ctxsim publish: ") and all("verbatim" in text for text in warning)
        assert not any(token in err for token in (READER, WRITER, "hf_nobody"))
    assert ("models", "ctxsim/new") not in hub.repositories
    assert {key: hub.repositories[key].main for key in before} == before


@pytest.mark.slow
def test_a_server_that_is_no_hub(hub: LoopbackHub, publish: Publish, folders: Path) -> None:
    """Such as the page of a hotel, where one has to log in first."""
    words = [folders / "ctxsim/surrogate-large", "--repo-id", "ctxsim/surrogate-large"]
    ((code, _, err),) = publish((WRITER, words), endpoint=f"{hub.endpoint}/login")
    assert code == 2 and err.count("\n") == 1 and "the server did not answer as a Hub would" in err


def test_no_network(ctxsim: Run, publish: Publish, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [folders / "ctxsim/surrogate-large", "--repo-id", "ctxsim/surrogate-large"]
    ((code, _, err),) = publish((WRITER, words), endpoint=NOWHERE)
    assert code == 2 and err.count("\n") == 1 and "the Hub could not be reached" in err
    code, _, err = ctxsim("publish", *words)
    assert code == 2 and err.startswith("ctxsim publish: no token to publish with; log in")
    monkeypatch.setenv("HF_TOKEN", WRITER)
    code, _, err = ctxsim("publish", *words)  # this process is offline
    assert code == 2 and err == "ctxsim publish: HF_HUB_OFFLINE is set, so nothing can be published; unset it\n"


@pytest.mark.slow
def test_an_upload_cut_off_leaves_nothing_and_again_ends_whole(
    hub: LoopbackHub, publish: Publish, folders: Path, tmp_path: Path
) -> None:
    folder = copy(folders / "ctxsim/generator-light", tmp_path / "ctxsim/cut")
    words = ["publish", str(folder), "--repo-id", "ctxsim/cut"]
    hub.objects.clear()  # of what others published: nothing is sent that is there already
    hub.upload_begun.clear()
    hub.hold_uploads = threading.Event()
    env = environment(hub.endpoint, tmp_path / "home")
    with subprocess.Popen([Path(sys.executable).with_name("ctxsim"), *words], env=env) as process:
        assert hub.upload_begun.wait(120)
        os.kill(process.pid, signal.SIGKILL)
    hub.hold_uploads.set()
    hub.hold_uploads = None
    assert hub.repository("ctxsim/cut").files == {}
    hub.cut_uploads = 1000  # now the connection breaks off again and again, until the client gives up
    ((code, out, err),) = publish((WRITER, words[1:]))
    assert (code, out) == (2, "") and hub.cut_uploads < 1000
    assert err.splitlines()[-1].startswith("ctxsim publish: the Hub could not be reached, or the connection broke off")
    assert "If 'ctxsim/cut' exists, it is complete as of its last commit. Run the same command again" in err
    assert "Traceback" not in err and WRITER not in err
    assert hub.repository("ctxsim/cut").files == {}
    hub.cut_uploads = 1  # now it breaks off once, and the client goes on by itself
    ((code, out, _),) = publish((WRITER, words[1:]))
    assert code == 0 and hub.cut_uploads == 0
    repository = hub.repository("ctxsim/cut")
    assert len(repository.commits) == 2 and f"{len(repository.files)} files" in out
    for name, content in repository.files.items():
        assert (folder / name).read_bytes() == content


PUSH = """
import json, sys
import ctxsim_hf
from transformers import AutoModel, AutoTokenizer
same = {}
for folder in sys.argv[1:]:
    model, name = AutoModel.from_pretrained(folder), "ctxsim/pushed-" + folder.split("/")[-1]
    model.push_to_hub(name, private=True)
    AutoTokenizer.from_pretrained(folder).push_to_hub(name)
    pushed = AutoModel.from_pretrained(name)
    weights = zip(model.state_dict().items(), pushed.state_dict().items(), strict=True)
    same[name] = type(pushed) is type(model) and all(a == b and v.equal(w) for (a, v), (b, w) in weights)
    AutoTokenizer.from_pretrained(name)
from sentence_transformers import SentenceTransformer
names = "ctxsim/pushed-surrogate-large", sys.argv[1]
vectors = [SentenceTransformer(name).encode("A cat sat there.").tolist() for name in names]
print(json.dumps([same, vectors]))
"""


@pytest.mark.slow
def test_models_push_themselves(hub: LoopbackHub, folders: Path, tmp_path: Path) -> None:
    names = ["surrogate-large", "discriminator-light", "generator-light", "generator-small"]
    env = environment(hub.endpoint, tmp_path / "home")
    same, (pushed, local) = run_python(PUSH, env, tmp_path, *(str(folders / "ctxsim" / name) for name in names))
    assert same == {f"ctxsim/pushed-{name}": True for name in names}
    assert pushed == pytest.approx(local, abs=1e-6)
    assert all(hub.repository(name).private for name in same)
    assert "modules.json" in hub.repository("ctxsim/pushed-surrogate-large").files
