"""BlockMxScaleTensorViews: logical MX scale tensors become rows of 32-byte scale boxes.

    MX_A_ZZ [M, G]  ->  [1, M/16, G/2, 16, 2]
    MX_B_NN [G, N]  ->  [1, N/16, G/2, 16, 2]

Row-major strides over the new shape are the strides in memory, so that MaterializeTensorStrides can
treat the result like any packed tensor. Loads address boxes; their tiles stay logical and rank 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Function, Program
from ..dtypes import DType, Index
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..errors import IRValueError
from ..expr import (
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    IterArg,
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
from ..ops.rules_memory import is_packed
from ..properties import IRProperty
from ..types import SCALE_ARRANGEMENT, MemorySpace, TensorLayout, TensorType, TileType
from ..visitor import IRMutator, rewrite_type, type_exprs
from .base import Pass
from .mx_blocked_types import blocked_shape, blocked_type, by_axis, check_rank, layout_of
from .mx_offset_facts import OffsetFacts
from .mx_offset_proof import (
    PROVABLE_MULTIPLES,
    PROVABLE_SIGNS,
    prove_multiple,
    prove_non_negative,
)

if TYPE_CHECKING:
    from ..errors import Span
    from ..types import Dims

STAMP = "mx_tensor_views_blocked"


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
        if all(STAMP in function.attrs for function in program.functions.values()):
            return program
        facts = OffsetFacts.of(program)
        done = [self._function(f, facts) for f in program.functions.values()]
        return Program(done, program.name, program.span)

    def _function(self, function: Function, facts: OffsetFacts) -> Function:
        if STAMP in function.attrs:
            return function
        blocked = _Blocker(facts, allow_store=self.allow_mx_store).visit_function(function)
        return replace(blocked, attrs=frozen_mapping({**function.attrs, STAMP: True}))


class _Blocker(IRMutator):
    def __init__(self, facts: OffsetFacts, *, allow_store: bool) -> None:
        super().__init__()
        self._facts = facts
        self._allow_store = allow_store
        self._span: Span | None = None

    # ------------------------------------------------------------------- where errors stand

    def visit_function(self, op: Function) -> Function:
        self._span = op.span
        return super().visit_function(op)

    def visit_var(self, op: Var) -> Var:
        outer, self._span = self._span, _place(op, self._span)
        done = super().visit_var(op)
        self._span = outer
        return done

    def visit_iter_arg(self, op: IterArg) -> Var:
        outer, self._span = self._span, _place(op, self._span)
        done = super().visit_iter_arg(op)
        self._span = outer
        return done

    # ------------------------------------------------------------------- types

    def visit_const_int(self, op: ConstInt) -> ConstInt:
        return op

    def visit_type(self, type_: Type) -> Type:
        if isinstance(type_, ScalarType):
            return type_
        if not all(isinstance(dim, ConstInt) for dim in type_exprs(type_)):
            type_ = rewrite_type(type_, self.visit_expr)
        assert self._span is not None
        return blocked_type(type_, self._span)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        self._span = op.span
        var = cast("Var", self.visit(op.var))
        value = self.visit_expr(op.value)
        if var is op.var and value is op.value:
            return op
        return replace(op, var=var, value=value)

    # ------------------------------------------------------------------- calls

    def visit_submit(self, op: Submit) -> Submit:
        self._span = _place(op, self._span)
        return self.visit_children(op)

    def visit_call(self, op: Call) -> Call:
        self._span = _place(op, self._span)
        if isinstance(op.op, GlobalVar):
            return self.visit_children(op)
        mx = [position for position, arg in enumerate(op.args) if _holds_mx(arg)]
        match op.op.name, mx:
            case "tile.load", [0]:
                return self._load(op)
            case "tile.store", [2]:
                return self._store(op)
            case "tensor.view", ([0] | []) if mx or layout_of(op.type):
                return self._view(op)
            case name, [first, *_]:
                message = (
                    f"An MX tensor must be used only by tile.load and by shaped FP8E8M0 tensor.view "
                    f"aliases, not by {name} (argument {first})"
                )
                raise IRValueError(message, op.span)
            case name, _ if layout_of(op.type):
                message = (
                    f"{name} must not make an MX tensor: make it ND in box order and give it the MX "
                    "layout by tensor.view"
                )
                raise IRValueError(message, op.span)
            case _:
                return self.visit_children(op)

    def _load(self, op: Call) -> Call:
        layout = layout_of(op.args[0].type)
        assert layout is not None
        target = op.kwargs.get("target_memory")
        if target is not MemorySpace.Mat:
            found = f'"{target.name}"' if isinstance(target, MemorySpace) else "no target_memory"
            message = (
                "A load of an MX scale tensor must have target_memory=MemorySpace.Mat, not "
                f"{found}: only cube scale loads are supported"
            )
            raise IRValueError(message, op.span)
        tensor = self.visit_expr(op.args[0])
        offsets, window = _coordinates(op, 1), _coordinates(op, 2)
        box = self._blocked_offsets(offsets, layout, op.span)
        physical = _blocked_window(window, layout, op.span)
        _refuse_overhang(op, op.args[0].type, offsets.elements, window.elements)
        valid = (physical,) if len(op.args) > 3 else ()
        return self._rebuilt(op, (tensor, box, physical, *valid), op.type)

    def _store(self, op: Call) -> Call:
        source, _, target, *_ = op.args
        layout = layout_of(target.type)
        assert layout is not None
        if not self._allow_store:
            message = (
                f"A tile must not be stored into an {layout.value} tensor: store its bytes into an ND "
                "tensor and view that as MX in the next kernel"
            )
            raise IRValueError(message, op.span)
        tile = _stored_tile(op, layout)
        tensor = self.visit_expr(target)
        offsets = _coordinates(op, 1)
        box = self._blocked_offsets(offsets, layout, op.span)
        window = _coordinates(op, 3) if len(op.args) > 3 else MakeTuple(tile.shape, op.span)
        physical = _blocked_window(window, layout, op.span)
        _refuse_overhang(op, target.type, offsets.elements, window.elements)
        shapes = (physical,) if len(op.args) > 3 else ()
        args = (self.visit_expr(source), box, tensor, *shapes)
        return self._rebuilt(op, args, self.visit_type(op.type))

    def _view(self, op: Call) -> Call:
        _check_view(op)
        layout = layout_of(op.type)
        if layout is None:
            return self.visit_children(op)
        shape = _blocked_window(_coordinates(op, 1), layout, op.span)
        args = (self.visit_expr(op.args[0]), shape, *map(self.visit_expr, op.args[2:]))
        return self._rebuilt(op, args, self.visit_type(op.type))

    def _rebuilt(self, op: Call, args: tuple[Expr, ...], type_: Type) -> Call:
        """Return `op` with new operands; its keywords and attributes follow renamed variables."""
        parts = {k: v for k, v in self._visit_call_parts(op).items() if k != "type"}
        return replace(op, args=args, type=type_, **parts)

    # ------------------------------------------------------------------- offsets

    def _blocked_offsets(self, offsets: MakeTuple, layout: TensorLayout, span: Span) -> MakeTuple:
        check_rank(offsets.elements, layout, "offset", span)
        block, group = by_axis(offsets.elements, layout)
        quotients = (
            self._quotient(block, BOX_ROWS, "block", span),
            self._quotient(group, BOX_GROUPS, "group", span),
        )
        return MakeTuple((index(0), *quotients, index(0), index(0)), offsets.span)

    def _quotient(self, offset: Expr, divisor: int, axis: str, span: Span) -> Expr:
        where = f"The MX slice offset on the {axis} axis must be"
        if isinstance(offset, ConstInt):
            if offset.value < 0 or offset.value % divisor:
                message = f"{where} a non-negative multiple of {divisor}, not {offset.value}"
                raise IRValueError(message, _place(offset, span))
            return index(offset.value // divisor, offset.span)
        if prove_multiple(self._facts, offset, divisor) is None:
            message = (
                f"{where} a multiple of {divisor}, which cannot be proven here; provable are "
                f"{PROVABLE_MULTIPLES}"
            )
            raise IRValueError(message, _place(offset, span))
        if prove_non_negative(self._facts, offset) is None:
            message = (
                f"{where} non-negative, which cannot be proven here, and a negative one would read the "
                f"wrong box; provable are {PROVABLE_SIGNS}"
            )
            raise IRValueError(message, _place(offset, span))
        return FloorDiv(self.visit_expr(offset), index(divisor), Index, offset.span)


def _place(node: Node, otherwise: Span | None) -> Span:
    """Return where `node` stands, or the place around it."""
    if node.span.is_known or otherwise is None:
        return node.span
    return otherwise


def _holds_mx(arg: Expr) -> bool:
    """Whether an operand is an MX tensor, or holds one in a tuple."""
    if isinstance(arg, MakeTuple):
        return any(_holds_mx(e) for e in arg.elements if not isinstance(e, ConstInt))
    return layout_of(arg.type) is not None


def _coordinates(op: Call, position: int) -> MakeTuple:
    found = op.args[position] if position < len(op.args) else None
    if isinstance(found, MakeTuple):
        return found
    kind = "nothing" if found is None else type(found).__name__
    message = f"Argument {position} of {op.op.name} must be a tuple of coordinates, not {kind}"
    raise IRValueError(message, op.span)


def _blocked_window(window: MakeTuple, layout: TensorLayout, span: Span) -> MakeTuple:
    shape = blocked_shape(window.elements, layout, _place(window, span))
    return MakeTuple(shape, window.span)


def _refuse_overhang(op: Call, type_: Type, offsets: Dims, window: Dims) -> None:
    """Refuse a window that provably leaves the tensor: its boxes would lie elsewhere."""
    assert isinstance(type_, TensorType)
    for axis, dims in enumerate(zip(offsets, window, type_.shape, strict=True)):
        known = [e.value for e in dims if isinstance(e, ConstInt)]
        if len(known) < 3:
            continue
        first, count, limit = known
        if first + count > limit:
            message = (
                f"The window of {op.op.name} must lie within the {type_.layout.value} tensor: on axis "
                f"{axis} it covers {first}..{first + count - 1} of {limit}"
            )
            raise IRValueError(message, op.span)


def _check_view(op: Call) -> None:
    """Check that a view with an MX side is one between shaped FP8E8M0 tensors in ND and MX."""
    source, result = op.args[0].type if op.args else None, op.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        message = f"{op.op.name} must look at a tensor and give a tensor"
        raise IRValueError(message, op.span)
    names = f"{source.layout.value} as {result.layout.value}"
    if TensorLayout.ND not in (source.layout, result.layout):
        message = f"An MX layout must be viewed from ND or as ND, not {names}"
        raise IRValueError(message, op.span)
    if len(op.args) < 2:
        message = f"A tensor.view of {names} must be given its shape"
        raise IRValueError(message, op.span)
    if source.dtype is not DType.E8M0:
        message = f"A tensor.view of {names} must hold FP8E8M0, not {source.dtype.name}"
        raise IRValueError(message, op.span)
    if source.stride and not is_packed(source):
        message = f"A tensor.view of {names} must look at a packed tensor, not a strided one"
        raise IRValueError(message, op.span)


def _stored_tile(op: Call, layout: TensorLayout) -> TileType:
    """Return the type of a tile that can be stored into an MX tensor."""
    tile = op.args[0].type
    if not isinstance(tile, TileType) or tile.dtype is not DType.E8M0:
        message = f"Only an FP8E8M0 tile can be stored into an {layout.value} tensor"
        raise IRValueError(message, op.span)
    found, wanted = (tile.get_effective_tile_view().arrangement, SCALE_ARRANGEMENT[layout])
    if found != wanted:
        message = (
            f"A tile stored into an {layout.value} tensor must be arranged "
            f"{wanted[0].value}/{wanted[1].value}/{wanted[2]}, not "
            f"{found[0].value}/{found[1].value}/{found[2]}"
        )
        raise IRValueError(message, op.span)
    if tile.tile_view is not None and tile.tile_view.valid_shape:
        message = f"A tile stored into an {layout.value} tensor must be valid as a whole"
        raise IRValueError(message, op.span)
    return tile
