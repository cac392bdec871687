"""Counting through the box pairs of a mad."""

# Amaranth's `with m.If` is made at run time.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.scale_unit import REQUEST
from ..shapes import word_layout

__all__ = ["LIMITS", "Walk"]

_TILE = word_layout(REQUEST)["tile"].shape
_BLOCK = word_layout(REQUEST)["block"].shape

LIMITS = wiring.Signature({"row": Out(_TILE), "column": Out(_TILE), "block": Out(_BLOCK)})
"""The last row tile, column tile and block of a mad, each counted from 0."""


class Walk(wiring.Component):
    """Stand at a box pair of a mad and step to the next: blocks first, then columns, then rows.

    A step from the last pair leads to the first.

    Attributes:
        limits: The last of each count; still while a mad is under way.
        step: Go on to the next pair at the coming edge.
        row: Tile of rows where the walk stands.
        column: Tile of columns.
        block: Pair of groups along K.
        at_last_block: Whether no block follows for this row and column.
        at_last: Whether no pair follows.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "limits": In(LIMITS),
                "step": In(1),
                "row": Out(_TILE),
                "column": Out(_TILE),
                "block": Out(_BLOCK),
                "at_last_block": Out(1),
                "at_last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        limits = self.limits
        at_last_column = self.column == limits.column
        at_last_row = self.row == limits.row
        m.d.comb += self.at_last_block.eq(self.block == limits.block)
        m.d.comb += self.at_last.eq(self.at_last_block & at_last_column & at_last_row)
        with m.If(self.step):
            m.d.sync += self.block.eq(self.block + 1)
            with m.If(self.at_last_block):
                m.d.sync += self.block.eq(0)
                m.d.sync += self.column.eq(self.column + 1)
                with m.If(at_last_column):
                    m.d.sync += self.column.eq(0)
                    m.d.sync += self.row.eq(self.row + 1)
                    with m.If(at_last_row):
                        m.d.sync += self.row.eq(0)
        return m
