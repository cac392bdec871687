"""Launches of an orchestration: a call, a submit or a grid becomes a launch of the host program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ...ir.core import Function, ParamDirection
from ...ir.errors import IRValueError, Span
from ...ir.expr import Submit, Var
from ...ir.types import TensorType
from ..select.places import constant
from ..tensors import Layout
from .program import ONE_BLOCK, Allocate, Launch, Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.dtypes import SimpleDType
    from ...ir.expr import Call, Expr
    from ..scalars.exprs import Scalar
    from .bindings import Callee
    from .names import Names


@dataclass(frozen=True)
class Manner:
    """How a kernel is launched.

    Attributes:
        blocks: How many blocks its grid has.
        deps: Numbers of launches that it waits for besides those whose data it uses.
        name: The scalar that gets its number; empty if there is none.
        sync_start: Whether all blocks must begin together.
    """

    blocks: Scalar = ONE_BLOCK
    deps: tuple[Scalar, ...] = ()
    name: str = ""
    sync_start: bool = False


@dataclass(frozen=True)
class Launched:
    """What a launch comes to: host statements, and the tensors that it returns."""

    statements: tuple[Statement, ...]
    results: tuple[str, ...]


def manner_of(names: Names, submit: Submit, around: Manner) -> Manner:
    """Return how a submit launches, inside of what launches already in the manner `around`."""
    span = submit.span
    deps = tuple(names.scalar(dep, span) for dep in submit.deps)
    made = replace(around, deps=(*around.deps, *deps), name=names.fresh("launch"))
    if submit.core_num is not None:
        blocks = names.scalar(submit.core_num, span)
        made = replace(made, blocks=blocks, sync_start=submit.sync_start)
    return made


def pair_arguments(
    function: Function, call: Call | Submit
) -> tuple[tuple[Var, ParamDirection, Expr | None], ...]:
    """Return the parameters of a function with their arguments; a submit may leave outputs out.

    Raises:
        IRValueError: For an argument too many or too few.
    """
    given: list[Expr | None] = list(call.args)
    missing = len(function.params) - len(given)
    tail = function.param_directions[len(given) :]
    left_out = isinstance(call, Submit) and all(d is ParamDirection.Out for d in tail)
    if missing < 0 or (missing > 0 and not left_out):
        message = (
            f"{function.name!r} must be launched with its {len(function.params)} arguments, not "
            f"{len(given)}"
        )
        hint = "a submit may leave out only outputs at the end" if missing > 0 else None
        raise IRValueError(message, call.span, hint=hint)
    given += [None] * missing
    return tuple(zip(function.params, function.param_directions, given, strict=True))


def launch(names: Names, callee: Callee, call: Call | Submit, manner: Manner) -> Launched:
    """Return the launch of a kernel.

    Args:
        names: What variables are called.
        callee: The kernel.
        call: Who launches it, with the arguments.
        manner: Over how many blocks, after what, and under which name.

    Raises:
        IRValueError: For arguments that do not fit, or a kernel that returns a tensor of its own.
    """
    made: list[Statement] = []
    bound: list[str | None] = []
    scalars: list[Scalar] = []
    for param, _, arg in pair_arguments(callee.function, call):
        if not isinstance(param.type, TensorType):
            assert arg is not None, "only outputs are left out"
            scalars.append(names.scalar(arg, call.span))
            bound.append(None)
        elif arg is None:
            name = names.scratch(param.name_hint)
            made.append(Allocate(name, *declared(param.type, call.span)))
            bound.append(name)
        else:
            bound.append(names.tensor(arg, call.span))
    _refuse_overlap(names, callee.function, bound, call.span)
    buffers = tuple(name for name in bound if name is not None)
    made.append(
        Launch(
            callee.index,
            buffers,
            tuple(scalars),
            manner.blocks,
            manner.deps,
            manner.name,
            manner.sync_start,
        )
    )
    return Launched(tuple(made), tuple(_results(callee, bound, call.span)))


def _refuse_overlap(
    names: Names, function: Function, bound: Sequence[str | None], span: Span
) -> None:
    """Refuse one tensor for two parameters of which the kernel writes one: pipes would race."""
    params, directions, roots = function.params, function.param_directions, names.roots
    for i, (name, direction) in enumerate(zip(bound, directions, strict=True)):
        if name is None or direction is ParamDirection.In:
            continue
        for j, other in enumerate(bound):
            if i != j and other is not None and roots[other] == roots[name]:
                written, read = params[i].name_hint, params[j].name_hint
                message = (
                    f"The parameters {written!r} and {read!r} of {function.name!r} must get "
                    f"different tensors, since the kernel writes {written!r}, not both "
                    f"{roots[name]!r}"
                )
                raise IRValueError(message, span)


def _results(callee: Callee, bound: Sequence[str | None], span: Span) -> list[str]:
    results: list[str] = []
    for number in callee.returned:
        name = None if number is None else bound[number]
        if name is None:
            message = (
                f"The kernel {callee.function.name!r} must return tensors that it got as "
                "parameters to be compiled, not others"
            )
            hint = "store a result into an Out parameter and return that"
            raise IRValueError(message, span, hint=hint)
        results.append(name)
    return results


def callee_of(callees: Mapping[str, Callee], call: Call | Submit) -> Callee:
    """Return the kernel that a call names.

    Raises:
        IRValueError: If it names none.
    """
    found = callees.get(call.op.name)
    if found is None:
        message = f"An orchestration that is compiled must call kernels, not {call.op.name!r}"
        hint = f"it can call {', '.join(callees) or 'none: the program has no kernel'}"
        raise IRValueError(message, call.span, hint=hint)
    return found


def declared(type_: TensorType, span: Span) -> tuple[str, int, tuple[int, ...], Layout]:
    """Return dtype, bits, shape and layout of a tensor that the host makes or looks at.

    Raises:
        IRTypeError: For a symbolic shape.
    """
    dtype = cast("SimpleDType", type_.dtype)
    shape = constant(type_.shape, "The shape of a tensor that is compiled", span)
    return dtype.name, dtype.bits, shape, Layout(type_.layout.value.lower())
