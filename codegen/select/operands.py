"""What the rules of instruction selection share: the kernel's tensors and views, and how steps are made.

A rule turns one call into instructions, often one, perhaps none. Tables of rules are merged in
:mod:`.select_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from ...ir.core import SeqStmts
from ...ir.errors import IRTypeError
from ...ir.expr import Call, Expr, MakeTuple, Var
from ...ir.ranges import Ranges
from ...ir.types import TensorLayout
from ..access import accesses
from ..tensors import Layout, View
from ..tree import Step
from .padding import ScaledBuffers
from .places import constant

if TYPE_CHECKING:
    from ...ir.dtypes import SimpleDType
    from ...ir.types import TensorType
    from ..tree import Fields, Region

_MATRIX_RANK = 2


@dataclass
class Operands:
    """What the rules know of a kernel beyond the call in hand.

    Attributes:
        tensors: The number of the parameter whose tensor each variable stands for.
        data_of: The data tile that each scale tile is bound to.
        views: What the instructions' view fields index, so far.
        ranges: What values scalars can take.
        scaled: The buffers of block-scaled data.
        made_by: The call that made each tile, so far.
        wanted: The variables whose values somebody wants; a tile that is not among them may hold
            anything.
    """

    tensors: dict[Var, int] = field(default_factory=dict[Var, int])
    data_of: dict[Var, Var] = field(default_factory=dict[Var, Var])
    views: list[View] = field(default_factory=list[View])
    ranges: Ranges = field(default_factory=lambda: Ranges(SeqStmts(())))
    scaled: ScaledBuffers = field(default_factory=ScaledBuffers)
    made_by: dict[Var, Call] = field(default_factory=dict[Var, Call])
    wanted: set[Var] = field(default_factory=set[Var])
    _index_of: dict[View, int] = field(default_factory=dict[View, int])

    def view(self, tensor: Expr, call: Call) -> int:
        """Return the number of the view of a whole tensor."""
        type_ = cast("TensorType", tensor.type)
        view = View(
            self.tensors[cast("Var", tensor)],
            Layout(type_.layout.value.lower()),
            cast("SimpleDType", type_.dtype).bits,
            constant(type_.shape, "The shape of a tensor that is compiled", call.span),
            constant(type_.stride, "The strides of a tensor that is compiled", call.span),
        )
        return self.number(view)

    def number(self, view: View) -> int:
        """Return the number of a view; equal ones have one."""
        if view not in self._index_of:
            self._index_of[view] = len(self.views)
            self.views.append(view)
        return self._index_of[view]

    def matrix(self, call: Call, position: int) -> int:
        """Return the view of a tensor operand of rank 2, row by row or column by column."""
        tensor = call.args[position]
        type_ = cast("TensorType", tensor.type)
        layouts = (TensorLayout.ND, TensorLayout.DN)
        if type_.layout not in layouts or len(type_.shape) != _MATRIX_RANK:
            message = (
                f"{call.op.name} must take a rank-2 tensor in ND or DN here, not one of rank "
                f"{len(type_.shape)} in {type_.layout.name}"
            )
            raise IRTypeError(message, call.span)
        return self.view(tensor, call)

    def step(
        self,
        mnemonic: str,
        fields: Fields,
        call: Call,
        *,
        within: Region | None = None,
        into: Region | None = None,
    ) -> Step:
        """Return an instruction with the bytes that it touches.

        `within` is all that it can read and `into` all that it can write, where registers say what
        of them.
        """
        reads, writes = accesses(mnemonic, fields, self.views)
        return Step(
            mnemonic,
            fields,
            call.span,
            reads if within is None else (within,),
            writes if into is None else (into,),
        )


Rule: TypeAlias = Callable[[Operands, Var | None, Call], tuple[Step, ...]]
"""Turns a call, whose result is assigned to a variable or dropped, into its instructions."""


def coordinates(call: Call, position: int) -> tuple[Expr, ...]:
    """Return the elements of an operand that is a list."""
    return cast("MakeTuple", call.args[position]).elements
