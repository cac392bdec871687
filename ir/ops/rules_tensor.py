"""Type rules of the ops on tensors in global memory: making one, viewing it, multiplying two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import BlockScaledDType, DType
from ..errors import IRTypeError, IRValueError
from ..mx_types import Side
from ..mx_types import operand as mx_operand
from ..numerics.array_matmul import check_formats
from ..numerics.block_format import block_format_of
from ..types import TensorLayout, TensorType, TensorView, constant_dim, constant_dims
from .checks import (
    check_offsets,
    check_rank,
    check_shape,
    check_window,
    operand_dims,
    operand_type,
    same_dim,
    same_dims,
    show_dims,
)
from .rules_memory import ACC_STORE_DTYPES, is_packed
from .rules_slice import check_dropped, kept, pads, valid_part

if TYPE_CHECKING:
    from ..expr import Type
    from ..types import Dims
    from .row import CallSite


def infer_create(site: CallSite) -> TensorType:
    """Return the type of a fresh tensor."""
    shape = operand_dims(site, 0)
    dtype = site.kwargs["dtype"]
    if dtype.is_compound():
        message = f"dtype must be simple, not {dtype.name}"
        raise site.type_error(message, "a tensor of a compound dtype comes in by a parameter")
    check_shape(site, shape, dtype)
    return TensorType(shape, dtype, None, site.kwargs.get("layout"))


def infer_blocked_create(site: CallSite, stored: Type) -> TensorType:
    """Return the type of a fresh tensor of scale boxes; its shape operand is blocked too."""
    del stored
    return infer_create(site)


def infer_view(site: CallSite) -> TensorType:
    """Return the type of another look at the same bytes."""
    source = operand_type(site, 0, TensorType)
    layout = site.kwargs.get("layout")
    has_shape = len(site.args) > 1
    if not has_shape and layout is None:
        message = "must be given a shape or a layout"
        raise site.value_error(message)
    target = layout or source.layout
    if source.layout.is_mx and has_shape and layout is None:
        target = TensorLayout.ND
    _check_pair(site, source, target, has_shape=has_shape)
    _check_source(site, source)
    shape = operand_dims(site, 1) if has_shape else _layout_only_shape(source, target)
    check_shape(site, shape, source.dtype)
    _check_count(site, source.shape, shape)
    valid = operand_dims(site, 2) if len(site.args) > 2 else ()
    if valid:
        check_rank(site, valid, len(shape), "valid_shape", "the view")
    return TensorType(shape, source.dtype, source.memref, TensorView(None, target, valid))


def _check_pair(
    site: CallSite, source: TensorType, target: TensorLayout, *, has_shape: bool
) -> None:
    pair = (source.layout, target)
    if TensorLayout.NZ in pair:
        message = "cannot view a tensor in NZ, nor as NZ"
        raise site.value_error(message)
    if not any(layout.is_mx for layout in pair):
        return
    names = f"{source.layout.name} as {target.name}"
    if not has_shape:
        message = f"a view of {names} must be given its shape"
        raise site.value_error(message)
    if TensorLayout.ND not in pair:
        message = f"an MX layout must be viewed from or as ND, not {names}"
        raise site.value_error(message)
    if source.dtype is not DType.E8M0:
        message = f"a view of {names} must hold E8M0, not {source.dtype.name}"
        raise site.type_error(message)


def _check_source(site: CallSite, source: TensorType) -> None:
    if source.valid_shape:
        message = (
            f"the source must be valid as a whole, not only {show_dims(source.valid_shape)} "
            f"of {show_dims(source.shape)}"
        )
        raise site.value_error(message)
    if source.stride and source.layout is not TensorLayout.DN and not is_packed(source):
        message = f"the source must be packed, not of stride {show_dims(source.stride)}"
        raise site.value_error(message)


def _layout_only_shape(source: TensorType, target: TensorLayout) -> Dims:
    if source.layout is target or len(source.shape) < 2:
        return source.shape
    return (*source.shape[:-2], source.shape[-1], source.shape[-2])


def _check_count(site: CallSite, old: Dims, new: Dims) -> None:
    had, has = constant_dims(old), constant_dims(new)
    if had is None or has is None:
        return
    before, after = _product(had), _product(has)
    if before != after:
        message = (
            f"the view must have the {before} elements of {show_dims(old)}, "
            f"not the {after} of {show_dims(new)}"
        )
        raise site.value_error(message)


def _product(values: tuple[int, ...]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def infer_blocked_view(site: CallSite, stored: Type) -> TensorType:
    """Return the type of a view whose source or result is a blocked MX tensor."""
    assert isinstance(stored, TensorType), stored
    source = operand_type(site, 0, TensorType)
    shape = operand_dims(site, 1)
    _check_count(site, source.shape, shape)
    return TensorType(shape, source.dtype, source.memref, TensorView(None, stored.layout))


def infer_slice(site: CallSite) -> TensorType:
    """Return the type of a window of a tensor, row-major and packed."""
    tensor = operand_type(site, 0, TensorType)
    if tensor.layout.is_mx:
        message = f"cannot cut a tensor in {tensor.layout.name}"
        raise site.value_error(message, "pl.load takes a window of its boxes")
    shape, offset = _window(site, tensor)
    extents = tensor.valid_shape or tensor.shape
    valid = valid_part(site, offset, shape, extents, owner="the tensor")
    if valid is None:
        check_window(site, offset, shape, extents, what="the window")
    check_dropped(site, shape)
    if valid is not None and tensor.dtype.is_compound():
        message = f"a window of {tensor.dtype.name} must be valid as a whole"
        raise site.value_error(message)
    view = None
    if valid is not None and not pads(site):
        view = TensorView(None, TensorLayout.ND, kept(site, valid))
    return TensorType(kept(site, shape), tensor.dtype, None, view)


def infer_slice_scales(site: CallSite) -> TensorType:
    """Return the type of a window of an MX scale tensor, in the same layout."""
    tensor = operand_type(site, 0, TensorType)
    if not tensor.layout.is_mx:
        message = f"cuts tensors in MX_A_ZZ or MX_B_NN, not in {tensor.layout.name}"
        raise site.value_error(message)
    shape, offset = _window(site, tensor)
    check_window(site, offset, shape, tensor.valid_shape or tensor.shape, what="the window")
    return TensorType(shape, tensor.dtype, None, tensor.layout)


def _window(site: CallSite, tensor: TensorType) -> tuple[Dims, Dims]:
    """Return the extents of a window and where it begins, once they fit the tensor's rank and dtype."""
    shape, offset = operand_dims(site, 1), operand_dims(site, 2)
    for dims, what in ((shape, "shape"), (offset, "offset")):
        check_rank(site, dims, len(tensor.shape), what, "the tensor")
    if constant_dims(shape) is None:
        message = f"shape must be constant, not {show_dims(shape)}"
        raise site.value_error(message)
    check_shape(site, shape, tensor.dtype)
    check_offsets(site, offset, tensor.dtype)
    return shape, offset


