"""Type rules of the ops on tensors in global memory: creating one, and looking at one anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..types import TensorLayout, TensorType, TensorView, constant_dims
from .checks import check_rank, check_shape, operand_dims, operand_type, show_dims
from .rules_memory import is_packed

if TYPE_CHECKING:
    from ..expr import Type
    from ..types import Dims
    from .row import CallSite


def infer_create(site: CallSite) -> TensorType:
    """Return the type of a fresh tensor."""
    shape = operand_dims(site, 0)
    check_shape(site, shape, site.kwargs["dtype"])
    return TensorType(shape, site.kwargs["dtype"], None, site.kwargs.get("layout"))


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
