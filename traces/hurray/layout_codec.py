"""Layouts on the wire: the tag, and the fields that every kind of layout has."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from .buffers import PRIVATE_TAGS
from .carried_layouts import (
    COMBINE_OPS,
    COMPOSITION_RULES,
    INDEX_TYPES,
    KV_ROLES,
    NO_LAYER,
    BlockPagedLayout,
    CompositeLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    HilbertLayout,
    MortonLayout,
)
from .errors import InvalidDescriptorError, truncated
from .layouts import (
    MAX_NESTING,
    ColMajorLayout,
    Order,
    PrivateExtensionLayout,
    RowMajorLayout,
    StridedLayout,
    TiledLayout,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Layout: TypeAlias = (
    RowMajorLayout
    | ColMajorLayout
    | StridedLayout
    | TiledLayout
    | MortonLayout
    | CooLayout
    | CsrLayout
    | CscLayout
    | CsfLayout
    | BlockPagedLayout
    | CompositeLayout
    | HilbertLayout
    | PrivateExtensionLayout
)

ROW_MAJOR: Final = RowMajorLayout()
COL_MAJOR: Final = ColMajorLayout()

_Decoded: TypeAlias = tuple[Layout, int]

_INVALID = frozenset({0x00, 0xFF})
_ORDERS = (Order.ROW_MAJOR, Order.COL_MAJOR, Order.STRIDED, Order.TILED)  # wire values from 1
_COO = Struct("<QB7s")
_COMPRESSED = Struct("<Q8s")
_NNZ = Struct("<Q")
_BLOCK_PAGED = Struct("<IQIIBIB6s")
_COMPOSITE = Struct("<BB2sI")
_HILBERT = Struct("<II")
_PRIVATE = Struct("<QI")
_RESERVED_8 = bytes(8)


def decode_layout(tag: int, data: bytes, at: int, end: int, rank: int) -> _Decoded:
    """Return the layout of a tag whose fields begin at `at`, and where they end.

    Args:
        tag: The layout's tag.
        data: The descriptor.
        at: Where the layout's fields begin.
        end: Where the descriptor ends.
        rank: The tensor's rank.

    Raises:
        InvalidDescriptorError: No layout has the tag, or its fields break a rule or are cut off.
    """
    decode = _DECODERS.get(tag)
    if decode is None:
        raise unknown_layout(tag)
    try:
        return decode(data, at, end, rank)
    except InvalidDescriptorError as error:
        if error.offset is not None:
            raise
        raise error.moved(at) from None


def encode_layout(layout: Layout) -> bytes:
    """Return the bytes of a layout's fields, which follow the byte offset."""
    match layout:
        case RowMajorLayout() | ColMajorLayout():
            return b""
        case StridedLayout():
            return _strides(layout.strides)
        case TiledLayout():
            return _encode_tiled(layout)
        case PrivateExtensionLayout():
            head = _PRIVATE.pack(layout.extension_layout_id, len(layout.extension_data))
            return head + layout.extension_data
        case _:
            return _encode_carried(layout)


def unknown_layout(tag: int, *, offset: int | None = None) -> InvalidDescriptorError:
    """Return the error for a tag that no layout has."""
    why = "invalid: it never appears" if tag in _INVALID else "reserved for later versions"
    sentence = (
        "The layout tag must be a known one or a private one (0xF0 to 0xFE), "
        f"not 0x{tag:02X}, which is {why}"
    )
    return InvalidDescriptorError(sentence, offset=offset, found=tag)


def is_layout_tag(tag: int) -> bool:
    """Return whether some layout has the tag."""
    return tag in _DECODERS


def _encode_carried(
    layout: MortonLayout
    | CooLayout
    | CsrLayout
    | CscLayout
    | CsfLayout
    | BlockPagedLayout
    | CompositeLayout
    | HilbertLayout,
) -> bytes:
    match layout:
        case MortonLayout():
            return _words(layout.morton_bits)
        case CooLayout():
            return _COO.pack(layout.nnz, layout.is_sorted, bytes(7))
        case CsrLayout() | CscLayout():
            return _COMPRESSED.pack(layout.nnz, _RESERVED_8)
        case CsfLayout():
            return _NNZ.pack(layout.nnz) + _words(layout.mode_order) + _RESERVED_8
        case BlockPagedLayout():
            return _BLOCK_PAGED.pack(
                layout.page_size,
                layout.num_pages,
                layout.paged_axis,
                layout.num_seqs,
                KV_ROLES.index(layout.kv_role),
                NO_LAYER if layout.layer_index is None else layout.layer_index,
                INDEX_TYPES.index(layout.block_table_index_type),
                bytes(6),
            )
        case CompositeLayout():
            op = layout.combine_op
            return _COMPOSITE.pack(
                1 + COMPOSITION_RULES.index(layout.composition_rule),
                0 if op is None else 1 + COMBINE_OPS.index(op),
                bytes(2),
                layout.member_count,
            )
        case HilbertLayout():
            return _HILBERT.pack(layout.hilbert_order, layout.hilbert_rank)


