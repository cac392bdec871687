"""LegalizeQuantMx: a quantisation of a tile becomes the steps that the vector core does.

    q, s = pl.quant_mx(x, group_axis=0)
    ->  s_codes = tile.quant_scales(x)
        q_rows = tile.quant_elements(x, s_codes)
        q = pl.transpose(q_rows, 0, 1)
        s = tile.scale_boxes(s_codes, layout=MX_B_NN)

The scales and the elements come out of one instruction; between the two nothing stands. Elements of
a left operand are not turned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, EvalStmt, SeqStmts
from ..errors import IRValueError
from ..expr import Call, Op, TupleGetItemExpr, Var
from ..ops import ROWS, create_op_call
from ..ops.rules_quant import LAYOUT_OF_AXIS, group_axis
from ..properties import IRProperty
from ..tile_bytes import ALIGNMENT
from ..types import MemorySpace, constant_dims
from ..verification.walk import statements
from .base import FunctionPass
from .inserting import InsertingMutator
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core import Function, Stmt
    from ..expr import Expr
    from ..ops.row import CallSite

QUANT = "tile.quant_mx"
UNIT = ALIGNMENT[MemorySpace.Vec]


@dataclass(frozen=True)
class LegalizeQuantMx(FunctionPass):
    """Replace quantisations by the steps that they are made of, each with a tile of its own."""

    name = "LegalizeQuantMx"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Replace the quantisations of one function.

        Raises:
            IRValueError: For a result that is not taken apart into elements and scales.
        """
        return _Legalizer(function).rewrite(function)


def _is_quantisation(value: Expr) -> bool:
    return isinstance(value, Call) and value.op == Op(QUANT)


def _names_of_parts(function: Function) -> Iterator[tuple[tuple[Expr, int], str]]:
    """Yield what a function calls the parts of a tuple."""
    for stmt in statements(function.body):
        match stmt:
            case AssignStmt(var, TupleGetItemExpr(tuple=whole, index=part)):
                yield (whole, part), var.name_hint
            case _:
                continue


class _Legalizer(InsertingMutator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._parts: dict[Expr, tuple[Var, Var]] = {}
        self._names = dict(_names_of_parts(function))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = op.value
        if _is_quantisation(value):
            self._parts[op.var] = self._steps(op.var, cast("Call", value))
            return SeqStmts((), op.span)
        if isinstance(value, TupleGetItemExpr) and value.tuple in self._parts:
            self.variables[op.var] = self._parts[value.tuple][value.index]
            return SeqStmts((), op.span)
        return self.visit_children(op)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return SeqStmts((), op.span) if _is_quantisation(op.expr) else self.visit_children(op)

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        parts = self._parts.get(op.tuple)
        return self.visit_children(op) if parts is None else parts[op.index]

    def visit_var(self, op: Var) -> Var:
        if op in self._parts:
            message = (
                "What pl.quant_mx gives must be taken apart where it is made, into elements and "
                "scales, to be compiled"
            )
            hint = "elements, scales = pl.quant_mx(…)"
            raise IRValueError(message, op.span, hint=hint)
        return super().visit_var(op)

    def _steps(self, whole: Var, call: Call) -> tuple[Var, Var]:
        """Insert the steps; return the elements and the scales."""
        site = ROWS[QUANT].site(call.args, call.kwargs, call.span)
        axis = group_axis(site)
        kept = {name: call.kwargs[name] for name in ("dtype", "rule") if name in call.kwargs}
        source = self.visit_expr(call.args[0])

        names = [self._names.get((whole, part), f"{whole.name_hint}_{part}") for part in (0, 1)]

        def made(name: str, step: str, args: list[Expr], **kwargs: object) -> Var:
            value = create_op_call(f"tile.{step}", args, kwargs, call.span)
            return self.assign(name, value, call.span)

        codes = made(f"{names[1]}_codes", "quant_scales", [source], **kept)
        rows = names[0] if axis == 1 else f"{names[0]}_rows"
        elements = made(rows, "quant_elements", [source, codes], **kept)
        if axis == 0:
            _check_turned(site, elements)
            elements = made(names[0], "transpose", [elements], axis1=0, axis2=1)
        scales = made(names[1], "scale_boxes", [codes], layout=LAYOUT_OF_AXIS[axis])
        return elements, scales


def _check_turned(site: CallSite, elements: Var) -> None:
    """Refuse elements whose rows, once they are turned, do not take whole units of UB."""
    tile = tile_of(elements)
    assert tile is not None, elements
    rows, _ = constant_dims(tile.shape) or (0, 0)
    step = UNIT * 8 // tile.dtype.bits
    if rows % step:
        message = (
            f"N must be a multiple of {step} to be compiled, since a row of {tile.dtype.name} must "
            f"take whole {UNIT} bytes, not {rows}"
        )
        raise site.value_error(message, "quantise more rows at once, or fill up with zeros")
