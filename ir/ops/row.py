"""What a row of the op table holds, and what is derived from it.

A row says an op's operands, attributes, type rule, numpy meaning, memory and a line of
documentation. Parser, printer, verifier, interpreter, passes and documentation read it; adding an op
to the language is adding a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from ..dtypes import DType, TaskId
from ..dtypes.formats import INTEGER_FORMATS
from ..errors import IRTypeError, IRValueError, Span
from ..expr import Call, ConstFloat, Expr, MakeTuple, Op, ScalarType, Type, as_dim
from ..types import MemorySpace, TensorType, TileType, TupleType
from .cube_formats import planes_on_tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class OperandKind(Enum):
    """What an operand must be."""

    TENSOR = "a tensor"
    TILE = "a tile"
    SCALAR = "a scalar"
    TUPLE = "a list of integers or scalars"
    TASKS = "a list of TASK_IDs"


@dataclass(frozen=True)
class Operand:
    """An operand.

    `spaces` are the memories a tile may lie in (empty: any); `compound` says that a tensor may be of
    a compound dtype.
    """

    name: str
    kind: OperandKind
    spaces: tuple[MemorySpace, ...] = ()
    optional: bool = False
    compound: bool = False


@dataclass(frozen=True)
class Attribute:
    """A keyword of the op: its kind and its default; `required` ones have none.

    A call does not store an attribute that has its default value. `read` turns what else may be
    written for it into a value of its kind, or raises a user error. Of an enumeration the op's rule
    refuses the `refused` members.
    """

    name: str
    kind: type
    default: Any = None
    required: bool = False
    read: Callable[[Any], Any] | None = None
    refused: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CallSite:
    """A call under construction, as the type rules see it."""

    row: OpRow
    args: tuple[Expr, ...]
    kwargs: Mapping[str, Any]
    span: Span

    def value_error(self, message: str, hint: str | None = None) -> IRValueError:
        """Return the error for a value that the rule refuses."""
        return IRValueError(f"{self.row.name}: {message}", self.span, hint=hint)

    def type_error(self, message: str, hint: str | None = None) -> IRTypeError:
        """Return the error for a type that the rule refuses."""
        return IRTypeError(f"{self.row.name}: {message}", self.span, hint=hint)


@dataclass(frozen=True)
class OpRow:
    """An op of the language.

    Attributes:
        name: Full name, such as `tile.load`.
        operands: In the order of the call's arguments.
        attributes: In the order in which they may follow the operands by position.
        infer: The type rule: from a call site to the type of the result; raises user errors.
        infer_blocked: The type rule of the forms that only passes write, once a tensor is cut into
            boxes of rank 5 or a tile is flat; None where the op has none. It gets the type that
            the call has.
        meaning: The op on numpy values; see the interpreter for what the values are.
        doc: One sentence for the documentation.
        output_memory: The memory of the result; None where the rule says it.
        reuses: The operand whose buffer the result takes over, or None.
        renames: Whether the result is that operand under another name: no byte is touched.
        in_place: The operands in whose place the result may be written, where both are of one shape
            and element width.
        complete: Fills in operands that were left out; gets the call site before type inference.
        kernel_default: Attributes that a kernel's text may leave out although the op needs them;
            gets the operands and attributes as written and returns the attributes to add.
        public: Whether kernels may write it (`pl.tile.x`); internal ops only come from passes.
        has_effect: Whether the call matters although nobody uses its result.
        instead: What to write for a tile in the place of a tensor, or the other way round.
        scalar_form: The op that is meant when the last operand is a scalar; None where there is none.
        mat_form: The op that is meant when the first operand is a tile in Mat; None where it is this one.
        elementwise: Whether the op means the same on a tile whose leading axes are merged.
        vector: Whether a vector core runs it.
        order: The order of arguments by position where it is not operands, then attributes.
    """

    name: str
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    infer: Callable[[CallSite], Type]
    meaning: Callable[..., Any]
    doc: str
    output_memory: MemorySpace | None = None
    reuses: int | None = None
    renames: bool = False
    in_place: tuple[int, ...] = ()
    complete: Callable[[CallSite], tuple[Expr, ...]] | None = None
    infer_blocked: Callable[[CallSite, Type], Type] | None = None
    kernel_default: Callable[[Sequence[Any], Mapping[str, Any]], dict[str, Any]] | None = None
    public: bool = True
    has_effect: bool = False
    instead: str = ""
    scalar_form: str | None = None
    mat_form: str | None = None
    elementwise: bool = False
    vector: bool = False
    order: tuple[str, ...] = ()
    by_name: dict[str, Operand | Attribute] = field(
        init=False, repr=False, default_factory=dict[str, "Operand | Attribute"]
    )

    def __post_init__(self) -> None:
        for part in (*self.operands, *self.attributes):
            assert part.name not in self.by_name, f"{self.name} names {part.name} twice"
            self.by_name[part.name] = part
        optional = [operand.optional for operand in self.operands]
        assert optional == sorted(optional), f"{self.name}: optional operands must come last"
        assert not self.order or sorted(self.order) == sorted(self.by_name), self.name

    @property
    def written(self) -> tuple[Operand | Attribute, ...]:
        """The arguments in the order in which a kernel gives them."""
        if self.order:
            return tuple(self.by_name[name] for name in self.order)
        return (*self.operands, *self.attributes)

    @property
    def leading(self) -> int:
        """How many operands may be printed without their names."""
        pairs = zip(self.operands, self.written, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a is not b), len(self.operands))

    @property
    def signature(self) -> str:
        """How the op is written, such as `load(tensor, offsets, shapes, valid_shape=…)`."""
        parts = [_shown(part) for part in self.written]
        return f"{self.name}({', '.join(parts)})"

    def bind(
        self, positional: Sequence[Any], keywords: Mapping[str, Any], span: Span
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort written arguments into operands and attributes.

        Returns:
            The operands that were given, in order, and the attributes, defaults filled in.

        Raises:
            IRTypeError: For an unknown, doubled or missing argument; the hint is the signature.
        """
        site = CallSite(self, (), {}, span)
        parts = self.written
        if len(positional) > len(parts):
            message = f"takes at most {len(parts)} arguments, not {len(positional)}"
            raise site.type_error(message, self.signature)
        given: dict[str, Any] = dict(zip((p.name for p in parts), positional, strict=False))
        for name, value in keywords.items():
            if name not in self.by_name:
                message = f"has no argument {name!r}"
                raise site.type_error(message, f"it takes {', '.join(self.by_name)}")
            if name in given:
                message = f"got the argument {name!r} twice"
                raise site.type_error(message, self.signature)
            given[name] = value
        missing = [
            p.name
            for p in parts
            if p.name not in given
            and not (p.optional if isinstance(p, Operand) else not p.required)
        ]
        if missing:
            message = f"is missing the argument {missing[0]!r}"
            raise site.type_error(message, self.signature)
        operands: list[Any] = []
        for operand in self.operands:
            if given.get(operand.name) is None:
                if any(given.get(o.name) is not None for o in self.operands[len(operands) :]):
                    message = f"needs the argument {operand.name!r} before those that follow it"
                    raise site.type_error(message, self.signature)
                break
            operands.append(given[operand.name])
        attributes = {a.name: given.get(a.name, a.default) for a in self.attributes}
        if self.kernel_default is not None:
            attributes.update(self.kernel_default(operands, attributes))
        return tuple(operands), attributes

    def attribute(self, kwargs: Mapping[str, Any], name: str) -> Any:
        """Return an attribute of a call from its `kwargs`, or its default."""
        part = self.by_name[name]
        assert isinstance(part, Attribute), f"{name} is an operand of {self.name}"
        return kwargs.get(name, part.default)

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Call:
        """Return the typed call of this op.

        Args:
            args: Expressions; a list or tuple of integers and scalars stands for a MakeTuple.
            kwargs: Attributes; one that is None or has its default value is left out.
            span: Where the call is written.

        Raises:
            IRTypeError: When an argument has the wrong kind, or the type rule refuses it.
            IRValueError: When the type rule refuses a value.
        """
        exprs = tuple(_as_operand(a, span) for a in args)
        site = self.site(exprs, kwargs, span)
        if self.complete is not None:
            site = CallSite(self, self.complete(site), site.kwargs, span)
        return Call(Op(self.name), site.args, site.kwargs, self.infer(site), span)

    def site(self, args: tuple[Expr, ...], kwargs: Mapping[str, Any], span: Span) -> CallSite:
        """Return the call site for the type rule, once number and kinds of arguments are right.

        Raises:
            IRTypeError: When an argument is missing, too many, unknown or of the wrong kind.
        """
        site = CallSite(self, args, self._stored(kwargs, span), span)
        least = sum(not operand.optional for operand in self.operands)
        if not least <= len(args) <= len(self.operands):
            most = len(self.operands)
            wanted = f"{least}" if least == most else f"{least} to {most}"
            message = f"takes {wanted} operands, not {len(args)}"
            raise site.type_error(message, self.signature)
        for operand, arg in zip(self.operands, args, strict=False):
            if not _fits(operand.kind, arg):
                message = (
                    f"{operand.name} must be {operand.kind.value}, not {_found(operand.kind, arg)}"
                )
                other = self.instead if isinstance(arg.type, TensorType | TileType) else ""
                raise site.type_error(
                    message, f"{self.signature}; {other}" if other else self.signature
                )
            dtype = arg.type.dtype if isinstance(arg.type, TensorType | TileType) else None
            if dtype is not None and dtype.is_compound() and not operand.compound:
                message = (
                    f"{operand.name} must be of a simple dtype, not of {dtype.name}, of which only "
                    "pl.matmul and pl.slice take tensors"
                )
                planes = planes_on_tiles(dtype)
                hint = f"ops on tiles take {planes}" if planes else "pl.matmul(a, b) works"
                raise site.type_error(message, hint)
        return site

    def _stored(self, kwargs: Mapping[str, Any], span: Span) -> dict[str, Any]:
        site = CallSite(self, (), {}, span)
        known = {a.name: a for a in self.attributes}
        kwargs = dict(kwargs)
        for name, value in kwargs.items():
            if name not in known:
                message = f"has no attribute {name!r}"
                raise site.type_error(message, f"its attributes: {', '.join(known) or 'none'}")
            read = known[name].read
            if read is not None and value is not None:
                value = kwargs[name] = _read(read, value, site)
            if value is not None and not isinstance(value, known[name].kind):
                kind = known[name].kind.__name__
                message = f"{name} must be a {kind}, not {value!r}"
                raise site.type_error(message, self.signature)
        missing = [a.name for a in self.attributes if a.required and kwargs.get(a.name) is None]
        if missing:
            message = f"is missing the argument {missing[0]!r}"
            raise site.type_error(message, self.signature)
        return {
            name: kwargs[name]
            for name, part in known.items()
            if kwargs.get(name) is not None and kwargs[name] != part.default
        }


