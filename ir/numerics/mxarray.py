"""Block-scaled arrays: element codes, the scales of their groups, and what belongs to them."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IRTypeError, IRValueError
from .arguments import as_codes
from .block_format import block_format_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import BlockScaledDType


@dataclass(frozen=True, slots=True, eq=False)
class MXArray:
    """An array of a block-scaled dtype, its codes unpacked and its scales in logical order.

    Attributes:
        elements: uint8 codes, one element an item, in the array's own shape.
        scales: uint8 codes of the innermost scales, the shape of `elements` with the grouped axis
            replaced by its number of groups, the last of which may be short. Plain uint8 numbers
            are codes, never linear values.
        dtype: The block-scaled dtype.
        axis: The grouped axis; kept counted from the front.
        tensor_scale: The float32 that scales the whole array, for NVFP4 alone.

    Raises:
        IRTypeError: `dtype` is not block-scaled, or codes, scales or the tensor scale are of the
            wrong type.
        IRValueError: Shapes that do not fit together, an axis out of range, a code too wide for
            its format, or a tensor scale missing or out of place.
    """

    elements: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.uint8]
    dtype: BlockScaledDType
    axis: int
    tensor_scale: np.float32 | None = None

    def __post_init__(self) -> None:
        form = block_format_of(self.dtype)
        elements = as_codes(self.elements, self.dtype.element, what="Elements")
        scales = as_codes(self.scales, form.scale, what="Scales")
        axis = checked_axis(self.axis, elements.ndim)
        wanted = scale_shape(elements.shape, axis, form.block)
        if scales.shape != wanted:
            message = (
                f"Scales of {self.dtype.name} elements {list(elements.shape)} grouped along axis "
                f"{axis} must be {list(wanted)}, not {list(scales.shape)}"
            )
            raise IRValueError(message)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "scales", scales)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "tensor_scale", self._checked_tensor_scale(form.has_tensor_scale))

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return self.elements.shape

    def _checked_tensor_scale(self, is_wanted: bool) -> np.float32 | None:
        given: Any = self.tensor_scale
        if (given is not None) != is_wanted:
            what = "a float32 tensor scale" if is_wanted else "no tensor scale"
            message = f"An array of {self.dtype.name} must have {what}, not {given!r}"
            raise IRValueError(message)
        if given is None:
            return None
        value = np.asarray(given)
        if value.size != 1 or value.dtype.kind not in "iuf":
            message = f"The tensor scale must be one real number, not {given!r}"
            raise IRTypeError(message)
        with np.errstate(over="ignore"):
            scale = np.float32(value.reshape(())[()])
        if not np.isfinite(scale):
            message = f"The tensor scale must be finite, not {given!r}"
            raise IRValueError(message)
        return scale


def checked_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front.

    Raises:
        IRTypeError: It is no integer.
        IRValueError: There is no such axis.
    """
    try:
        axis = index(axis)
    except TypeError as error:
        message = f"The axis must be an integer, not {axis!r}"
        raise IRTypeError(message) from error
    if not -rank <= axis < rank:
        message = (
            f"The axis must be in {-rank}..{rank - 1} for an array of rank {rank}, not {axis}"
            if rank
            else "A block-scaled array must have at least one axis to group, not rank 0"
        )
        raise IRValueError(message)
    return axis % rank


def scale_shape(shape: tuple[int, ...], axis: int, block: int) -> tuple[int, ...]:
    """Return the shape of the innermost scales: `shape` with groups in place of `axis`."""
    return (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
