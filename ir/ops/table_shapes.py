"""Rows of the ops that make tiles, turn, cut and join them, and say how much of them is valid."""

from __future__ import annotations

from ..dtypes import DType
from ..types import MemorySpace, PadValue
from . import meaning_shapes, rules_shapes, rules_slice, rules_vector
from .row import Attribute, Operand, OperandKind, OpRow
from .table_vector import both_rows, tile, tile_row

_TILE, _TENSOR = OperandKind.TILE, OperandKind.TENSOR
_SCALAR, _TUPLE = OperandKind.SCALAR, OperandKind.TUPLE
_DTYPE = Attribute("dtype", DType, required=True)
_FILLED_WITH = Attribute("pad_value", PadValue, default=PadValue.zero, refused=(PadValue.null,))

SLICE_ATTRIBUTES = (
    Attribute("drop_dims", tuple, default=(), read=rules_slice.read_axes),
    Attribute("pad_value", PadValue, default=PadValue.null),
    Attribute("clamp", bool, default=False),
)
"""What both slices may say beyond their operands."""

SHAPE_ROWS: tuple[OpRow, ...] = (
    OpRow(
        name="tile.create",
        operands=(Operand("shape", _TUPLE),),
        attributes=(_DTYPE, Attribute("target_memory", MemorySpace, default=MemorySpace.Vec)),
        infer=rules_shapes.infer_create_tile,
        meaning=meaning_shapes.create,
        doc="Makes a tile that is to be written; kernels call it pl.create_tile.",
    ),
    tile_row(
        "full",
        (Operand("shape", _TUPLE), Operand("value", _SCALAR)),
        rules_shapes.infer_full,
        meaning_shapes.full,
        "Makes a tile whose elements all have one value.",
        attributes=(_DTYPE,),
        order=("shape", "dtype", "value"),
        complete=rules_shapes.complete_full,
    ),
    *both_rows(
        "transpose",
        (tile("x"),),
        rules_shapes.infer_transpose,
        meaning_shapes.transpose,
        "Exchanges two axes; negative ones count from the last.",
        attributes=(
            Attribute("axis1", int, required=True),
            Attribute("axis2", int, required=True),
        ),
    ),
    *both_rows(
        "reshape",
        (tile("x"), Operand("shape", _TUPLE)),
        rules_shapes.infer_reshape,
        meaning_shapes.reshape,
        "Gives the same elements, row after row, another shape.",
    ),
    *both_rows(
        "concat",
        (tile("a"), tile("b")),
        rules_shapes.infer_concat,
        meaning_shapes.concat,
        "Puts b to the right of a, along the last axis.",
    ),
    tile_row(
        "slice",
        (
            tile("tile"),
            Operand("shape", _TUPLE),
            Operand("offset", _TUPLE),
            Operand("valid_shape", _TUPLE, optional=True),
        ),
        rules_shapes.infer_slice,
        meaning_shapes.cut,
        "Takes a window of a tile as it is now.",
        attributes=SLICE_ATTRIBUTES,
    ),
    tile_row(
        "assemble",
        (tile("target"), tile("source"), Operand("offset", _TUPLE)),
        rules_shapes.infer_assemble,
        meaning_shapes.assemble,
        "Replaces a window of a tile by what is valid of another and gives the tile's new value.",
        reuses=0,
    ),
    OpRow(
        name="tile.set_validshape",
        operands=(Operand("x", _TILE), Operand("rows", _SCALAR), Operand("cols", _SCALAR)),
        attributes=(),
        infer=rules_shapes.infer_set_valid,
        meaning=meaning_shapes.set_valid,
        doc="Says that only the first rows and columns of a tile are valid.",
        reuses=0,
        renames=True,
    ),
    tile_row(
        "fillpad",
        (tile("x"),),
        rules_shapes.infer_fillpad,
        meaning_shapes.fillpad,
        "Fills a tile up beyond its valid shape; max and min of floats are infinities.",
        attributes=(_FILLED_WITH,),
        mat_form="tile.fillpad_mat",
    ),
    OpRow(
        name="tile.fillpad_mat",
        operands=(Operand("x", _TILE, (MemorySpace.Mat,)),),
        attributes=(_FILLED_WITH,),
        infer=rules_shapes.infer_fillpad_mat,
        meaning=meaning_shapes.fillpad,
        doc="Fills a tile in Mat up with zeros beyond its valid shape, where it lies; kernels call it "
        "pl.fillpad.",
        output_memory=MemorySpace.Mat,
        reuses=0,
    ),
    OpRow(
        name="tensor.full",
        operands=(Operand("shape", _TUPLE), Operand("value", _SCALAR)),
        attributes=(_DTYPE,),
        infer=rules_shapes.infer_full,
        meaning=meaning_shapes.full_tensor,
        doc="Makes a tensor whose elements all have one value.",
        output_memory=MemorySpace.DDR,
        order=("shape", "dtype", "value"),
        complete=rules_shapes.complete_full,
        vector=True,
    ),
    OpRow(
        name="tensor.fillpad",
        operands=(Operand("x", _TENSOR),),
        attributes=(_FILLED_WITH,),
        infer=rules_shapes.infer_fillpad_tensor,
        meaning=meaning_shapes.fillpad_tensor,
        doc="Fills a tensor up beyond its valid shape; max and min of floats are infinities.",
        output_memory=MemorySpace.DDR,
        vector=True,
    ),
    OpRow(
        name="tile.read",
        operands=(tile("x"), Operand("idx", _TUPLE)),
        attributes=(),
        infer=rules_shapes.infer_read,
        meaning=meaning_shapes.read_tile,
        doc="Reads one element of a tile as a scalar.",
        vector=True,
    ),
    tile_row(
        "write",
        (tile("x"), Operand("idx", _TUPLE), Operand("value", _SCALAR)),
        rules_shapes.infer_write,
        meaning_shapes.write_tile,
        "Gives one element of a tile another value and gives the tile's new value.",
        complete=rules_vector.complete_scalar,
        reuses=0,
    ),
    OpRow(
        name="tensor.read",
        operands=(Operand("x", _TENSOR), Operand("idx", _TUPLE)),
        attributes=(),
        infer=rules_shapes.infer_read,
        meaning=meaning_shapes.read_tensor,
        doc="Reads one element of a tensor as a scalar.",
    ),
    OpRow(
        name="tensor.write",
        operands=(Operand("x", _TENSOR), Operand("idx", _TUPLE), Operand("value", _SCALAR)),
        attributes=(),
        infer=rules_shapes.infer_write,
        complete=rules_vector.complete_scalar,
        meaning=meaning_shapes.write_tensor,
        doc="Gives one element of a tensor another value and gives the tensor's new value.",
        output_memory=MemorySpace.DDR,
        reuses=0,
        has_effect=True,
    ),
    OpRow(
        name="tensor.dim",
        operands=(Operand("x", _TENSOR),),
        attributes=(Attribute("axis", int, required=True),),
        infer=rules_shapes.infer_dim,
        meaning=meaning_shapes.extent,
        doc="How many elements an axis of a tensor has.",
    ),
)
"""The rows."""
