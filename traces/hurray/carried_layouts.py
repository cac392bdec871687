"""Layouts that are carried and sized, but whose elements are not looked up here.

Sparse ones, the pages of a cache, the space-filling curves and the heads of composites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from .errors import InvalidDescriptorError
from .shapes import Shape, check_rank, spell
from .sizes import U32_MAX, U64_MAX, checked_uint, checked_uints

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_LAYER: Final = U32_MAX

_LARGEST_EXTENT_BITS = 64
_MATRIX = 2
_CACHE_RANK = 3


@dataclass(frozen=True, slots=True, init=False)
class MortonLayout:
    """The Z-order curve: bit b of index d of rank r goes to bit b * r + d.

    Args:
        morton_bits: For every index, how many of its bits are woven in.

    Raises:
        InvalidDescriptorError: An entry is 0 or does not fit 32 bits.
    """

    tag: ClassVar[int] = 0x05
    name: ClassVar[str] = "morton"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    morton_bits: tuple[int, ...]

    def __init__(self, morton_bits: Sequence[int]) -> None:
        bits = checked_uints(morton_bits, U32_MAX, "the morton_bits")
        if 0 in bits:
            sentence = f"The entries of morton_bits must be 1 or more, not {spell(bits)}"
            raise InvalidDescriptorError(sentence, found=0)
        object.__setattr__(self, "morton_bits", bits)

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse a shape that the bits do not reach.

        Raises:
            InvalidDescriptorError: Another rank, or an extent above 2 to the power of its bits.
        """
        _check_rank(self.name, len(shape), len(self.morton_bits))
        for axis, (extent, bits) in enumerate(zip(shape, self.morton_bits, strict=True)):
            # Every extent has at most 64 bits: a larger power need not be formed.
            if extent is not None and bits < _LARGEST_EXTENT_BITS and extent > 1 << bits:
                sentence = (
                    f"Extent {axis} of a morton layout with {bits} bits must be at most {1 << bits}, "
                    f"not {extent}"
                )
                raise InvalidDescriptorError(sentence, found=extent)


@dataclass(frozen=True, slots=True)
class HilbertLayout:
    """The Hilbert curve through a cube of 2^order a side.

    Args:
        hilbert_order: At least 1.
        hilbert_rank: At least 2.

    Raises:
        InvalidDescriptorError: One is too small or does not fit 32 bits.
    """

    tag: ClassVar[int] = 0x40
    name: ClassVar[str] = "hilbert"
    buffer_count: ClassVar[int] = 1
    is_dense: ClassVar[bool] = True
    is_virtual: ClassVar[bool] = False

    hilbert_order: int
    hilbert_rank: int

    def __post_init__(self) -> None:
        _at_least(1, self.hilbert_order, "The order of a hilbert layout")
        _at_least(_MATRIX, self.hilbert_rank, "The rank of a hilbert layout")

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse all but the cube.

        Raises:
            InvalidDescriptorError: Another rank, or an extent that is not 2^order.
        """
        _check_rank(self.name, len(shape), self.hilbert_rank)
        for axis, extent in enumerate(shape):
            fits = self.hilbert_order < _LARGEST_EXTENT_BITS and extent == 1 << self.hilbert_order
            if extent is not None and not fits:
                sentence = f"Extent {axis} of a hilbert layout must be 2^{self.hilbert_order}, not {extent}"
                raise InvalidDescriptorError(sentence, found=extent)


@dataclass(frozen=True, slots=True)
class CooLayout:
    """Values and the index tuple of each: `nnz` of them, maybe sorted."""

    tag: ClassVar[int] = 0x06
    name: ClassVar[str] = "coo"
    buffer_count: ClassVar[int] = 2
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = False

    nnz: int
    is_sorted: bool = False

    def __post_init__(self) -> None:
        checked_uint(self.nnz, U64_MAX, "nnz")

    def validate_against_shape(self, shape: Shape) -> None:
        """Accept every shape."""


@dataclass(frozen=True, slots=True)
class _CompressedMatrix:
    """Values, the index of each along one axis, and the beginnings along the other."""

    name: ClassVar[str]
    buffer_count: ClassVar[int] = 3
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = False

    nnz: int

    def __post_init__(self) -> None:
        checked_uint(self.nnz, U64_MAX, "nnz")

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse all but matrices.

        Raises:
            InvalidDescriptorError: The rank is not 2.
        """
        _check_rank(self.name, len(shape), _MATRIX)


@dataclass(frozen=True, slots=True)
class CsrLayout(_CompressedMatrix):
    """Compressed rows: values, column of each, beginning of each row."""

    tag: ClassVar[int] = 0x07
    name: ClassVar[str] = "csr"


@dataclass(frozen=True, slots=True)
class CscLayout(_CompressedMatrix):
    """Compressed columns: values, row of each, beginning of each column."""

    tag: ClassVar[int] = 0x08
    name: ClassVar[str] = "csc"


