"""Where the tensors that a function of one core makes itself are stored.

One that is returned goes into an output parameter of its own, under the name that it is returned under;
one that is only read again goes into one that is no output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..binding import result_name, source_name
from ..core import AssignStmt, ParamDirection, ReturnStmt, flatten_to_stmts
from ..errors import IRValueError
from ..expr import Expr, Var
from ..verification.walk import calls, own_exprs, statements
from .made_tensors import ASSEMBLE, TILE_OPS, Made

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..core import Function
    from ..expr import Type

_INTO_A_PARAMETER = "assemble it and what is written into an output parameter, one after the other"


@dataclass(frozen=True)
class Places:
    """Where the tensors that a function makes are stored.

    Attributes:
        returned: A new output parameter for each returned value; None for one that the function
            does not make itself.
        written: A new output parameter for each tensor that is returned after some op has written
            into it.
        scratch: A new output parameter for each tensor that is only read again.
        created: A new output parameter for each tensor that is made in global memory, and whether it
            is returned.
        taken: The names that parameters have.
        outputs: Those of the new parameters that are outputs, in the order of what is returned.
    """

    returned: tuple[Var | None, ...] = ()
    written: dict[Var, Var] = field(default_factory=dict[Var, Var])
    scratch: dict[Var, Var] = field(default_factory=dict[Var, Var])
    created: dict[Var, tuple[Var, bool]] = field(default_factory=dict[Var, "tuple[Var, bool]"])
    taken: set[str] = field(default_factory=set[str])
    outputs: tuple[Var, ...] = ()

    @property
    def params(self) -> tuple[Var, ...]:
        """The new parameters in order."""
        hidden = (param for param, is_output in self.created.values() if not is_output)
        return (*self.outputs, *hidden, *self.scratch.values())

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of the new parameters that are no outputs."""
        made = (param for param, is_output in self.created.values() if not is_output)
        return tuple(param.name_hint for param in (*made, *self.scratch.values()))

    def new_scratch(self, key: Var, name: str, type_: Type) -> Var:
        """Return one more output parameter that is no output; the same one for the same key."""
        if key not in self.scratch:
            free = _free(f"{name}_scratch", self.taken)
            self.taken.add(free)
            self.scratch[key] = Var(free, type_, key.span)
        return self.scratch[key]


def places_of(function: Function, made: Made) -> Places:
    """Return the output parameters that a function needs for the tensors that it makes.

    Raises:
        IRValueError: When the function returns before its end, or a result has the name of an input.
    """
    same_bytes, values = made.same_bytes, _returned_values(function, made)
    created = _created(function, made)
    homes = _shared_tensors(function, made, values)
    written = [
        param
        for param, direction in zip(function.params, function.param_directions, strict=True)
        if direction is not ParamDirection.In
    ]
    known = {same_bytes.first(param) for param in written}
    places: dict[Var, tuple[Var, bool]] = {}
    fresh = {same_bytes.first(var): var for var in created}
    outputs = {param.name_hint for param in written}
    inputs = {param.name_hint for param in function.params} - outputs
    returned: list[Var | None] = []
    changed: dict[Var, Var] = {}
    ordered: list[Var] = []
    for value in values:
        is_made = isinstance(value, Var) and value in made.tiles
        if not is_made and isinstance(value, Var) and same_bytes.first(value) in known:
            returned.append(None)
            continue
        name = _free(result_name(value) or "out", outputs)
        outputs.add(name)
        origin = fresh.pop(same_bytes.first(value), None) if isinstance(value, Var) else None
        if origin is not None and not is_made:
            _refuse_name_of_input(function, name, inputs, value)
            _refuse_view(name, value, origin)
            ordered.append(Var(name, origin.type, origin.span))
            places[origin] = (ordered[-1], True)
            known.add(same_bytes.first(origin))
            returned.append(None)
            continue
        home = homes.get(same_bytes.first(value)) if isinstance(value, Var) else None
        if not isinstance(value, Var) or not (is_made or home):
            returned.append(None)
            continue
        _refuse_name_of_input(function, name, inputs, value)
        param = Var(name, value.type, value.span)
        ordered.append(param)
        returned.append(param if is_made else None)
        if home is not None and not is_made:
            _refuse_view(name, value, home)
            changed[home] = param
    done = Places(
        tuple(returned), changed, created=places, taken=outputs | inputs, outputs=tuple(ordered)
    )
    for var in created:
        if var not in places:
            name = _free(f"{result_name(var) or 'result'}_scratch", done.taken)
            done.taken.add(name)
            places[var] = (Var(name, var.type, var.span), False)
    for var in made.tiles:
        if var in made.wanted and var not in values and var not in changed:
            done.new_scratch(var, result_name(var) or "result", var.type)
    return done


