"""Run `ctxsim train discriminator` under a launcher: `accelerate launch -m ctxsim_hf.train.discriminator ...`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["train", "discriminator", *sys.argv[1:]]))