def _encode_tiled(layout: TiledLayout) -> bytes:
    parts = [
        _structs("Q", len(layout.tile_shape)).pack(*layout.tile_shape),
        bytes(1 + _ORDERS.index(Order(o)) for o in (layout.outer_layout, layout.inner_layout)),
        bytes(2),
    ]
    if layout.outer_strides is not None:
        parts.append(_strides(layout.outer_strides))
    if layout.inner_strides is not None:
        parts.append(_strides(layout.inner_strides))
    if layout.inner_tiled is not None:
        parts.append(_encode_tiled(layout.inner_tiled))
    return b"".join(parts)


def _strides(strides: tuple[int, ...]) -> bytes:
    return _structs("q", len(strides)).pack(*strides)


def _words(values: tuple[int, ...]) -> bytes:
    return _structs("I", len(values)).pack(*values)


@lru_cache(maxsize=256)
def _structs(code: str, count: int) -> Struct:
    return Struct(f"<{count}{code}")


def _need(size: int, at: int, end: int, what: str) -> int:
    """Return where `size` bytes from `at` on end.

    Raises:
        InvalidDescriptorError: The descriptor ends before.
    """
    if at + size > end:
        raise truncated(what, offset=at, need=size, have=end - at)
    return at + size


def _check_reserved(found: bytes, at: int, what: str) -> None:
    if any(found):
        sentence = f"Reserved bytes of {what} must be 0, not 0x{found.hex().upper()}"
        raise InvalidDescriptorError(sentence, offset=at, found=found)


def _pick(names: tuple[str, ...], value: int, first: int, at: int, what: str) -> str:
    if not first <= value < first + len(names):
        sentence = f"{what} must be in {first}..{first + len(names) - 1}, not {value}"
        raise InvalidDescriptorError(sentence, offset=at, found=value)
    return names[value - first]


