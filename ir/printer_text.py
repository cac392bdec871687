"""Types, expressions and attribute values as the text of the language.

What is written here parses back to an equal node: parentheses keep the shape of a tree, constants
keep their dtype, and names are told apart.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from .cast_mode import CastMode
from .dtypes import DType, Index, Int64
from .dynamic_dims import is_dynamic
from .expr import (
    DUMP_VARS,
    BinaryExpr,
    BitNot,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    MakeTuple,
    Max,
    Min,
    Neg,
    Not,
    ScalarType,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
)
from .language.names import dtype_name, enum_name
from .numerics.functions import Comparison
from .types import (
    CommCtxType,
    CompactMode,
    DistributedTensorType,
    MemRef,
    PadValue,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    implicit_tile_view,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .expr import Type
    from .types import Dims

_WORDS: Final = (Index, Int64)
_CALL, _UNARY, _PRODUCT, _SUM, _SHIFT, _COMPARISON, _NOT, _AND, _OR = range(9, 0, -1)
_PRECEDENCE: Final[dict[str, int]] = {
    "+": _SUM, "-": _SUM, "*": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT, "/": _PRODUCT,
    "<<": _SHIFT, ">>": _SHIFT, "and": _AND, "or": _OR,
}  # fmt: skip


class Names:
    """Gives every variable of a function a name of its own, close to its hint.

    Args:
        reserved: Names that no variable may take.
        mark_free: Whether a variable that nothing defines is marked as such.
    """

    def __init__(self, reserved: Iterable[str], *, mark_free: bool) -> None:
        self._taken = set(reserved)
        self._names: dict[Var, str] = {}
        self._mark_free = mark_free

    def define(self, var: Var) -> str:
        """Return the name of a variable that is defined here, now or before."""
        if var not in self._names:
            self._names[var] = self._fresh(var.name_hint)
        return self._names[var]

    def use(self, var: Var) -> str:
        """Return the name of a variable that is used here; a dynamic dimension has its own."""
        if is_dynamic(var):
            return var.name_hint
        if var not in self._names and self._mark_free:
            self._names[var] = self._fresh(f"{var.name_hint}__FREE_VAR")
        return self.define(var)

    def _fresh(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint) or "_"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"_{base}"
        name, number = base, 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def is_constant_tree(expr: Expr) -> bool:
    """Return whether an operator stands over constants only, so that parsing would fold it."""
    match expr:
        case ConstInt() | ConstFloat() | ConstBool():
            return True
        case BinaryExpr():
            return is_constant_tree(expr.left) and is_constant_tree(expr.right)
        case UnaryExpr():
            return not isinstance(expr, Cast) and is_constant_tree(expr.operand)
        case _:
            return False


class Writer:
    """Writes types, expressions and values.

    Args:
        prefix: The name of the language in the text.
        names: Where variables get their names.
    """

    def __init__(self, prefix: str, names: Names) -> None:
        self.prefix = prefix
        self.names = names

    # ------------------------------------------------------------------------ types

    def type(self, type_: Type) -> str:
        """Return the annotation for a type."""
        match type_:
            case ScalarType(dtype):
                return f"{self.prefix}.Scalar[{self.dtype(dtype)}]"
            case DistributedTensorType():
                return self._tensor("DistributedTensor", type_)
            case TensorType():
                return self._tensor("Tensor", type_)
            case TileType():
                return self._tile(type_)
            case TupleType():
                inner = ", ".join(self.type(t) for t in type_.types) or "()"
                return f"{self.prefix}.Tuple[{inner}]"
            case CommCtxType():
                return f"{self.prefix}.CommCtx"
            case _:
                return f"{self.prefix}.Unknown"

    def dtype(self, dtype: DType) -> str:
        """Return the name of a dtype, such as `pl.FP32`."""
        return f"{self.prefix}.{dtype_name(dtype)}"

    def _tensor(self, word: str, type_: TensorType) -> str:
        parts = [self.dims(type_.shape), self.dtype(type_.dtype)]
        if type_.tensor_view is not None:
            parts.append(self.tensor_view(type_.tensor_view))
        if type_.memref is not None:
            parts.append(self.value(type_.memref))
        return f"{self.prefix}.{word}[{', '.join(parts)}]"

    def tensor_view(self, view: TensorView) -> str:
        """Return a tensor view as a call."""
        parts = [f"stride={self.dims(view.stride)}", f"layout={self.value(view.layout)}"]
        if view.valid_shape:
            parts.append(f"valid_shape={self.dims(view.valid_shape)}")
        if view.pad is not PadValue.null:
            parts.append(f"pad={self.value(view.pad)}")
        return f"{self.prefix}.TensorView({', '.join(parts)})"

    def _tile(self, type_: TileType) -> str:
        parts = [self.dims(type_.shape), self.dtype(type_.dtype)]
        if type_.memory_space is not None:
            parts.append(self.value(type_.memory_space))
        if type_.memref is not None:
            parts.append(self.value(type_.memref))
        if type_.tile_view is not None:
            implicit = implicit_tile_view(type_.shape, type_.memory_space)
            parts.append(self.tile_view(type_.tile_view, implicit))
        return f"{self.prefix}.Tile[{', '.join(parts)}]"

    def tile_view(self, view: TileView, implicit: TileView) -> str:
        """Return a tile view as a call that names what differs from `implicit`."""
        parts: list[str] = []
        for name in ("valid_shape", "stride"):
            dims: Dims = getattr(view, name)
            if dims:
                parts.append(f"{name}={self.dims(dims)}")
        if view.start_offset is not None:
            parts.append(f"start_offset={self.expr(view.start_offset)}")
        parts += [
            f"{name}={self.value(getattr(view, name))}"
            for name in ("blayout", "slayout", "fractal")
            if getattr(view, name) != getattr(implicit, name)
        ]
        if view.pad is not PadValue.null:
            parts.append(f"pad={self.value(view.pad)}")
        if view.compact is not CompactMode.null:
            parts.append(f"compact={self.value(view.compact)}")
        return f"{self.prefix}.TileView({', '.join(parts)})"

    def dims(self, dims: Dims) -> str:
        """Return dimensions as a list; INDEX and INT64, which are one to a dimension, are bare."""
        texts = [
            str(d.value) if isinstance(d, ConstInt) and d.dtype in _WORDS else self.expr(d)
            for d in dims
        ]
        return f"[{', '.join(texts)}]"

    # ------------------------------------------------------------------------ expressions

    def expr(self, expr: Expr) -> str:
        """Return an expression."""
        return self._at(expr, 0, typed=False)

    def _at(self, expr: Expr, least: int, *, typed: bool) -> str:
        """Return `expr`, in parentheses if it binds less than `least`.

        With `typed`, constants are written so that parsing keeps the operator over them.
        """
        text, precedence = self._bound(expr, typed=typed)
        return text if precedence >= least else f"({text})"

    def _bound(self, expr: Expr, *, typed: bool) -> tuple[str, int]:
        match expr:
            case Var():
                return self.names.use(expr), _CALL
            case ConstInt() | ConstFloat() | ConstBool():
                return self._constant(expr, typed=typed)
            case Min() | Max() | Cast():
                return self._scalar_call(expr), _CALL
            case BinaryExpr():
                return self._binary(expr, typed=typed or is_constant_tree(expr))
            case UnaryExpr():
                return self._unary(expr, typed=typed or is_constant_tree(expr))
            case MakeTuple(elements):
                return f"[{', '.join(self.expr(e) for e in elements)}]", _CALL
            case TupleGetItemExpr(whole, position):
                return f"{self._at(whole, _CALL, typed=False)}[{position}]", _CALL
            case Call():
                return self._call(expr), _CALL
            case Submit():
                return self._submit(expr), _CALL
            case _:
                message = f"the printer does not know {type(expr).__name__}"
                raise AssertionError(message)

    def _constant(self, expr: ConstInt | ConstFloat | ConstBool, *, typed: bool) -> tuple[str, int]:
        plain = {ConstInt: Index, ConstFloat: DType.Float32, ConstBool: DType.Bool}[type(expr)]
        text = _float_text(expr.value) if isinstance(expr, ConstFloat) else str(expr.value)
        if typed or expr.dtype is not plain:
            return f"{self.prefix}.const({text}, {self.dtype(expr.dtype)})", _CALL
        return text, _UNARY if text.startswith("-") else _CALL

    def _scalar_call(self, expr: Min | Max | Cast) -> str:
        if isinstance(expr, Cast):
            return f"{self.prefix}.cast({self.expr(expr.operand)}, {self.dtype(expr.dtype)})"
        typed = is_constant_tree(expr)
        left, right = (self._at(e, 0, typed=typed) for e in (expr.left, expr.right))
        return f"{self.prefix}.{expr.symbol}({left}, {right})"

    def _binary(self, expr: BinaryExpr, *, typed: bool) -> tuple[str, int]:
        precedence = _COMPARISON if expr.is_comparison else _PRECEDENCE[expr.symbol]
        left_least = precedence + 1 if expr.is_comparison else precedence
        left = self._at(expr.left, left_least, typed=typed)
        right = self._at(expr.right, precedence + 1, typed=typed)
        return f"{left} {expr.symbol} {right}", precedence

    def _unary(self, expr: UnaryExpr, *, typed: bool) -> tuple[str, int]:
        match expr:
            case Not():
                return f"not {self._at(expr.operand, _NOT, typed=typed)}", _NOT
            case Neg() | BitNot():
                return f"{expr.symbol}{self._at(expr.operand, _UNARY, typed=typed)}", _UNARY
            case _:
                message = f"the printer does not know {type(expr).__name__}"
                raise AssertionError(message)

    def _call(self, expr: Call) -> str:
        parts = self._arguments(expr)
        parts += [f"{name}={self.value(value)}" for name, value in expr.kwargs.items()]
        if expr.attrs:
            parts.append(f"attrs={self.value(expr.attrs)}")
        owner = "self" if isinstance(expr.op, GlobalVar) else self.prefix
        return f"{owner}.{expr.op.name}({', '.join(parts)})"

    def _arguments(self, expr: Call) -> list[str]:
        """Return the operands: by position, but for those that an attribute may stand before."""
        from .ops import ROWS

        row = ROWS.get(expr.op.name)
        names = [operand.name for operand in row.operands] if row is not None else []
        plain = len(expr.args) if row is None else row.leading
        return [
            self.expr(arg) if i >= len(names) or i < plain else f"{names[i]}={self.expr(arg)}"
            for i, arg in enumerate(expr.args)
        ]

    def _submit(self, expr: Submit) -> str:
        word = "submit" if expr.core_num is None else "spmd_submit"
        parts = [f"self.{expr.op.name}", *(self.expr(arg) for arg in expr.args)]
        if expr.core_num is not None:
            parts.append(f"core_num={self.expr(expr.core_num)}")
        if expr.deps:
            parts.append(f"deps=[{', '.join(self.expr(d) for d in expr.deps)}]")
        parts += [f"{name}={self.value(value)}" for name, value in expr.kwargs.items()]
        for name in ("sync_start", "allow_early_resolve"):
            if getattr(expr, name):
                parts.append(f"{name}=True")
        if expr.predicate is not None:
            parts.append(f"predicate=({self.expr(expr.predicate)})")
        attrs = dict(expr.attrs)
        if DUMP_VARS in attrs:
            parts.append(f"dumps={self.value(list(attrs.pop(DUMP_VARS)))}")
        if attrs:
            parts.append(f"attrs={self.value(attrs)}")
        return f"{self.prefix}.{word}({', '.join(parts)})"

    # ------------------------------------------------------------------------ attribute values

    def value(self, value: object) -> str:
        """Return the value of an attribute, of a keyword, or of a field of a view."""
        match value:
            case CastMode() | Comparison():
                return self.value(value.name)
            case Enum():
                name = enum_name(type(value))
                assert name is not None, f"the language has no name for {value!r}"
                return f"{self.prefix}.{name}.{value.name}"
            case str():
                return json.dumps(value, ensure_ascii=False)
            case None | bool() | int():
                return repr(value)
            case float():
                return _float_text(value)
            case Expr():
                return self._at(value, 0, typed=True)  # a bare number would read back as Python's
            case DType():
                return self.dtype(value)
            case MemRef():
                slots = f", slots={value.slots}" if value.slots != 1 else ""
                place = f"{self.value(value.name)}, {value.byte_offset}, {value.size}"
                return f"{self.prefix}.MemRef({place}{slots})"
            case Mapping():
                items = cast("Mapping[str, Any]", value).items()
                return f"{{{', '.join(f'{self.value(key)}: {self.value(v)}' for key, v in items)}}}"
            case tuple():
                parts = [self.value(v) for v in cast("Sequence[object]", value)]
                return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
            case list():
                return f"[{', '.join(self.value(v) for v in cast('Sequence[object]', value))}]"
            case _:
                message = f"the printer does not know a value of {type(value).__name__}"
                raise AssertionError(message)


def _float_text(value: float) -> str:
    """Return a float so that reading it gives the same bits, NaN payloads left out."""
    if math.isfinite(value):
        return repr(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f'{sign}float("{"nan" if math.isnan(value) else "inf"}")'


class _ShortWriter(Writer):
    """Writes a view that says nothing but a layout as that layout, as people do."""

    def tensor_view(self, view: TensorView) -> str:
        plain = TensorView(layout=view.layout)
        return f"{self.prefix}.{view.layout.name}" if view == plain else super().tensor_view(view)


def type_text(type_: Type) -> str:
    """Return a type as a kernel writes it, for messages."""
    return _ShortWriter("pl", Names((), mark_free=False)).type(type_)


def dims_text(dims: Dims) -> str:
    """Return extents as a kernel writes them, for messages."""
    return Writer("pl", Names((), mark_free=False)).dims(dims)
