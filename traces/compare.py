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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from ..ir.errors import InputError
from .bits import Array, ElementType, codes, distances, in_decimal, in_hex, positions
from .rules import Fraction, Rule, broken, parse_rule

BARE_NAME = "out"
"""The name of a result that was given as a bare array."""

Arrays = Any  # an array, or a mapping of names to arrays


class Origin(NamedTuple):
    """What wrote an element: the instruction's text and its line of source."""

    instruction: str
    source: str | None


Producer = Callable[[str, tuple[int, ...]], Origin | None]
"""Returns what wrote the element of an output at a logical index, where that is known."""


@runtime_checkable
class Traced(Protocol):
    """Outputs that know where they come from, as those of a run do."""

    def producer(self, output: str, index: tuple[int, ...], /) -> Origin | None:
        """Return what wrote the element of an output at a logical index."""
        ...

    def tile(self, output: str, /) -> tuple[int, ...] | None:
        """Return the shape of the tiles in which an output was written, if they have one shape."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One element that differs.

    Attributes:
        output: Name of the output.
        index: Logical index, row-major order.
        tile: Index of the tile that the element lies in, where a tile shape was given.
        instruction: Text of the instruction that wrote the element, where known.
        source: That instruction's line of source, where known.
        actual: The element as it is, as a Python number.
        golden: The element as it should be.
        actual_bits: Bit pattern of `actual`.
        golden_bits: Bit pattern of `golden`.
        ulps: Units in the last place between them; None beside a NaN or an infinity.
        text: Both values in decimal digits that round-trip, and in hexadecimal.
    """

    output: str
    index: tuple[int, ...]
    tile: tuple[int, ...] | None
    instruction: str | None
    source: str | None
    actual: float | int
    golden: float | int
    actual_bits: int
    golden_bits: int
    ulps: int | None
    text: str

    def __str__(self) -> str:
        where = f"first at {list(self.index)}"
        if self.tile is not None:
            where += f", tile {list(self.tile)}"
        lines = [where, *(f"  {line}" for line in self.text.splitlines())]
        if self.ulps is not None:
            lines.append(f"  {_count(self.ulps, 'ulp')} apart")
        if self.instruction is not None:
            lines.append(f"  written by {self.instruction}")
        if self.source is not None:
            lines.append(f"  at {self.source}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """The verdict on one output.

    Attributes:
        name: Name of the output.
        elements: How many elements it has.
        differing: How many of them break the rule.
        equal: Whether the rule as a whole holds; `fraction` lets some elements differ.
        first: The first differing element in row-major order.
        warning: Why equality would prove little, or None.
    """

    name: str
    elements: int
    differing: int
    equal: bool
    first: Difference | None
    warning: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on all outputs; truthy when they are equal by the rule.

    Attributes:
        rule: The rule, as it was given.
        outputs: A verdict an output, in the golden result's order.
    """

    rule: str
    outputs: tuple[OutputComparison, ...]

    def __bool__(self) -> bool:
        return all(output.equal for output in self.outputs)

    @property
    def first(self) -> Difference | None:
        """The first difference: of an output that breaks the rule, else of one that bends it."""
        ordered = sorted(self.outputs, key=lambda output: output.equal)
        return next((output.first for output in ordered if output.first is not None), None)

    @property
    def elements(self) -> int:
        """How many elements were compared."""
        return sum(output.elements for output in self.outputs)

    @property
    def differing(self) -> int:
        """How many elements differ."""
        return sum(output.differing for output in self.outputs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why this comparison may prove little."""
        return tuple(output.warning for output in self.outputs if output.warning is not None)

    def __str__(self) -> str:
        lines: list[str] = []
        for output in self.outputs:
            lines.append(_headline(output, self.rule))
            if output.first is not None:
                lines.extend(f"  {line}" for line in str(output.first).splitlines())
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)


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
        actual: An array, or a mapping of output names to arrays.
        golden: The same, with the same names, shapes and dtypes.
        rule: `exact`, `ulp:N`, `close:rtol,atol` (of the golden value) or `fraction:tol,share`
            (at most that share of an output's elements beyond `close:tol,tol`).
        tile: Shape of the tiles that outputs were computed in, for all or by name; by default what
            `actual` knows of itself, if it is :class:`Traced`.
        producer: Tells what wrote an element; by default `actual`, if it is :class:`Traced`.

    Raises:
        InputError: The rule is unknown, or names, shapes or dtypes do not agree.
    """
    parsed = parse_rule(rule)
    traced = actual if isinstance(actual, Traced) else None
    if producer is None and traced is not None:
        producer = traced.producer
    actual_by_name, golden_by_name = _named(actual, golden)
    # Signalling NaNs and differences beyond the largest float are no accidents here.
    with np.errstate(invalid="ignore", over="ignore"):
        outputs = tuple(
            _compare_output(
                name,
                actual_by_name[name],
                expected,
                rule=parsed,
                tile=_tile_of(name, expected, tile),
                producer=producer,
                traced=traced if tile is None else None,
            )
            for name, expected in golden_by_name.items()
        )
    return Comparison(str(parsed), outputs)


def _named(actual: Arrays, golden: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
    if isinstance(actual, Mapping) != isinstance(golden, Mapping):
        one, other = ("mapping", "array") if isinstance(actual, Mapping) else ("array", "mapping")
        message = (
            f"actual and golden must both be arrays or both be mappings, not {one} and {other}"
        )
        raise InputError(message)
    left, right = _as_arrays(actual), _as_arrays(golden)
    if left.keys() != right.keys():
        message = f"actual must have the outputs of golden, {_listed(right)}, not {_listed(left)}"
        raise InputError(message)
    return left, right


def _as_arrays(arrays: Arrays) -> dict[str, Array]:
    if isinstance(arrays, Mapping):
        by_name = cast("Mapping[str, Any]", arrays)
        return {str(name): np.asarray(array) for name, array in by_name.items()}
    return {BARE_NAME: np.asarray(arrays)}


def _compare_output(
    name: str,
    actual: Array,
    golden: Array,
    *,
    rule: Rule,
    tile: tuple[int, ...] | None,
    producer: Producer | None,
    traced: Traced | None,
) -> OutputComparison:
    kind = _common_type(name, actual, golden)
    actual_words, golden_words = codes(actual, kind), codes(golden, kind)
    suspects = np.flatnonzero(actual_words != golden_words)
    is_broken = broken(
        rule,
        actual.reshape(-1)[suspects],
        golden.reshape(-1)[suspects],
        actual_words[suspects],
        golden_words[suspects],
        kind,
    )
    differing = int(np.count_nonzero(is_broken))
    allowed = rule.share * golden.size if isinstance(rule, Fraction) else 0
    first = None
    if differing:
        flat = int(suspects[np.argmax(is_broken)])
        tile = traced.tile(name) if traced is not None else tile
        first = _difference(name, actual, golden, flat, kind, tile=tile, producer=producer)
    return OutputComparison(
        name=name,
        elements=golden.size,
        differing=differing,
        equal=differing <= allowed,
        first=first,
        warning=_warning(name, golden, golden_words, kind),
    )


def _common_type(name: str, actual: Array, golden: Array) -> ElementType:
    if actual.dtype.newbyteorder("=") != golden.dtype.newbyteorder("="):
        message = f"actual {name!r} must be {golden.dtype.name}, not {actual.dtype.name}"
        raise InputError(message)
    if actual.shape != golden.shape:
        message = f"actual {name!r} must have the shape {golden.shape}, not {actual.shape}"
        raise InputError(message)
    kind = ElementType.of(golden.dtype)
    if kind is None:
        message = f"{name!r} must hold integers or floats of 1, 2, 4 or 8 bytes, not {golden.dtype}"
        raise InputError(message)
    return kind


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


def _difference(
    name: str,
    actual: Array,
    golden: Array,
    flat: int,
    kind: ElementType,
    *,
    tile: tuple[int, ...] | None,
    producer: Producer | None,
) -> Difference:
    index = tuple(int(axis) for axis in np.unravel_index(flat, golden.shape))
    pair = [actual[index], golden[index]]
    words = codes(np.array(pair, dtype=golden.dtype), kind)
    apart = distances(positions(words[:1], kind), positions(words[1:], kind))
    measurable = not kind.is_float or all(math.isfinite(float(value)) for value in pair)
    digits = [in_decimal(value, kind) for value in pair]
    width = max(len(text) for text in digits)
    origin = producer(name, index) if producer is not None else None
    as_number = float if kind.is_float else int
    return Difference(
        output=name,
        index=index,
        tile=None if tile is None else tuple(i // t for i, t in zip(index, tile, strict=True)),
        instruction=None if origin is None else origin.instruction,
        source=None if origin is None else origin.source,
        actual=as_number(pair[0]),
        golden=as_number(pair[1]),
        actual_bits=int(words[0]),
        golden_bits=int(words[1]),
        ulps=int(apart[0]) if measurable else None,
        text="\n".join(
            f"{role}  {text:<{width}}  {in_hex(int(word), kind)}"
            for role, text, word in zip(("actual", "golden"), digits, words, strict=True)
        ),
    )


def _warning(name: str, golden: Array, words: Array, kind: ElementType) -> str | None:
    if golden.size == 0:
        return f"golden {name!r} has no elements, which proves nothing"
    first = golden.reshape(-1)[0]
    if kind.is_float and math.isnan(float(first)) and np.isnan(golden).all():
        return f"golden {name!r} is NaN everywhere, which proves little"
    if not np.any(golden):
        return f"golden {name!r} is all zero, which proves nothing of how it was computed"
    if golden.size > 1 and np.all(words == words[0]):
        value = in_decimal(first, kind)
        return f"golden {name!r} is one value everywhere, {value}, which proves little"
    return None


def _headline(output: OutputComparison, rule: str) -> str:
    if output.differing == 0:
        return f"{output.name}: equal, {_count(output.elements, 'element')} (rule {rule})"
    verb = "differs" if output.differing == 1 else "differ"
    verdict = ", which the rule allows" if output.equal else ""
    return (
        f"{output.name}: {output.differing} of {_count(output.elements, 'element')} {verb}{verdict} "
        f"(rule {rule})"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in names) if names else "none"
