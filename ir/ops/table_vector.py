"""Rows of the vector core's ops: each on tiles, and most on whole tensors as well."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..cast_mode import CastMode
from ..dtypes import DType
from ..numerics.functions import Binary, Comparison, Unary
from ..numerics.reductions import Reduction
from ..types import MemorySpace
from . import meaning_vector, rules_cast, rules_reduce, rules_vector
from .row import Attribute, Operand, OperandKind, OpRow
from .rules_reduce import Line

if TYPE_CHECKING:
    from collections.abc import Callable

_TILE, _TENSOR, _SCALAR = OperandKind.TILE, OperandKind.TENSOR, OperandKind.SCALAR
_HIGH_PRECISION = Attribute("high_precision", bool, default=False)
_CMP_TYPE = Attribute("cmp_type", Comparison, default=Comparison.eq, read=Comparison.of)
_EXACT = " Results are rounded once, whatever high_precision says."


def tile(name: str, *, optional: bool = False) -> Operand:
    """Return an operand that is a tile of the vector core."""
    return Operand(name, _TILE, (MemorySpace.Vec,), optional=optional)


def tile_row(
    name: str, operands: tuple[Operand, ...], infer: Any, meaning: Any, doc: str, **more: Any
) -> OpRow:
    """Return the row of an op on tiles of the vector core."""
    return OpRow(
        name=f"tile.{name}",
        operands=operands,
        attributes=more.pop("attributes", ()),
        infer=infer,
        meaning=meaning,
        doc=doc,
        output_memory=MemorySpace.Vec,
        vector=True,
        **more,
    )


def both_rows(
    name: str,
    operands: tuple[Operand, ...],
    infer: Any,
    meaning: Callable[..., Any],
    doc: str,
    **more: Any,
) -> tuple[OpRow, OpRow]:
    """Return the rows of an op on tiles and on tensors; the latter needs no scratch."""
    row = tile_row(name, operands, infer, meaning, doc, **more)
    scalar_form = row.scalar_form
    on_tensors = replace(
        row,
        name=f"tensor.{name}",
        operands=tuple(
            Operand(each.name, _TENSOR) if each.kind is _TILE else each
            for each in operands
            if not (each.kind is _TILE and each.optional)
        ),
        meaning=meaning_vector.on_tensors(meaning),
        output_memory=MemorySpace.DDR,
        scalar_form=scalar_form and scalar_form.replace("tile.", "tensor."),
    )
    return row, on_tensors


# --------------------------------------------------------------------------- one element

_UNARY = (
    (Unary.EXP, "e to the power of each element"),
    (Unary.LOG, "the natural logarithm of each element"),
    (Unary.SQRT, "the square root of each element"),
    (Unary.RSQRT, "1 by the square root of each element"),
    (Unary.RECIP, "1 by each element"),
    (Unary.SIN, "the sine of each element, in radians"),
    (Unary.COS, "the cosine of each element, in radians"),
    (Unary.NEG, "each element with the other sign; integers wrap"),
    (Unary.ABS, "each element without its sign; integers wrap"),
    (Unary.RELU, "each element, or 0 where it is negative; a NaN stays"),
)
_PRECISE = (Unary.LOG, Unary.RSQRT, Unary.RECIP)
_SCRATCH = {Unary.RSQRT: "tmp"}


def _unary_rows(function: Unary, what: str) -> tuple[OpRow, ...]:
    precise = function in _PRECISE
    scratch = (tile(_SCRATCH[function], optional=True),) if function in _SCRATCH else ()
    return both_rows(
        function.value,
        (tile("x"), *scratch),
        partial(rules_vector.infer_unary, function),
        partial(meaning_vector.unary, function),
        f"Gives {what}.{_EXACT if precise else ''}",
        attributes=(_HIGH_PRECISION,) if precise else (),
        elementwise=not scratch,
        in_place=(0,),
    )


# --------------------------------------------------------------------------- two elements

_BINARY = (
    (Binary.ADD, "the sum of each pair of elements"),
    (Binary.SUB, "the difference of each pair of elements"),
    (Binary.MUL, "the product of each pair of elements"),
    (Binary.DIV, "the quotient of each pair of elements"),
    (Binary.REM, "the remainder of each pair of elements, with the sign of the divisor"),
    (Binary.MAXIMUM, "the larger of each pair of elements; NaN where one is NaN, and -0 below +0"),
    (Binary.MINIMUM, "the smaller of each pair of elements; NaN where one is NaN, and -0 below +0"),
)


def _binary_rows(function: Binary, what: str) -> tuple[OpRow, ...]:
    name, precise = function.value, function is Binary.DIV
    attributes = (_HIGH_PRECISION,) if precise else ()
    doc = f"Gives {what}"
    return (
        *both_rows(
            name,
            (tile("a"), tile("b")),
            partial(rules_vector.infer_binary, function),
            partial(meaning_vector.binary, function),
            f"{doc}.{_EXACT if precise else ''}",
            attributes=attributes,
            elementwise=True,
            in_place=(0, 1),
            scalar_form=f"tile.{name}s",
        ),
        *both_rows(
            f"{name}s",
            (tile("a"), Operand("b", _SCALAR)),
            partial(rules_vector.infer_scalar, function),
            partial(meaning_vector.scalar, function),
            f"{doc}, of which the second is a scalar.",
            attributes=attributes,
            elementwise=True,
            in_place=(0,),
            complete=rules_vector.complete_scalar,
        ),
    )


_MASKS = (
    *both_rows(
        "cmp",
        (tile("a"), tile("b")),
        rules_vector.infer_compare,
        meaning_vector.compare,
        "Compares each pair of elements; only ne holds of a NaN. The result is a mask of BOOL.",
        attributes=(_CMP_TYPE,),
        elementwise=True,
        scalar_form="tile.cmps",
    ),
    *both_rows(
        "cmps",
        (tile("a"), Operand("b", _SCALAR)),
        rules_vector.infer_compare_scalar,
        meaning_vector.compare_scalar,
        "Compares each element with a scalar; only ne holds of a NaN. The result is a mask of BOOL.",
        attributes=(_CMP_TYPE,),
        elementwise=True,
        complete=rules_vector.complete_scalar,
    ),
    *both_rows(
        "sel",
        (tile("mask"), tile("a"), tile("b")),
        rules_vector.infer_select,
        meaning_vector.select,
        "Takes elements of a where the mask is set, else of b.",
        elementwise=True,
        in_place=(1, 2),
        scalar_form="tile.sels",
    ),
    *both_rows(
        "sels",
        (tile("mask"), tile("a"), Operand("b", _SCALAR)),
        rules_vector.infer_select_scalar,
        meaning_vector.select_scalar,
        "Takes elements of a where the mask is set, else a scalar.",
        elementwise=True,
        complete=partial(rules_vector.complete_scalar, like=1),
    ),
)


# --------------------------------------------------------------------------- rows and columns

_REDUCTIONS = (
    (Reduction.SUM, "sum", "Adds up"),
    (Reduction.PROD, "prod", "Multiplies"),
    (Reduction.MAX, "max", "Takes the largest of"),
    (Reduction.MIN, "min", "Takes the smallest of"),
)
_LINES = {Line.ROW: "row", Line.COLUMN: "col"}
#: Which reductions have a scratch tile, whose content does not matter.
_WITH_SCRATCH = {(Line.ROW, each) for each in Reduction} | {(Line.COLUMN, Reduction.SUM)}


def _reduction_rows(line: Line, function: Reduction, name: str, verb: str) -> tuple[OpRow, ...]:
    scratch = (tile("tmp_tile", optional=True),) if (line, function) in _WITH_SCRATCH else ()
    each, shape = ("row", "[M, 1]") if line is Line.ROW else ("column", "[1, N]")
    return both_rows(
        f"{_LINES[line]}_{name}",
        (tile("x"), *scratch),
        partial(rules_reduce.infer_reduce, line),
        partial(meaning_vector.reduce, line, function),
        f"{verb} the valid elements of each {each}, in ascending order; the result is {shape}.",
    )


_EXPANSIONS = (
    (Binary.SECOND, "", "Repeats vec"),
    (Binary.ADD, "_add", "Adds vec to each element"),
    (Binary.SUB, "_sub", "Subtracts vec from each element"),
    (Binary.MUL, "_mul", "Multiplies each element by vec"),
    (Binary.DIV, "_div", "Divides each element by vec"),
    (Binary.MAXIMUM, "_max", "Takes the larger of each element and vec"),
    (Binary.MINIMUM, "_min", "Takes the smaller of each element and vec"),
    (Binary.EXPDIF, "_expdif", "Gives exp(x - vec)"),
)


def _expansion_rows(line: Line, function: Binary, suffix: str, what: str) -> tuple[OpRow, ...]:
    vec, lines = ("a column [M, 1]", "columns") if line is Line.ROW else ("a row [1, N]", "rows")
    return both_rows(
        f"{_LINES[line]}_expand{suffix}",
        (tile("x"), tile("vec")),
        partial(rules_reduce.infer_expand, line, function),
        partial(meaning_vector.expand, line, function),
        f"{what}, {vec} that stands for all {lines} of x.",
        in_place=(0,),
    )


_CAST_ATTRIBUTES = (
    Attribute("target_type", DType, required=True),
    Attribute("mode", CastMode, default=CastMode.round, read=CastMode.of),
)
_ROUNDED_ONCE = (
    "Where the machine has no instruction from one to the other, a chain of those that it has is taken, "
    "such as Float16 to Float32 to BFloat16 to E2M1. A step on the way that loses bits rounds to odd, or "
    "in the direction asked for, so that a chain never rounds twice: its numbers are those of one "
    "conversion. What is beyond FP8, E2M1 or an integer becomes the largest or smallest there is; a NaN "
    "becomes 0 as an integer, and is refused where E2M1 is made of it."
)
_CASTS = (
    tile_row(
        "cast",
        (tile("tile"),),
        rules_cast.infer_cast,
        rules_cast.cast_tile,
        f"Converts the elements of a tile to another dtype. {_ROUNDED_ONCE}",
        attributes=_CAST_ATTRIBUTES,
        elementwise=True,
    ),
    OpRow(
        name="tensor.cast",
        operands=(Operand("tensor", _TENSOR),),
        attributes=_CAST_ATTRIBUTES,
        infer=rules_cast.infer_cast_tensor,
        meaning=meaning_vector.on_tensors(rules_cast.cast_tile),
        doc=f"Converts the elements of a tensor to another dtype. {_ROUNDED_ONCE}",
        output_memory=MemorySpace.DDR,
        vector=True,
    ),
)

VECTOR_ROWS: tuple[OpRow, ...] = (
    *_CASTS,
    *(row for function, what in _UNARY for row in _unary_rows(function, what)),
    *(row for function, what in _BINARY for row in _binary_rows(function, what)),
    *_MASKS,
    *(row for line in _LINES for each in _REDUCTIONS for row in _reduction_rows(line, *each)),
    *(row for line in _LINES for each in _EXPANSIONS for row in _expansion_rows(line, *each)),
)
"""The rows, tile and tensor side by side."""
