"""Expressions: tuples, calls and submits here; variables, constants and operators from beside.

Nodes are frozen and compared by identity; :mod:`.structural` compares by meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from .errors import IRTypeError, IRValueError, Span
from .node import (
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    IterArg,
    Node,
    ScalarType,
    Type,
    UnknownType,
    Var,
    as_dim,
    frozen_mapping,
    index,
    replace,
    set_fields,
    wrap_int64,
)
from .operators import (
    BINARY_OPS,
    UNARY_OPS,
    Add,
    And,
    BinaryExpr,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Cast,
    Eq,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Or,
    Sub,
    UnaryExpr,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BINARY_OPS",
    "DUMP_VARS",
    "UNARY_OPS",
    "Add",
    "And",
    "BinaryExpr",
    "BitNot",
    "BitShiftLeft",
    "BitShiftRight",
    "Call",
    "Cast",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "Eq",
    "Expr",
    "FloatDiv",
    "FloorDiv",
    "FloorMod",
    "Ge",
    "GlobalVar",
    "Gt",
    "IterArg",
    "Le",
    "Lt",
    "MakeTuple",
    "Max",
    "Min",
    "Mul",
    "Ne",
    "Neg",
    "Node",
    "Not",
    "Op",
    "Or",
    "ScalarType",
    "Sub",
    "Submit",
    "TupleGetItemExpr",
    "Type",
    "UnaryExpr",
    "UnknownType",
    "Var",
    "as_dim",
    "frozen_mapping",
    "index",
    "replace",
    "set_fields",
    "wrap_int64",
]


@dataclass(frozen=True, eq=False)
class MakeTuple(Expr):
    """A tuple of expressions: offsets, shapes, or several results."""

    children: ClassVar[tuple[str, ...]] = ("elements",)
    elements: tuple[Expr, ...]
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, elements=tuple(as_dim(e) for e in self.elements))

    @property
    def type(self) -> Type:
        """The tuple of the elements' types."""
        from .types import TupleType

        kept = self.__dict__.get("_kept_type")  # nested tuples may share parts, so it is made once
        if kept is None or kept[0] is not self.elements:
            kept = (self.elements, TupleType(tuple(e.type for e in self.elements)))
            self.__dict__["_kept_type"] = kept
        return kept[1]


@dataclass(frozen=True, eq=False)
class TupleGetItemExpr(Expr):
    """Element `index` of a tuple value."""

    children: ClassVar[tuple[str, ...]] = ("tuple",)
    tuple: Expr
    index: int
    span: Span = field(default_factory=Span.unknown)

    @property
    def type(self) -> Type:
        """The element's type."""
        from .types import TupleType

        whole = self.tuple.type
        if not isinstance(whole, TupleType):
            message = f"An element can be taken only from a tuple, not from {whole!r}"
            raise IRTypeError(message, self.span)
        if not 0 <= self.index < len(whole.types):
            message = f"The tuple index must be in 0..{len(whole.types) - 1}, not {self.index}"
            raise IRValueError(message, self.span)
        return whole.types[self.index]


@dataclass(frozen=True)
class Op:
    """The name of a registered operation."""

    name: str


@dataclass(frozen=True)
class GlobalVar:
    """The name of a function of the program, as a callee."""

    name: str


def _sorted_rest(
    rest: tuple[Any, ...], signature: str
) -> tuple[Mapping[str, Any], Mapping[str, Any], Type, Span]:
    """Return kwargs, attrs, type and span of a call from what follows its positional part."""
    mappings = [cast("Mapping[str, Any]", r) for r in rest if isinstance(r, Mapping)]
    types = [r for r in rest if isinstance(r, Type)]
    spans = [r for r in rest if isinstance(r, Span)]
    known = len(mappings) + len(types) + len(spans) + sum(r is None for r in rest)
    if known != len(rest) or len(mappings) > 2 or len(types) > 1 or len(spans) > 1:
        found = tuple(type(r).__name__ for r in rest)
        message = f"{signature} must be followed by [kwargs, [attrs,]] [type,] [span], not {found}"
        raise IRTypeError(message)
    return (
        frozen_mapping(mappings[0] if mappings else None),
        frozen_mapping(mappings[1] if len(mappings) > 1 else None),
        types[0] if types else UnknownType(),
        spans[0] if spans else Span.unknown(),
    )


#: The attribute of a launch that names the arguments whose values are to be kept.
DUMP_VARS: Final = "dump_vars"


@dataclass(frozen=True, eq=False, init=False)
class Call(Expr):
    """A call of an op or of a function of the program.

    Written `Call(op, args, span)`, `(op, args, type, span)`, `(op, args, kwargs, type, span)` or
    `(op, args, kwargs, attrs, type, span)`; the span may be left out. `attrs` is the compiler's
    metadata and may hold expressions; `kwargs` are the op's own attributes.
    """

    children: ClassVar[tuple[str, ...]] = ("args",)
    op: Op | GlobalVar
    args: tuple[Expr, ...]
    kwargs: Mapping[str, Any]
    attrs: Mapping[str, Any]
    type: Type  # pyright: ignore[reportIncompatibleMethodOverride]
    span: Span

    def __init__(self, op: Op | GlobalVar, args: Iterable[Expr], *rest: Any) -> None:
        kwargs, attrs, type_, span = _sorted_rest(rest, "Call(op, args)")
        set_fields(
            self,
            op=op,
            args=tuple(args),
            kwargs=kwargs,
            attrs=attrs,
            type=type_,
            span=span,
        )

    @property
    def name(self) -> str:
        """The name of the op or of the function called."""
        return self.op.name


@dataclass(frozen=True, eq=False, init=False)
class Submit(Expr):
    """An asynchronous launch of a function of the program.

    Its type is the tuple of the function's results followed by a Scalar of TaskId.
    """

    children: ClassVar[tuple[str, ...]] = ("args", "deps", "core_num", "predicate")
    op: GlobalVar
    args: tuple[Expr, ...]
    deps: tuple[Expr, ...]
    kwargs: Mapping[str, Any]
    attrs: Mapping[str, Any]
    type: Type  # pyright: ignore[reportIncompatibleMethodOverride]
    span: Span
    core_num: Expr | None
    sync_start: bool
    allow_early_resolve: bool
    predicate: Expr | None

    def __init__(
        self,
        op: GlobalVar,
        args: Iterable[Expr],
        deps: Iterable[Expr],
        *rest: Any,
        core_num: Expr | int | None = None,
        sync_start: bool = False,
        allow_early_resolve: bool = False,
        predicate: Expr | None = None,
    ) -> None:
        if sync_start and core_num is None:
            message = "A submit with sync_start must name its core_num"
            raise IRValueError(message)
        kwargs, attrs, type_, span = _sorted_rest(rest, "Submit(op, args, deps)")
        set_fields(
            self,
            op=op,
            args=tuple(args),
            deps=tuple(deps),
            kwargs=kwargs,
            attrs=attrs,
            type=type_,
            span=span,
            core_num=None if core_num is None else as_dim(core_num),
            sync_start=sync_start,
            allow_early_resolve=allow_early_resolve,
            predicate=predicate,
        )
