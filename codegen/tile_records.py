"""Which tile each operand of a kernel's instructions is: debug records of an executable.

What instructions do does not depend on them. They serve to notice that bytes read as one tile were
written as another one last, and to name both.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TileRecords:
    """The tiles of a program and where its instructions use them.

    Args:
        names: For each tile its buffer, which is one for what the program meant to be one place, and
            the variable that it was.
        uses: Instruction, operand and number of the tile, by ascending instruction. An operand is
            called by the field that tells its address; `a_scale` and `b_scale` are the scales that a
            product finds by itself.
    """

    names: tuple[tuple[str, str], ...] = ()
    uses: tuple[tuple[int, str, int], ...] = ()

    @classmethod
    def of(cls, operands: list[tuple[tuple[str, tuple[str, str]], ...]]) -> TileRecords:
        """Return the records of a program from the operands of each instruction, with buffer and name."""
        numbers: dict[tuple[str, str], int] = {}
        uses = tuple(
            (index, operand, numbers.setdefault(tile, len(numbers)))
            for index, each in enumerate(operands)
            for operand, tile in each
        )
        return cls(tuple(numbers), uses)

    def complaint(self, instructions: int) -> str | None:
        """Return why these cannot be records of so many instructions, as "must …", or None."""
        places = [index for index, _, _ in self.uses]
        if places != sorted(places) or any(not 0 <= place < instructions for place in places):
            return f"must tell the tiles of its {instructions} instructions in order"
        if any(not 0 <= tile < len(self.names) for _, _, tile in self.uses):
            return f"must tell tiles by numbers from 0 to {len(self.names) - 1}"
        return None


NO_RECORDS = TileRecords()
"""What is known of a program that nobody has made records of."""
