"""Op calls as Python calls: `op.tile.load(tensor, offsets, shapes, target_memory=…)`.

Each namespace holds the ops of the table whose names begin with it, internal ones included. Arguments
are given as in a kernel, by position or keyword; `span` may be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import Span
from .ops import ROWS, create_op_call, get_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from .expr import Call


class Namespace:
    """The ops whose full names begin with `prefix` and a dot."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Call]:
        """Return a function that makes a typed call of the op `prefix.name`."""
        if name.startswith("_"):
            raise AttributeError(name)
        row = get_op(f"{self._prefix}.{name}")

        def make(*args: Any, span: Span | None = None, **kwargs: Any) -> Call:
            operands, attributes = row.bind(args, kwargs, span or Span.unknown())
            return create_op_call(row.name, operands, attributes, span)

        make.__name__ = name
        make.__doc__ = row.doc
        return make

    def __dir__(self) -> list[str]:
        return sorted(n.split(".")[1] for n in ROWS if n.startswith(f"{self._prefix}."))


tile = Namespace("tile")
tensor = Namespace("tensor")
system = Namespace("system")
