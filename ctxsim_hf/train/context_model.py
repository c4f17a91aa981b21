"""Run `ctxsim train context-model` under a launcher: `accelerate launch -m ctxsim_hf.train.context_model ...`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["train", "context-model", *sys.argv[1:]]))
