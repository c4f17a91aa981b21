"""The page of the metric's Space, driven in a browser: `make test-app`."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxsim_hf import OriginSimilarity

pytest.importorskip("gradio", reason="make test-app installs gradio and playwright")
playwright = pytest.importorskip("playwright.sync_api", reason="make test-app installs gradio and playwright")

APP = Path(__file__).parents[2] / "metrics/origin/app.py"
FIRST, SECOND = "A cat sat there.", "There the cat sat."

pytestmark = pytest.mark.slow


@pytest.fixture
def page_address(planted: Path, tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {
        "CTXSIM_ORIGIN": str(planted / "origin"),
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    with (tmp_path / "log").open("w") as log, subprocess.Popen([sys.executable, APP], env=env, stderr=log) as app:
        address = f"http://127.0.0.1:{port}"
        for _ in range(1200):
            assert app.poll() is None, (tmp_path / "log").read_text()
            try:
                urllib.request.urlopen(address, timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield address
        app.terminate()


def test_two_sentences_give_a_score_and_its_contexts(page_address: str, planted: Path) -> None:
    picture = Path(os.environ.get("APP_PICTURE", "app.png"))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(page_address)
        page.get_by_label("First sentence").fill(FIRST)
        page.get_by_label("Second sentence").fill(SECOND)
        page.get_by_role("button", name="Compare").click()
        heading = page.get_by_role("heading", name=re.compile(r"Similarity \d\.\d{3}"))
        playwright.expect(heading).to_be_visible(timeout=60_000)
        playwright.expect(page.get_by_text("both fit")).to_be_visible()
        shown = heading.inner_text()
        page.screenshot(path=picture, full_page=True)
        # Nothing typed: the page says so, and no score of before is taken for an answer to it.
        page.get_by_label("Second sentence").fill(" ")
        page.get_by_role("button", name="Compare").click()
        playwright.expect(page.get_by_text("Type the second sentence.")).to_be_visible()
        browser.close()
    expected = OriginSimilarity.from_pretrained(planted / "origin").explain(FIRST, SECOND)
    assert shown.startswith(f"Similarity {expected.similarity:.3f}") and f"{expected.spread:.3f}" in shown
    assert picture.stat().st_size > 10_000
