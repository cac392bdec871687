"""How two results are compared: the first difference, named so that it can be found.

All NaNs are equal and -0 differs from +0; :mod:`rules` lists the rules.

>>> import numpy as np
>>> print(compare(np.float32([1.0, 2.0]), np.float32([1.0, 2.5])))
out: 1 of 2 elements differs (rule exact)
  first at [1]
    actual  2.0  0x40000000
    golden  2.5  0x40200000
    2097152 ulps apart
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..ir.errors import InputError
from .bits import codes, in_decimal
from .difference import Difference, Origin, Producer, Traced, first_difference
from .difference_map import difference_map
from .examine import BARE_NAME, Arrays, Pair, examine, outputs_of
from .guesses import guesses
from .histogram import histogram
from .rules import Fraction, Rule, parse_rule
from .verdict import Comparison, OutputComparison

if TYPE_CHECKING:
    from .bits import Array

__all__ = [
    "BARE_NAME",
    "Arrays",
    "Comparison",
    "Difference",
    "Origin",
    "OutputComparison",
    "Producer",
    "Traced",
    "compare",
]


def compare(
    actual: Arrays,
    golden: Arrays,
    *,
    rule: str = "exact",
    tile: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
    producer: Producer | None = None,
) -> Comparison:
    """Compare a result with what it should be.

    Args:
        actual: An array, a mapping of output names to arrays, or a run, whose `outputs` are meant.
        golden: The same, with the same names, shapes and dtypes. Where one side has a dtype of
            ml_dtypes, the other may have its codes, as unsigned integers or as nameless bytes.
        rule: `exact`, `ulp:N`, `close:rtol,atol` (of the golden value) or `fraction:tol,share`
            (at most that share of an output's elements beyond `close:tol,tol`).
        tile: Shape of the tiles that outputs were computed in, for all or by name; by default what
            `actual` knows of itself, if it is :class:`Traced`.
        producer: Tells what wrote an element; by default `actual`, if it is :class:`Traced`.

    Raises:
        InputError: The rule is unknown, or names, shapes or dtypes do not agree.
    """
    parsed = parse_rule(rule)
    actual, golden = outputs_of(actual), outputs_of(golden)
    traced = actual if isinstance(actual, Traced) else None
    if producer is None and traced is not None:
        producer = traced.producer
    pairs = examine(actual, golden, parsed)
    tiles = {name: _tile_of(name, pair.golden, tile) for name, pair in pairs.items()}
    verdicts: list[OutputComparison] = []
    # Signalling NaNs are no accidents here.
    with np.errstate(invalid="ignore"):
        for name, pair in pairs.items():
            known = tiles[name]
            if tile is None and traced is not None and pair.count:
                known = traced.tile(name)
            verdicts.append(_verdict(pair, rule=parsed, tile=known, producer=producer))
    return Comparison(str(parsed), tuple(verdicts))


def _verdict(
    pair: Pair, *, rule: Rule, tile: tuple[int, ...] | None, producer: Producer | None
) -> OutputComparison:
    allowed = rule.share * pair.golden.size if isinstance(rule, Fraction) else 0
    return OutputComparison(
        name=pair.name,
        elements=pair.golden.size,
        differing=pair.count,
        equal=pair.count <= allowed,
        first=first_difference(pair, tile=tile, producer=producer) if pair.count else None,
        warning=_warning(pair),
        histogram=histogram(pair) if pair.count else None,
        map=difference_map(pair.differs, tile) if pair.count else None,
        guesses=guesses(pair),
    )


def _tile_of(
    name: str, golden: Array, tile: Sequence[int] | Mapping[str, Sequence[int]] | None
) -> tuple[int, ...] | None:
    shape = tile.get(name) if isinstance(tile, Mapping) else tile
    if shape is None:
        return None
    if len(shape) != golden.ndim or any(extent < 1 for extent in shape):
        message = (
            f"tile of {name!r} must be {golden.ndim} extents of at least 1, as the output has the "
            f"shape {golden.shape}, not {tuple(shape)}"
        )
        raise InputError(message)
    return tuple(shape)


def _warning(pair: Pair) -> str | None:
    name, golden, kind = pair.name, pair.golden, pair.kind
    if golden.size == 0:
        return f"golden {name!r} has no elements, which proves nothing"
    first = golden.reshape(-1)[0]
    if kind.is_float and math.isnan(float(first)) and np.isnan(golden).all():
        return f"golden {name!r} is NaN everywhere, which proves little"
    if not np.any(golden):
        return f"golden {name!r} is all zero, which proves nothing of how it was computed"
    words = codes(golden, kind)
    if golden.size > 1 and np.all(words == words[0]):
        value = in_decimal(first, kind)
        return f"golden {name!r} is one value everywhere, {value}, which proves little"
    return None
