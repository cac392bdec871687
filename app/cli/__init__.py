"""The command line: its commands and options, the streams it writes to, and patience."""

from .commands import main

__all__ = ["main"]
