"""The rules by which two elements count as equal.

Whatever the rule, all NaNs are equal, a NaN equals nothing else, and an infinity equals only itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..ir.errors import InputError
from .bits import distances, positions

if TYPE_CHECKING:
    import numpy.typing as npt

    from .bits import Array, ElementType

VALID_RULES = "exact, ulp:N, close:rtol,atol or fraction:tol,share"
_MOST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Exact:
    """Equal bits; -0 differs from +0."""

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True, slots=True)
class Ulp:
    """At most `count` units in the last place apart, where -0 and +0 stand one apart."""

    count: int

    def __str__(self) -> str:
        return f"ulp:{self.count}"


@dataclass(frozen=True, slots=True)
class Close:
    """`|actual - golden| <= atol + rtol * |golden|`; -0 and +0 are equal."""

    rtol: float
    atol: float

    def __str__(self) -> str:
        return f"close:{self.rtol:g},{self.atol:g}"


@dataclass(frozen=True, slots=True)
class Fraction:
    """At most `share` of an output's elements break `close:tol,tol`."""

    tol: float
    share: float

    def __str__(self) -> str:
        return f"fraction:{self.tol:g},{self.share:g}"


Rule = Exact | Ulp | Close | Fraction


def parse_rule(text: str) -> Rule:
    """Return the rule that `text` names.

    Args:
        text: `exact`, `ulp:N`, `close:rtol,atol` or `fraction:tol,share`.

    Raises:
        InputError: `text` names no rule, or a number of it is missing or out of range.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"rule must be {VALID_RULES}, not {text!r}"
        raise InputError(message)
    name, _, rest = text.partition(":")
    fields = [field.strip() for field in rest.split(",")] if rest else []
    match name.strip(), fields:
        case "exact", []:
            return Exact()
        case "ulp", [count] if count.isdecimal():
            return Ulp(int(count))
        case "close", [rtol, atol]:
            return Close(_tolerance(text, rtol), _tolerance(text, atol))
        case "fraction", [tol, share]:
            return Fraction(_tolerance(text, tol), _share(text, share))
        case _:
            message = f"rule must be {VALID_RULES}, not {text!r}"
            raise InputError(message)


def _tolerance(rule: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        message = f"a tolerance of rule {rule!r} must be a finite number from 0 up, not {text!r}"
        raise InputError(message, hint=f"rules are {VALID_RULES}")
    return value


def _share(rule: str, text: str) -> float:
    value = _tolerance(rule, text)
    if value >= _MOST_SHARE:
        message = (
            f"the share of rule {rule!r} must be the part of the elements that may differ, "
            f"from 0 to below {_MOST_SHARE}, not {text!r}"
        )
        raise InputError(message, hint="fraction:1e-3,0.01 lets one element in a hundred differ")
    return value


def broken(
    rule: Rule,
    actual: Array,
    golden: Array,
    actual_words: Array,
    golden_words: Array,
    kind: ElementType,
) -> npt.NDArray[np.bool_]:
    """Return where `actual` breaks `rule`, for flat arrays of elements whose bits all differ.

    Args:
        rule: How far apart two elements may be. The share of a `Fraction` is the caller's concern.
        actual: Elements to judge, `[n]`.
        golden: What they should be, `[n]`.
        actual_words: The bit patterns of `actual`, `[n]`.
        golden_words: The bit patterns of `golden`, `[n]`.
        kind: The element type of both.
    """
    match rule:
        case Exact():
            far = np.ones(actual.shape, dtype=np.bool_)
        case Ulp(count=count):
            apart = distances(positions(actual_words, kind), positions(golden_words, kind))
            far = apart > np.uint64(min(count, 2**64 - 1))
        case Close(rtol=rtol, atol=atol):
            far = _far(actual, golden, rtol, atol)
        case Fraction(tol=tol):
            far = _far(actual, golden, tol, tol)
    if not kind.is_float:
        return far
    both_nan = np.isnan(actual) & np.isnan(golden)
    both_finite = np.isfinite(actual) & np.isfinite(golden)
    return (far | ~both_finite) & ~both_nan


def _far(actual: Array, golden: Array, rtol: float, atol: float) -> npt.NDArray[np.bool_]:
    wide_actual, wide_golden = actual.astype(np.float64), golden.astype(np.float64)
    return ~(np.abs(wide_actual - wide_golden) <= atol + rtol * np.abs(wide_golden))
