"""Rows and columns of tiles in UB made one number each, jitted; as `ir.numerics.reductions` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import VectorReduction
from ...ir.jit import inner
from .rows import greater, lesser

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]
    Numbers = npt.NDArray[np.int64]

_SUM, _PROD, _MAX = (
    int(op) for op in (VectorReduction.SUM, VectorReduction.PROD, VectorReduction.MAX)
)


@inner
def fold_floats(op: int, row: Words, whole: Words) -> None:
    """Take one more row of floats into those that went before, element by element.

    Numbers that are known to be changed in place go many at a time, which `float_of_two`, whose
    result may lie anywhere, does not.
    """
    x, so_far = row.view(np.float32), whole.view(np.float32)
    p, chosen = row.view(np.int32), whole.view(np.int32)
    count = x.size
    if op == _SUM:
        for i in range(count):
            so_far[i] += x[i]
    elif op == _PROD:
        for i in range(count):
            so_far[i] *= x[i]
    elif op == _MAX:
        for i in range(count):
            chosen[i] = greater(chosen[i], p[i])
    else:
        for i in range(count):
            chosen[i] = lesser(chosen[i], p[i])


@inner
def fold_integers(op: int, row: Numbers, whole: Numbers) -> None:
    """Take one more row of integers into those that went before, element by element."""
    for i in range(row.size):
        if op == _SUM:
            whole[i] += row[i]
        elif op == _PROD:
            whole[i] *= row[i]
        elif op == _MAX:
            whole[i] = max(whole[i], row[i])
        else:
            whole[i] = min(whole[i], row[i])


@inner
def float_of_row(op: int, row: Words, place: int, made: Words) -> None:
    """Put what a row of floats makes, one element after the other, into `made[place]`."""
    x, p = row.view(np.float32), row.view(np.int32)
    if op in (_SUM, _PROD):
        so_far = x[0]
        for i in range(1, x.size):
            so_far = np.float32(so_far + x[i] if op == _SUM else so_far * x[i])
        made.view(np.float32)[place] = so_far
    else:
        chosen = p[0]
        for i in range(x.size):
            chosen = greater(chosen, p[i]) if op == _MAX else lesser(chosen, p[i])
        made.view(np.int32)[place] = chosen


@inner
def integer_of_row(op: int, row: Numbers) -> int:
    """Return what a row of integers makes."""
    made = row[0]
    for i in range(1, row.size):
        if op == _SUM:
            made += row[i]
        elif op == _PROD:
            made *= row[i]
        elif op == _MAX:
            made = max(made, row[i])
        else:
            made = min(made, row[i])
    return made
