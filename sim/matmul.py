"""The cube: what a mad multiplies, and who multiplies it.

A mad is cut out of the L0 buffers as a dense tile and handed to a cube engine, which may be hardware
under simulation. The default engine is the block-scaled matmul of `ir.numerics`; its mads need not be
cut out, since compiled code multiplies what lies in the buffers (`datapaths.cube`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..codegen.isa.vocabulary import ElementType, MadInit
from ..ir.dtypes.boxes import GROUP
from ..ir.numerics.elements import Summation
from ..ir.numerics.fast_matmul import matmul_mx
from .datapaths.cube import DTYPES
from .datapaths.kernels import REPORT
from .datapaths.l0 import DIRTY, FAILED, load_tile, store_tile

if TYPE_CHECKING:
    import numpy.typing as npt

    from .datapaths.kernels import Memory

    Codes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float32]
    Line = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MadTile:
    """One mad as dense matrices, cut to the valid m, k and n; G = ceil(k / 32).

    Attributes:
        a: Codes, one a byte, uint8 [m, k].
        a_scales: E8M0 codes, uint8 [m, G].
        b: uint8 [k, n].
        b_scales: uint8 [G, n].
        a_type: Element type of `a`.
        b_type: Element type of `b`.
        start: What the accumulator begins from, float32 [m, n]; the engine may overwrite it.
        init: Where that is from; `start` holds +0, or the bias in every row, accordingly.
        addresses: Where the mad has c, a, b and the bias, bytes in L0C, L0A, L0B and the bias table,
            for an engine with memories of its own.
    """

    a: Codes
    a_scales: Codes
    b: Codes
    b_scales: Codes
    a_type: ElementType
    b_type: ElementType
    start: Floats
    init: MadInit
    addresses: tuple[int, int, int, int] = (0, 0, 0, 0)


class CubeEngine(Protocol):
    """Something that multiplies tiles."""

    def multiply(self, tile: MadTile) -> Floats:
        """Return `tile.start` plus the block-scaled product, float32 [m, n]."""
        ...


class NumericsCube:
    """The default engine: the compiled block-scaled matmul of `ir.numerics`.

    Args:
        order: The order in which products meet the accumulator.
    """

    def __init__(self, order: Summation = Summation.GROUP) -> None:
        self.order = order

    def multiply(self, tile: MadTile) -> Floats:
        """Return `tile.start` plus the block-scaled product."""
        return matmul_mx(
            tile.a,
            tile.a_scales,
            tile.b,
            tile.b_scales,
            a_dtype=DTYPES[tile.a_type],
            b_dtype=DTYPES[tile.b_type],
            acc=tile.start,
            sum=self.order,
        )


@dataclass(frozen=True, slots=True)
class MadOutcome:
    """Whether a mad was done, and whether it saw non-zero padding; `fault` says where."""

    done: bool
    padding: bool = False


def mad_mx(memory: Memory, op: Line, engine: CubeEngine, fault: Line, mode: int) -> MadOutcome:
    """Execute one mad whose bounds have been checked (`l0.mad_ok`).

    Args:
        memory: The memories.
        op: Operands in the order of `actions.ACTIONS`.
        engine: Who multiplies.
        fault: Receives the place of a never-written operand, or of non-zero padding.
        mode: As for a kernel.
    """
    c_at, a_at, b_at, bias_at, m, k, n = (int(value) for value in op[:7])
    a_type, b_type = ElementType(int(op[7])), ElementType(int(op[8]))
    groups = -(-k // GROUP)
    a, b = np.empty((m, k), np.uint8), np.empty((k, n), np.uint8)
    a_scales, b_scales = np.empty((m, groups), np.uint8), np.empty((groups, n), np.uint8)
    start = np.empty((m, n), np.float32)
    outcome = load_tile(
        memory, op, a, b, a_scales, b_scales, start.view(np.uint32), fault, mode >= REPORT
    )
    if outcome == FAILED:
        return MadOutcome(done=False)
    init = MadInit(int(op[9]))
    addresses = (c_at, a_at, b_at, bias_at)
    tile = MadTile(a, a_scales, b, b_scales, a_type, b_type, start, init, addresses)
    result = engine.multiply(tile)
    assert result.shape == (m, n), "an engine returns one number per element of the tile"
    patterns = np.ascontiguousarray(result, np.float32).view(np.uint32)
    store_tile(memory, c_at, patterns)
    return MadOutcome(done=True, padding=outcome == DIRTY)
