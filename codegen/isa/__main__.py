"""Print the manual of the instruction set: `python -m scalebox.codegen.isa > docs/isa.md`."""

from __future__ import annotations

from .docs import manual

if __name__ == "__main__":
    print(manual(), end="")
