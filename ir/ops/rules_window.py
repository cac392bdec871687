"""The type rule of `tile.extract`: a window of a tile in Mat, taken where the cube needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..dtypes.formats import INTEGER_FORMATS
from ..expr import Expr, ScalarType, index
from ..tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, c0_elements
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TileType,
    constant_dim,
    implicit_tile_view,
)
from .checks import (
    arrangement_name,
    check_rank,
    check_shape,
    check_window,
    operand_dims,
    operand_type,
    show_dims,
)
from .rules_memory import (
    MOVES,
    SCALE_DTYPES,
    SCALE_LAYOUT,
    is_row_of_scales,
    scale_hint,
    view_with_valid,
)

if TYPE_CHECKING:
    from ..types import Dims
    from .row import CallSite

_AXES = ("index_row", "index_col")


def steps_into(tile: TileType, target: MemorySpace) -> tuple[int, int]:
    """Return what the row and the column of a window of a tile into `target` must be multiples of.

    Those of :func:`window_steps`; one row of scales, byte after byte, is cut every 32 bytes.
    """
    return (1, FRACTAL_BYTES) if _is_row(tile, target) else window_steps(tile.dtype.bits, target)


def window_steps(bits: int, target: MemorySpace) -> tuple[int, int]:
    """Return what the row and the column of a window into `target` must be multiples of.

    Data are cut between boxes of 16 rows by 32 bytes, scales between boxes of 16 rows by 2 groups, a
    row of biases every 32 bytes.

    Args:
        bits: Bits of an element.
        target: The memory that the window goes to.
    """
    match target:
        case MemorySpace.LeftScale:
            return BOX_ROWS, BOX_GROUPS
        case MemorySpace.RightScale:
            return BOX_GROUPS, BOX_ROWS
        case MemorySpace.Bias:
            return 1, FRACTAL_BYTES * 8 // bits
        case _:
            return FRACTAL_ROWS, c0_elements(bits)


def infer_extract(site: CallSite) -> TileType:
    """Return the tile of a window, in the arrangement that its new memory expects.

    Where an index is a constant, the window is valid as far as the source is; where it is not, the
    whole extent must be, which the run checks.
    """
    tile = operand_type(site, 0, TileType)
    starts, shape = site.args[1:3], operand_dims(site, 3)
    target: MemorySpace = site.kwargs["target_memory"]
    _check_spaces(site, tile, target)
    check_rank(site, shape, 2, "shape", "a tile of rank 2")
    check_rank(site, tile.shape, 2, "the extents of src", "a tile of rank 2")
    check_shape(site, shape, tile.dtype)
    for name, start, step in zip(_AXES, starts, steps_into(tile, target), strict=True):
        if not isinstance(start.type, ScalarType) or start.type.dtype not in INTEGER_FORMATS:
            message = f"{name} must be an integer, not a scalar of another kind"
            raise site.type_error(message)
        value = constant_dim(start)
        if value is not None and (value < 0 or value % step):
            message = f"{name} must be a multiple of {step} from 0 on, not {value}"
            raise site.value_error(message, f"windows into {target.name} begin between boxes")
    check_window(site, starts, shape, tile.shape, what="the window", owner="the tile")
    dtype = _check_arrangement(site, tile, shape, target)
    valid = tuple(
        valid_extent(site, start, size, has, whole)
        for start, size, has, whole in zip(starts, shape, tile.valid_shape, tile.shape, strict=True)
    )
    view = view_with_valid(implicit_tile_view(shape, target), valid)
    return TileType(shape, dtype, None, view, target)


def _check_spaces(site: CallSite, tile: TileType, target: MemorySpace) -> None:
    reachable = MOVES[MemorySpace.Mat]
    if tile.memory_space not in (None, MemorySpace.Mat):
        message = f"src must lie in Mat, not in {tile.memory_space.name}"
        raise site.value_error(message)
    if target not in reachable:
        names = ", ".join(space.name for space in reachable)
        message = f"target_memory must be one of {names}, not {target.name}"
        raise site.value_error(message)


def _check_arrangement(site: CallSite, tile: TileType, shape: Dims, target: MemorySpace) -> DType:
    """Refuse scales for data and data for scales; return the dtype of the window."""
    found = tile.get_effective_tile_view()
    boxed = found.arrangement in SCALE_ARRANGEMENT.values()
    layout = SCALE_LAYOUT.get(target)
    if layout is None:
        if boxed:
            message = (
                f"a tile of scales in {arrangement_name(found)} must go to a scale buffer, "
                f"not to {target.name}"
            )
            raise site.value_error(message)
        return tile.dtype
    is_row = _is_row(tile, target)
    if found.arrangement != SCALE_ARRANGEMENT[layout] and not is_row:
        message = (
            f"the scales for {target.name} must come from a tensor in {layout.name}, "
            f"not in {arrangement_name(found)}"
        )
        raise site.value_error(message, scale_hint(layout))
    if tile.dtype not in SCALE_DTYPES:
        message = f"a tile for {target.name} must hold E8M0 or UInt8, not {tile.dtype.name}"
        raise site.type_error(message)
    if is_row:
        return DType.E8M0
    for size, step in zip(shape, window_steps(tile.dtype.bits, target), strict=True):
        value = constant_dim(size)
        if value is not None and value % step:
            message = f"the window must be made of whole boxes of scales, not {show_dims(shape)}"
            raise site.value_error(message)
    return DType.E8M0


def _is_row(tile: TileType, target: MemorySpace) -> bool:
    """Return whether the tile is a plain row of scales for a gemv, and goes to their buffer."""
    layout = SCALE_LAYOUT.get(target)
    return layout is not None and is_row_of_scales(tile, layout)


def valid_extent(site: CallSite, start: Expr, size: Expr, has: Expr, whole: Expr) -> Expr:
    """Return how much of a window is valid along one axis, of which `has` of `whole` are."""
    first, extent, limit = constant_dim(start), constant_dim(size), constant_dim(has)
    if first is None or extent is None or limit is None or limit == constant_dim(whole):
        return size
    if first >= limit:
        message = f"the window must begin within the {limit} valid elements, not at {first}"
        raise site.value_error(message)
    return index(min(extent, limit - first), size.span)
