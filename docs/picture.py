"""Draw docs/explanation.png, the picture at the top of the README, with Chromium; repeat it with

make demo
python docs/picture.py demo/ctxsim/origin-light docs/explanation.png
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ctxsim_hf import OriginSimilarity

PAIR = "The connection was refused by the server.", "The host did not accept the request."
SIZE = (960, 860)
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def photograph(page: Path, picture: Path, size: tuple[int, int]) -> None:
    """Write a picture of the top of a page."""
    chromium = shutil.which("chromium") or sys.exit("expected chromium on the path, found none")
    with tempfile.TemporaryDirectory() as profile:
        where = [f"--user-data-dir={profile}", f"--screenshot={picture}", page.resolve().as_uri()]
        shape = ["--hide-scrollbars", f"--window-size={size[0]},{size[1]}"]
        subprocess.run([chromium, *QUIET, *shape, *where], check=True, stderr=subprocess.DEVNULL)


def main(origin: str, picture: str) -> None:
    """Explain the pair by an origin, and write the top of the explanation as a picture."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "explanation.html"
        OriginSimilarity.from_pretrained(origin).explain(*PAIR).to_html(page)
        photograph(page, Path(picture), SIZE)


if __name__ == "__main__":
    main(*sys.argv[1:])
