"""Run `ctxsim harvest` on many processes and devices: `accelerate launch -m ctxsim_hf.harvest`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["harvest", *sys.argv[1:]]))
