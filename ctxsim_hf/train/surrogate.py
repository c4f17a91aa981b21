"""Run `ctxsim train surrogate` under a launcher: `accelerate launch -m ctxsim_hf.train.surrogate ...`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["train", "surrogate", *sys.argv[1:]]))