def infer_assemble(site: CallSite) -> TensorType:
    """Return the target of an assembly: the same tensor with a new value."""
    target, source = (operand_type(site, position, TensorType) for position in (0, 1))
    offset = operand_dims(site, 2)
    for what, tensor in (("target", target), ("source", source)):
        if tensor.layout.is_mx:
            message = f"{what} must not be in {tensor.layout.name}, whose boxes lie apart"
            raise site.value_error(message)
    allowed = (source.dtype, *ACC_STORE_DTYPES.get(source.dtype, ()))
    if target.dtype not in allowed:
        names = ", ".join(dict.fromkeys(dtype.name for dtype in allowed))
        message = (
            f"a tensor of {source.dtype.name} must go into one of {names}, "
            f"not of {target.dtype.name}"
        )
        raise site.type_error(message, "pl.cast converts it first")
    check_rank(site, source.shape, len(target.shape), "source", "the target")
    check_rank(site, offset, len(target.shape), "offset", "the target")
    check_offsets(site, offset, target.dtype)
    check_window(site, offset, source.shape, target.shape, what="the source")
    return target


# --------------------------------------------------------------------------- matmul

_MATRIX_RANK = 2
#: What the row has for the language's sake and this rule refuses, and what to do instead.
_REFUSED_FLAGS = {
    "a_trans": "the left operand is [M, K] and grouped along its last axis",
    "b_trans": "the right operand is [K, N] and grouped along its first axis",
    "c_matrix_nz": "the result is row-major",
}


def infer_matmul(site: CallSite) -> TensorType:
    """Return the FP32 product of two matrices of block-scaled dtypes."""
    out_dtype = site.row.attribute(site.kwargs, "out_dtype")
    if out_dtype not in (None, DType.Float32):
        message = f"out_dtype must be Float32, not {out_dtype.name}"
        raise site.type_error(message)
    return _product_type(site, first=0)


def infer_matmul_acc(site: CallSite) -> TensorType:
    """Return the FP32 sum of acc and the product of two matrices of block-scaled dtypes."""
    product = _product_type(site, first=1)
    check_addend(site, 0, product.shape)
    return product


