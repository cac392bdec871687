"""What the slices of tensors and of tiles have in common: how much is valid, and which axes stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..errors import IRValueError
from ..types import PadValue, constant_dim
from .checks import (
    check_rank,
    check_valid_shape,
    check_window,
    clamped_extents,
    operand_dims,
    show_dims,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types import Dims
    from .row import CallSite

_VALID = 3
"""The position of the operand valid_shape."""


def read_axes(given: Any) -> tuple[int, ...]:
    """Return the axes that are dropped as ascending numbers, from a list or a tuple.

    Raises:
        IRValueError: For anything else.
    """
    axes = cast("Sequence[object]", given) if isinstance(given, list | tuple) else (None,)
    if not all(isinstance(axis, int) and not isinstance(axis, bool) for axis in axes):
        message = f"drop_dims must be a list of axes, such as [0], not {given!r}"
        raise IRValueError(message)
    return tuple(sorted(cast("Sequence[int]", axes)))


def valid_part(
    site: CallSite, offset: Dims, shape: Dims, source: Dims, *, owner: str
) -> Dims | None:
    """Return how much of a window is valid, where the call says that it is not all of it.

    Args:
        site: The call.
        offset: Where the window begins.
        shape: Its extents.
        source: What is valid of the array that it is cut from.
        owner: What that array is called in errors.

    Returns:
        The extents, or None when valid_shape and clamp are not given.
    """
    clamps = bool(site.row.attribute(site.kwargs, "clamp"))
    if len(site.args) <= _VALID:
        return clamped_extents(offset, shape, source) if clamps else None
    valid = operand_dims(site, _VALID)
    check_rank(site, valid, len(shape), "valid_shape", owner)
    check_valid_shape(site, valid, shape)
    if clamps:
        return clamped_extents(offset, valid, source)
    check_window(site, offset, valid, source, what="what is valid", owner=owner)
    return valid


def pads(site: CallSite) -> bool:
    """Return whether a slice fills up what is not valid of its window."""
    return site.row.attribute(site.kwargs, "pad_value") is not PadValue.null


def kept(site: CallSite, dims: Dims) -> Dims:
    """Return the extents of a window without the axes that are dropped."""
    dropped: tuple[int, ...] = site.row.attribute(site.kwargs, "drop_dims")
    return tuple(dim for axis, dim in enumerate(dims) if axis not in dropped)


def check_dropped(site: CallSite, shape: Dims) -> None:
    """Refuse to drop axes that a window has not, all that it has, or one of more than one element."""
    dropped: tuple[int, ...] = site.row.attribute(site.kwargs, "drop_dims")
    for axis in dropped:
        if not 0 <= axis < len(shape) or dropped.count(axis) > 1:
            message = (
                f"drop_dims must name axes in 0..{len(shape) - 1}, each once, not {list(dropped)}"
            )
            raise site.value_error(message)
    if len(dropped) == len(shape):
        message = "drop_dims must leave an axis, not drop them all"
        raise site.value_error(message, "pl.read reads a single element")
    for axis in dropped:
        if constant_dim(shape[axis]) != 1:
            message = (
                f"drop_dims must name axes of one element, which axis {axis} of {show_dims(shape)} "
                "is not"
            )
            raise site.value_error(message)
