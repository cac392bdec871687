"""The words and ports of the cube.

Whatever the instruction set says of a `mad_mx` is derived from its table: how wide m, k and n are,
how long the addresses. The cube's memories have words of what a step uses at once, so its addresses
count such words:

=========  ============================  ==========================================
memory     word                          word of a tile
=========  ============================  ==========================================
L0A        box: 16 rows x 32 bytes       `a + step * ceil(m / 16) + row tile`
L0B        box: 16 columns x 32 bytes    `b + step * ceil(n / 16) + column tile`
L0C        box: 16 x 16 FP32, by rows    `c + column tile * ceil(m / 16) + row tile`
bias       16 FP32                       `bias + column tile`
scale A    a beat of a scale box         box `a + row tile * ceil(G / 2) + pair`
scale B    a beat of a scale box         box `b + column tile * ceil(G / 2) + pair`
=========  ============================  ==========================================

The base of the scales is that of the elements, as `address >> 4` is in bytes.
"""

from __future__ import annotations

from typing import Final

from amaranth.hdl import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.scale_unit import BEATS_BYTES
from ...codegen.isa.table import MAD_LIMIT
from ...codegen.isa.vocabulary import (
    ADDRESS_BITS,
    ADDRESS_MULTIPLE,
    ElementType,
    MadInit,
    Space,
)
from ...ir.dtypes.boxes import BOX_BYTES, BOX_ROWS

__all__ = [
    "FP32_BITS",
    "LINE_BITS",
    "LINE_BYTES",
    "LINE_ELEMENTS",
    "MAD",
    "STEP",
    "ReadPort",
    "WritePort",
    "bias_port",
    "l0a_port",
    "l0b_port",
    "l0c_read_port",
    "l0c_write_port",
    "scale_port",
]

LINE_BYTES: Final = ADDRESS_MULTIPLE[Space.L0A] // BOX_ROWS
"""Bytes of a row of A, or of a column of B, that a step takes."""

LINE_BITS: Final = LINE_BYTES * 8
LINE_ELEMENTS: Final = LINE_BITS // min(element.bits for element in ElementType)
"""The most elements that a line holds."""

FP32_BITS: Final = 32

_DIMENSION: Final = unsigned(MAD_LIMIT.bit_length())
_TYPE: Final = unsigned(max(ElementType).bit_length())
_INIT: Final = unsigned(max(MadInit).bit_length())


def _words(space: Space, word_bytes: int) -> int:
    """Return the bits of the address of a word in a memory."""
    return ADDRESS_BITS[space] - (word_bytes - 1).bit_length()


_A_BITS: Final = _words(Space.L0A, ADDRESS_MULTIPLE[Space.L0A])
_B_BITS: Final = _words(Space.L0B, ADDRESS_MULTIPLE[Space.L0B])
_C_BITS: Final = _words(Space.L0C, BOX_ROWS * BOX_ROWS * FP32_BITS // 8)
_BIAS_BITS: Final = _words(Space.BIAS, BOX_ROWS * FP32_BITS // 8)

MAD: Final = data.StructLayout(
    {
        "m": _DIMENSION,
        "k": _DIMENSION,
        "n": _DIMENSION,
        "a_type": _TYPE,
        "b_type": _TYPE,
        "init": _INIT,
        "a": unsigned(_A_BITS),
        "b": unsigned(_B_BITS),
        "c": unsigned(_C_BITS),
        "bias": unsigned(_BIAS_BITS),
    }
)
"""What starts a mad: dimensions from 1, `ElementType`s, `MadInit`, and the first words."""

STEP: Final = data.StructLayout(
    {
        "c": unsigned(_C_BITS),
        "bias": unsigned(_BIAS_BITS),
        "rows": unsigned(BOX_ROWS),
        "columns": unsigned(BOX_ROWS),
        "elements": unsigned(LINE_ELEMENTS),
        "a_type": _TYPE,
        "b_type": _TYPE,
        "init": _INIT,
        "first": unsigned(1),
        "last": unsigned(1),
        "end": unsigned(1),
    }
)
"""What the cube does with a pair of boxes.

`rows` and `columns` tell which of the tile are valid, `elements` which of a line are within K, each
a bit. `first` and `last` are the ends of a tile along K, `end` is the last step of the mad.
"""


class ReadPort(wiring.Signature):
    """A port of a memory with a synchronous read.

    The word at `address` stands on `data` from the cycle after one with `enable` on, until the next.

    Args:
        address_bits: Width of an address.
        word_bits: Width of a word.
    """

    def __init__(self, *, address_bits: int, word_bits: int) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(unsigned(address_bits)),
                "data": In(unsigned(word_bits)),
            }
        )


class WritePort(wiring.Signature):
    """A port of a memory that writes some rows and columns of a box of FP32.

    Args:
        address_bits: Width of an address.
        word_bits: Width of a word.
    """

    def __init__(self, *, address_bits: int, word_bits: int) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(unsigned(address_bits)),
                "rows": Out(unsigned(BOX_ROWS)),
                "columns": Out(unsigned(BOX_ROWS)),
                "data": Out(unsigned(word_bits)),
            }
        )


def l0a_port() -> ReadPort:
    """Return the port of the left operand's elements."""
    return ReadPort(address_bits=_A_BITS, word_bits=BOX_ROWS * LINE_BITS)


def l0b_port() -> ReadPort:
    """Return the port of the right operand's elements."""
    return ReadPort(address_bits=_B_BITS, word_bits=BOX_ROWS * LINE_BITS)


def scale_port(*, beat_bytes: int, left: bool) -> ReadPort:
    """Return the port of an operand's scales, of which a word is a beat."""
    assert beat_bytes in BEATS_BYTES, "the unit has checked its beat"
    beats = BOX_BYTES // beat_bytes
    bits = _A_BITS if left else _B_BITS
    return ReadPort(address_bits=bits + (beats - 1).bit_length(), word_bits=beat_bytes * 8)


def bias_port() -> ReadPort:
    """Return the port of the bias table."""
    return ReadPort(address_bits=_BIAS_BITS, word_bits=BOX_ROWS * FP32_BITS)


def l0c_read_port() -> ReadPort:
    """Return the port through which the accumulator is read."""
    return ReadPort(address_bits=_C_BITS, word_bits=BOX_ROWS * BOX_ROWS * FP32_BITS)


def l0c_write_port() -> WritePort:
    """Return the port through which results are written."""
    return WritePort(address_bits=_C_BITS, word_bits=BOX_ROWS * BOX_ROWS * FP32_BITS)
