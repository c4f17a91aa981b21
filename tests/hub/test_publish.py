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
NOWHERE = "http://127.0.0.1:9"


def copy(folder: Path, target: Path) -> Path:
    """Under the name of the target, which its card then has too."""
    copied = Path(shutil.copytree(folder, target))
    card = copied / "README.md"
    card.write_text(card.read_text().replace(f"ctxsim/{folder.name}", f"ctxsim/{target.name}"))
    return copied


def put_what_must_not_go(copied: Path) -> None:
    """A secret, a log, traces of training."""
    (copied / ".env").write_text("HF_TOKEN=hf_secret")
    (copied / "checkpoints").mkdir()
    (copied / "checkpoints/model.safetensors").write_text("half trained")
    (copied / "history.json").write_text("[]")


def test_dry_run_lists_and_sends_nothing(ctxsim: Run, folders: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without any network: this process is offline."""
    for name, kind in (("surrogate-large", "model"), ("harvested-pairs", "dataset"), ("origin", "space")):
        code, out, _ = ctxsim("publish", folders / "ctxsim" / name, "--repo-id", f"ctxsim/{name}", "--dry-run")
        assert code == 0 and out.startswith(f"ctxsim/{name} ({kind}, private), ")
        assert out.endswith("nothing was sent (--dry-run)\n")
    assert "word for word" in caplog.text and "'surrogate-large'" not in caplog.text
    caplog.clear()
    code, out, _ = ctxsim(
        "publish", folders / "ctxsim/origin-light", "--repo-id", "ctxsim/origin-light", "--public", "--dry-run"
    )
    assert "(model, public)" in out and " index/chunks.arrow\n" in out and " background.json\n" in out
    assert "holds sentences of your documents word for word" in caplog.text


def test_only_what_is_listed_goes(hub: LoopbackHub, publish: Publish, folders: Path, tmp_path: Path) -> None:
    folder = copy(folders / "ctxsim/surrogate-large", tmp_path / "listed")
    put_what_must_not_go(folder)
    words = [folder, "--repo-id", "ctxsim/listed"]
    (code, out, err), (again, out_again, _) = publish((WRITER, words), (WRITER, words))
    repository = hub.repository("ctxsim/listed")
    assert (code, err) == (0, "") and repository.private
    listed = {line.split(" ")[-1]: line.split()[0] for line in out.splitlines() if line.startswith("  ")}
    assert {name: f"{len(content):,}" for name, content in repository.files.items()} == listed
    assert {"README.md", "stage.json", "1_Pooling/config.json", "model.safetensors"} <= listed.keys()
    assert not {".env", "stage.log", "history.json", "results.json", "checkpoints/model.safetensors"} & listed.keys()
    assert again == 0 and out_again.endswith(f"ctxsim/listed holds just this already, revision {repository.main}\n")
    assert len(repository.commits) == 2 and WRITER not in out + err
    assert all(WRITER.encode() not in content for content in repository.files.values())


def test_what_is_refused_is_told_in_a_line(
    hub: LoopbackHub, publish: Publish, folders: Path, published: Any, tmp_path: Path
) -> None:
    surrogate, origin = folders / "ctxsim/surrogate-large", folders / "ctxsim/origin-light"
    other, new = copy(surrogate, tmp_path / "surrogate-large"), copy(surrogate, tmp_path / "new")
    (other / "README.md").write_text((other / "README.md").read_text() + "More.\n")
    before = hub.repository("ctxsim/surrogate-large").main
    hub.repository("ctxsim/discriminator-light").private = False
    said = publish(
        ("hf_nobody", [new, "--repo-id", "ctxsim/new"]),
        (READER, [new, "--repo-id", "ctxsim/new"]),
        (WRITER, [other, "--repo-id", "ctxsim/surrogate-large"]),
        (READER, [other, "--repo-id", "ctxsim/surrogate-large", "--overwrite"]),
        (WRITER, [folders / "ctxsim/discriminator-light", "--repo-id", "ctxsim/discriminator-light"]),
        (WRITER, [surrogate, "--repo-id", "ctxsim/another"]),
        (WRITER, [origin, "--repo-id", "origin-light"]),
        (WRITER, [folders / "pairs", "--repo-id", "ctxsim/harvested-pairs"]),
        (WRITER, [tmp_path, "--repo-id", "ctxsim/x"]),
    )
    expected = [
        "the Hub does not know this token",
        "this token may not write to 'ctxsim/new'",
        "'ctxsim/surrogate-large' exists with other content (1 files, e.g. README.md)",
        "this token may not write to 'ctxsim/surrogate-large'",
        "'ctxsim/discriminator-light' is public; say --public",
        "load something other than 'ctxsim/another'",
        "expected --repo-id OWNER/NAME, got 'origin-light'",
        "is a harvest; make a data set with a card of it first",
        "has neither stage.json nor README.md",
    ]
    for (code, out, err), message in zip(said, expected, strict=True):
        lines = err.splitlines()
        assert (code, out, message in lines[-1]) == (2, "", True), (err, message)
        assert lines[-1].startswith("ctxsim publish: ") and len(lines) == 1
        assert not any(token in err for token in (READER, WRITER, "hf_nobody"))
    assert ("models", "ctxsim/new") not in hub.repositories
    assert hub.repository("ctxsim/surrogate-large").main == before


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
    folder = copy(folders / "ctxsim/generator-light", tmp_path / "cut")
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
    hub.cut_uploads = 1  # now the connection breaks off once, and the client goes on by itself
    ((code, out, _),) = publish((WRITER, words[1:]))
    assert code == 0 and hub.cut_uploads == 0
    repository = hub.repository("ctxsim/cut")
    assert len(repository.commits) == 2 and f"{len(repository.files)} files" in out
    for name, content in repository.files.items():
        assert (folder / name).read_bytes() == content


PUSH = """
from ctxsim_hf import SurrogateModel
from transformers import AutoTokenizer
import json, sys
SurrogateModel.from_pretrained(sys.argv[1]).push_to_hub("ctxsim/pushed", private=True)
AutoTokenizer.from_pretrained(sys.argv[1]).push_to_hub("ctxsim/pushed")
from sentence_transformers import SentenceTransformer
vectors = [SentenceTransformer(name).encode("A cat sat there.").tolist() for name in ("ctxsim/pushed", sys.argv[1])]
print(json.dumps(vectors))
"""


@pytest.mark.slow
def test_a_model_pushes_itself(hub: LoopbackHub, folders: Path, tmp_path: Path) -> None:
    env = environment(hub.endpoint, tmp_path / "home")
    pushed, local = run_python(PUSH, env, tmp_path, str(folders / "ctxsim/surrogate-large"))
    assert pushed == pytest.approx(local, abs=1e-6)
    assert "modules.json" in hub.repository("ctxsim/pushed").files
