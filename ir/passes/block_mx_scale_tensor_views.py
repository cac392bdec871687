"""BlockMxScaleTensorViews: logical MX scale tensors become rows of 32-byte scale boxes.

    MX_A_ZZ [M, G]  ->  [1, M/16, G/2, 16, 2]
    MX_B_NN [G, N]  ->  [1, N/16, G/2, 16, 2]

Row-major strides over the new shape are the strides in memory, so that MaterializeTensorStrides can
treat the result like any packed tensor. Loads address boxes; their tiles stay logical and rank 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Function, Program, Stmt
from ..dtypes import Index
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..errors import IRValueError, Span
from ..expr import (
    BinaryExpr,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    MakeTuple,
    Node,
    ScalarType,
    Submit,
    Type,
    Var,
    frozen_mapping,
    index,
    replace,
)
from ..node_exprs import type_exprs
from ..properties import IRProperty
from ..types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TupleType,
)
from ..visitor import IRMutator, rewrite_type
from .base import Pass
from .mx_blocked_types import blocked_shape, blocked_type, by_axis, check_rank, layout_of
from .mx_box_layout import assert_box_is_addressed
from .mx_offset_facts import OffsetFacts
from .mx_offset_proof import (
    BUDGET,
    PROVABLE_MULTIPLES,
    PROVABLE_SIGNS,
    prove_multiple,
    prove_non_negative,
)
from .mx_op_checks import check_count, check_result, check_view, stored_tile, told_target

if TYPE_CHECKING:
    from ..core import SeqStmts
    from ..types import Dims

STAMP = "mx_tensor_views_blocked"
#: What an error can stand at; of an expression the call around it counts.
_PLACES = (Stmt, Call, Submit, Var)


@dataclass(frozen=True)
class BlockMxScaleTensorViews(Pass):
    """Rewrite MX scale tensors, and every operation whose coordinates depend on their form.

    `allow_mx_store` also accepts a store into an MX tensor, from a scale tile of the matching
    orientation. Every function is stamped; a stamped function is returned as it is.
    """

    allow_mx_store: bool = False

    name = "BlockMxScaleTensorViews"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform(self, program: Program) -> Program:
        """Block every function that does not carry the stamp.

        Raises:
            IRValueError: For an MX tensor or an offset that has no blocked form, and for an op that
                must not use an MX tensor.
        """
        if all(map(_is_stamped, program.functions.values())):
            return program
        facts = OffsetFacts.of(program)
        done = [self._function(f, facts) for f in program.functions.values()]
        return Program(done, program.name, program.span)

    def _function(self, function: Function, facts: OffsetFacts) -> Function:
        if _is_stamped(function):
            return function
        blocked = _Blocker(facts, allow_store=self.allow_mx_store).visit_function(function)
        return replace(blocked, attrs=frozen_mapping({**function.attrs, STAMP: True}))


def _is_stamped(function: Function) -> bool:
    return function.attrs.get(STAMP) is True


class _Blocker(IRMutator):
    def __init__(self, facts: OffsetFacts, *, allow_store: bool) -> None:
        super().__init__()
        self._facts = facts
        self._allow_store = allow_store
        self._span = Span.unknown()
        self._done: dict[Node, Node] = {}
        self._types: dict[int, tuple[Type, Type]] = {}
        self._tuples_with_mx: dict[MakeTuple, bool] = {}

    # ------------------------------------------------------------------- once each, and where

    def visit_function(self, op: Function) -> Function:
        self._span = op.span
        return super().visit_function(op)

    def visit(self, node: Node) -> Node:
        """Rewrite a node once, in however many places it stands; errors stand at the innermost."""
        if isinstance(node, ConstInt):
            return node
        done = self._done.get(node)
        if done is None:
            outer = self._span
            if isinstance(node, _PLACES) and node.span.is_known:
                self._span = node.span
            done = self._binary(node) if isinstance(node, BinaryExpr) else super().visit(node)
            self._done[node] = done
            self._span = outer
        return done

    def _binary(self, op: BinaryExpr) -> BinaryExpr:
        """Rewrite an operator with few frames a level, as long sums are deep."""
        left, right = self.visit(op.left), self.visit(op.right)
        same = left is op.left and right is op.right
        return op if same else replace(op, left=left, right=right)

    # ------------------------------------------------------------------- types

    def visit_type(self, type_: Type) -> Type:
        if isinstance(type_, ScalarType):
            return type_
        known = self._types.get(id(type_))
        if known is None:
            # The type is kept beside its form: its id stays its own.
            known = self._types[id(type_)] = (type_, self._blocked_type(type_))
        return known[1]

    def _blocked_type(self, type_: Type) -> Type:
        if isinstance(type_, TupleType):
            types = tuple(map(self.visit_type, type_.types))
            same = all(a is b for a, b in zip(types, type_.types, strict=True))
            return type_ if same else TupleType(types)
        if not all(isinstance(dim, ConstInt) for dim in type_exprs(type_)):
            type_ = rewrite_type(type_, self.visit_expr)
        return blocked_type(type_, self._span)

    # ------------------------------------------------------------------- statements

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        return self.visit_children(op)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        var = cast("Var", self.visit(op.var))
        value = self.visit_expr(op.value)
        if var is op.var and value is op.value:
            return op
        return replace(op, var=var, value=value)

    # ------------------------------------------------------------------- calls

    def visit_call(self, op: Call) -> Call:
        if isinstance(op.op, GlobalVar):
            return self.visit_children(op)
        mx = [position for position, arg in enumerate(op.args) if self._holds_mx(arg)]
        makes_mx = self._is_mx(op.type)
        match op.op.name, mx:
            case "tile.load", [0]:
                return self._load(op)
            case "tile.store", [2]:
                return self._store(op)
            case "tensor.view", ([0] | []) if mx or makes_mx:
                return self._view(op)
            case name, [first, *_]:
                message = (
                    f"An MX tensor must be used only by tile.load and by shaped FP8E8M0 tensor.view "
                    f"aliases, not by {name} (argument {first})"
                )
                raise IRValueError(message, self._span)
            case name, _ if makes_mx:
                message = (
                    f"{name} must not make an MX tensor: make it ND in box order and give it the MX "
                    "layout by tensor.view"
                )
                raise IRValueError(message, self._span)
            case _:
                return self.visit_children(op)

    def _holds_mx(self, arg: Expr) -> bool:
        """Whether an operand is an MX tensor, or a tuple with one in it."""
        if not isinstance(arg, MakeTuple):
            return not isinstance(arg, ConstInt) and self._is_mx(arg.type)
        known = self._tuples_with_mx.get(arg)
        if known is None:
            known = any(map(self._holds_mx, arg.elements))
            self._tuples_with_mx[arg] = known
        return known

    def _is_mx(self, type_: Type) -> bool:
        """Whether a type is that of an MX tensor, or of a tuple with one in it."""
        if isinstance(type_, TupleType):
            return self.visit_type(type_) is not type_
        return layout_of(type_) is not None

    def _load(self, op: Call) -> Call:
        source, *rest = op.args
        layout = layout_of(source.type)
        check_count(op, 4, self._span)
        tensor = self.visit_expr(source)
        target = op.kwargs.get("target_memory")
        if target is not MemorySpace.Mat:
            message = (
                "A load of an MX scale tensor must have target_memory=MemorySpace.Mat, not "
                f"{told_target(target)}: only cube scale loads are supported"
            )
            raise IRValueError(message, self._span)
        offsets, window = self._coordinates(op, 1), self._coordinates(op, 2)
        assert layout is not None
        box = self._blocked_offsets(offsets, tensor, layout)
        physical = self._blocked_window(window, layout)
        self._refuse_overhang(op.name, source.type, offsets.elements, window.elements)
        if len(rest) < 3:
            return self._rebuilt(op, (tensor, box, physical), op.type)
        check_rank(self._coordinates(op, 3).elements, layout, "valid_shape", self._span)
        return self._rebuilt(op, (tensor, box, physical, physical), op.type)

    def _store(self, op: Call) -> Call:
        source, _, target, *_ = op.args
        layout = layout_of(target.type)
        assert layout is not None
        if not self._allow_store:
            message = (
                f"A tile must not be stored into an {layout.value} tensor: store its bytes into an ND "
                "tensor and view that as MX in the next kernel"
            )
            hint = (
                "scalebox.compile(program, allow_mx_store=True) takes a tile of scales in the layout "
                f"{layout.value}, for scalebox.run to run; a published device has no such store"
            )
            raise IRValueError(message, self._span, hint=hint)
        check_count(op, 4, self._span)
        tile = stored_tile(source.type, layout, self._span)
        tensor = self.visit_expr(target)
        offsets = self._coordinates(op, 1)
        box = self._blocked_offsets(offsets, tensor, layout)
        window = self._coordinates(op, 3) if len(op.args) > 3 else MakeTuple(tile.shape, op.span)
        physical = self._blocked_window(window, layout)
        self._refuse_overhang(op.name, target.type, offsets.elements, window.elements)
        shapes = (physical,) if len(op.args) > 3 else ()
        args = (self.visit_expr(source), box, tensor, *shapes)
        return self._rebuilt(op, args, self.visit_type(op.type))

    def _view(self, op: Call) -> Call:
        check_view(op, self._span)
        layout = layout_of(op.type)
        if layout is None:
            return self.visit_children(op)
        check_count(op, 2, self._span)
        shape = self._blocked_window(self._coordinates(op, 1), layout)
        type_ = self.visit_type(op.type)
        check_result(op, shape, type_, self._span)
        return self._rebuilt(op, (self.visit_expr(op.args[0]), shape), type_)

    def _rebuilt(self, op: Call, args: tuple[Expr, ...], type_: Type) -> Call:
        """Return `op` with new operands; its keywords and attributes follow renamed variables."""
        parts = {k: v for k, v in self._visit_call_parts(op).items() if k != "type"}
        return replace(op, args=args, type=type_, **parts)

    # ------------------------------------------------------------------- coordinates

    def _coordinates(self, op: Call, position: int) -> MakeTuple:
        found = op.args[position] if position < len(op.args) else None
        if isinstance(found, MakeTuple):
            return found
        kind = "nothing" if found is None else type(found).__name__
        message = f"Argument {position} of {op.name} must be a tuple of coordinates, not {kind}"
        raise IRValueError(message, self._span)

    def _blocked_window(self, window: MakeTuple, layout: TensorLayout) -> MakeTuple:
        shape = blocked_shape(window.elements, layout, _place(window, self._span))
        return MakeTuple(shape, window.span)

    def _blocked_offsets(self, offsets: MakeTuple, tensor: Expr, layout: TensorLayout) -> MakeTuple:
        check_rank(offsets.elements, layout, "offset", self._span)
        block, group = by_axis(offsets.elements, layout)
        quotients = (
            self._quotient(block, BOX_ROWS, "block"),
            self._quotient(group, BOX_GROUPS, "group"),
        )
        box = MakeTuple((index(0), *quotients, index(0), index(0)), offsets.span)
        assert isinstance(tensor.type, TensorType)
        logical = tuple(map(self.visit_expr, offsets.elements))
        assert_box_is_addressed(box.elements, logical, tensor.type.shape, layout)
        return box

    def _quotient(self, offset: Expr, divisor: int, axis: str) -> Expr:
        where = f"The MX slice offset on the {axis} axis must be"
        place = _place(offset, self._span)
        if isinstance(offset, ConstInt):
            if offset.value < 0 or offset.value % divisor:
                message = f"{where} a non-negative multiple of {divisor}, not {offset.value}"
                raise IRValueError(message, place)
            return index(offset.value // divisor, offset.span)
        if prove_multiple(self._facts, offset, divisor) is None:
            message = (
                f"{where} a multiple of {divisor}, which cannot be proven here in {BUDGET} steps; "
                f"provable are {PROVABLE_MULTIPLES}"
            )
            raise IRValueError(message, place)
        if prove_non_negative(self._facts, offset) is None:
            message = (
                f"{where} non-negative, which cannot be proven here in {BUDGET} steps, and a negative "
                f"one would read the wrong box; provable are {PROVABLE_SIGNS}"
            )
            raise IRValueError(message, place)
        return FloorDiv(self.visit_expr(offset), index(divisor), Index, place)

    def _refuse_overhang(self, name: str, type_: Type, offsets: Dims, window: Dims) -> None:
        """Refuse a window that provably leaves the tensor: its boxes would lie elsewhere."""
        assert isinstance(type_, TensorType)
        for axis, dims in enumerate(zip(offsets, window, type_.shape, strict=True)):
            known = [e.value for e in dims if isinstance(e, ConstInt)]
            if len(known) < 3:
                continue
            first, count, limit = known
            if first + count > limit:
                message = (
                    f"The window of {name} must lie within the {type_.layout.value} tensor: on axis "
                    f"{axis} it covers {first}..{first + count - 1} of {limit}"
                )
                raise IRValueError(message, self._span)


def _place(node: Expr, otherwise: Span) -> Span:
    """Return where an operand is written; a variable says where it is defined, not where it is used."""
    return node.span if node.span.is_known and not isinstance(node, Var) else otherwise
