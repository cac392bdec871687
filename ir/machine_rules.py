"""What the fields of a machine must be to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .target_spec import Value

SCALE_SHIFT: Final = 4
"""The scales of an operand at byte address x of L0 stand at x >> 4 of its scale buffer."""


class Broken(NamedTuple):
    """A rule that does not hold.

    Args:
        fields: The fields that it joins, the one to blame first.
        message: What must be, and what was found.
    """

    fields: tuple[str, ...]
    message: str


def broken_rules(values: Mapping[str, Value]) -> Iterator[Broken]:
    """Yield what does not go together among the values of a machine, each legal by itself."""
    block, cache = values["l2_block_bytes"], values["l2_bytes"]
    if cache and not _at_most(block, cache):
        yield Broken(
            ("l2_block_bytes", "l2_bytes"),
            f"l2_block_bytes must be at most l2_bytes ({cache}), or l2_bytes must be 0, not {block}.",
        )
    line = values["l2_line_bytes"]
    if not _divides(line, block):
        yield Broken(
            ("l2_block_bytes", "l2_line_bytes"),
            f"l2_block_bytes must be a multiple of l2_line_bytes ({line}), not {block}.",
        )
    for scales, data in (("scale_a_bytes", "l0a_bytes"), ("scale_b_bytes", "l0b_bytes")):
        size, operand = values[scales], values[data]
        if not _at_most(operand, size, 1 << SCALE_SHIFT):
            yield Broken(
                (scales, data),
                f"{scales} must be at least a 16th of {data} ({operand}), not {size}.",
            )


def _at_most(small: Value, large: Value, factor: int = 1) -> bool:
    assert isinstance(small, int), "a size"
    assert isinstance(large, int), "a size"
    return small <= large * factor


def _divides(line: Value, block: Value) -> bool:
    assert isinstance(line, int), "a size"
    assert isinstance(block, int), "a size"
    return block % line == 0
