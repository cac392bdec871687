"""Statements, functions and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, cast

from .errors import IRTypeError, Span
from .expr import Expr, GlobalVar, IterArg, Node, Type, Var, as_dim, frozen_mapping, set_fields


class FunctionType(Enum):
    """On which plane a function runs."""

    Opaque = "Opaque"
    Orchestration = "Orchestration"
    InCore = "InCore"
    AIC = "AIC"
    AIV = "AIV"
    Group = "Group"
    Spmd = "Spmd"
    Inline = "Inline"
    Graph = "Graph"


class ParamDirection(Enum):
    """Whether a parameter is read, written, or both."""

    In = "In"
    Out = "Out"
    InOut = "InOut"


class ForKind(Enum):
    """How the trips of a loop relate."""

    Sequential = "Sequential"
    Parallel = "Parallel"
    Unroll = "Unroll"
    Pipeline = "Pipeline"


class Level(Enum):
    """The level of the machine at which a function runs."""

    CORE_GROUP = "CORE_GROUP"
    HOST = "HOST"
    CHIP = "CHIP"
    CHIP_DIE = "CHIP_DIE"
    AIC = "AIC"
    AIV = "AIV"


class Role(Enum):
    """What a function does at its level."""

    Orchestrator = "Orchestrator"
    SubWorker = "SubWorker"


#: Level and role that a function type implies.
DERIVED_PLACE: dict[FunctionType, tuple[Level, Role]] = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
}


class Stmt(Node):
    """A node with an effect and no value."""


@dataclass(frozen=True, eq=False)
class AssignStmt(Stmt):
    """`var` becomes `value`."""

    children: ClassVar[tuple[str, ...]] = ("var", "value")
    var: Var
    value: Expr
    span: Span = field(default_factory=Span.unknown)


@dataclass(frozen=True, eq=False)
class EvalStmt(Stmt):
    """An expression evaluated for its effect."""

    children: ClassVar[tuple[str, ...]] = ("expr",)
    expr: Expr
    span: Span = field(default_factory=Span.unknown)


@dataclass(frozen=True, eq=False)
class SeqStmts(Stmt):
    """Statements one after another."""

    children: ClassVar[tuple[str, ...]] = ("stmts",)
    stmts: tuple[Stmt, ...]
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, stmts=tuple(self.stmts))


@dataclass(frozen=True, eq=False)
class YieldStmt(Stmt):
    """The values that a loop's trip or a branch hands on."""

    children: ClassVar[tuple[str, ...]] = ("value",)
    value: tuple[Expr, ...]
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, value=tuple(self.value))


@dataclass(frozen=True, eq=False)
class ReturnStmt(Stmt):
    """The values that a function returns."""

    children: ClassVar[tuple[str, ...]] = ("value",)
    value: tuple[Expr, ...] = ()
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, value=tuple(self.value))


@dataclass(frozen=True, eq=False)
class BreakStmt(Stmt):
    """Leaves the innermost loop."""

    span: Span = field(default_factory=Span.unknown)


@dataclass(frozen=True, eq=False)
class ContinueStmt(Stmt):
    """Goes on with the next trip of the innermost loop."""

    span: Span = field(default_factory=Span.unknown)


@dataclass(frozen=True, eq=False)
class ForStmt(Stmt):
    """A counted loop.

    `iter_args` carry values from trip to trip, `return_vars` name them after the loop; before SSA
    conversion both are empty and variables assigned inside simply live on. `attrs` holds
    `pipeline_stages` for a Pipeline loop.
    """

    children: ClassVar[tuple[str, ...]] = (
        "loop_var", "start", "stop", "step", "iter_args", "body", "return_vars",
    )  # fmt: skip
    loop_var: Var
    start: Expr
    stop: Expr
    step: Expr
    iter_args: tuple[IterArg, ...]
    body: Stmt
    return_vars: tuple[Var, ...]
    span: Span = field(default_factory=Span.unknown)
    kind: ForKind = ForKind.Sequential
    attrs: Mapping[str, Any] = field(default_factory=lambda: frozen_mapping(None))

    def __post_init__(self) -> None:
        set_fields(
            self,
            start=as_dim(self.start),
            stop=as_dim(self.stop),
            step=as_dim(self.step),
            iter_args=tuple(self.iter_args),
            return_vars=tuple(self.return_vars),
            attrs=frozen_mapping(self.attrs),
        )


@dataclass(frozen=True, eq=False)
class WhileStmt(Stmt):
    """A loop that goes on as long as `condition` holds."""

    children: ClassVar[tuple[str, ...]] = ("condition", "iter_args", "body", "return_vars")
    condition: Expr
    iter_args: tuple[IterArg, ...]
    body: Stmt
    return_vars: tuple[Var, ...]
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, iter_args=tuple(self.iter_args), return_vars=tuple(self.return_vars))


@dataclass(frozen=True, eq=False)
class IfStmt(Stmt):
    """A branch; with `return_vars` both bodies end in a yield of as many values."""

    children: ClassVar[tuple[str, ...]] = ("condition", "then_body", "else_body", "return_vars")
    condition: Expr
    then_body: Stmt
    else_body: Stmt | None
    return_vars: tuple[Var, ...]
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, return_vars=tuple(self.return_vars))


