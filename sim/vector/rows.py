"""Rows of tiles in UB as numbers, and what the vector core computes of them; all jitted.

Floats of every type come as float32 bits, integers as int64. A row is read into a row of its own,
worked on and written back: loops over one row stay in the nearest cache, and types and functions
are added up instead of multiplied. The bits are those of `ir.numerics.functions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.isa.vocabulary import VectorBinary, VectorComparison, VectorType, VectorUnary
from ...ir.jit import inner
from ...ir.numerics.elements import FLOAT32_NAN
from ...ir.numerics.fast_convert import (
    bfloat16_to_float32,
    canonical_float32,
    float16_to_float32,
    float32_to_bfloat16,
    float32_to_float16,
    float64_to_float32,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint32]
    Numbers = npt.NDArray[np.int64]
    Integer = int | np.integer[Any]

FP32, FP16, BF16 = (int(t) for t in (VectorType.FP32, VectorType.FP16, VectorType.BF16))
_INT8, _UINT8, _INT16, _UINT16, _INT32 = (
    int(t)
    for t in (
        VectorType.INT8,
        VectorType.UINT8,
        VectorType.INT16,
        VectorType.UINT16,
        VectorType.INT32,
    )
)
_SQRT, _RSQRT, _RECIP, _NEG, _ABS = (
    int(op)
    for op in (
        VectorUnary.SQRT,
        VectorUnary.RSQRT,
        VectorUnary.RECIP,
        VectorUnary.NEG,
        VectorUnary.ABS,
    )
)
_ADD, _SUB, _MUL, _DIV, _MAXIMUM = (
    int(op)
    for op in (
        VectorBinary.ADD,
        VectorBinary.SUB,
        VectorBinary.MUL,
        VectorBinary.DIV,
        VectorBinary.MAXIMUM,
    )
)
_EQ, _NE, _LT, _LE, _GT = (
    int(op)
    for op in (
        VectorComparison.EQ,
        VectorComparison.NE,
        VectorComparison.LT,
        VectorComparison.LE,
        VectorComparison.GT,
    )
)
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


@inner
def load_floats(data: Bytes, at: int, kind: int, out: Words) -> None:
    """Put a row of floats into `out`, as float32 bits."""
    if kind == FP32:
        words = data[at : at + 4 * out.size].view(np.uint32)
        for i in range(out.size):
            out[i] = words[i]
    elif kind == FP16:
        float16_to_float32(data[at : at + 2 * out.size].view(np.uint16), out)
    else:
        bfloat16_to_float32(data[at : at + 2 * out.size].view(np.uint16), out)


@inner
def store_floats(data: Bytes, at: int, kind: int, bits: Words) -> None:
    """Write float32 bits as a row of floats, rounded once."""
    if kind == FP32:
        canonical_float32(bits, data[at : at + 4 * bits.size].view(np.uint32))
    elif kind == FP16:
        float32_to_float16(bits, data[at : at + 2 * bits.size].view(np.uint16))
    else:
        float32_to_bfloat16(bits, data[at : at + 2 * bits.size].view(np.uint16))


@inner
def load_integers(data: Bytes, at: int, kind: int, out: Numbers) -> None:
    """Put a row of integers into `out`."""
    count = out.size
    if kind == _INT8:
        signed_bytes = data[at : at + count].view(np.int8)
        for i in range(count):
            out[i] = signed_bytes[i]
    elif kind == _UINT8:
        unsigned_bytes = data[at : at + count]
        for i in range(count):
            out[i] = unsigned_bytes[i]
    elif kind == _INT16:
        signed_halves = data[at : at + 2 * count].view(np.int16)
        for i in range(count):
            out[i] = signed_halves[i]
    elif kind == _UINT16:
        unsigned_halves = data[at : at + 2 * count].view(np.uint16)
        for i in range(count):
            out[i] = unsigned_halves[i]
    elif kind == _INT32:
        signed_words = data[at : at + 4 * count].view(np.int32)
        for i in range(count):
            out[i] = signed_words[i]
    else:
        unsigned_words = data[at : at + 4 * count].view(np.uint32)
        for i in range(count):
            out[i] = unsigned_words[i]


@inner
def store_integers(data: Bytes, at: int, kind: int, values: Numbers) -> None:
    """Write the low bits of integers as a row."""
    count = values.size
    if kind in (_INT8, _UINT8):
        narrow = data[at : at + count]
        for i in range(count):
            narrow[i] = np.uint8(values[i] & 0xFF)
    elif kind in (_INT16, _UINT16):
        half = data[at : at + 2 * count].view(np.uint16)
        for i in range(count):
            half[i] = np.uint16(values[i] & 0xFFFF)
    else:
        word = data[at : at + 4 * count].view(np.uint32)
        for i in range(count):
            word[i] = np.uint32(values[i] & 0xFFFFFFFF)


@inner
def float_of_one(op: int, kind: int, x: Words, out: Words) -> None:
    """Put a function of each float into `out`."""
    count = x.size
    if op in (_SQRT, _RSQRT, _RECIP):
        doubles, numbers = np.empty(count, np.float64), x.view(np.float32)
        for i in range(count):
            doubles[i] = np.float64(numbers[i])
        if op != _RECIP:
            for i in range(count):
                doubles[i] = np.sqrt(doubles[i])
        if op != _SQRT:
            for i in range(count):
                doubles[i] = 1.0 / doubles[i]
        float64_to_float32(doubles, kind == FP32, out)
    elif op == _NEG:
        for i in range(count):
            out[i] = x[i] ^ np.uint32(0x80000000)
    elif op == _ABS:
        for i in range(count):
            out[i] = x[i] & np.uint32(_MAGNITUDE)
    else:
        for i in range(count):
            is_nan = np.uint32(x[i] & np.uint32(_MAGNITUDE)) > np.uint32(_INFINITY)
            is_kept = is_nan | (x[i] < np.uint32(0x80000000))
            out[i] = x[i] if is_kept else np.uint32(0)


@inner
def integer_of_one(op: int, x: Numbers, out: Numbers) -> None:
    """Put a function of each integer into `out`."""
    for i in range(x.size):
        if op == _NEG:
            out[i] = -x[i]
        elif op == _ABS:
            out[i] = abs(x[i])
        else:
            out[i] = max(x[i], 0)


@inner
def greater(a: Integer, b: Integer) -> Integer:
    """Return the bits of the greater of two floats; -0 lies below +0, a NaN is handed on."""
    one, other = np.int32(a), np.int32(b)
    chosen = one if _rank(one) > _rank(other) else other
    return np.int32(FLOAT32_NAN) if _is_nan(one) | _is_nan(other) else chosen


@inner
def lesser(a: Integer, b: Integer) -> Integer:
    """Return the bits of the lesser of two floats; -0 lies below +0, a NaN is handed on."""
    one, other = np.int32(a), np.int32(b)
    chosen = one if _rank(one) < _rank(other) else other
    return np.int32(FLOAT32_NAN) if _is_nan(one) | _is_nan(other) else chosen


@inner
def _rank(bits: np.int32) -> np.int32:
    """Return a number by which floats lie in order; read as integers negative ones run backwards."""
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(_MAGNITUDE)))


@inner
def _is_nan(bits: np.int32) -> np.bool_:
    """Return whether float32 bits, read as a signed integer, are a NaN."""
    return (bits & np.int32(_MAGNITUDE)) > np.int32(_INFINITY)


@inner
def float_of_two(op: int, kind: int, a: Words, b: Words, out: Words) -> None:
    """Put a function of each pair of floats into `out`, which may be `a`."""
    count = a.size
    x, y, made = a.view(np.float32), b.view(np.float32), out.view(np.float32)
    if op == _ADD:
        for i in range(count):
            made[i] = x[i] + y[i]
    elif op == _SUB:
        for i in range(count):
            made[i] = x[i] - y[i]
    elif op == _MUL:
        for i in range(count):
            made[i] = x[i] * y[i]
    elif op == _DIV:
        doubles = np.empty(count, np.float64)
        for i in range(count):
            doubles[i] = np.float64(x[i]) / np.float64(y[i])
        float64_to_float32(doubles, kind == FP32, out)
    else:
        p, q, chosen = a.view(np.int32), b.view(np.int32), out.view(np.int32)
        if op == _MAXIMUM:
            for i in range(count):
                chosen[i] = greater(p[i], q[i])
        else:
            for i in range(count):
                chosen[i] = lesser(p[i], q[i])


@inner
def integer_of_two(op: int, a: Numbers, b: Numbers, out: Numbers) -> None:
    """Put a function of each pair of integers into `out`, which may be `a`."""
    count = a.size
    if op == _ADD:
        for i in range(count):
            out[i] = a[i] + b[i]
    elif op == _SUB:
        for i in range(count):
            out[i] = a[i] - b[i]
    elif op == _MUL:
        for i in range(count):
            out[i] = a[i] * b[i]
    elif op == _MAXIMUM:
        for i in range(count):
            out[i] = max(a[i], b[i])
    else:
        for i in range(count):
            out[i] = min(a[i], b[i])


@inner
def compare_floats(op: int, a: Words, b: Words, out: Bytes) -> None:
    """Put 1 into `out` where a comparison of two floats holds, else 0."""
    x, y = a.view(np.float32), b.view(np.float32)
    count = x.size
    if op == _EQ:
        for i in range(count):
            out[i] = x[i] == y[i]
    elif op == _NE:
        for i in range(count):
            out[i] = x[i] != y[i]
    elif op == _LT:
        for i in range(count):
            out[i] = x[i] < y[i]
    elif op == _LE:
        for i in range(count):
            out[i] = x[i] <= y[i]
    elif op == _GT:
        for i in range(count):
            out[i] = x[i] > y[i]
    else:
        for i in range(count):
            out[i] = x[i] >= y[i]


@inner
def compare_integers(op: int, a: Numbers, b: Numbers, out: Bytes) -> None:
    """Put 1 into `out` where a comparison of two integers holds, else 0."""
    for i in range(a.size):
        if op == _EQ:
            out[i] = a[i] == b[i]
        elif op == _NE:
            out[i] = a[i] != b[i]
        elif op == _LT:
            out[i] = a[i] < b[i]
        elif op == _LE:
            out[i] = a[i] <= b[i]
        elif op == _GT:
            out[i] = a[i] > b[i]
        else:
            out[i] = a[i] >= b[i]
