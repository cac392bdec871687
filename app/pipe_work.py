"""The pipes of a core, as people who do not know them yet may read of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.isa.vocabulary import Pipe

if TYPE_CHECKING:
    from collections.abc import Mapping

PIPE_WORK: Mapping[Pipe, str] = {
    Pipe.MTE2: "global memory -> L1",
    Pipe.MTE1: "L1 -> buffers of the cube",
    Pipe.M: "the cube multiplies",
    Pipe.FIX: "accumulator -> global memory",
    Pipe.V: "vector unit",
    Pipe.MTE3: "vector buffer -> global memory",
    Pipe.S: "issues to the other pipes",
}
"""What each pipe does, in the order in which data flows through them; last, who leads them."""
