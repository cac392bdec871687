"""Type rules of quantising to MX: on tiles, and on whole tensors.

Both take a matrix whose last axis is K. With `group_axis=1` the result is a left operand: elements
`[M, K]` and scales `[M, K/32]`. With `group_axis=0` it is a right operand, so the elements leave
transposed: from `[N, K]` to `[K, N]`, with scales `[K/32, N]`.

N is a multiple of 32, and of 64 from FP16 to FP4. From BF16 to FP4 the interpreter takes N = 32 too,
but a tile of such a result has rows of 16 bytes, half of what UB counts in: to be compiled, N of FP4
is a multiple of 64 whatever it is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import BFloat16, DType, Float16
from ..dtypes.boxes import GROUP
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TileType,
    TileView,
    TupleType,
    constant_dims,
)
from .checks import operand_type, show_dims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..types import Dims
    from .row import CallSite

_RANK = 2
#: The layout of a side's scales, by the axis along which the result is grouped.
LAYOUT_OF_AXIS = {1: TensorLayout.MX_A_ZZ, 0: TensorLayout.MX_B_NN}
_AXIS_OF_LAYOUT = {layout: axis for axis, layout in LAYOUT_OF_AXIS.items()}
#: What can be quantised, by the dtype of the elements that come out.
SOURCES: Mapping[DType, tuple[DType, ...]] = {
    DType.E4M3: (DType.Float32, BFloat16, Float16),
    DType.E2M1: (BFloat16, Float16),
}
#: The device's two ways to choose a scale, by the names that `numerics.quantize` has for them.
SCALE_RULES = ("floor", "nv")
_HINT = (
    "1 makes a left operand, 0 a right one, transposed; layout=pl.MX_A_ZZ and pl.MX_B_NN are the "
    "older names of the two"
)
_DTYPE_HINT = "the device's quantiser makes no other elements; scalebox.numerics.quantize does"
_ROWS, _COLUMNS, _DEPTH = 16, 32, 64
_COLUMNS_FP16_TO_FP4 = 64


def default_group_axis(operands: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the group axis that the older spelling `layout=` stands for."""
    del operands
    axis = _AXIS_OF_LAYOUT.get(attributes["layout"]) if _is_layout(attributes["layout"]) else None
    if axis is None or attributes["group_axis"] is not None:
        return {}
    return {"group_axis": axis, "layout": None}


def _is_layout(given: object) -> bool:
    return isinstance(given, TensorLayout)


def infer_tile(site: CallSite) -> TupleType:
    """Return the tiles of a quantised tile: elements, and scales in the boxes of their side."""
    source = operand_type(site, 0, TileType)
    if source.memory_space not in (None, MemorySpace.Vec):
        message = f"src must lie in Vec, not in {source.memory_space.name}"
        raise site.value_error(message, "pl.load it to pl.Mem.Vec")
    elements, scales, layout = _shapes(site, source)
    blayout, slayout, fractal = SCALE_ARRANGEMENT[layout]
    view = TileView(blayout=blayout, slayout=slayout, fractal=fractal)
    dtype = site.row.attribute(site.kwargs, "dtype")
    return TupleType(
        (
            TileType(elements, dtype, None, None, MemorySpace.Vec),
            TileType(scales, DType.E8M0, None, view, MemorySpace.Vec),
        )
    )


def infer_tensor(site: CallSite) -> TupleType:
    """Return the fresh tensors of a quantised tensor: elements, and scales in their MX layout."""
    source = operand_type(site, 0, TensorType)
    if source.layout.is_mx:
        message = f"src must hold numbers, not scales in {source.layout.name}"
        raise site.value_error(message)
    elements, scales, layout = _shapes(site, source)
    dtype = site.row.attribute(site.kwargs, "dtype")
    return TupleType(
        (TensorType(elements, dtype), TensorType(scales, DType.E8M0, None, layout)),
    )


