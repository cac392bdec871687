"""Tensors of block-scaled dtypes as representations: their planes, their groups, their tiles.

Level 0 holds the elements, level 1 the scales of their blocks, and the outermost level of NVFP4 the
one scale of the tensor. An axis of `n` elements is one mode of extent `n`; the grouped axis is the
mode `(block, groups)`, the element within the block running fastest. An adjacent layout gives every
element the ordinal of its scale, first axis fastest, whatever the strides in memory.

What a dtype cannot say is said here: which axis is grouped, and that a block holds neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .dtypes import DType
from .dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from .errors import IRTypeError, IRValueError
from .layout import Layout, Shape, Stride
from .numerics.block_format import block_format_of
from .representation import RepresentationType, Subtensor, TensorRepresentation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .layout import Tree

_RANK = 2


class Side(Enum):
    """The side of a matmul on which an operand stands, which decides the axis of its groups."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def grouped_axis(self) -> int:
        """The axis of K: the last one of a left operand, the first one of a right operand."""
        return 1 if self is Side.LEFT else 0


@dataclass(frozen=True)
class Plane:
    """What one plane of a tensor holds: a dtype, and its extent along each axis."""

    dtype: DType
    shape: tuple[int, ...]


# --------------------------------------------------------------------------- building


def representation_of(dtype: DType, shape: Sequence[int], axis: int) -> RepresentationType:
    """Return a row-major tensor of a block-scaled dtype whose blocks lie along one axis.

    Args:
        dtype: A block-scaled dtype: MXFP8_E4M3, ..., NVFP4.
        shape: Extents of the elements, each 1 or more.
        axis: The grouped axis, counted from the front; its extent is a multiple of the block.

    Returns:
        Elements and scales each row-major and packed.

    Raises:
        IRTypeError: `dtype` is not block-scaled.
        IRValueError: There is no such axis, or its extent is no multiple of the block. What the
            dtype's own rules raise passes through.
    """
    form = block_format_of(dtype)
    extents = tuple(shape)
    if not 0 <= axis < len(extents):
        message = f"The grouped axis must be in 0..{len(extents) - 1}, not {axis}"
        raise IRValueError(message)
    if extents[axis] % form.block:
        message = (
            f"The grouped axis of {dtype.name} must be a multiple of {form.block}, the elements of "
            f"a block, not {extents[axis]}"
        )
        raise IRValueError(message, hint="fill it up with elements of code 0")
    groups = (*extents[:axis], extents[axis] // form.block, *extents[axis + 1 :])
    steps = _row_major(extents)
    elements: list[int | Tree] = list(extents)
    element_steps: list[int | Tree] = list(steps)
    elements[axis] = (form.block, groups[axis])
    element_steps[axis] = (steps[axis], steps[axis] * form.block)
    placements = [_layout(elements, element_steps), _layout(groups, _row_major(groups))]
    if form.has_tensor_scale:
        placements.append(_layout([1], [1]))
    return RepresentationType(dtype, placements, _edges(placements, axis))


def operand(dtype: DType, shape: Sequence[int], side: Side) -> RepresentationType:
    """Return an operand of a matmul: a row-major matrix, grouped along K.

    Args:
        dtype: A block-scaled dtype.
        shape: `[M, K]` of a left operand, `[K, N]` of a right one.
        side: Which of the two it is.

    Raises:
        IRTypeError: `dtype` is not block-scaled.
        IRValueError: It is no matrix, or K is no multiple of the block.
    """
    if len(shape) != _RANK:
        message = f"An operand of a matmul must have rank {_RANK}, not {len(shape)}"
        raise IRValueError(message)
    made = representation_of(dtype, shape, side.grouped_axis)
    check_operand(made, side)
    return made


def boxed(tensor: RepresentationType) -> RepresentationType:
    """Return a matrix with its scales in the boxes that the machine reads.

    Along both operands a box holds 16 rows (columns of a right operand) by 2 groups, row by row; the
    boxes of one row follow one another. Only the placement of the scales changes.

    Args:
        tensor: A matrix with E8M0 scales, as :func:`representation_of` makes it.

    Raises:
        IRTypeError: Its scales are not one level of E8M0.
        IRValueError: It is no matrix, has not whole boxes, or is no tensor of this file's form.
    """
    axis = _checked_axis(tensor)
    if tensor.storage_dtypes[1:] != (DType.E8M0,):
        message = (
            "Scales must be one level of E8M0 to stand in boxes, which those of "
            f"{tensor.dtype.name} are not"
        )
        raise IRTypeError(message)
    extents = plane_shapes(tensor)[1].shape
    if len(extents) != _RANK:
        message = f"Scales must have rank {_RANK} to stand in boxes, not {len(extents)}"
        raise IRValueError(message)
    rows, groups = extents[1 - axis], extents[axis]
    if rows % BOX_ROWS or groups % BOX_GROUPS:
        message = (
            f"Scales must be whole boxes of {BOX_ROWS} rows by {BOX_GROUPS} groups, not {rows} "
            f"rows by {groups} groups"
        )
        raise IRValueError(message)
    row_mode = (BOX_ROWS, rows // BOX_ROWS), (BOX_GROUPS, BOX_ROWS * groups)
    group_mode = (BOX_GROUPS, groups // BOX_GROUPS), (1, BOX_BYTES)
    modes = (row_mode, group_mode) if axis == 1 else (group_mode, row_mode)
    scales = _layout([shape for shape, _ in modes], [steps for _, steps in modes])
    return RepresentationType(tensor.dtype, (tensor.placements[0], scales), tensor.adjacent_layouts)


# --------------------------------------------------------------------------- asking


def plane_shapes(tensor: RepresentationType) -> tuple[Plane, ...]:
    """Return dtype and extents of each plane: elements, scales, and a tensor scale if there is one."""
    return tuple(
        Plane(dtype, tuple(shape[mode].size for mode in range(len(shape))))
        for dtype, shape in zip(tensor.storage_dtypes, tensor.level_shapes, strict=True)
    )


def grouped_axis(tensor: RepresentationType) -> int:
    """Return the axis along which the elements of a block lie.

    Raises:
        IRTypeError: The dtype is not block-scaled.
        IRValueError: The elements of a block lie along several axes, or along none.
    """
    block_format_of(tensor.dtype)
    edge = tensor.adjacent_layouts[0]
    axes = [mode for mode in range(len(edge.shape)) if any(_is_shared(edge[mode]))]
    if len(axes) != 1:
        places = "axes " + " and ".join(map(str, axes)) if axes else "none"
        message = f"The blocks of {tensor.dtype.name} must lie along one axis, not along {places}"
        raise IRValueError(message)
    return axes[0]


def check_operand(tensor: RepresentationType, side: Side) -> None:
    """Refuse a tensor that is no operand of a matmul, by what its dtype does not say.

    Raises:
        IRTypeError: The dtype is not block-scaled.
        IRValueError: It is no matrix, its groups do not lie along K, a block does not hold
            neighbours along K, or the scales are not ordered as the elements are.
    """
    found = grouped_axis(tensor)
    if len(tensor.shape) != _RANK:
        message = f"An operand of a matmul must have rank {_RANK}, not {len(tensor.shape)}"
        raise IRValueError(message)
    if found != side.grouped_axis:
        message = (
            f"The {side.value} operand of a matmul must be grouped along axis {side.grouped_axis}, "
            f"which is its K, not along axis {found}"
        )
        raise IRValueError(message)
    _checked_axis(tensor)


def _checked_axis(tensor: RepresentationType) -> int:
    """Return the grouped axis, once blocks hold neighbours and scales are in the elements' order."""
    axis = grouped_axis(tensor)
    block = block_format_of(tensor.dtype).block
    edge, scales = tensor.adjacent_layouts[0], tensor.placements[1].shape
    name = tensor.dtype.name
    if len(edge.shape) != len(scales):
        message = (
            f"The scales of {name} must have the {len(edge.shape)} axes of its elements, "
            f"not {len(scales)}"
        )
        raise IRValueError(message)
    weight = 1
    for mode in range(len(edge.shape)):
        leaves = [(e, s) for e, s in _leaves(edge[mode]) if e > 1]
        if mode == axis:
            shared = 0
            size = 1
            while size < block and shared < len(leaves) and leaves[shared][1] == 0:
                size *= leaves[shared][0]
                shared += 1
            if size != block:
                message = (
                    f"A block of {name} must be contiguous along axis {axis}: {block} neighbouring "
                    f"elements, not {size} and others from farther off"
                )
                raise IRValueError(message)
            leaves = leaves[shared:]
        expected = weight
        for extent, step in leaves:
            if step != expected:
                message = (
                    f"The scales of {name} must follow one another as its elements do along axis "
                    f"{mode}, in steps of {expected}, not of {step}"
                )
                raise IRValueError(message)
            expected *= extent
        weight *= scales[mode].size
    return axis


# --------------------------------------------------------------------------- tiles


@dataclass(frozen=True)
class BlockTile:
    """A part of a tensor of a block-scaled dtype, made of whole blocks.

    Attributes:
        type: The representation of the part by itself, its strides those of the whole.
        offsets: For each plane, how far the part begins behind the whole, in slots.
    """

    type: RepresentationType
    offsets: tuple[int, ...]


def tile_view(tensor: RepresentationType, origin: Sequence[int], shape: Sequence[int]) -> BlockTile:
    """Return a window of a tensor in which every element has the scale that it has in the whole.

    Args:
        tensor: A tensor as :func:`representation_of` or :func:`boxed` makes it.
        origin: The first element along each axis.
        shape: The elements along each axis.

    Raises:
        IRTypeError: The dtype is not block-scaled.
        IRValueError: The window is not within the tensor, cuts a block, or cuts a scale box; or the
            tensor is of another form.
    """
    axis = _checked_axis(tensor)
    starts, extents = tuple(origin), tuple(shape)
    rank = len(tensor.shape)
    if len(starts) != rank or len(extents) != rank:
        message = f"A tile must have an origin and a shape of rank {rank}, one number an axis"
        raise IRValueError(message)
    block = block_format_of(tensor.dtype).block
    elements, scales = tensor.placements[:2]
    sizes: list[int | Tree] = []
    scale_sizes: list[int | Tree] = []
    firsts: list[int] = []
    for mode, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        unit = block if mode == axis else 1
        _check_window(mode, start, extent, elements.shape[mode].size)
        _check_whole(mode, start, extent, unit, "a block")
        boxes = _inner(scales.shape.tree[mode])
        _check_whole(mode, start, extent, unit * boxes, "a scale box")
        sizes.append((block, extent // block) if mode == axis else extent)
        part = extent // unit
        is_split = isinstance(scales.shape.tree[mode], tuple)
        scale_sizes.append((boxes, part // boxes) if is_split else part)
        firsts.append(start // unit)
    parts = [
        Layout(Shape(sizes), elements.stride),
        Layout(Shape(scale_sizes), scales.stride),
        *tensor.placements[2:],
    ]
    made = RepresentationType(tensor.dtype, parts, _edges(parts, axis))
    outer = (0,) * len(tensor.placements[2:])
    return BlockTile(made, (elements(starts), scales(tuple(firsts)), *outer))


def tile_of(
    tensor: TensorRepresentation, origin: Sequence[int], shape: Sequence[int]
) -> TensorRepresentation:
    """Return a window of a tensor as a tensor over the same carriers.

    Raises:
        IRTypeError: As :func:`tile_view`.
        IRValueError: As :func:`tile_view`.
    """
    tile = tile_view(tensor.type, origin, shape)
    planes = [
        Subtensor(plane.dtype, plane.carrier, plane.offset + offset, layout)
        for plane, offset, layout in zip(
            tensor.subtensors, tile.offsets, tile.type.placements, strict=True
        )
    ]
    return TensorRepresentation(tensor.logical_dtype, planes, tile.type.adjacent_layouts)


def _check_window(axis: int, start: int, extent: int, limit: int) -> None:
    if start < 0 or extent < 1 or start + extent > limit:
        message = (
            f"A tile must lie within axis {axis}, which has {limit} elements, not take {extent} "
            f"from {start}"
        )
        raise IRValueError(message)


def _check_whole(axis: int, start: int, extent: int, unit: int, what: str) -> None:
    if start % unit or extent % unit:
        message = (
            f"A tile must not cut {what}: along axis {axis} its origin and its extent must be "
            f"multiples of {unit}, not {start} and {extent}"
        )
        raise IRValueError(message)


def _inner(mode: int | Tree) -> int:
    """Return how many scales of an axis stand in one box: the inner extent of a split mode."""
    if isinstance(mode, int):
        return 1
    if len(mode) != 2 or not all(isinstance(part, int) for part in mode):
        message = f"The scales of an axis must be one extent or boxes of one, not {mode}"
        raise IRValueError(message)
    inner = mode[0]
    assert isinstance(inner, int)
    return inner


# --------------------------------------------------------------------------- layouts


def _edges(placements: Sequence[Layout], axis: int) -> list[Layout]:
    """Return the adjacent layouts of levels that are shaped as this file shapes them."""
    elements, scales = placements[0].shape, placements[1].shape
    steps: list[int | Tree] = []
    weight = 1
    for mode in range(len(elements)):
        steps.append((0, weight) if mode == axis else weight)
        weight *= scales[mode].size
    edges = [Layout(elements, Stride(steps))]
    if len(placements) > 2:
        edges.append(Layout(scales, Stride(_zeros(scales.tree))))
    return edges


def _zeros(tree: Tree) -> Tree:
    return tuple(0 if isinstance(item, int) else _zeros(item) for item in tree)


def _layout(shape: Sequence[int | Tree], steps: Sequence[int | Tree]) -> Layout:
    return Layout(Shape(list(shape)), Stride(list(steps)))


def _row_major(extents: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))


def _leaves(layout: Layout) -> list[tuple[int, int]]:
    return list(zip(layout.shape.leaves, layout.stride.leaves, strict=True))


def _is_shared(layout: Layout) -> list[bool]:
    """Return which leaves of an adjacent layout share a target: more than one step of length 0."""
    return [extent > 1 and step == 0 for extent, step in _leaves(layout)]
