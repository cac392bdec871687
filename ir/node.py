"""The nodes that everything else is made of: types, variables and constants."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from .dtypes import DType, Index, SimpleDType
from .errors import IRTypeError, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

N = TypeVar("N")
_unique_ids = itertools.count()
_WORD = 1 << 64


def wrap_int64(value: int) -> int:
    """Return `value` as a 64-bit two's complement integer, as the scalar unit keeps it."""
    return (value + (_WORD >> 1)) % _WORD - (_WORD >> 1)


class Type:
    """What a value is; types are compared by structure, never by identity."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        from .structural import structural_equal

        return structural_equal(self, other)

    def __hash__(self) -> int:
        from .structural import structural_hash

        return structural_hash(self)


@dataclass(frozen=True, eq=False)
class ScalarType(Type):
    """A scalar held in a register of the scalar unit."""

    dtype: SimpleDType


@dataclass(frozen=True, eq=False)
class UnknownType(Type):
    """The type of an op that only has an effect, or of a call that is not yet known."""


class Node:
    """Anything of a program that a visitor meets; `children` names the fields that hold nodes."""

    children: ClassVar[tuple[str, ...]] = ()
    span: Span

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very node."""
        return self is other


class Expr(Node):
    """A node with a value.

    `type` is a field of some subclasses and derived in the others; here it is declared only, for a
    property on this class would stand in the way of the fields.
    """

    if TYPE_CHECKING:

        @property
        def type(self) -> Type:
            """The type of the value."""
            raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A variable; two variables of one name are two variables."""

    name_hint: str
    type: Type  # pyright: ignore[reportIncompatibleMethodOverride]
    span: Span = field(default_factory=Span.unknown)
    unique_id: int = field(default_factory=lambda: next(_unique_ids), init=False)

    def __repr__(self) -> str:
        return f"Var({self.name_hint!r})"


@dataclass(frozen=True, eq=False, init=False)
class IterArg(Var):
    """A loop-carried variable: `init_value` at entry, the loop's yield afterwards."""

    children: ClassVar[tuple[str, ...]] = ("init_value",)
    init_value: Expr

    def __init__(
        self,
        name_hint: str,
        type: Type,  # noqa: A002 - the public name of the field
        initValue: Expr,  # noqa: N803 - the public name of the argument in PyPTO
        span: Span | None = None,
    ) -> None:
        set_fields(
            self,
            name_hint=name_hint,
            type=type,
            init_value=initValue,
            span=span or Span.unknown(),
            unique_id=next(_unique_ids),
        )

    @property
    def initValue(self) -> Expr:  # noqa: N802 - the public name of the field in PyPTO
        """The value at entry of the loop."""
        return self.init_value

    def __repr__(self) -> str:
        return f"IterArg({self.name_hint!r})"


def set_fields(node: object, **values: object) -> None:
    """Fill the fields of a frozen node under construction."""
    for name, value in values.items():
        object.__setattr__(node, name, value)


def replace(node: N, **changes: object) -> N:
    """Return a copy of a frozen node with some fields changed; a variable gets a new identity."""
    made = object.__new__(type(node))
    made.__dict__.update(node.__dict__)
    made.__dict__.update(changes)
    if isinstance(made, Var):
        made.__dict__["unique_id"] = next(_unique_ids)
    return made


def frozen_mapping(
    items: Mapping[str, Any] | Iterable[tuple[str, Any]] | None,
) -> Mapping[str, Any]:
    """Return a read-only copy that keeps the order of `items`."""
    return MappingProxyType({} if items is None else dict[str, Any](items))


# --------------------------------------------------------------------------- constants


@dataclass(frozen=True, eq=False)
class ConstInt(Expr):
    """An integer constant of the given integer dtype."""

    value: int
    dtype: SimpleDType
    span: Span = field(default_factory=Span.unknown)

    @property
    def type(self) -> ScalarType:
        """A scalar of `dtype`."""
        return ScalarType(self.dtype)


@dataclass(frozen=True, eq=False)
class ConstFloat(Expr):
    """A floating-point constant of the given dtype."""

    value: float
    dtype: SimpleDType
    span: Span = field(default_factory=Span.unknown)

    @property
    def type(self) -> ScalarType:
        """A scalar of `dtype`."""
        return ScalarType(self.dtype)


@dataclass(frozen=True, eq=False)
class ConstBool(Expr):
    """A truth value."""

    value: bool
    span: Span = field(default_factory=Span.unknown)

    @property
    def dtype(self) -> SimpleDType:
        """Always Bool."""
        return DType.Bool

    @property
    def type(self) -> ScalarType:
        """A scalar of Bool."""
        return ScalarType(DType.Bool)


def index(value: int, span: Span | None = None) -> ConstInt:
    """Return the INDEX constant `value`."""
    return ConstInt(value, Index, span or Span.unknown())


def as_dim(value: object) -> Expr:
    """Return a dimension or offset as an expression; Python integers become INDEX constants."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        message = f"A dimension must be an integer or an expression, not {value!r}"
        raise IRTypeError(message)
    return index(int(cast("int", value)))
