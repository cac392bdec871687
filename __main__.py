"""Lets `python -m scalebox` be the command `scalebox`."""

import sys

from .app.cli import main

if __name__ == "__main__":
    sys.exit(main())
