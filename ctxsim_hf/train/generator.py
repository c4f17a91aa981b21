"""Run `ctxsim train generator` under a launcher: `accelerate launch -m ctxsim_hf.train.generator ...`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["train", "generator", *sys.argv[1:]]))