def _read(read: Callable[[Any], Any], value: object, site: CallSite) -> object:
    try:
        return read(value)
    except IRValueError as error:
        raise site.value_error(error.message, error.hint) from error


def _shown(part: Operand | Attribute) -> str:
    """Return an argument as a signature shows it."""
    if isinstance(part, Operand):
        return part.name + ("=…" if part.optional else "")
    if part.required:
        return part.name
    default = part.default
    return f"{part.name}={default.name if isinstance(default, DType | MemorySpace) else default}"


def describe_type(expr: Expr) -> str:
    """Return what `expr` is, for an error message."""
    match expr.type:
        case TensorType():
            return "a tensor"
        case TileType():
            return "a tile"
        case ScalarType(dtype):
            return f"a scalar of {dtype.name}"
        case _ if isinstance(expr, MakeTuple):
            return "a list"
        case TupleType():
            return "a tuple, whose parts need names of their own"
        case other:
            return f"a value of {type(other).__name__}"


def _as_operand(value: Any, span: Span) -> Expr:
    match value:
        case Expr():
            return value
        case list() | tuple():
            items = cast("Sequence[Any]", value)
            return MakeTuple(tuple(items), span)
        case float():
            return ConstFloat(value, DType.Float32, span)
        case _:
            return as_dim(value)


