"""Try every fault and print what came of it: `make test-faults`, or `PYTHONPATH=tests python -m faults --help`.

Exits with 1 if a damaged folder gave a wrong answer, or if a kill or a second writer lost something.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Run the harness."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=630, help="damaged files, two thirds of them flips")
    parser.add_argument("--kills", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--few", action="store_true", help="only the folders and verbs that take a second")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of folders")
    parser.add_argument("--verbs", nargs="*", help="only these ways of using verbs")
    parser.add_argument("--attempts", nargs="*", help="only try what once got through: all of it, or these rows")
    parser.add_argument("--root", help="keep the folders here and use them again; by default they are removed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxsim-faults-") as place:
        root = Path(arguments.root or place).resolve()
        root.mkdir(exist_ok=True)
        # Before anything imports a Hugging Face library, which read these once.
        os.environ |= {"HF_HOME": str(root / "home"), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        os.environ |= {"OMP_NUM_THREADS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
        return _run(root, arguments)


def _run(root: Path, arguments: argparse.Namespace) -> int:
    from faults.report import import_everything, report_damages, report_kills

    import_everything()  # so that a child need not
    from faults.damage import damage_folders
    from faults.folders import FEW_KINDS, FEW_VERBS, make_folders
    from faults.kills import kill_verbs

    start = time.monotonic()
    if arguments.few:
        arguments.kinds, arguments.verbs = FEW_KINDS, FEW_VERBS
    if not (root / "texts.jsonl").exists():
        make_folders(root, arguments.few)
    print(f"made folders of every kind in {time.monotonic() - start:.0f} s", flush=True)
    bad = 0
    if arguments.attempts is not None:
        from faults.attempts import try_all

        return 1 if try_all(root, arguments.attempts) else 0
    if arguments.damages:
        bad += report_damages(damage_folders(root, arguments.damages, arguments.seed, arguments.kinds))
    if arguments.kills:
        bad += report_kills(kill_verbs(root, arguments.kills, arguments.seed, arguments.verbs))
    print(f"{time.monotonic() - start:.0f} s in all, seed {arguments.seed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
