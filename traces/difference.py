"""One element that differs, with all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from .bits import codes, in_decimal, in_hex

if TYPE_CHECKING:
    from .examine import Pair


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
            lines.append(f"  {counted(self.ulps, 'ulp')} apart")
        if self.instruction is not None:
            lines.append(f"  written by {self.instruction}")
        if self.source is not None:
            lines.append(f"  at {self.source}")
        return "\n".join(lines)


def first_difference(
    pair: Pair, *, tile: tuple[int, ...] | None, producer: Producer | None
) -> Difference:
    """Return the first element in row-major order that differs.

    Args:
        pair: An output with at least one such element.
        tile: Shape of the tiles in which the output was made, if it is known.
        producer: Tells what wrote an element, if that is known.
    """
    kind, golden = pair.kind, pair.golden
    index = tuple(int(axis) for axis in np.unravel_index(int(pair.places[0]), golden.shape))
    values = [pair.actual[index], golden[index]]
    words = codes(np.array(values, dtype=golden.dtype), kind)
    measurable = not kind.is_float or all(math.isfinite(float(value)) for value in values)
    digits = [in_decimal(value, kind) for value in values]
    width = max(len(text) for text in digits)
    origin = producer(pair.name, index) if producer is not None else None
    as_number = float if kind.is_float else int
    return Difference(
        output=pair.name,
        index=index,
        tile=None if tile is None else tuple(i // t for i, t in zip(index, tile, strict=True)),
        instruction=None if origin is None else origin.instruction,
        source=None if origin is None else origin.source,
        actual=as_number(values[0]),
        golden=as_number(values[1]),
        actual_bits=int(words[0]),
        golden_bits=int(words[1]),
        ulps=int(pair.ulps[0]) if measurable else None,
        text="\n".join(
            f"{role}  {text:<{width}}  {in_hex(int(word), kind)}"
            for role, text, word in zip(("actual", "golden"), digits, words, strict=True)
        ),
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