def check_addend(site: CallSite, position: int, wanted: Dims) -> None:
    """Refuse an operand that is not an FP32 tensor of the shape `wanted`, valid as a whole."""
    name = site.row.operands[position].name
    addend = operand_type(site, position, TensorType)
    if addend.dtype is not DType.Float32:
        message = f"{name} must hold Float32, not {addend.dtype.name}"
        raise site.type_error(message)
    if not same_dims(addend.shape, wanted):
        message = f"{name} must be {show_dims(wanted)}, not {show_dims(addend.shape)}"
        raise site.value_error(message)
    check_whole(site, name, addend)


def check_whole(site: CallSite, name: str, tensor: TensorType) -> None:
    """Refuse a tensor that is valid only in part, and MX scales that are not packed."""
    if tensor.valid_shape:
        message = (
            f"{name} must be valid as a whole, not only {show_dims(tensor.valid_shape)} of "
            f"{show_dims(tensor.shape)}"
        )
        raise site.value_error(message, "pl.load takes a part of a tensor, for the ops on tiles")
    if tensor.layout.is_mx and tensor.stride and not is_packed(tensor):
        message = f"{name} must be packed, not of stride {show_dims(tensor.stride)}"
        raise site.value_error(message)


def _product_type(site: CallSite, *, first: int) -> TensorType:
    operands = [operand_type(site, position, TensorType) for position in (first, first + 1)]
    lhs, rhs = operands
    for name, reason in _REFUSED_FLAGS.items():
        if name in site.row.by_name and site.row.attribute(site.kwargs, name):
            message = f"{name} must be False: {reason}"
            raise site.value_error(message)
    for what, tensor in zip(("lhs", "rhs"), operands, strict=True):
        _check_matrix(site, what, tensor)
    try:
        check_formats(lhs.dtype, rhs.dtype)
    except IRTypeError as error:
        raise site.type_error(error.message, error.hint) from error
    if same_dim(lhs.shape[1], rhs.shape[0]) is False:
        message = (
            "K must be the same on both sides, but lhs has "
            f"{constant_dim(lhs.shape[1])} and rhs has {constant_dim(rhs.shape[0])}"
        )
        raise site.value_error(message)
    block, depth = block_format_of(lhs.dtype).block, constant_dim(lhs.shape[1])
    if depth is not None and depth % block:
        message = (
            f"K must be a multiple of {block}, the elements of a block of {lhs.dtype.name}, "
            f"not {depth}"
        )
        raise site.value_error(message, "fill K up with elements of code 0")
    for what, side, tensor in zip(("lhs", "rhs"), Side, operands, strict=True):
        shape = constant_dims(tensor.shape)
        if shape is not None:
            _check_planes(site, what, side, tensor.dtype, shape)
    return TensorType((lhs.shape[0], rhs.shape[1]), DType.Float32)


def _check_matrix(site: CallSite, what: str, tensor: TensorType) -> None:
    if not isinstance(tensor.dtype, BlockScaledDType):
        message = (
            f"{what} must be of a block-scaled dtype such as MXFP8_E4M3, not of {tensor.dtype.name}"
        )
        hint = "or pl.load elements and their scales, and multiply the tiles by pl.matmul_mx"
        raise site.type_error(message, hint)
    if len(tensor.shape) != _MATRIX_RANK:
        message = f"{what} must have rank {_MATRIX_RANK}, not {len(tensor.shape)}"
        raise site.value_error(message)
    fault = placement_fault(tensor)
    if fault is not None:
        message = f"{what} {fault}"
        raise site.value_error(message)


def _check_planes(
    site: CallSite, what: str, side: Side, dtype: DType, shape: tuple[int, ...]
) -> None:
    """Build the operand's representation, on which the dtype's own rules run."""
    try:
        mx_operand(dtype, shape, side)
    except IRValueError as error:
        message = f"{what} must have planes as its dtype has them: {error.message}"
        raise site.value_error(message, error.hint) from error


def placement_fault(tensor: TensorType) -> str | None:
    """Return why a tensor of a block-scaled dtype cannot lie as its view says, or None if it can.

    The planes are placed by the dtype system: elements row-major and packed, so that a block is
    contiguous along K, and the scales beside them.
    """
    if tensor.layout is not TensorLayout.ND:
        found = f"in {tensor.layout.name}"
    elif tensor.valid_shape:
        found = f"valid in {show_dims(tensor.valid_shape)} only"
    elif tensor.stride and not is_packed(tensor):
        found = f"of stride {show_dims(tensor.stride)}"
    else:
        return None
    return (
        f"must be row-major, packed and valid as a whole, as blocks of {tensor.dtype.name} are "
        f"contiguous along K, not {found}"
    )