@dataclass(frozen=True, eq=False, kw_only=True)
class ScopeStmt(Stmt):
    """A region of a control function that is launched as if it were a call of its own kernel.

    Its statements stand in the variables of the function around it. The tensors that it writes are
    seen behind it; its tiles and scalars are its own.

    Attributes:
        body: What is run.
        name_hint: What the function made of it is called; empty for a name of the compiler's.
        task_id: The variable that is the launch's TASK_ID behind the region, or None.
        deps: TASK_IDs of launches that must be done before.
        dumps: Tensors whose values are to be kept when the launch reads them.
        allow_early_resolve: Whether what depends on the launch may start before it is done.
    """

    children: ClassVar[tuple[str, ...]] = ("deps", "dumps", "body", "task_id")
    body: Stmt
    name_hint: str = ""
    task_id: Var | None = None
    deps: tuple[Expr, ...] = ()
    dumps: tuple[Expr, ...] = ()
    allow_early_resolve: bool = False
    span: Span = field(default_factory=Span.unknown)

    def __post_init__(self) -> None:
        set_fields(self, deps=tuple(self.deps), dumps=tuple(self.dumps))


@dataclass(frozen=True, eq=False, kw_only=True)
class InCoreScopeStmt(ScopeStmt):
    """A region that one core runs, as an InCore function would."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SpmdScopeStmt(ScopeStmt):
    """A region that runs once for each of `core_num` blocks.

    Its body is either one call of a kernel, or an :class:`InCoreScopeStmt` with what every block
    does.

    Attributes:
        core_num: How many blocks there are.
        sync_start: Whether all blocks must start together.
    """

    children: ClassVar[tuple[str, ...]] = ("core_num", "deps", "dumps", "body", "task_id")
    core_num: Expr
    sync_start: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, core_num=as_dim(self.core_num))


@dataclass(frozen=True, eq=False, init=False)
class Function(Node):
    """A function: parameters with directions, result types, a body.

    A parameter is a `Var` (direction In) or `(Var, ParamDirection)`.
    """

    children: ClassVar[tuple[str, ...]] = ("params", "body")
    name: str
    params: tuple[Var, ...]
    param_directions: tuple[ParamDirection, ...]
    return_types: tuple[Type, ...]
    body: Stmt
    span: Span
    func_type: FunctionType
    level: Level | None
    role: Role | None
    attrs: Mapping[str, Any]

    def __init__(
        self,
        name: str,
        params: Iterable[Var | tuple[Var, ParamDirection]],
        return_types: Iterable[Type],
        body: Stmt,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,  # noqa: A002 - the public name in PyPTO
        level: Level | None = None,
        role: Role | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        pairs = [p if isinstance(p, tuple) else (p, ParamDirection.In) for p in params]
        derived = DERIVED_PLACE.get(type, (None, None))
        set_fields(
            self,
            name=name,
            params=tuple(var for var, _ in pairs),
            param_directions=tuple(direction for _, direction in pairs),
            return_types=tuple(return_types),
            body=body,
            span=span or Span.unknown(),
            func_type=type,
            level=level or derived[0],
            role=role or derived[1],
            attrs=frozen_mapping(attrs),
        )


@dataclass(frozen=True, eq=False, init=False)
class Program(Node):
    """Functions by name, in the order of their names."""

    children: ClassVar[tuple[str, ...]] = ()
    functions: Mapping[GlobalVar, Function]
    name: str
    span: Span

    def __init__(
        self,
        functions: Iterable[Function] | Mapping[GlobalVar, Function],
        name: str = "",
        span: Span | None = None,
    ) -> None:
        given: list[Function] = list(
            cast("Mapping[GlobalVar, Function]", functions).values()
            if isinstance(functions, Mapping)
            else functions
        )
        by_name = {function.name: function for function in given}
        if len(by_name) != len(given):
            names = sorted(f.name for f in given)
            message = f"The functions of a program must have different names, not {names}"
            raise IRTypeError(message)
        ordered = {GlobalVar(key): by_name[key] for key in sorted(by_name)}
        set_fields(
            self, functions=frozen_mapping_of(ordered), name=name, span=span or Span.unknown()
        )

    def get_function(self, name: str) -> Function | None:
        """Return the function called `name`, or None."""
        return self.functions.get(GlobalVar(name))

    def get_global_var(self, name: str) -> GlobalVar | None:
        """Return the callee `name`, or None when the program has no such function."""
        key = GlobalVar(name)
        return key if key in self.functions else None


def frozen_mapping_of(functions: Mapping[GlobalVar, Function]) -> Mapping[GlobalVar, Function]:
    """Return a read-only copy of a program's functions."""
    from types import MappingProxyType

    return MappingProxyType(dict(functions))


def flatten_to_stmts(body: Stmt | None) -> tuple[Stmt, ...]:
    """Return the statements of `body` in order, nested sequences opened."""
    if body is None:
        return ()
    if not isinstance(body, SeqStmts):
        return (body,)
    return tuple(inner for stmt in body.stmts for inner in flatten_to_stmts(stmt))


def seq(stmts: Iterable[Stmt], span: Span | None = None) -> Stmt:
    """Return `stmts` as one statement: itself if it is single, else a flat sequence."""
    flat = tuple(inner for stmt in stmts for inner in flatten_to_stmts(stmt))
    return flat[0] if len(flat) == 1 else SeqStmts(flat, span or Span.unknown())