def _returned_values(function: Function, made: Made) -> tuple[Expr, ...]:
    """Return what a function returns, if tensors that it makes are among it; else nothing.

    Raises:
        IRValueError: When it returns one before its end.
    """
    last = flatten_to_stmts(function.body)[-1:]
    values: tuple[Expr, ...] = ()
    first = made.same_bytes.first
    held = {first(var) for var in made.tiles if var in made.wanted} | set(map(first, made.created))
    for stmt in statements(function.body):
        if isinstance(stmt, ReturnStmt) and any(
            v in made.tiles or first(v) in held for v in stmt.value if isinstance(v, Var)
        ):
            if stmt is not last[0]:
                message = (
                    f"A return must be the last statement of {function.name!r} to be compiled, and "
                    "stand in no branch and no loop"
                )
                raise IRValueError(message, stmt.span)
            values = stmt.value
    return values


def _refuse_view(name: str, value: Expr, home: Var) -> None:
    if home.type != value.type:
        message = (
            f"{name!r} must be returned in the shape in which {source_name(home)!r} was made to "
            "be compiled, not as a view of it"
        )
        raise IRValueError(message, value.span, hint=_INTO_A_PARAMETER)


def _refuse_name_of_input(function: Function, name: str, inputs: set[str], value: Expr) -> None:
    if name in inputs:
        message = (
            f"The result {name!r} of {function.name!r} must have a name of its own to be "
            "compiled, not that of a parameter"
        )
        raise IRValueError(message, value.span, hint="give the result another name")


def _created(function: Function, made: Made) -> list[Var]:
    """Return the tensors that a function makes in global memory, each once.

    Raises:
        IRValueError: For one that is made in a loop or a branch: its parameter is made once.
    """
    if not made.created:
        return []
    outside = {s.var for s in flatten_to_stmts(function.body) if isinstance(s, AssignStmt)}
    for var in made.created:
        if var not in outside:
            message = (
                f"{source_name(var)!r} must be created outside of loops and branches to be compiled: "
                "a kernel is handed one tensor for it"
            )
            hint = "pl.tensor.full makes one that lives on the core"
            raise IRValueError(message, var.span, hint=hint)
    return made.created


def _shared_tensors(function: Function, made: Made, values: Sequence[Expr]) -> dict[Var, Var]:
    """Return the tensors made here that have a life of their own in global memory.

    Some op writes into such a tensor, or it is returned under another name.

    Returns:
        Each by the first variable of those that share its bytes.

    Raises:
        IRValueError: When one would have several places in global memory, or is used as a tile: what
            is written goes into one place, and not into the tile.
    """
    same_bytes, targets = made.same_bytes, made.targets
    names = [v for v in values if isinstance(v, Var)]
    renamed = {same_bytes.first(v) for v in names if v not in made.tiles}
    homes: dict[Var, Var] = {}
    for var in made.tiles:
        part = same_bytes.first(var)
        if part not in targets | renamed or not (var in made.wanted or var in values):
            continue
        if part in homes or sum(same_bytes.first(v) == part for v in names) > 1:
            message = (
                f"{source_name(var)!r} must have one name, under which it is returned at most once, to "
                "be compiled, since several would be one tensor, which its function writes or views"
            )
            raise IRValueError(message, var.span, hint=_INTO_A_PARAMETER)
        homes[part] = var
    for stmt in statements(function.body):
        for call in calls(own_exprs(stmt)):
            if call.op.name not in (*TILE_OPS, ASSEMBLE):
                continue
            for arg in call.args if call.op.name in TILE_OPS else call.args[1:2]:
                if isinstance(arg, Var) and same_bytes.first(arg) in homes.keys() & targets:
                    message = (
                        f"{source_name(arg)!r} must not be an operand to be compiled, since its "
                        "function writes into it after making it"
                    )
                    raise IRValueError(message, call.span, hint=_INTO_A_PARAMETER)
    return homes


def _free(name: str, taken: Collection[str]) -> str:
    free, count = name, 1
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    return free
