"""Block-scaled dtypes: encoded elements times one scale from each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import IRTypeError, IRValueError
from .compound import CompoundDType, elements_of
from .descriptors import (
    CONTRACTS,
    Contract,
    DType,
    SimpleDType,
    checked_simple,
    is_kind,
    reference,
    spell,
)
from .ownership import FRAMEWORK
from .rules import LevelExtent
from .sealed import store
from .structure import Structure, Whole, WholeExtent, describe, encode_leaf, exact_int

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from typing import Self


@dataclass(frozen=True, init=False)
class Level:
    """One position of a scale chain.

    Args:
        scale: The dtype of the scales of this level.
        block: How many coordinates of the level below share one scale, or Whole for all of them.

    Raises:
        IRTypeError: If `scale` is no simple dtype, or `block` neither an integer nor Whole.
        IRValueError: If an integer `block` is not positive.
    """

    __slots__ = ("block", "scale")
    scale: SimpleDType
    block: int | WholeExtent

    def __new__(cls, scale: SimpleDType, block: int | WholeExtent) -> Self:  # noqa: D102 - above
        checked_simple(scale, "The scale of a level")
        extent = Whole if isinstance(block, WholeExtent) else exact_int(block)
        if extent is None:
            message = f"The block of a level must be an int or Whole, not {describe(block)}"
            raise IRTypeError(message)
        if isinstance(extent, int) and extent <= 0:
            message = f"The block of a level must be 1 or more, not {extent}"
            raise IRValueError(message)
        level = super().__new__(cls)
        object.__setattr__(level, "scale", scale)
        object.__setattr__(level, "block", extent)
        return level

    def is_whole(self) -> bool:
        """Return whether one scale covers the complete level below."""
        return self.block is Whole

    def __reduce__(self) -> tuple[type[Level], tuple[SimpleDType, int | WholeExtent]]:
        return Level, (self.scale, self.block)


@dataclass(frozen=True, init=False)
class SymbolicBits:
    """A storage cost per element that depends on how many elements share the outermost scale.

    Args:
        constant: Bits per element before the whole-tensor scale.
        whole_scale_bits: The width of the whole-tensor scale in bits.
    """

    __slots__ = ("constant", "whole_scale_bits")
    constant: float
    whole_scale_bits: int

    def __new__(cls, constant: float, whole_scale_bits: int) -> Self:  # noqa: D102 - above
        cost = super().__new__(cls)
        object.__setattr__(cost, "constant", constant)
        object.__setattr__(cost, "whole_scale_bits", whole_scale_bits)
        return cost

    def evaluate(self, element_count: int) -> float:
        """Return the bits per element for a tensor of `element_count` elements.

        Raises:
            IRTypeError: If `element_count` is no integer.
            IRValueError: If it is below 1.
        """
        count = exact_int(element_count)
        if count is None:
            message = f"The element count must be an int, not {describe(element_count)}"
            raise IRTypeError(message)
        if count < 1:
            message = f"The element count must be 1 or more, not {count}"
            raise IRValueError(message)
        return self.constant + self.whole_scale_bits / count

    def __reduce__(self) -> tuple[type[SymbolicBits], tuple[float, int]]:
        return SymbolicBits, (self.constant, self.whole_scale_bits)


class BlockScaledDType(CompoundDType, abstract=False, framework=FRAMEWORK):
    """A logical value that is its encoded element times one scale from each level.

    There is one descriptor for an element and a level chain, whatever its name or class.

    Args:
        name: A non-empty string that no descriptor has yet.
        element: The dtype of the encoded elements, plane 0.
        levels: From innermost to outermost; only the last may be Whole.

    Raises:
        IRTypeError: If the element or an entry of `levels` is of the wrong type.
        IRValueError: If the name is empty, no string, or taken; there is no level; a level before
            the last is Whole; or the representation is registered already.
    """

    __slots__ = ("_element", "_levels")
    _element: SimpleDType
    _levels: tuple[Level, ...]

    def __init__(self, name: str, *, element: SimpleDType, levels: Iterable[Level]) -> None:
        checked_simple(element, "The element of a block-scaled dtype")
        chain = _checked_levels(levels)
        super().__init__(
            name,
            supertype=DType.Any,
            simple_types=(element, *(level.scale for level in chain)),
            representation_rules=tuple(
                LevelExtent(position, level.block) for position, level in enumerate(chain)
            ),
        )
        store(self, "_element", element)
        store(self, "_levels", chain)

    @property
    def element(self) -> SimpleDType:
        """The dtype of the encoded elements."""
        return self._element

    @property
    def levels(self) -> tuple[Level, ...]:
        """The scale chain, from innermost to outermost."""
        return self._levels

    @property
    def num_axes(self) -> int:
        """The number of levels with an integer block."""
        return sum(not level.is_whole() for level in self._levels)

    @property
    def bits_per_element(self) -> float | SymbolicBits:
        """The storage cost of one element in bits, its share of the scales included."""
        cost = float(self._element.bits)
        covered = 1
        for level in self._levels:
            if isinstance(level.block, WholeExtent):
                return SymbolicBits(cost, level.scale.bits)
            covered *= level.block
            cost += level.scale.bits / covered
        return cost


def _block_leaf(level: Level) -> str:
    leaf = encode_leaf(level.block)
    assert leaf is not None
    return leaf


def _block_scaled_layer(dtype: BlockScaledDType) -> Structure:
    levels = tuple((reference(level.scale), _block_leaf(level)) for level in dtype.levels)
    return ("BlockScaledDType", reference(dtype.element), levels)


def _representation(dtype: BlockScaledDType) -> Hashable:
    chain = tuple((level.scale.name, _block_leaf(level)) for level in dtype.levels)
    return (dtype.element.name, chain)


CONTRACTS[BlockScaledDType] = Contract(_block_scaled_layer, unique=_representation)


def _checked_levels(levels: Iterable[object]) -> tuple[Level, ...]:
    chain: list[Level] = []
    for position, level in enumerate(elements_of(levels, "The levels of a block-scaled dtype")):
        if not is_kind(level, Level):
            message = (
                f"Entry {position} of a block-scaled dtype's levels must be a Level, "
                f"not {spell(level)}"
            )
            raise IRTypeError(message)
        assert isinstance(level, Level)
        chain.append(Level(level.scale, level.block))
    if not chain:
        message = "A block-scaled dtype must have at least one level, not none"
        raise IRValueError(message)
    for position, level in enumerate(chain[:-1]):
        if level.is_whole():
            message = (
                f"Only the last level of a block-scaled dtype may be Whole, not level {position} "
                f"of {len(chain)}"
            )
            raise IRValueError(message)
    return tuple(chain)
