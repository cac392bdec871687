"""What the scale-decode unit must give for a mad.

Written from E8M0's definition (code c is 2^(c - 127), 255 is NaN) and from the order of the
specification (rows, then columns, then K), never from the unit.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BOX_BYTES = 32
ROWS = 16

Box = tuple[str, int, int]
Half = tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...], tuple[bool, ...]]
ZERO_HALF: Half = ((0,) * ROWS, (0,) * ROWS, (False,) * ROWS, (False,) * ROWS)


@dataclass(frozen=True)
class Mad:
    """A start word."""

    row_tiles: int
    column_tiles: int
    groups: int
    paired: bool = False

    def boxes(self, side: str) -> list[Box]:
        """Every request of a side, in order."""
        return [
            (side, {"a": row, "b": column}[side], block)
            for row in range(self.row_tiles)
            for column in range(self.column_tiles)
            for block in range((self.groups + 1) // 2)
        ]

    def records(self, codes: Mapping[Box, list[int]]) -> list["Record"]:
        """Every record, in order."""
        step = 2 if self.paired else 1
        return [
            record_of(self, codes, row, column, group)
            for row in range(self.row_tiles)
            for column in range(self.column_tiles)
            for group in range(0, self.groups, step)
        ]


@dataclass(frozen=True)
class Record:
    """What the unit says of one step of the cube."""

    group: int
    second: bool
    last: bool
    end: bool
    halves: tuple[Half, Half]


def record_of(
    mad: Mad, codes: Mapping[Box, list[int]], row: int, column: int, group: int
) -> Record:
    second = mad.paired and group + 1 < mad.groups
    last = group + (2 if mad.paired else 1) >= mad.groups
    end = last and row + 1 == mad.row_tiles and column + 1 == mad.column_tiles

    def half(which: int) -> Half:
        # Byte i of a box is row i // 2, group i % 2.
        a = codes["a", row, which // 2][which % 2 :: 2]
        b = codes["b", column, which // 2][which % 2 :: 2]
        return (
            tuple(code - 127 for code in a),
            tuple(code - 127 for code in b),
            tuple(code == 255 for code in a),
            tuple(code == 255 for code in b),
        )

    return Record(group, second, last, end, (half(group), half(group + 1) if second else ZERO_HALF))


def random_codes(mads: list[Mad], seed: int = 1) -> dict[Box, list[int]]:
    """Codes for every box that some mads ask for; NaN more often than chance would have it."""
    rng = random.Random(seed)
    asked = {box for mad in mads for side in "ab" for box in mad.boxes(side)}
    return {
        box: [255 if rng.random() < 0.05 else rng.randrange(256) for _ in range(BOX_BYTES)]
        for box in sorted(asked)
    }


def every_code() -> Iterator[list[int]]:
    """Boxes that together hold each code in each lane."""
    for first in range(256):
        yield [(first + 3 * lane) % 256 for lane in range(BOX_BYTES)]
