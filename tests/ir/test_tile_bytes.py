"""How many bytes a tile takes, from the shapes of boxes."""

import pytest

from scalebox.ir.dtypes import DType
from scalebox.ir.tile_bytes import tile_bytes
from scalebox.ir.types import (
    MemorySpace,
    TileLayout,
    TileType,
    TileView,
)

FP8, FP4, FP32 = DType.E4M3, DType.E2M1, DType.Float32


@pytest.mark.parametrize(
    ("space", "dtype", "shape", "boxes"),
    [
        (MemorySpace.Mat, FP8, (16, 32), 1),
        (MemorySpace.Mat, FP8, (17, 33), 4),
        (MemorySpace.Left, FP4, (16, 65), 2),
        (MemorySpace.Right, FP8, (32, 16), 1),
        (MemorySpace.Right, FP4, (65, 17), 4),
    ],
)
def test_operands_take_whole_boxes_of_512_bytes(
    space: MemorySpace, dtype: DType, shape: tuple[int, int], boxes: int
) -> None:
    assert tile_bytes(TileType(shape, dtype, None, None, space)) == 512 * boxes


@pytest.mark.parametrize(
    ("dtype", "shape", "boxes"),
    [(FP8, (512, 16), 32), (FP4, (512, 32), 32), (FP4, (64, 64), 4), (FP32, (16, 9), 2)],
)
def test_in_mat_what_comes_from_a_transposed_tensor_lies_in_boxes_of_16_rows_too(
    dtype: DType, shape: tuple[int, int], boxes: int
) -> None:
    view = TileView(blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    assert tile_bytes(TileType(shape, dtype, None, view, MemorySpace.Mat)) == 512 * boxes
