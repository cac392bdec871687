"""Scales in the boxes of the machine's memory, as tiled tensors of E8M0.

A box has 16 rows by 2 groups, a byte each. For a left operand, whose scales are `[M, G]`, that is a
tile of [16, 2], row-major in row-major (ZZ); for a right one, `[G, N]`, a tile of [2, 16],
column-major in column-major (NN). A tile at the edge is padded with 0x7F, a scale of 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ...ir.numerics.arguments import as_scale_codes
from ...ir.numerics.scales import pack_scales_a, pack_scales_b
from . import dtype as types
from .errors import InvalidDescriptorError
from .layouts import Order, TiledLayout
from .tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

ZZ: Final = TiledLayout((BOX_ROWS, BOX_GROUPS))
"""The layout of the scales of a left operand, `[M, G]`."""

NN: Final = TiledLayout((BOX_GROUPS, BOX_ROWS), Order.COL_MAJOR, Order.COL_MAJOR)
"""The layout of the scales of a right operand, `[G, N]`."""

NEUTRAL: Final = 0x7F


def boxed_scales_a(scales: npt.ArrayLike) -> Tensor:
    """Return the scales of a left operand, uint8 codes `[M, G]`, in ZZ boxes.

    Raises:
        InvalidDescriptorError: They are no matrix.
        IRTypeError: They are no one-byte codes.
    """
    padded, shape = _padded(scales, ZZ)
    return Tensor(pack_scales_a(padded), types.float8_e8m0, shape, layout=ZZ)


def boxed_scales_b(scales: npt.ArrayLike) -> Tensor:
    """Return the scales of a right operand, uint8 codes `[G, N]`, in NN boxes.

    Raises:
        InvalidDescriptorError: They are no matrix.
        IRTypeError: They are no one-byte codes.
    """
    padded, shape = _padded(scales, NN)
    return Tensor(pack_scales_b(padded), types.float8_e8m0, shape, layout=NN)


def _padded(
    scales: npt.ArrayLike, layout: TiledLayout
) -> tuple[npt.NDArray[np.uint8], tuple[int, ...]]:
    codes = as_scale_codes(scales, "Scales")
    if codes.ndim != 2 or not codes.size:
        sentence = (
            f"Scales in boxes must be a matrix with entries, not of shape {list(codes.shape)}"
        )
        raise InvalidDescriptorError(sentence, found=codes.shape)
    extra = [
        (0, -extent % tile) for extent, tile in zip(codes.shape, layout.tile_shape, strict=True)
    ]
    return np.pad(codes, extra, constant_values=NEUTRAL), codes.shape
