"""Tiles that are turned on their way hold the same elements, whatever part of them fills squares."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.vocabulary import Space

LINE = 32


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return codes in memory order as bytes, of 4-bit ones two a byte, the first in the low half."""
    flat = codes.reshape(-1)
    return flat if bits == 8 else flat[::2] | flat[1::2] << 4


def boxed(codes: np.ndarray, bits: int, tall: int) -> np.ndarray:
    """Return [rows, cols] as columns of boxes, `tall` lines of 32 bytes each, zero beyond the tile."""
    rows, cols = codes.shape
    wide = LINE * 8 // bits
    columns = -(-cols // wide)
    whole = np.zeros((tall, columns * wide), np.uint8)
    whole[:rows, :cols] = codes
    lines = whole.reshape(tall, columns, wide).transpose(1, 0, 2)
    return packed(np.ascontiguousarray(lines), bits)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    ("rows", "cols"),
    [(16, 16), (32, 32), (64, 64), (14, 34), (40, 48), (560, 64), (1100, 36), (2, 2)],
)
def test_columns_that_lie_in_one_piece_become_lines_of_l1(
    bench: Any, rng: np.random.Generator, rows: int, cols: int, bits: int, given: bool
) -> None:
    # The tensor has cols columns of rows elements, one behind another, and 8 more at each end.
    codes = rng.integers(0, 1 << bits, (cols + 1, rows + 8)).astype(np.uint8)
    dtype = "E4M3" if bits == 8 else "E2M1"
    tall = -(-rows // 16) * 16
    core, _, found = bench.apply(
        f"gm_to_l1_nz v0, x0, x0, l1[0x40], rows={rows}, cols={cols}, l1_rows={tall}",
        [bench.tensor("x", dtype, codes.shape)],
        [View(0, Layout.DN, bits, (rows + 8, cols + 1), (1, rows + 8))],
        images={"x": packed(codes, bits)} if given else {},
    )
    assert not found
    wanted = boxed(codes[:cols, :rows].T, bits, tall) if given else 0
    size = -(-cols * bits // 256) * tall * LINE
    np.testing.assert_array_equal(core.local.view(Space.L1)[64 : 64 + size], wanted)
    masks = core.local.written_view(Space.L1)[64 : 64 + size].reshape(-1, tall, LINE)[:, :rows]
    ones = np.full((rows, cols), (1 << bits) - 1 if given else 0, np.uint8)
    filled = boxed(ones, bits, tall).reshape(-1, tall, LINE)[:, :rows].copy()
    used = -(-cols * bits // 8) - (len(filled) - 1) * LINE
    filled[-1, :, used:] = 0xFF  # what is cleared behind them
    np.testing.assert_array_equal(masks, filled)


@pytest.mark.parametrize("hole", [None, 0, 700])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    ("k", "n"), [(64, 64), (128, 32), (64, 48), (48, 64), (128, 256), (30, 34)]
)
def test_a_tile_turned_into_l0_has_its_columns_as_lines(
    bench: Any, rng: np.random.Generator, k: int, n: int, bits: int, hole: int | None
) -> None:
    codes = rng.integers(0, 1 << bits, (k, n)).astype(np.uint8)
    tall = -(-k // 16) * 16
    core, _, found = bench.apply(
        f"l1_to_l0b l1[0x0], l0b[0x0], bits=b{bits}, k={k}, n={n}, src_k={tall}",
        preset={Space.L1: boxed(codes, bits, tall)},
        hole=None if hole is None else (Space.L1, hole),
    )
    assert not found
    high = -(-n // 16) * 16
    wanted = boxed(codes.T, bits, high)
    np.testing.assert_array_equal(core.local.view(Space.L0B)[: wanted.size], wanted)
    masks = core.local.written_view(Space.L0B)[: wanted.size]
    if hole is None:
        assert (masks == 0xFF).all()
        return
    # Of the byte that was never written each element has been moved somewhere, if it is in the tile.
    column, line = divmod(hole, tall * LINE)
    row, byte = divmod(line, LINE)
    first = (column * LINE + byte) * 8 // bits
    lost = [i for i in range(first, first + 8 // bits) if i < n and row < k]
    bits_lost = sum(8 - int(mask).bit_count() for mask in masks)
    assert bits_lost == len(lost) * bits