def _row_major(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del data, end, rank
    return ROW_MAJOR, at


def _col_major(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del data, end, rank
    return COL_MAJOR, at


def _read_strides(
    data: bytes, at: int, end: int, rank: int, what: str
) -> tuple[tuple[int, ...], int]:
    after = _need(8 * rank, at, end, what)
    return _structs("q", rank).unpack_from(data, at), after


def _strided(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    strides, after = _read_strides(data, at, end, rank, "The strides")
    return StridedLayout(strides), after


def _tiled(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    return _read_tiled(data, at, end, rank, depth=1)


def _read_tiled(
    data: bytes, at: int, end: int, rank: int, *, depth: int
) -> tuple[TiledLayout, int]:
    if depth > MAX_NESTING:
        sentence = f"Tiled layouts must be nested at most {MAX_NESTING} deep, not {depth}"
        raise InvalidDescriptorError(sentence, offset=at, found=depth)
    after = _need(8 * rank + 4, at, end, "The tiled layout")
    tile = _structs("Q", rank).unpack_from(data, at)
    orders_at = at + 8 * rank
    try:
        outer, inner = _orders(data[orders_at:after])
    except InvalidDescriptorError as error:
        raise error.moved(orders_at) from None
    outer_strides = inner_strides = nested = None
    if outer is Order.STRIDED:
        outer_strides, after = _read_strides(data, after, end, rank, "The strides of tiles")
    if inner is Order.STRIDED:
        inner_strides, after = _read_strides(data, after, end, rank, "The strides within a tile")
    if inner is Order.TILED:
        nested, after = _read_tiled(data, after, end, rank, depth=depth + 1)
    return _tiled_layout(tile, outer, inner, outer_strides, inner_strides, nested), after


_tiled_layout = lru_cache(maxsize=1024)(TiledLayout)


@lru_cache(maxsize=16)
def _orders(fields: bytes) -> tuple[Order, Order]:
    outer = _order(fields[0], _ORDERS[:3], 0, "The order of tiles")
    inner = _order(fields[1], _ORDERS, 1, "The order within a tile")
    _check_reserved(fields[2:], 2, "the tiled layout")
    return outer, inner


def _order(value: int, orders: tuple[Order, ...], at: int, what: str) -> Order:
    if not 1 <= value <= len(orders):
        sentence = f"{what} must be in 1..{len(orders)}, not {value}"
        raise InvalidDescriptorError(sentence, offset=at, found=value)
    return orders[value - 1]


def _morton(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    after = _need(4 * rank, at, end, "The morton layout")
    return MortonLayout(_structs("I", rank).unpack_from(data, at)), after


def _coo(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    after = _need(_COO.size, at, end, "The coo layout")
    nnz, is_sorted, reserved = _COO.unpack_from(data, at)
    if is_sorted > 1:
        sentence = f"is_sorted of a coo layout must be 0 or 1, not {is_sorted}"
        raise InvalidDescriptorError(sentence, offset=at + 8, found=is_sorted)
    _check_reserved(reserved, at + 9, "the coo layout")
    return CooLayout(nnz, is_sorted=bool(is_sorted)), after


def _csr(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    nnz, after = _compressed(data, at, end, "csr")
    return CsrLayout(nnz), after


def _csc(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    nnz, after = _compressed(data, at, end, "csc")
    return CscLayout(nnz), after


def _compressed(data: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    after = _need(_COMPRESSED.size, at, end, f"The {name} layout")
    nnz, reserved = _COMPRESSED.unpack_from(data, at)
    _check_reserved(reserved, at + 8, f"the {name} layout")
    return nnz, after


def _csf(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    after = _need(16 + 4 * rank, at, end, "The csf layout")
    (nnz,) = _NNZ.unpack_from(data, at)
    order = _structs("I", rank).unpack_from(data, at + 8)
    _check_reserved(data[after - 8 : after], after - 8, "the csf layout")
    return CsfLayout(nnz, order), after


def _block_paged(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    after = _need(_BLOCK_PAGED.size, at, end, "The block_paged layout")
    page_size, num_pages, axis, num_seqs, role, layer, index_type, reserved = (
        _BLOCK_PAGED.unpack_from(data, at)
    )
    _check_reserved(reserved, at + 26, "the block_paged layout")
    layout = BlockPagedLayout(
        page_size,
        num_pages,
        axis,
        num_seqs,
        _pick(KV_ROLES, role, 0, at + 20, "The kv_role of a block_paged layout"),
        None if layer == NO_LAYER else layer,
        _pick(INDEX_TYPES, index_type, 0, at + 25, "The index type of a block_paged layout"),
    )
    return layout, after


def _composite(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    after = _need(_COMPOSITE.size, at, end, "The composite layout")
    rule, op, reserved, members = _COMPOSITE.unpack_from(data, at)
    _check_reserved(reserved, at + 2, "the composite layout")
    composition = _pick(COMPOSITION_RULES, rule, 1, at, "The rule of a composite layout")
    combine = None
    if op or composition == "overlay":
        combine = _pick(COMBINE_OPS, op, 1, at + 1, "The combine_op of a composite layout")
    return CompositeLayout(composition, members, combine), after


def _hilbert(data: bytes, at: int, end: int, rank: int) -> _Decoded:
    del rank
    after = _need(_HILBERT.size, at, end, "The hilbert layout")
    return HilbertLayout(*_HILBERT.unpack_from(data, at)), after


def _private(tag: int) -> Callable[[bytes, int, int, int], _Decoded]:
    def decode(data: bytes, at: int, end: int, rank: int) -> _Decoded:
        del rank
        begin = _need(_PRIVATE.size, at, end, "The private layout")
        layout_id, length = _PRIVATE.unpack_from(data, at)
        after = _need(length, begin, end, "The data of the private layout")
        return PrivateExtensionLayout(tag, layout_id, data[begin:after]), after

    return decode


_DECODERS: Final[dict[int, Callable[[bytes, int, int, int], _Decoded]]] = {
    RowMajorLayout.tag: _row_major,
    ColMajorLayout.tag: _col_major,
    StridedLayout.tag: _strided,
    TiledLayout.tag: _tiled,
    MortonLayout.tag: _morton,
    CooLayout.tag: _coo,
    CsrLayout.tag: _csr,
    CscLayout.tag: _csc,
    CsfLayout.tag: _csf,
    BlockPagedLayout.tag: _block_paged,
    CompositeLayout.tag: _composite,
    HilbertLayout.tag: _hilbert,
    **{tag: _private(tag) for tag in PRIVATE_TAGS},
}
