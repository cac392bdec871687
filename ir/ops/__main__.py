"""Print the manual of the ops: `python -m scalebox.ir.ops > docs/ops.md`."""

from __future__ import annotations

from .docs import manual

if __name__ == "__main__":
    print(manual(), end="")
