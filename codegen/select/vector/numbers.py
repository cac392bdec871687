"""Scalar operands of the vector core: a register holds a number's code, as its elements have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.dtypes import Int64
from ....ir.expr import ConstFloat, ConstInt
from ....ir.numerics.functions import scalar_code

if TYPE_CHECKING:
    from ....ir.expr import Expr


def code_of(number: Expr) -> Expr:
    """Return what a register must carry for a scalar operand of the dtype of the elements.

    A constant becomes its code. An integer's low bits are its code already, and a variable of a float
    dtype carries the code wherever it goes.
    """
    if not isinstance(number, ConstInt | ConstFloat):
        return number
    code = scalar_code(number.value, number.dtype)
    return ConstInt(int(code), Int64, number.span)
