"""`accelerate launch -m ctxsim_hf.harvest`: the command `ctxsim harvest` on many processes and devices."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main(["harvest", *sys.argv[1:]]))
