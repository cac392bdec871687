"""The operations of the language: one table, a row an op, and the calls that are made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import IRValueError, Span
from ..suggest import near
from .checks import has_pass_form
from .row import Attribute, CallSite, Operand, OperandKind, OpRow
from .table import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..expr import Call, Type

__all__ = [
    "ROWS",
    "Attribute",
    "CallSite",
    "OpRow",
    "Operand",
    "OperandKind",
    "create_op_call",
    "deduce_type",
    "get_op",
    "get_op_memory_spec",
]


def get_op(name: str, span: Span | None = None) -> OpRow:
    """Return the row of the op called `name`, such as `tile.load`.

    Raises:
        IRValueError: When there is no such op; the hint lists names that resemble it.
    """
    row = ROWS.get(name)
    if row is None:
        message = f"{name!r} must name an operation, but there is none of that name"
        raise IRValueError(message, span, hint=near(name, ROWS))
    return row


def create_op_call(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    span: Span | None = None,
) -> Call:
    """Return the typed call of an op.

    Args:
        name: Full name of the op.
        args: Operands in the order of the row; a list of integers and scalars stands for a tuple.
        kwargs: Attributes by name.
        span: Where the call is written.

    Raises:
        IRTypeError: When an operand has the wrong kind, or the op's rule refuses its type.
        IRValueError: When there is no such op, or its rule refuses a value.
    """
    where = span or Span.unknown()
    return get_op(name, where).call(args, kwargs or {}, where)


def deduce_type(call: Call) -> Type:
    """Return the type that the op's rule gives to a call as it stands.

    A call in a form that only passes write, such as one of a tensor that has been cut into boxes, is
    judged by the rule of that form.

    Raises:
        IRTypeError: As :func:`create_op_call`.
        IRValueError: As :func:`create_op_call`.
    """
    row = get_op(call.name, call.span)
    site = row.site(call.args, call.kwargs, call.span)
    if row.infer_blocked is not None and has_pass_form(call.type, call.args):
        return row.infer_blocked(site, call.type)
    return row.infer(site)


def get_op_memory_spec(name: str) -> dict[str, Any]:
    """Return where an op's operands must lie and where its result lies.

    Returns:
        `output_memory`, a MemorySpace or None where the type rule says it, and
        `input_constraints`, a list of allowed memories (empty: any) for each operand.

    Raises:
        IRValueError: When there is no such op.
    """
    row = get_op(name)
    return {
        "output_memory": row.output_memory,
        "input_constraints": [list(operand.spaces) for operand in row.operands],
    }
