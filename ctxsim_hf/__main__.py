"""`python -m ctxsim_hf`: the command `ctxsim`."""

import sys

if __name__ == "__main__":
    from ctxsim_hf.cli import main

    sys.exit(main())
