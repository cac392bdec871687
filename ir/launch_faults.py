"""What a launch must be, beside being made of nodes: TASK_IDs, a number of blocks, a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .core import ScopeStmt, SpmdScopeStmt
from .dtypes import DType
from .dtypes.formats import INTEGER_FORMATS
from .expr import ScalarType, Submit
from .ops.row import is_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dtypes import SimpleDType
    from .expr import Expr


class LaunchFault(NamedTuple):
    """What is wrong with a launch.

    Attributes:
        message: A sentence.
        in_condition: Whether it is the condition under which the launch takes place.
    """

    message: str
    in_condition: bool = False


def launch_faults(launch: Submit | ScopeStmt) -> Iterator[LaunchFault]:
    """Yield what is wrong with a launch whose fields hold expressions."""
    if not all(is_task(dep) for dep in launch.deps):
        yield LaunchFault("A launch must depend on scalars of TASK_ID")
    core_num = launch.core_num if isinstance(launch, Submit | SpmdScopeStmt) else None
    if core_num is not None and _dtype(core_num) not in INTEGER_FORMATS:
        yield LaunchFault("The number of blocks of a launch must be an integer scalar")
    if isinstance(launch, ScopeStmt):
        if launch.task_id is not None and not is_task(launch.task_id):
            name = launch.task_id.name_hint
            yield LaunchFault(f"The name of a launch, {name!r}, must be a scalar of TASK_ID")
    elif launch.predicate is not None and _dtype(launch.predicate) is not DType.Bool:
        message = "The condition of 'predicate' must be a scalar of Bool, such as a comparison"
        yield LaunchFault(message, in_condition=True)


def _dtype(value: Expr) -> SimpleDType | None:
    return value.type.dtype if isinstance(value.type, ScalarType) else None
