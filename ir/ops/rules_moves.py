"""Type rules of the ops that carry tiles between the memories of a core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..types import SCALE_ARRANGEMENT, MemorySpace, TileType, TileView, implicit_tile_view
from .checks import arrangement_name, operand_type
from .rules_memory import (
    FIXPIPE,
    MOVES,
    SCALE_DTYPES,
    SCALE_LAYOUT,
    SCALED_HINT,
    TILE_RANK,
    check_fixpipe,
    is_row_of_scales,
    scale_hint,
    space_name,
    stored_dtypes,
    view_with_valid,
)

if TYPE_CHECKING:
    from .row import CallSite

_LAYOUTS = ("blayout", "slayout")
_DATA_OF_SCALE = {
    MemorySpace.LeftScale: MemorySpace.Left,
    MemorySpace.RightScale: MemorySpace.Right,
}


def infer_move(site: CallSite) -> TileType:
    """Return the tile of a move, in the arrangement that its new memory expects."""
    tile = operand_type(site, 0, TileType)
    target: MemorySpace = site.kwargs["target_memory"]
    source = tile.memory_space
    if source is not None and source is not target and target not in MOVES.get(source, ()):
        reachable = ", ".join(space.name for space in MOVES.get(source, ())) or "nowhere"
        message = f"a tile cannot go from {source.name} to {target.name}"
        raise site.value_error(message, f"from {source.name} it can go to: {reachable}")
    dtype = _moved_dtype(site, tile, target)
    if target in SCALE_LAYOUT:
        return _scale_move(site, tile, target)
    if source is MemorySpace.Acc and target is MemorySpace.Mat:
        return _sums_in_mat(site, tile, dtype)
    view = tile.get_effective_tile_view()
    if source is not target:
        in_boxes = view.arrangement in SCALE_ARRANGEMENT.values()
        if source is MemorySpace.Mat and in_boxes:
            own = _space_of_scales(view)
            message = (
                f"a tile of scales in {arrangement_name(view)} must go to {own.name}, "
                f"not to {target.name}"
            )
            raise site.value_error(message)
        # Boxes of scales lie in Mat as they do in Vec.
        if not (in_boxes and tile.dtype in SCALE_DTYPES and target is MemorySpace.Mat):
            view = implicit_tile_view(tile.shape, target)
    blayout = site.kwargs.get("blayout", view.blayout)
    slayout = site.kwargs.get("slayout", view.slayout)
    boxes = [a for a in SCALE_ARRANGEMENT.values() if a[:2] == (blayout, slayout)]
    fractal = boxes[0][2] if boxes and tile.dtype in SCALE_DTYPES else view.fractal
    moved = TileView(tile.valid_shape, None, None, blayout, slayout, fractal)
    return TileType(tile.shape, dtype, None, moved, target)


def _moved_dtype(site: CallSite, tile: TileType, target: MemorySpace) -> DType:
    """Return the dtype that a moved tile has; only what leaves Acc changes it."""
    given = [name for name in FIXPIPE if site.kwargs.get(name) not in (None, False)]
    if not given:
        return tile.dtype
    if tile.memory_space is not MemorySpace.Acc or target not in MOVES[MemorySpace.Acc]:
        message = (
            f"{given[0]} must be for a move out of Acc to Mat or Vec, not from {space_name(tile)} to "
            f"{target.name}"
        )
        raise site.value_error(message, "pl.cast, pl.mul and pl.relu take a tile in Vec")
    for name in given:
        if name != "dtype":
            check_fixpipe(site, tile, name, "sums of INT8 operands stand as they are")
    dtype: DType = site.kwargs.get("dtype") or tile.dtype
    allowed = stored_dtypes(tile, site.kwargs)
    if dtype not in allowed:
        names = ", ".join(each.name for each in allowed)
        message = (
            f"a tile of {tile.dtype.name} in Acc must be moved as {names}, not as {dtype.name}"
        )
        scaled = dtype in stored_dtypes(tile, {"pre_quant": 1.0})
        raise site.type_error(message, SCALED_HINT if scaled else None)
    return dtype


def _sums_in_mat(site: CallSite, tile: TileType, dtype: DType) -> TileType:
    """Return the tile of sums that the fixpipe lays out as an operand's boxes, one row included."""
    boxes = implicit_tile_view(tile.shape, MemorySpace.Left)
    wanted = (boxes.blayout, boxes.slayout)
    found = tuple(site.kwargs.get(name, has) for name, has in zip(_LAYOUTS, wanted, strict=True))
    if found != wanted:
        message = "a move from Acc to Mat must leave blayout and slayout alone"
        raise site.value_error(message, "by way of Vec a tile can get another arrangement")
    return TileType(
        tile.shape, dtype, None, view_with_valid(boxes, tile.valid_shape), MemorySpace.Mat
    )


def _space_of_scales(view: TileView) -> MemorySpace:
    """Return the scale buffer that a tile of scale boxes is made for."""
    return next(
        space
        for space, layout in SCALE_LAYOUT.items()
        if SCALE_ARRANGEMENT[layout] == view.arrangement
    )


def _scale_move(site: CallSite, tile: TileType, target: MemorySpace) -> TileType:
    layout = SCALE_LAYOUT[target]
    if site.kwargs.get("blayout") or site.kwargs.get("slayout"):
        message = f"a move to {target.name} must leave blayout and slayout alone"
        raise site.value_error(message)
    if tile.dtype not in SCALE_DTYPES:
        message = f"a tile for {target.name} must hold E8M0 or UInt8, not {tile.dtype.name}"
        raise site.type_error(message)
    if len(tile.shape) != TILE_RANK:
        message = f"a tile for {target.name} must have rank 2, not {len(tile.shape)}"
        raise site.value_error(message)
    view = tile.get_effective_tile_view()
    if view.arrangement != SCALE_ARRANGEMENT[layout] and not is_row_of_scales(tile, layout):
        message = (
            f"the scales for {target.name} must come from a tensor in {layout.name}, "
            f"not in {arrangement_name(view)}"
        )
        raise site.value_error(message, scale_hint(layout))
    moved = view_with_valid(implicit_tile_view(tile.shape, target), tile.valid_shape)
    return TileType(tile.shape, DType.E8M0, None, moved, target)


def infer_scale_address(site: CallSite) -> TileType:
    """Return the scale tile, bound to the address that its data tile implies."""
    scale, data = operand_type(site, 0, TileType), operand_type(site, 1, TileType)
    wanted = _DATA_OF_SCALE.get(scale.memory_space or MemorySpace.DDR)
    if wanted is None:
        message = f"the scale must lie in LeftScale or RightScale, not in {space_name(scale)}"
        raise site.value_error(message)
    if data.memory_space is not wanted:
        message = (
            f"the data of a scale in {space_name(scale)} must lie in {wanted.name}, "
            f"not in {space_name(data)}"
        )
        raise site.value_error(message)
    return scale