def _shapes(
    site: CallSite, source: TileType | TensorType
) -> tuple[tuple[int, int], tuple[int, int], TensorLayout]:
    """Return the shapes of elements and scales and the layout of the scales."""
    axis = group_axis(site)
    layout = LAYOUT_OF_AXIS[axis]
    if axis == 1:
        rows, depth = check_quantised(site, source)
        return (rows, depth), (rows, depth // GROUP), layout
    dtype = site.row.attribute(site.kwargs, "dtype")
    narrow = source.dtype is Float16 and dtype is DType.E2M1
    unit = _COLUMNS_FP16_TO_FP4 if narrow else _COLUMNS
    rows, depth = check_quantised(site, source, outer="N", unit=unit)
    return (depth, rows), (depth // GROUP, rows), layout


def check_quantised(
    site: CallSite, source: TileType | TensorType, *, outer: str = "M", unit: int = _ROWS
) -> tuple[int, int]:
    """Return the extents of what is quantised, once the device is known to do it.

    Args:
        site: A call with the attributes `dtype` and `rule`.
        source: What is quantised along its last axis, K.
        outer: The name of its first axis.
        unit: What that axis must be a multiple of.

    Raises:
        IRTypeError: For a dtype of the source or of the elements that the device has not.
        IRValueError: For other extents, or a part that is valid.
    """
    rows, depth = _extents(site, source)
    _check_dtypes(site, source.dtype)
    _check_multiple(site, outer, rows, unit)
    _check_multiple(site, "K", depth, _DEPTH)
    return rows, depth


def group_axis(site: CallSite) -> int:
    """Return the axis along which what a quantisation makes is grouped, however it is spelt."""
    axis, layout = (site.row.attribute(site.kwargs, name) for name in ("group_axis", "layout"))
    if layout is not None and layout not in _AXIS_OF_LAYOUT:
        message = f"layout must be MX_A_ZZ or MX_B_NN, not {layout.name}"
        raise site.value_error(message, _HINT)
    if layout is not None and axis is not None:
        message = "must be given group_axis or layout, not both"
        raise site.value_error(message, _HINT)
    if layout is not None:
        return _AXIS_OF_LAYOUT[layout]
    if axis is None:
        message = "must be given its group_axis"
        raise site.value_error(message, _HINT)
    if isinstance(axis, bool) or axis not in LAYOUT_OF_AXIS:
        message = f"group_axis must be 0 or 1, not {axis}"
        raise site.value_error(message, _HINT)
    return axis


def _extents(site: CallSite, source: TileType | TensorType) -> tuple[int, int]:
    if len(source.shape) != _RANK:
        message = f"src must have rank {_RANK}, not {len(source.shape)}"
        raise site.value_error(message)
    extents = constant_dims(source.shape)
    if extents is None:
        message = f"src must have constant dimensions, not {show_dims(source.shape)}"
        raise site.value_error(message, "quantise tiles of constant extents, one after another")
    valid: Dims = source.valid_shape
    if valid and constant_dims(valid) != extents:
        message = f"src must be valid as a whole, not only {show_dims(valid)} of {list(extents)}"
        raise site.value_error(message, "pl.fillpad fills the rest of a tile up with zeros")
    rows, depth = extents
    return rows, depth


def _check_dtypes(site: CallSite, source: DType) -> None:
    """Refuse a dtype of the elements, of the source, or a rule that the device has not."""
    dtype = site.row.attribute(site.kwargs, "dtype")
    if dtype not in SOURCES:
        names = " or ".join(d.name for d in SOURCES)
        message = f"dtype must be {names}, not {dtype.name}"
        raise site.type_error(message, _DTYPE_HINT)
    if source not in SOURCES[dtype]:
        names = ", ".join(d.name for d in SOURCES[dtype])
        message = f"src must be one of {names} to become {dtype.name}, not {source.name}"
        raise site.type_error(message, "pl.cast converts it to one of them before")
    rule = site.row.attribute(site.kwargs, "rule")
    if rule not in SCALE_RULES:
        names = " or ".join(map(repr, SCALE_RULES))
        message = f"rule must be {names}, the device's two, not {rule!r}"
        raise site.value_error(message)


def _check_multiple(site: CallSite, name: str, extent: int, unit: int) -> None:
    if extent % unit:
        message = f"{name} must be a multiple of {unit}, not {extent}"
        raise site.value_error(message, "fill up with zeros")
