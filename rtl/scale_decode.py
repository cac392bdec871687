"""The scale-decode unit: boxes of E8M0 codes in, exponents and NaN flags out."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from .shapes import box_layout, check_count, decoded_box_layout, exponent_of, is_nan_code

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["ScaleDecode"]


class ScaleDecode(wiring.Component):
    """Decode one scale box a cycle behind one register.

    The register is a full slice: it loads when it is empty or being emptied, so a box enters every
    cycle as long as the consumer takes one every cycle. `o.valid` stays up and `o.payload` keeps
    still until `o.ready`; neither depends on `o.ready`. A reset empties the register.

    Args:
        rows: Rows of a box, at least 1.
        groups: Groups of a box, at least 1.

    Attributes:
        i: Stream of boxes, `box_layout`: lane `row * groups + group` is that scale's code.
        o: Stream of decoded boxes, `decoded_box_layout`, lanes in the same order.

    Raises:
        IRTypeError: If a parameter is not an integer.
        IRValueError: If a parameter is below 1.
    """

    LATENCY_CYCLES: Final = 1

    def __init__(self, *, rows: int = BOX_ROWS, groups: int = BOX_GROUPS) -> None:
        self._rows = check_count("ScaleDecode rows", rows)
        self._groups = check_count("ScaleDecode groups", groups)
        super().__init__(
            {
                "i": In(stream.Signature(box_layout(rows=rows, groups=groups))),
                "o": Out(stream.Signature(decoded_box_layout(rows=rows, groups=groups))),
            }
        )

    @property
    def rows(self) -> int:
        """Rows of a box."""
        return self._rows

    @property
    def groups(self) -> int:
        """Groups of a box."""
        return self._groups

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with, name to value."""
        return {"rows": self._rows, "groups": self._groups}

    @property
    def latency_cycles(self) -> int:
        """Clock edges from the one that takes a box to the first that can give it away again."""
        return self.LATENCY_CYCLES

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        decoded = Signal(decoded_box_layout(rows=self._rows, groups=self._groups))
        for lane in range(self._rows * self._groups):
            code = self.i.payload[lane]
            m.d.comb += decoded.exponent[lane].eq(exponent_of(code))
            m.d.comb += decoded.is_nan[lane].eq(is_nan_code(code))
        m.d.comb += self.i.ready.eq(self.o.ready | ~self.o.valid)
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += self.o.payload.eq(decoded)
        return m