def _fits(kind: OperandKind, arg: Expr) -> bool:
    match kind:
        case OperandKind.TENSOR:
            return isinstance(arg.type, TensorType)
        case OperandKind.TILE:
            return isinstance(arg.type, TileType)
        case OperandKind.SCALAR:
            return isinstance(arg.type, ScalarType)
        case OperandKind.TUPLE:
            return isinstance(arg, MakeTuple) and all(map(_is_integer, arg.elements))
        case OperandKind.TASKS:
            return isinstance(arg, MakeTuple) and all(map(is_task, arg.elements))


def _is_integer(expr: Expr) -> bool:
    return isinstance(expr.type, ScalarType) and expr.type.dtype in INTEGER_FORMATS


def _found(kind: OperandKind, arg: Expr) -> str:
    """Return what an operand is that should be of another kind, and in a list what does not fit."""
    if kind is not OperandKind.TUPLE or not isinstance(arg, MakeTuple):
        return describe_type(arg)
    others = [describe_type(each) for each in arg.elements if not _is_integer(each)]
    return f"a list that holds {others[0]}" if others else describe_type(arg)


def is_task(expr: Expr) -> bool:
    """Return whether an expression is a TASK_ID."""
    return isinstance(expr.type, ScalarType) and expr.type.dtype is TaskId
