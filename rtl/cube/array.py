"""The array: 16 rows and 16 columns of lines, and a processing element where they cross."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...ir.dtypes.boxes import BOX_ROWS
from ..dot.core import DotCore
from ..dot.decode import LineDecode
from ..dot.formats import NARROW_BITS, WIDE_BITS
from ..dot.shapes import ELEMENT_TYPE, FP32, LANES, LINE, LINE_BITS, OPERAND, SCALES
from .parts import put
from .row import CubeRow
from .sequencer import is_narrow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..emit.convert import Circuit

__all__ = ["MODULES", "SIDE", "Array"]

MODULES: Final[Mapping[str, Callable[[], Circuit]]] = {
    "cube_row": lambda: CubeRow(instances=True),
    "line_decode": LineDecode,
    "dot_core": DotCore,
}
"""What the array repeats: the module's name in Verilog, and what makes it."""

SIDE: Final = wiring.Signature(
    {
        "lines": Out(data.ArrayLayout(LINE, BOX_ROWS)),
        "elements": Out(unsigned(LANES)),
        "element_type": Out(ELEMENT_TYPE),
        "scales": Out(data.ArrayLayout(SCALES, BOX_ROWS)),
    }
)
"""What an operand brings to a step: 16 lines, which of their elements are within K, and scales."""

_LINE_CYCLES: Final = 1
"""Clock edges from a line to its operand."""


class Array(wiring.Component):
    """Multiply a step of 16 lines by 16 lines, and keep the sums of a tile of 16 x 16.

    Lines are cut to K, kept in registers and decoded once. Only registers lead to lines and rows,
    their reset included: a simulator that takes each for a black box then computes it once a cycle.

        cycle t                     take, a, b
        cycle t + add_cycles        add, first, second, start
        cycle t + latency_cycles    sums, until a later step changes them

    Args:
        rows: Rows that have processing elements, from the first on; the sums of others are 0.
        columns: The same of columns.
        instances: Whether rows and lines are instances of the modules in `MODULES`, see `parts`.

    Attributes:
        take: A step is here.
        a: The rows.
        b: The columns.
        add: A step meets its sums.
        first: It starts new ones.
        second: It has a second group.
        start: What they start from, FP32, row by row.
        sums: FP32, row by row.
    """

    def __init__(
        self, *, rows: int = BOX_ROWS, columns: int = BOX_ROWS, instances: bool = False
    ) -> None:
        assert 1 <= rows <= BOX_ROWS, "a tile has 16 rows"
        assert 1 <= columns <= BOX_ROWS, "a tile has 16 columns"
        self._rows, self._columns, self._instances = rows, columns, instances
        box = data.ArrayLayout(FP32, BOX_ROWS * BOX_ROWS)
        super().__init__(
            {
                "take": In(1),
                "a": In(SIDE),
                "b": In(SIDE),
                "add": In(1),
                "first": In(1),
                "second": In(1),
                "start": In(box),
                "sums": Out(box),
            }
        )

    @property
    def rows(self) -> int:
        """Rows that have processing elements."""
        return self._rows

    @property
    def columns(self) -> int:
        """Columns that have processing elements."""
        return self._columns

    @property
    def add_cycles(self) -> int:
        """Clock edges from a step's lines to where it meets its sums."""
        return _LINE_CYCLES + CubeRow.ADD_CYCLES

    @property
    def latency_cycles(self) -> int:
        """Clock edges from a step's lines to its sums."""
        return _LINE_CYCLES + CubeRow.LATENCY_CYCLES

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        reset = Signal(reset_less=True)
        m.d.sync += reset.eq(ResetSignal())
        rows = self._operands(m, self.a, "a", self._rows)
        columns = Signal(data.ArrayLayout(OPERAND, BOX_ROWS))
        for column, operand in enumerate(self._operands(m, self.b, "b", self._columns)):
            m.d.comb += columns[column].eq(operand)
        told = {name: getattr(self, name) for name in ("add", "first", "second")}
        for index, operand in enumerate(rows):
            row = "cube_row" if self._instances else CubeRow(columns=self._columns)
            places = range(index * BOX_ROWS, (index + 1) * BOX_ROWS)
            start = Cat(self.start[place] for place in places)
            inputs = {**told, "a": operand, "columns": columns, "start": start}
            sums = Signal(data.ArrayLayout(FP32, BOX_ROWS), name=f"sums_{index}")
            put(m, f"row_{index}", row, inputs, {"sums": sums}, reset=reset)
            m.d.comb += [self.sums[place].eq(sums[place % BOX_ROWS]) for place in places]
        return m

    def _operands(self, m: Module, side: Any, name: str, count: int) -> list[Signal]:
        """Keep the lines of a side, the first `count` of them; return their operands."""
        within_k = Signal(LINE, name=f"within_k_{name}")
        masks = (
            Cat(lane.replicate(bits) for lane in side.elements[: LINE_BITS // bits])
            for bits in (NARROW_BITS, WIDE_BITS)
        )
        m.d.comb += within_k.eq(Mux(is_narrow(side.element_type), *masks))
        element_type = Signal(ELEMENT_TYPE, name=f"element_type_{name}")
        with m.If(self.take):
            m.d.sync += element_type.eq(side.element_type)
        operands: list[Signal] = []
        for index in range(count):
            # A code of zeros is +0 in every format. The register stands before the decoder, where
            # a line is half as wide as behind it.
            line = Signal(LINE, name=f"line_{name}_{index}")
            scales = Signal(SCALES, name=f"scales_{name}_{index}")
            with m.If(self.take):
                m.d.sync += [line.eq(side.lines[index] & within_k), scales.eq(side.scales[index])]
            operand = Signal(OPERAND, name=f"operand_{name}_{index}")
            decode = "line_decode" if self._instances else LineDecode()
            inputs = {"line": line, "element_type": element_type, "scales": scales}
            put(m, f"decode_{name}_{index}", decode, inputs, {"operand": operand}, clocked=False)
            operands.append(operand)
        return operands
