"""A row of the array: a processing element for every column."""

# Amaranth's layouts are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Final

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...ir.dtypes.boxes import BOX_ROWS
from ..dot.core import LATENCY_CYCLES, TERM_CYCLES, DotCore
from ..dot.shapes import FP32, OPERAND
from .parts import put

__all__ = ["CubeRow"]


class CubeRow(wiring.Component):
    """Multiply the operand of a row by those of all columns, and keep the sums of the row.

        cycle t                     a, columns
        cycle t + ADD_CYCLES        add, first, second, start
        cycle t + LATENCY_CYCLES    sums, until a later step changes them

    Args:
        columns: Columns that have a processing element, from the first on; the sums of others are 0.
        instances: Whether processing elements are instances of a module, see `parts`.

    Attributes:
        a: The operand of the row.
        columns: The operand of every column.
        add: A step meets its sums.
        first: It starts new ones.
        second: It has a second group.
        start: What they start from, FP32.
        sums: FP32, by column.
    """

    ADD_CYCLES: Final = TERM_CYCLES
    LATENCY_CYCLES: Final = LATENCY_CYCLES

    def __init__(self, *, columns: int = BOX_ROWS, instances: bool = False) -> None:
        assert 1 <= columns <= BOX_ROWS, "a tile has 16 columns"
        self._columns, self._instances = columns, instances
        super().__init__(
            {
                "a": In(OPERAND),
                "columns": In(data.ArrayLayout(OPERAND, BOX_ROWS)),
                "add": In(1),
                "first": In(1),
                "second": In(1),
                "start": In(data.ArrayLayout(FP32, BOX_ROWS)),
                "sums": Out(data.ArrayLayout(FP32, BOX_ROWS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        shared = {name: getattr(self, name) for name in ("a", "add", "first", "second")}
        for column in range(self._columns):
            core = "dot_core" if self._instances else DotCore()
            inputs = {**shared, "b": self.columns[column], "start": self.start[column]}
            put(m, f"pe_{column}", core, inputs, {"o": self.sums[column]})
        return m
