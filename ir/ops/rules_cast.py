"""Type rule and meaning of the cast of a tile from one dtype to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..cast_mode import CastMode
from ..numerics.cast import cast_codes, cast_format
from ..types import MemorySpace, TensorType, TileType, TileView, implicit_tile_view
from .checks import check_shape, operand_type
from .rules_vector import check_whole_tensor
from .values import TileValue

if TYPE_CHECKING:
    from ..dtypes import DType, SimpleDType
    from .row import CallSite
    from .values import Evaluation


def infer_cast(site: CallSite) -> TileType:
    """Return the tile of another dtype, in the memory of the vector core."""
    tile = operand_type(site, 0, TileType)
    target = _target(site, tile)
    if tile.memory_space not in (None, MemorySpace.Vec, MemorySpace.Acc):
        message = (
            f"a tile must lie in Vec to be cast, where the vector core works, "
            f"not in {tile.memory_space.name}"
        )
        raise site.value_error(message, "load it with target_memory=pl.Mem.Vec")
    check_shape(site, tile.shape, target)
    place = implicit_tile_view(tile.shape, MemorySpace.Vec)
    view = TileView(tile.valid_shape, None, None, place.blayout, place.slayout, place.fractal)
    return TileType(tile.shape, target, None, view, MemorySpace.Vec)


def infer_cast_tensor(site: CallSite) -> TensorType:
    """Return the fresh tensor of another dtype."""
    tensor = operand_type(site, 0, TensorType)
    target = _target(site, tensor)
    check_whole_tensor(site, "tensor", tensor)
    check_shape(site, tensor.shape, target)
    return TensorType(tensor.shape, target)


def _target(site: CallSite, found: TileType | TensorType) -> DType:
    """Return the dtype that a cast makes, once it is known that there is such a cast."""
    target: DType = site.kwargs["target_type"]
    kind = "tile" if isinstance(found, TileType) else "tensor"
    for which, dtype in ((f"a {kind} of", found.dtype), ("target_type", target)):
        if cast_format(dtype) is None:
            message = f"{which} {dtype.name} cannot be cast"
            hint = "floats and integers can, scales and compound dtypes cannot"
            raise site.type_error(message, hint)
    if target is found.dtype:
        message = f"target_type must be another dtype than the {kind}'s, not {target.name} again"
        raise site.value_error(message)
    return target


def cast_tile(run: Evaluation, tile: TileValue) -> TileValue:
    """Convert each element, rounded once by the mode of the call."""
    assert isinstance(run.result_type, TileType | TensorType), run.result_type
    target = cast("SimpleDType", run.result_type.dtype)
    mode = run.site.row.attribute(run.site.kwargs, "mode")
    assert isinstance(mode, CastMode), mode
    codes = cast_codes(tile.codes, cast("SimpleDType", tile.dtype), target, mode)
    return TileValue(codes, target)