@dataclass(frozen=True, slots=True, init=False)
class CsfLayout:
    """Compressed fibres: a tree with a level for every index, in the order `mode_order`."""

    tag: ClassVar[int] = 0x09
    name: ClassVar[str] = "csf"
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = False

    nnz: int
    mode_order: tuple[int, ...]

    def __init__(self, nnz: int, mode_order: Sequence[int]) -> None:
        order = checked_uints(mode_order, U32_MAX, "the entries of mode_order")
        check_rank(len(order))
        object.__setattr__(self, "nnz", checked_uint(nnz, U64_MAX, "nnz"))
        object.__setattr__(self, "mode_order", order)

    @property
    def buffer_count(self) -> int:
        """Values, and for every level where its nodes begin and which they are."""
        return 2 * len(self.mode_order) + 1

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse matrices, and an order that is no permutation.

        Raises:
            InvalidDescriptorError: The rank is below 3 or another, or an index is named twice.
        """
        _at_least(_CACHE_RANK, len(shape), "The rank of a csf layout")
        _check_rank(self.name, len(shape), len(self.mode_order))
        if sorted(self.mode_order) != list(range(len(shape))):
            sentence = (
                f"The mode_order of a csf layout must name each of {len(shape)} indices once, "
                f"not be {spell(self.mode_order)}"
            )
            raise InvalidDescriptorError(sentence, found=self.mode_order)


KV_ROLES: Final = ("key", "value", "fused")
INDEX_TYPES: Final = ("uint32", "uint64")


@dataclass(frozen=True, slots=True)
class BlockPagedLayout:
    """The pages of a cache: a pool of pages, a table of pages, and where each sequence begins.

    Args:
        page_size: Entries of a page, 1 or more.
        num_pages: Pages of the pool.
        paged_axis: Which axis is cut into pages; must be 0.
        num_seqs: Sequences.
        kv_role: `key`, `value` or `fused`.
        layer_index: Which layer, or None.
        block_table_index_type: `uint32` or `uint64`.

    Raises:
        InvalidDescriptorError: A field breaks a rule of the format.
    """

    tag: ClassVar[int] = 0x0A
    name: ClassVar[str] = "block_paged"
    buffer_count: ClassVar[int] = 3
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = False

    page_size: int
    num_pages: int
    paged_axis: int
    num_seqs: int
    kv_role: str = "key"
    layer_index: int | None = None
    block_table_index_type: str = "uint32"

    def __post_init__(self) -> None:
        _at_least(1, self.page_size, "The page_size of a block_paged layout")
        checked_uint(self.num_pages, U64_MAX, "num_pages")
        checked_uint(self.num_seqs, U32_MAX, "num_seqs")
        if self.layer_index is not None:
            checked_uint(self.layer_index, NO_LAYER - 1, "layer_index")
        if self.paged_axis != 0:
            sentence = f"The paged_axis of a block_paged layout must be 0, not {self.paged_axis!r}"
            raise InvalidDescriptorError(sentence, found=self.paged_axis)
        _one_of(KV_ROLES, self.kv_role, "kv_role")
        _one_of(INDEX_TYPES, self.block_table_index_type, "block_table_index_type")

    def validate_against_shape(self, shape: Shape) -> None:
        """Refuse all but three dimensions.

        Raises:
            InvalidDescriptorError: The rank is not 3.
        """
        _check_rank(self.name, len(shape), _CACHE_RANK)


COMPOSITION_RULES: Final = ("partition", "overlay", "group")
COMBINE_OPS: Final = ("replace", "add")


@dataclass(frozen=True, slots=True)
class CompositeLayout:
    """The head of a composite: one view of the tensors that follow it; it has no buffers.

    Args:
        composition_rule: `partition`, `overlay` or `group`.
        member_count: How many tensors follow.
        combine_op: For an overlay `replace` or `add`, else None.

    Raises:
        InvalidDescriptorError: A field breaks a rule of the format.
    """

    tag: ClassVar[int] = 0x0B
    name: ClassVar[str] = "composite"
    buffer_count: ClassVar[int] = 0
    is_dense: ClassVar[bool] = False
    is_virtual: ClassVar[bool] = True

    composition_rule: str
    member_count: int
    combine_op: str | None = None

    def __post_init__(self) -> None:
        _one_of(COMPOSITION_RULES, self.composition_rule, "composition_rule")
        checked_uint(self.member_count, U32_MAX - 1, "member_count")
        if self.composition_rule == "overlay":
            _one_of(COMBINE_OPS, self.combine_op, "combine_op")
        elif self.combine_op is not None:
            sentence = (
                f"The combine_op of a {self.composition_rule} must be left out, "
                f"not be {self.combine_op!r}"
            )
            raise InvalidDescriptorError(sentence, found=self.combine_op)

    def validate_against_shape(self, shape: Shape) -> None:
        """Accept every shape."""


def _check_rank(name: str, rank: int, wanted: int) -> None:
    if rank != wanted:
        sentence = f"The rank of this {name} layout must be {wanted}, not {rank}"
        raise InvalidDescriptorError(sentence, found=rank)


def _at_least(least: int, value: int, what: str) -> None:
    if checked_uint(value, U32_MAX, what) < least:
        sentence = f"{what} must be at least {least}, not {value}"
        raise InvalidDescriptorError(sentence, found=value)


def _one_of(valid: tuple[str, ...], value: str | None, what: str) -> None:
    if value not in valid:
        sentence = f"{what} must be one of {', '.join(valid)}, not {value!r}"
        raise InvalidDescriptorError(sentence, found=value)
