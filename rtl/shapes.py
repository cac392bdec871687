"""The tables of the intermediate representation as shapes of hardware.

Every width in `rtl/` comes from here, and everything here from the row of E8M0 and from the
geometry of the scale box. Code `c` of E8M0 is the scale 2^(c - bias), one code is NaN, and there is
neither a zero nor a sign.

* A **code** is the byte that memory holds.
* An **exponent** is `c - bias`. Its width has room for the difference of the NaN code too, so that
  nothing wraps; beside a set NaN flag it means nothing.
* A **combined exponent** is the exact sum of two exponents, one bit wider than either.

A word of the scale-decode unit is a table of fields in `codegen.isa.scale_unit`; `word_layout` makes
the layout of any such table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amaranth.hdl import Const, Value, signed, unsigned
from amaranth.lib import data

from ..codegen.isa.scale_unit import BEATS_BYTES, EXPONENT_BITS, HALF, RECORD, Field
from ..ir.dtypes import DType
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..ir.dtypes.formats import format_of
from ..ir.errors import IRTypeError, IRValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amaranth.hdl import Shape

_E8M0 = format_of(DType.E8M0)
assert _E8M0.nan_code is not None, "E8M0 has a NaN code"

BIAS: Final = _E8M0.bias
NAN_CODE: Final = _E8M0.nan_code

CODE = unsigned(_E8M0.bits)
EXPONENT = signed(CODE.width + 1)
COMBINED_EXPONENT = signed(EXPONENT.width + 1)


COMBINED: Final = (
    Field(
        "exponent",
        COMBINED_EXPONENT.width,
        "Exact sums of a row's and a column's exponent, entry `row * 16 + column`.",
        BOX_ROWS * BOX_ROWS,
        signed=True,
    ),
    Field("is_nan", 1, "Whether either scale of a pair is NaN.", BOX_ROWS * BOX_ROWS),
)
"""Every pair of a half of a record, combined: what a unit built with `combined` adds."""

assert EXPONENT.width == EXPONENT_BITS, "the unit's records carry whole exponents"


def exponent_of(code: Value) -> Value:
    """Return the circuit of `code - bias`, of shape `EXPONENT`."""
    return code - Const(BIAS)


def is_nan_code(code: Value) -> Value:
    """Return the circuit, one bit wide, that tells the NaN code."""
    return code == Const(NAN_CODE)


def check_beat_bytes(what: str, value: object) -> int:
    """Return `value` if a beat can have so many bytes.

    Args:
        what: What the error calls it.
        value: The candidate.

    Raises:
        IRTypeError: If it is not an integer.
        IRValueError: If it is none of `BEATS_BYTES`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{what} must be an integer, not {value!r}"
        raise IRTypeError(message)
    if value not in BEATS_BYTES:
        message = f"{what} must be one of {', '.join(map(str, BEATS_BYTES))}, not {value}"
        raise IRValueError(message)
    return value


def check_flag(what: str, value: object) -> bool:
    """Return `value` if it is a truth value.

    Args:
        what: What the error calls it.
        value: The candidate.

    Raises:
        IRTypeError: If it is neither True nor False.
    """
    if not isinstance(value, bool):
        message = f"{what} must be True or False, not {value!r}"
        raise IRTypeError(message)
    return value


def word_layout(fields: Iterable[Field]) -> data.StructLayout:
    """Return the layout of a word, its first field in the low bits."""
    return data.StructLayout({field.name: _shape_of(field) for field in fields})


def beat_layout(beat_bytes: int) -> data.ArrayLayout:
    """Return the layout of a beat: consecutive codes of a box, the first in the low bits."""
    return data.ArrayLayout(CODE, beat_bytes)


def record_layout(*, combined: bool = False) -> data.StructLayout:
    """Return the layout of a record: its fields, `halves`, and `combined` where asked for.

    Args:
        combined: Whether every pair of a row and a column of either half follows, combined.
    """
    members: dict[str, Any] = {field.name: _shape_of(field) for field in RECORD}
    members["halves"] = data.ArrayLayout(word_layout(HALF), BOX_GROUPS)
    if combined:
        members["combined"] = data.ArrayLayout(word_layout(COMBINED), BOX_GROUPS)
    return data.StructLayout(members)


def _shape_of(field: Field) -> Shape | data.ArrayLayout:
    entry = signed(field.bits) if field.signed else unsigned(field.bits)
    return entry if field.count == 1 else data.ArrayLayout(entry, field.count)
