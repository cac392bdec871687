"""How far apart two scalars are, where that is the same whatever their variables are."""

from __future__ import annotations

from ..dtypes.formats import INTEGER_FORMATS, IntegerFormat
from ..expr import Add, Cast, ConstInt, Expr, Mul, ScalarType, Sub, Var
from ..structural import structural_equal


def constant_distance(stop: Expr, start: Expr) -> int | None:
    """Return stop - start, two integers, or None where their variables do not cancel each other.

    Sums, differences and products with constants are taken apart; all else counts as a variable. A
    variable counts as itself where it is widened, as `n` of INT32 is in `n + 1`.
    """
    terms: list[tuple[Expr, int]] = []
    constant = _collected(stop, 1, terms) + _collected(start, -1, terms)
    return None if any(times for _, times in terms) else constant


def _collected(value: Expr, times: int, terms: list[tuple[Expr, int]]) -> int:
    """Return the constant part of `times * value`, and add the rest to `terms`."""
    match value:
        case ConstInt():
            return times * value.value
        case Add(left, right):
            return _collected(left, times, terms) + _collected(right, times, terms)
        case Sub(left, right):
            return _collected(left, times, terms) + _collected(right, -times, terms)
        case Mul(other, ConstInt() as factor) | Mul(ConstInt() as factor, other):
            return _collected(other, times * factor.value, terms)
        case Cast(Var() as operand) if _is_wider(value, operand):
            return _collected(operand, times, terms)
        case _:
            for number, (known, count) in enumerate(terms):
                if structural_equal(known, value):
                    terms[number] = known, count + times
                    return 0
            terms.append((value, times))
            return 0


def _is_wider(value: Expr, operand: Expr) -> bool:
    """Return whether a cast between integers keeps every value."""
    wide, narrow = (_integer(each) for each in (value, operand))
    if wide is None or narrow is None:
        return False
    return wide.min <= narrow.min and narrow.max <= wide.max


def _integer(value: Expr) -> IntegerFormat | None:
    return INTEGER_FORMATS.get(value.type.dtype) if isinstance(value.type, ScalarType) else None
