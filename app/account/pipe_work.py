"""The pipes of a core, as people who do not know them yet may read of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...codegen.isa.vocabulary import ClusterCore, CoreKind, Pipe

if TYPE_CHECKING:
    from collections.abc import Mapping

PIPE_WORK: Mapping[Pipe, str] = {
    Pipe.MTE2: "global memory -> L1",
    Pipe.MTE1: "L1 -> buffers of the cube",
    Pipe.M: "the cube multiplies",
    Pipe.FIX: "out of the accumulator",
    Pipe.V: "vector unit",
    Pipe.MTE3: "out of the vector buffer",
    Pipe.S: "issues to the other pipes",
}
"""What each pipe does, in the order in which data flows through them; last, who leads them."""

VECTOR_PIPE_WORK: Mapping[Pipe, str] = {
    **PIPE_WORK,
    Pipe.MTE2: "global memory -> vector buffer",
}
"""The same for a vector core."""

CORE_NAMES: Mapping[ClusterCore, str] = {
    ClusterCore.AIC: "the cube core",
    ClusterCore.AIV0: "the first vector core",
    ClusterCore.AIV1: "the second vector core",
}
"""What the cores of a cluster are."""


def pipe_work(kind: CoreKind) -> Mapping[Pipe, str]:
    """Return what each pipe of a core does."""
    return PIPE_WORK if kind is CoreKind.AIC else VECTOR_PIPE_WORK
