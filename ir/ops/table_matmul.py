"""Rows of the matmuls on tiles, and of the products of a row with a matrix, with and without scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..types import MemorySpace
from . import meaning, meaning_matmul, rules_matmul, rules_plain_matmul
from .row import Attribute, Operand, OperandKind, OpRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..expr import Type
    from .row import CallSite

    Way = tuple[Callable[[CallSite], Type], Callable[..., Any]]
    Three = tuple[Way, Way, Way]


def _tile(name: str, space: MemorySpace) -> Operand:
    return Operand(name, OperandKind.TILE, (space,))


PAIR = (_tile("lhs", MemorySpace.Left), _tile("rhs", MemorySpace.Right))
MX_PAIR = (
    PAIR[0],
    _tile("lhs_scale", MemorySpace.LeftScale),
    PAIR[1],
    _tile("rhs_scale", MemorySpace.RightScale),
)
_ACC, _BIAS = _tile("acc", MemorySpace.Acc), _tile("bias", MemorySpace.Bias)
_PHASE = (Attribute("acc_phase", str, default="unspecified", read=rules_plain_matmul.read_phase),)

#: Type rule and meaning of a product, of one that is added to an accumulator, of one from biases.
_PLAIN: Three = (
    (rules_plain_matmul.infer_matmul, meaning_matmul.multiply),
    (rules_plain_matmul.infer_matmul_acc, meaning_matmul.multiply_acc),
    (rules_plain_matmul.infer_matmul_bias, meaning_matmul.multiply_bias),
)
_MX: Three = (
    (rules_matmul.infer_matmul_mx, meaning.multiply),
    (rules_matmul.infer_matmul_mx_acc, meaning.multiply_acc),
    (rules_matmul.infer_matmul_mx_bias, meaning.multiply_bias),
)


def _products(
    name: str,
    factors: tuple[Operand, ...],
    ways: Three,
    docs: tuple[str, str, str],
    *,
    attributes: tuple[Attribute, ...] = (),
    after_acc: tuple[Operand, ...] = (),
) -> tuple[OpRow, ...]:
    """Return the rows `name`, `name_acc` and `name_bias`.

    The second takes the accumulator first, whose buffer its result takes over, and `after_acc` last;
    the third takes a row of biases last.
    """
    forms = (
        ("", factors, None),
        ("_acc", (_ACC, *factors, *after_acc), 0),
        ("_bias", (*factors, _BIAS), None),
    )
    return tuple(
        OpRow(
            name=f"tile.{name}{suffix}",
            operands=operands,
            attributes=attributes,
            infer=infer,
            meaning=means,
            doc=doc,
            output_memory=MemorySpace.Acc,
            reuses=reuses,
        )
        for (suffix, operands, reuses), (infer, means), doc in zip(forms, ways, docs, strict=True)
    )


MX_ROWS = _products(
    "matmul_mx",
    MX_PAIR,
    _MX,
    (
        "Multiplies two block-scaled tiles.",
        "Adds the product of two block-scaled tiles to an accumulator.",
        "Multiplies two block-scaled tiles, starting from a row of biases.",
    ),
)
"""The rows of block-scaled matrices."""

MATMUL_ROWS: tuple[OpRow, ...] = (
    *_products(
        "matmul",
        PAIR,
        _PLAIN,
        (
            "Multiplies two tiles of FP16, BF16, FP32, FP8 or INT8.",
            "Adds the product of two tiles to an accumulator, or replaces it where init_cond holds.",
            "Multiplies two tiles, starting from a row of biases.",
        ),
        after_acc=(Operand("init_cond", OperandKind.SCALAR, optional=True),),
    ),
    *_products(
        "gemv",
        PAIR,
        _PLAIN,
        (
            "Multiplies a row with a tile.",
            "Adds the product of a row and a tile to an accumulator.",
            "Multiplies a row with a tile, starting from a row of biases.",
        ),
        attributes=_PHASE,
    ),
    *_products(
        "gemv_mx",
        MX_PAIR,
        _MX,
        (
            "Multiplies a block-scaled row, whose scales are a plain row, with a block-scaled tile.",
            "Adds the product of a block-scaled row and tile to an accumulator.",
            "Multiplies a block-scaled row with a block-scaled tile, starting from a row of biases.",
        ),
    ),
)
"""The rows of matrices without scales, and those of a row with a matrix."""
