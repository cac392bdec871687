"""The processing elements of the cube and nothing else, for comparing speeds.

The array has the same shape as in the cube, rows of a module of their own that only registers lead
to, so that what differs is what the cube adds: sequencer, scales, decoders, sums read and written.
"""

# Amaranth's layouts are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from functools import reduce
from operator import xor
from typing import Final

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...ir.dtypes.boxes import BOX_ROWS
from ..dot.shapes import FP32, OPERAND
from .parts import put

__all__ = ["BareArray", "BareRow"]

_OPERANDS: Final = data.ArrayLayout(OPERAND, BOX_ROWS)


class BareRow(wiring.Component):
    """Sixteen processing elements that share an operand.

    Attributes:
        a: The operand of the row.
        b: Those of the columns.
        o: All sums, one upon another, so that none is idle.
    """

    def __init__(self) -> None:
        super().__init__({"a": In(OPERAND), "b": In(_OPERANDS), "o": Out(FP32)})

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        sums = [Signal(FP32, name=f"sum_{column}") for column in range(BOX_ROWS)]
        for column, each in enumerate(sums):
            inputs = {"a": self.a, "b": self.b[column], "add": 1, "first": 0, "second": 0}
            put(m, f"pe_{column}", "dot_core", {**inputs, "start": 0}, {"o": each})
        m.d.comb += self.o.eq(reduce(xor, sums))
        return m


class BareArray(wiring.Component):
    """Sixteen such rows.

    Attributes:
        a: The operands of the rows.
        b: Those of the columns.
        o: All sums, one upon another.
    """

    def __init__(self) -> None:
        super().__init__({"a": In(_OPERANDS), "b": In(_OPERANDS), "o": Out(FP32)})

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        a, b = (Signal(_OPERANDS, name=f"kept_{name}", reset_less=True) for name in "ab")
        reset = Signal(reset_less=True)
        m.d.sync += [a.eq(self.a), b.eq(self.b), reset.eq(ResetSignal())]
        sums = [Signal(FP32, name=f"sum_{row}") for row in range(BOX_ROWS)]
        for row, each in enumerate(sums):
            inputs = {"a": a[row], "b": b}
            put(m, f"row_{row}", "bare_row", inputs, {"o": each}, reset=reset)
        m.d.comb += self.o.eq(reduce(xor, sums))
        return m
