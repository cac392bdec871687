"""The tables of the intermediate representation as shapes of hardware.

Every width in `rtl/` comes from here, and everything here from the row of E8M0 and from the
geometry of the scale box. Code `c` of E8M0 is the scale 2^(c - bias), one code is NaN, and there is
neither a zero nor a sign.

* A **code** is the byte that memory holds.
* An **exponent** is `c - bias`. Its width has room for the difference of the NaN code too, so that
  nothing wraps; beside a set NaN flag it means nothing.
* A **combined exponent** is the exact sum of two exponents, one bit wider than either.

`pack_box` and `unpack_decoded_box` are the one place where a word on a wire becomes Python's
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from amaranth.hdl import Const, Value, signed, unsigned
from amaranth.lib import data

from ..ir.dtypes import DType
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..ir.dtypes.formats import format_of
from ..ir.errors import IRTypeError, IRValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

_E8M0 = format_of(DType.E8M0)
assert _E8M0.nan_code is not None, "E8M0 has a NaN code"

BIAS: Final = _E8M0.bias
NAN_CODE: Final = _E8M0.nan_code

CODE = unsigned(_E8M0.bits)
EXPONENT = signed(CODE.width + 1)
COMBINED_EXPONENT = signed(EXPONENT.width + 1)


class DecodedBox(NamedTuple):
    """A decoded box as numbers, one entry a lane."""

    exponents: tuple[int, ...]
    is_nan: tuple[bool, ...]


def exponent_of(code: Value) -> Value:
    """Return the circuit of `code - bias`, of shape `EXPONENT`."""
    return code - Const(BIAS)


def is_nan_code(code: Value) -> Value:
    """Return the circuit, one bit wide, that tells the NaN code."""
    return code == Const(NAN_CODE)


def check_count(what: str, value: object) -> int:
    """Return `value` if it is a positive integer.

    Args:
        what: What the error calls it.
        value: The candidate.

    Raises:
        IRTypeError: If it is not an integer.
        IRValueError: If it is below 1.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{what} must be an integer, not {value!r}"
        raise IRTypeError(message)
    if value < 1:
        message = f"{what} must be at least 1, not {value}"
        raise IRValueError(message)
    return value


def box_layout(*, rows: int = BOX_ROWS, groups: int = BOX_GROUPS) -> data.ArrayLayout:
    """Return the layout of a box: a code a lane, lane `row * groups + group`, lane 0 lowest."""
    return data.ArrayLayout(CODE, rows * groups)


def decoded_box_layout(*, rows: int = BOX_ROWS, groups: int = BOX_GROUPS) -> data.StructLayout:
    """Return the layout of a decoded box: every lane's exponent, then every lane's NaN flag."""
    lanes = rows * groups
    return data.StructLayout(
        {"exponent": data.ArrayLayout(EXPONENT, lanes), "is_nan": data.ArrayLayout(1, lanes)}
    )


def pack_box(codes: Iterable[int]) -> int:
    """Return the word that carries the codes of a box, lane 0 in the low bits."""
    word = 0
    for lane, code in enumerate(codes):
        word |= int(code) << (lane * CODE.width)
    return word


def unpack_decoded_box(word: int, *, rows: int = BOX_ROWS, groups: int = BOX_GROUPS) -> DecodedBox:
    """Return the numbers that a word of `decoded_box_layout` carries."""
    layout, lanes = decoded_box_layout(rows=rows, groups=groups), rows * groups
    exponents = _fields(word >> layout["exponent"].offset, EXPONENT.width, lanes)
    flags = _fields(word >> layout["is_nan"].offset, 1, lanes)
    sign = 1 << (EXPONENT.width - 1)
    return DecodedBox(
        exponents=tuple((field ^ sign) - sign for field in exponents),
        is_nan=tuple(bool(field) for field in flags),
    )


def _fields(word: int, width: int, count: int) -> list[int]:
    mask = (1 << width) - 1
    return [(word >> (index * width)) & mask for index in range(count)]
