"""Which cores of a cluster a kernel is for: the instructions that were selected say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.core import FunctionType
from ..ir.errors import IRValueError
from .isa.program import row_of
from .isa.vocabulary import CoreKind

if TYPE_CHECKING:
    from ..ir.core import Function
    from .tree import Block, Step

_WRITTEN = {FunctionType.AIC: CoreKind.AIC, FunctionType.AIV: CoreKind.AIV}
_NAMES = {CoreKind.AIC: "the cube core", CoreKind.AIV: "a vector core"}


def cores_of(function: Function, block: Block) -> tuple[CoreKind, ...]:
    """Return the kinds of core that run a kernel, one or, the cube core first, both.

    Args:
        function: The kernel; its type may say which core it is for.
        block: Its instructions.

    Raises:
        IRValueError: When they need another kind than the function's type says.
    """
    first: dict[CoreKind, Step] = {}
    for step in block.steps():
        kind = row_of(step.mnemonic).core
        if kind is not None:
            first.setdefault(kind, step)
    written = _WRITTEN.get(function.func_type)
    if written is None:
        return tuple(kind for kind in CoreKind if kind in first) or (CoreKind.AIC,)
    for kind, step in first.items():
        if kind is not written:
            message = (
                f"The function {function.name!r} of type {function.func_type.name} must use "
                f"{_NAMES[written]} only, not {_NAMES[kind]}"
            )
            hint = "write type=pl.FunctionType.InCore, which leaves it open"
            raise IRValueError(message, step.span, hint=hint)
    return (written,)
