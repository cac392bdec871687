"""What the steps of a quantisation mean on numpy values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType, UInt8
from ..numerics.block_format import InfinityPolicy, ScaleRule, block_format_of
from ..numerics.codec import decode
from ..numerics.reference_quantize import quantize_groups
from ..types import TensorLayout
from .values import TileValue

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import BlockScaledDType
    from .values import Evaluation

    Codes = npt.NDArray[np.uint8]

#: The format whose elements a dtype is.
FORMATS: dict[DType, BlockScaledDType] = {DType.E4M3: DType.MXFP8_E4M3, DType.E2M1: DType.MXFP4}


def quantised(src: TileValue, dtype: DType, rule: str) -> tuple[Codes, Codes]:
    """Return element codes `[M, K]` and scale codes `[M, K/32]` of a tile, grouped along its rows."""
    return quantize_groups(
        _numbers(src),
        block_format_of(FORMATS[dtype]),
        rule=ScaleRule(rule),
        infinity=InfinityPolicy.NAN,
    )


def _numbers(tile: TileValue) -> npt.NDArray[Any]:
    """Return the numbers of a tile as float32, which holds every source exactly."""
    if tile.dtype is DType.Float32:
        return np.ascontiguousarray(tile.floats)
    return decode(tile.codes, tile.dtype)


def scales_of(run: Evaluation, src: TileValue) -> TileValue:
    """Choose the scales of a tile's rows."""
    return TileValue(_quantised(run, src)[1], UInt8)


def elements_of(run: Evaluation, src: TileValue, scales: TileValue) -> TileValue:
    """Divide the elements of a tile by the scales that its groups have."""
    codes, chosen = _quantised(run, src)
    assert np.array_equal(chosen, scales.codes), "the scales were chosen for this tile"
    return TileValue(codes, run.site.row.attribute(run.site.kwargs, "dtype"))


def _quantised(run: Evaluation, src: TileValue) -> tuple[Codes, Codes]:
    dtype, rule = (run.site.row.attribute(run.site.kwargs, name) for name in ("dtype", "rule"))
    return quantised(src, dtype, rule)


def in_boxes(run: Evaluation, scales: TileValue) -> TileValue:
    """Give scale codes their logical order; in which boxes they lie is a matter of the type."""
    layout = run.site.row.attribute(run.site.kwargs, "layout")
    codes = scales.codes if layout is TensorLayout.MX_A_ZZ else scales.codes.T
    return TileValue(codes, DType.E8M0)
