"""The rule on types: every value is what its use expects, and every op accepts its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    Program,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..dtypes import DType, TaskId
from ..dtypes.boxes import GROUP
from ..dtypes.formats import INTEGER_FORMATS
from ..errors import Span, UserError
from ..expr import Call, Expr, Op, ScalarType, Submit, Type, UnknownType
from ..launch_faults import launch_faults
from ..mx_uses import compound_faults
from ..ops import deduce_type
from ..ops.checks import same_dims, show_dims
from ..types import TensorType, TileType, TupleType, constant_dim
from .walk import all_calls, bodies, statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .diagnostics import Findings

KIND = 101
DTYPE = 102
RANK = 103
DIMENSION = 104
COUNT = 105
SCALAR_EXPECTED = 106
CONDITION = 107
LAYOUT = 108
TILE_VIEW = 109
OP_RULE = 110
MEMORY_SPACE = 111
COMPOUND = 112


def check_types(
    function: Function, program: Program, findings: Findings, *, strict_valid_k: bool = False
) -> None:
    """Types agree: of operands with their op, of values with variables, of calls with functions.

    With `strict_valid_k` a matmul's valid K must reach into the last of its groups.
    """
    for call in all_calls(function):
        match call:
            case Call(op=Op()):
                _check_op(call, findings)
                if strict_valid_k and call.name.startswith(("tile.matmul_mx", "tile.gemv_mx")):
                    _check_valid_k(call, findings)
            case Call():
                _check_call(call, program, findings)
            case Submit():
                _check_call(call, program, findings)
                _check_launch(call, findings)
    for stmt in statements(function.body):
        _check_stmt(stmt, function, findings)
    for fault in compound_faults(function, program):
        findings.error(COMPOUND, fault.message, fault.span)


def difference(wanted: Type, found: Type) -> tuple[int, str] | None:
    """Return how two types differ: an error code and "…, not …", or None if they agree.

    Symbolic dimensions agree with anything, and so does an unknown type. Memory references and
    strides do not count; a tile's memory space and view count where both sides say them.
    """
    if isinstance(wanted, UnknownType) or isinstance(found, UnknownType):
        return None
    match wanted, found:
        case ScalarType(), ScalarType():
            both_integers = wanted.dtype in INTEGER_FORMATS and found.dtype in INTEGER_FORMATS
            same_width = wanted.dtype.bits == found.dtype.bits
            if wanted.dtype is found.dtype or (both_integers and same_width):
                return None
            return DTYPE, f"a scalar of {wanted.dtype.name}, not of {found.dtype.name}"
        case TupleType(), TupleType():
            if len(wanted.types) != len(found.types):
                return COUNT, f"{len(wanted.types)} values, not {len(found.types)}"
            pairs = zip(wanted.types, found.types, strict=True)
            return next((d for a, b in pairs if (d := difference(a, b))), None)
        case (TensorType(), TensorType()) | (TileType(), TileType()):
            return _array_difference(wanted, found)
        case _:
            if type(wanted) is type(found):
                return None
            return KIND, f"a {_kind(wanted)}, not a {_kind(found)}"


def _kind(type_: Type) -> str:
    return type(type_).__name__.removesuffix("Type").lower()


def _array_difference(
    wanted: TensorType | TileType, found: TensorType | TileType
) -> tuple[int, str] | None:
    kind = _kind(wanted)
    if wanted.dtype is not found.dtype:
        return DTYPE, f"a {kind} of {wanted.dtype.name}, not of {found.dtype.name}"
    if len(wanted.shape) != len(found.shape):
        return RANK, f"a {kind} of rank {len(wanted.shape)}, not {len(found.shape)}"
    if not same_dims(wanted.shape, found.shape):
        return DIMENSION, f"a {kind} {show_dims(wanted.shape)}, not {show_dims(found.shape)}"
    if isinstance(wanted, TensorType) and isinstance(found, TensorType):
        if wanted.layout is not found.layout:
            return LAYOUT, f"a tensor in {wanted.layout.name}, not in {found.layout.name}"
        return None
    assert isinstance(wanted, TileType), wanted
    assert isinstance(found, TileType), found
    return _tile_difference(wanted, found)


def _tile_difference(wanted: TileType, found: TileType) -> tuple[int, str] | None:
    if not same_dims(wanted.valid_shape, found.valid_shape):
        return (
            TILE_VIEW,
            f"a tile valid in {show_dims(wanted.valid_shape)}, not in {show_dims(found.valid_shape)}",
        )
    if wanted.memory_space is None or found.memory_space is None:
        return None
    if wanted.memory_space is not found.memory_space:
        return (
            MEMORY_SPACE,
            f"a tile in {wanted.memory_space.name}, not in {found.memory_space.name}",
        )
    views = wanted.get_effective_tile_view(), found.get_effective_tile_view()
    if views[0].arrangement != views[1].arrangement:
        one, other = (_show_arrangement(view.arrangement) for view in views)
        return TILE_VIEW, f"a tile in boxes {one}, not {other}"
    return None


def _show_arrangement(arrangement: tuple[object, ...]) -> str:
    return "/".join(str(getattr(part, "name", part)) for part in arrangement)


def _check_op(call: Call, findings: Findings) -> None:
    try:
        deduced = deduce_type(call)
    except UserError as error:
        findings.error(OP_RULE, error.message, error.span or call.span)
        return
    found = difference(deduced, call.type)
    if found is not None:
        code, text = found
        findings.error(code, f"{call.name} must give {text}", call.span)


def _check_valid_k(call: Call, findings: Findings) -> None:
    first = 1 if call.name.endswith("_mx_acc") else 0
    lhs = call.args[first].type
    if not isinstance(lhs, TileType):
        return
    physical, valid = constant_dim(lhs.shape[1]), constant_dim(lhs.valid_shape[1])
    if physical is None or valid is None:
        return
    wanted, found = -(-physical // GROUP), -(-valid // GROUP)
    if wanted != found:
        message = (
            f"{call.name}: the valid K must reach into all {wanted} groups of the physical K "
            f"{physical}, but {valid} reaches into {found}"
        )
        findings.error(OP_RULE, message, call.span)


def _check_call(call: Call | Submit, program: Program, findings: Findings) -> None:
    name = call.op.name
    callee = program.get_function(name)
    if callee is None:
        message = f"{name!r} must name a function of the program"
        findings.error(KIND, message, call.span)
        return
    if len(call.args) != len(callee.params):
        message = f"{name} takes {len(callee.params)} arguments, not {len(call.args)}"
        findings.error(COUNT, message, call.span)
        return
    for param, arg in zip(callee.params, call.args, strict=True):
        what = f"{param.name_hint!r} of {name}"
        _expect(what, param.type, arg.type, call.span, findings)
    results = callee.return_types
    if isinstance(call, Submit):
        result = TupleType((*results, ScalarType(TaskId)))
        _expect(f"The result of a submit of {name}", result, call.type, call.span, findings)
    elif results and not isinstance(call.type, UnknownType):
        result = results[0] if len(results) == 1 else TupleType(results)
        _expect(f"The result of {name}", result, call.type, call.span, findings)


def _check_launch(launch: Submit | ScopeStmt, findings: Findings) -> None:
    """What a launch waits for are TASK_IDs; it has an integer number of blocks."""
    for fault in launch_faults(launch):
        code = CONDITION if fault.in_condition else SCALAR_EXPECTED
        findings.error(code, fault.message, launch.span)


def _expect(what: str, wanted: Type, found: Type, span: Span, findings: Findings) -> None:
    differing = difference(wanted, found)
    if differing is not None:
        code, text = differing
        findings.error(code, f"{what} must be {text}", span)


def _check_stmt(stmt: Stmt, function: Function, findings: Findings) -> None:
    match stmt:
        case AssignStmt(var, value):
            _expect(f"{var.name_hint!r}", var.type, value.type, stmt.span, findings)
        case ReturnStmt(value):
            _check_return(value, function, stmt.span, findings)
        case ForStmt():
            for what, bound in (("start", stmt.start), ("stop", stmt.stop), ("step", stmt.step)):
                if not _is_scalar(bound, integer=True):
                    message = f"The {what} of a loop must be an integer scalar"
                    findings.error(SCALAR_EXPECTED, message, stmt.span)
            _check_carried(stmt, findings)
        case ScopeStmt():
            _check_launch(stmt, findings)
        case WhileStmt():
            _check_condition(stmt.condition, "while", stmt.span, findings)
            _check_carried(stmt, findings)
        case IfStmt():
            _check_condition(stmt.condition, "if", stmt.span, findings)
            for body in bodies(stmt):
                _check_yield(body, [var.type for var in stmt.return_vars], findings)
        case _:
            pass


def _check_return(
    values: Sequence[Expr], function: Function, span: Span, findings: Findings
) -> None:
    if not function.return_types:
        return
    if len(values) != len(function.return_types):
        message = (
            f"{function.name} must return {len(function.return_types)} value(s), not {len(values)}"
        )
        findings.error(COUNT, message, span)
        return
    for wanted, value in zip(function.return_types, values, strict=True):
        _expect(f"What {function.name} returns", wanted, value.type, span, findings)


def _check_carried(stmt: ForStmt | WhileStmt, findings: Findings) -> None:
    for arg in stmt.iter_args:
        what = f"The initial value of {arg.name_hint!r}"
        _expect(what, arg.type, arg.init_value.type, stmt.span, findings)
    for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=False):
        _expect(f"{var.name_hint!r}", arg.type, var.type, stmt.span, findings)
    _check_yield(stmt.body, [arg.type for arg in stmt.iter_args], findings)


def _check_yield(body: Stmt, wanted: Sequence[Type], findings: Findings) -> None:
    last = flatten_to_stmts(body)[-1:]
    if not wanted or not last or not isinstance(last[0], YieldStmt):
        return
    for position, (type_, value) in enumerate(zip(wanted, last[0].value, strict=False)):
        _expect(f"Value {position} of the yield", type_, value.type, last[0].span, findings)


def _check_condition(condition: Expr, word: str, span: Span, findings: Findings) -> None:
    if not (isinstance(condition.type, ScalarType) and condition.type.dtype is DType.Bool):
        message = f"The condition of {word!r} must be a scalar of Bool, such as a comparison"
        findings.error(CONDITION, message, span)


def _is_scalar(expr: Expr, *, integer: bool) -> bool:
    return isinstance(expr.type, ScalarType) and (not integer or expr.type.dtype in INTEGER_FORMATS)
