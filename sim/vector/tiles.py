"""Which tiles of UB an instruction of the vector core touches, and how numpy sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ...codegen.isa.vector_rules import UB_UNIT
from ...codegen.isa.vocabulary import Axis, ElementType, VectorType
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, GROUP
from ..datapaths.kernels import SPACE
from ..faultcodes import UNWRITTEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..datapaths.kernels import Memory

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Line = npt.NDArray[np.int64]

MAX_TILES: Final = 3
"""Tiles of one instruction."""

_BYTE: Final = 8
WRITTEN: Final = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
"""The mask of an element that was written, by its bytes."""


class Tile(NamedTuple):
    """A tile in UB.

    Args:
        address: Byte address of the 32 bytes in which element (0, 0) stands.
        rows: Rows.
        cols: Columns.
        pitch: Units of 32 bytes from row to row, or 0 for a packed column.
        bits: Width of an element.
        skip: Elements before element (0, 0).
    """

    address: int
    rows: int
    cols: int
    pitch: int
    bits: int
    skip: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of the elements of one row."""
        return -(-self.cols * self.bits // _BYTE)

    @property
    def pitch_bytes(self) -> int:
        """Bytes from row to row."""
        return self.pitch * UB_UNIT if self.pitch else self.row_bytes

    @property
    def start(self) -> int:
        """Byte address of element (0, 0)."""
        return self.address + self.skip * self.bits // _BYTE

    @property
    def extent(self) -> tuple[int, int]:
        """Byte address and number of bytes from its first byte to its last one."""
        return self.start, (self.rows - 1) * self.pitch_bytes + self.row_bytes


def tiles_of(mnemonic: str, named: Mapping[str, int]) -> tuple[Tile, ...]:
    """Return the tiles of a vector instruction, the first result first.

    Args:
        mnemonic: Its name.
        named: Field name to value.
    """
    rows, cols = named["rows"], named["cols"]
    bits = VectorType(named.get("type", VectorType.UINT8)).bits
    skip, pitch = named.get("dst_skip", 0), named.get("dst_pitch", 0)
    dst = Tile(named["dst"], rows, cols, pitch, bits, skip)
    match mnemonic:
        case "v_fill":
            return (dst,)
        case "v_move" | "v_move_at":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits, named["src_skip"])
            return dst, src
        case "v_reduce" | "v_scale_boxes":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits)
            return _result(mnemonic, named, bits), src
        case "v_transpose":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits)
            return Tile(named["dst"], cols, rows, pitch, bits), src
        case "v_cast":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits)
            return dst._replace(bits=VectorType(named["to"]).bits), src
        case "v_quant_mx":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits)
            scales = Tile(named["scales"], rows, cols // GROUP, named["scale_pitch"], _BYTE)
            return dst._replace(bits=ElementType(named["element"]).bits), scales, src
        case "v_select":
            src = Tile(named["src"], rows, cols, named["src_pitch"], bits)
            return dst, src, Tile(named["mask"], rows, cols, named["mask_pitch"], _BYTE)
        case "v_expand":
            a = Tile(named["a"], rows, cols, named["a_pitch"], bits)
            shape = (rows, 1) if named["axis"] == Axis.ROW else (1, cols)
            return dst, Tile(named["b"], *shape, 0, bits), a
        case _:
            return _elementwise(mnemonic, named, dst)


def _result(mnemonic: str, named: Mapping[str, int], bits: int) -> Tile:
    rows, cols = named["rows"], named["cols"]
    if mnemonic == "v_scale_boxes":
        boxes = -(-rows // BOX_ROWS) * -(-cols // BOX_GROUPS)
        return Tile(named["dst"], boxes, BOX_BYTES, 1, _BYTE)
    shape = (rows, 1) if named["axis"] == Axis.ROW else (1, cols)
    return Tile(named["dst"], *shape, 0, bits)


def _elementwise(mnemonic: str, named: Mapping[str, int], dst: Tile) -> tuple[Tile, ...]:
    mask = mnemonic.startswith("v_compare")
    operands = [
        dst._replace(address=named[name], pitch=named[f"{name}_pitch"])
        for name in ("src", "a", "b")
        if name in named
    ]
    return dst._replace(bits=_BYTE) if mask else dst, *operands


def view_of(memory: Memory, tile: Tile, *, masks: bool = False) -> Codes:
    """Return the codes of a tile, or their written masks, sharing memory.

    Returns:
        [rows, cols] of the elements' width; [rows, cols / 2] bytes of 4-bit elements.
    """
    width = max(1, tile.bits // _BYTE)
    cols = tile.row_bytes if tile.bits < _BYTE else tile.cols
    return np.ndarray(
        (tile.rows, cols),
        np.dtype(f"u{width}"),
        memory.written if masks else memory.local,
        int(memory.bases[SPACE.ub]) + tile.start,
        (tile.pitch_bytes, width),
    )


def read(memory: Memory, tile: Tile, fault: Line, *, report: bool) -> Codes | None:
    """Return the codes of a tile, one an element, or None and a fault for a never-written one."""
    if report:
        masks = view_of(memory, tile, masks=True)
        hole = first_hole(masks)
        if hole is not None:
            row, col = hole
            offset = row * tile.pitch_bytes + col * masks.dtype.itemsize
            fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.ub, tile.start + offset
            fault[3], fault[4] = row, col * (2 if tile.bits < _BYTE else 1)
            return None
    return unpacked(view_of(memory, tile), tile)


def first_hole(masks: Codes) -> tuple[int, int] | None:
    """Return row and column of the first element that was never written, or None."""
    holes = masks != WRITTEN[masks.dtype.itemsize]
    if not holes.any():
        return None
    row, column = np.unravel_index(int(holes.argmax()), holes.shape)
    return int(row), int(column)


def unpacked(codes: Codes, tile: Tile) -> Codes:
    """Return codes one an element; of 4-bit elements the first of a byte is in its low bits."""
    if tile.bits >= _BYTE:
        return codes
    pairs = np.stack((codes & 0xF, codes >> 4), axis=-1).astype(np.uint8)
    return pairs.reshape(codes.shape[0], -1)[:, : tile.cols]


def packed(codes: Codes, tile: Tile) -> Codes:
    """Return codes as they stand in memory; the inverse of :func:`unpacked`."""
    if tile.bits >= _BYTE:
        return codes
    low, high = codes[:, 0::2], codes[:, 1::2]
    return (low | high << 4).astype(np.uint8)


def write(memory: Memory, tile: Tile, codes: Codes, *, track: bool) -> None:
    """Write codes, one an element, to a tile."""
    view_of(memory, tile)[:] = packed(codes, tile)
    if track:
        masks = view_of(memory, tile, masks=True)
        masks[:] = WRITTEN[masks.dtype.itemsize]
