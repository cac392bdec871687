"""Random scalar programs, and what the interpreter says they compute.

A program is a tree whose only instructions show two scalars each. It is emitted and run on the scalar
unit; the interpreter evaluates the same expressions on the way that the tree describes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from scalebox.codegen.tree import Block, Branch, Let, Loop, Step, While
from scalebox.ir import scalar_ops
from scalebox.ir.dtypes import DType, Index, SimpleDType, UInt8, UInt32
from scalebox.ir.dtypes.formats import INTEGER_FORMATS
from scalebox.ir.errors import Span
from scalebox.ir.expr import (
    Add,
    And,
    BitShiftLeft,
    BitShiftRight,
    Call,
    ConstBool,
    ConstInt,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    ScalarType,
    Sub,
    Submit,
    Var,
)
from scalebox.ir.interp.budget import Budget
from scalebox.ir.interp.frame import Frame
from scalebox.ir.ops.values import Progress
from scalebox.ir.scalar_ops import binary

SPAN = Span("scalars", 3, 5, 3, 9)
DTYPES = (Index, Index, Index, DType.Int32, DType.Int8, UInt8, UInt32, DType.Bool)
PARAMS = tuple(
    Var(f"p{number}", ScalarType(dtype))
    for number, dtype in enumerate((Index, Index, DType.Int8, DType.Bool))
)
EDGES = (0, 1, -1, 2, 7, 31, 32, 63, 64, 127, 128, -128, 255, 1 << 31, -(1 << 31), (1 << 31) - 1,
         1 << 32, (1 << 63) - 1, -(1 << 63), 1 << 62, 0x123456789ABCDEF)  # fmt: skip
_ARITHMETIC = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)
_SHIFTS = (BitShiftLeft, BitShiftRight)
_COMPARISONS = (Eq, Ne, Lt, Le, Gt, Ge)


def in_range(value: int, dtype: SimpleDType) -> int:
    row = INTEGER_FORMATS[dtype]
    return (value - row.min) % (1 << row.bits) + row.min


def dtype_of(expr: Expr) -> SimpleDType:
    assert isinstance(expr.type, ScalarType)
    return expr.type.dtype


@st.composite
def expressions(draw: st.DrawFn, scope: tuple[Var, ...], dtype: SimpleDType, depth: int) -> Expr:
    """Draw an expression of a dtype over the variables in scope."""
    fitting = [var for var in scope if dtype_of(var) is dtype]
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        if fitting and draw(st.booleans()):
            return draw(st.sampled_from(fitting))
        if dtype is DType.Bool:
            return ConstBool(draw(st.booleans()))
        return ConstInt(in_range(draw(st.sampled_from(EDGES)), dtype), dtype)

    def inner(kind: SimpleDType) -> Expr:
        return draw(expressions(scope, kind, depth - 1))

    if dtype is DType.Bool:
        match draw(st.integers(0, 3)):
            case 0:
                return scalar_ops.not_(inner(dtype))
            case 1:
                return binary(draw(st.sampled_from((And, Or))), inner(dtype), inner(dtype))
            case 2:
                return scalar_ops.cast(inner(Index), dtype)
            case _:
                kind = draw(st.sampled_from((Index, DType.Int32, UInt8)))
                return binary(draw(st.sampled_from(_COMPARISONS)), inner(kind), inner(kind))
    match draw(st.integers(0, 6)):
        case 0:
            return scalar_ops.neg(inner(dtype))
        case 1:
            return scalar_ops.bit_not(inner(dtype))
        case 2:
            return scalar_ops.cast(inner(draw(st.sampled_from(DTYPES))), dtype)
        case 3:
            count = binary(FloorMod, inner(dtype), ConstInt(70, Index))
            shifted = binary(draw(st.sampled_from(_SHIFTS)), inner(dtype), count)
            return scalar_ops.cast(shifted, dtype)
        case _:
            return binary(draw(st.sampled_from(_ARITHMETIC)), inner(dtype), inner(dtype))


@dataclass
class _Names:
    count: int = 0

    def fresh(self, dtype: SimpleDType) -> Var:
        self.count += 1
        return Var(f"v{self.count}", ScalarType(dtype))


@st.composite
def programs(draw: st.DrawFn, depth: int) -> Block:
    """Draw a program over `PARAMS`, its loops and branches nested up to `depth` deep."""
    block, _ = draw(_scoped(PARAMS, _Names(), depth))
    return block


@st.composite
def _scoped(
    draw: st.DrawFn, scope: tuple[Var, ...], names: _Names, depth: int
) -> tuple[Block, tuple[Var, ...]]:
    """Draw a block and the scope at its end."""
    block = Block()
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.integers(0, 5 if depth else 2)):
            case 0 | 1:
                var = names.fresh(draw(st.sampled_from(DTYPES)))
                value = draw(expressions(scope, dtype_of(var), 3))
                block.items.append(Let(var, value, SPAN))
                scope = (*scope, var)
            case 2:
                block.items.append(shown(*(draw(expressions(scope, Index, 3)) for _ in range(2))))
            case 3 | 4:
                loops = draw(st.sampled_from((_loops, _loops, _whiles)))
                loop, results = draw(loops(scope, names, depth))
                block.items.append(loop)
                scope = (*scope, *results)
            case _:
                branch, results = draw(_branches(scope, names, depth))
                block.items.append(branch)
                scope = (*scope, *results)
    last = draw(st.sampled_from(scope))
    block.items.append(shown(scalar_ops.cast(last, Index), ConstInt(0, Index)))
    return block, scope


def shown(first: Expr, second: Expr) -> Step:
    """Return an instruction that has two scalars in registers."""
    return Step("gm_to_l1_row", {"view": 0, "xr": first, "xc": second, "l1": 0, "cols": 32}, SPAN)


@st.composite
def _loops(
    draw: st.DrawFn, scope: tuple[Var, ...], names: _Names, depth: int
) -> tuple[Loop, tuple[Var, ...]]:
    def bound() -> Expr:
        if draw(st.booleans()):
            return ConstInt(draw(st.integers(-3, 3)), Index)
        some = binary(FloorMod, draw(expressions(scope, Index, 2)), ConstInt(7, Index))
        return binary(Sub, some, ConstInt(3, Index))

    start, stop = bound(), bound()
    step = draw(st.sampled_from((1, 1, 2, -1, -2, 1 << 40)))
    kinds = [draw(st.sampled_from(DTYPES)) for _ in range(draw(st.integers(0, 2)))]
    firsts = [draw(expressions(scope, kind, 2)) for kind in kinds]
    args = [names.fresh(kind) for kind in kinds]
    var = names.fresh(Index)
    body, inner = draw(_scoped((*scope, var, *args), names, depth - 1))
    values = [draw(expressions(inner, kind, 2)) for kind in kinds]
    results = [names.fresh(kind) for kind in kinds]
    carried = tuple(zip(args, firsts, values, results, strict=True))
    return Loop(var, start, stop, step, body, SPAN, carried), tuple(results)


@st.composite
def _whiles(
    draw: st.DrawFn, scope: tuple[Var, ...], names: _Names, depth: int
) -> tuple[While, tuple[Var, ...]]:
    """Draw a loop that goes on while a counter, and perhaps something else, holds."""
    counter, after = names.fresh(Index), names.fresh(Index)
    kind = draw(st.sampled_from(DTYPES))
    arg, result = names.fresh(kind), names.fresh(kind)
    first = draw(expressions(scope, kind, 2))
    within = binary(Lt, counter, ConstInt(draw(st.integers(-1, 4)), Index))
    also = draw(expressions((*scope, arg), DType.Bool, 2))
    condition = binary(And, within, also) if draw(st.booleans()) else within
    body, inner = draw(_scoped((*scope, counter, arg), names, depth - 1))
    value = draw(expressions(inner, kind, 2))
    start, more = ConstInt(0, Index), binary(Add, counter, ConstInt(1, Index))
    carried = ((arg, first, value, result), (counter, start, more, after))
    return While(condition, body, SPAN, carried), (result, after)


@st.composite
def _branches(
    draw: st.DrawFn, scope: tuple[Var, ...], names: _Names, depth: int
) -> tuple[Branch, tuple[Var, ...]]:
    condition = draw(expressions(scope, DType.Bool, 2))
    then_body, then_scope = draw(_scoped(scope, names, depth - 1))
    else_body, else_scope = draw(_scoped(scope, names, depth - 1))
    if draw(st.booleans()):
        else_body, else_scope = Block(), scope
    kinds = [draw(st.sampled_from(DTYPES)) for _ in range(draw(st.integers(0, 2)))]
    results = tuple(
        (
            names.fresh(kind),
            draw(expressions(then_scope, kind, 2)),
            draw(expressions(else_scope, kind, 2)),
        )
        for kind in kinds
    )
    branch = Branch(condition, then_body, else_body, SPAN, results)
    return branch, tuple(var for var, _, _ in results)


# --------------------------------------------------------------------------- evaluation


class _Alone:
    """What a scalar program may ask of a program around it: nothing."""

    progress = Progress()
    budget = Budget("a scalar program")

    def call(self, call: Call | Submit, values: list[Any]) -> tuple[Any, ...]:
        message = f"a scalar program calls nothing, not {call.op.name} of {values}"
        raise AssertionError(message)

    def leave_out(self, submit: Submit, values: list[Any]) -> tuple[Any, ...]:
        return self.call(submit, values)


def evaluate(block: Block, arguments: dict[Var, int | bool]) -> list[tuple[int, int]]:
    """Return what the program shows, by the interpreter; it raises as the interpreter does."""
    return [(fields["xr"], fields["xc"]) for _, fields in steps_run(block, arguments)]


def steps_run(
    block: Block, arguments: Mapping[Var, int | bool]
) -> list[tuple[Step, dict[str, int]]]:
    """Return the instructions that a tree runs, and the values of their register fields."""
    values: dict[Var, Any] = dict(arguments)
    frame = Frame(values, _Alone(), "group")
    out: list[tuple[Step, dict[str, int]]] = []

    def run(block: Block) -> None:
        for item in block.items:
            match item:
                case Step():
                    fields = item.fields.items()
                    shown = {n: int(frame.evaluate(v)) for n, v in fields if isinstance(v, Expr)}
                    out.append((item, shown))
                case Let():
                    values[item.var] = frame.evaluate(item.value)
                case Loop():
                    start, stop = frame.evaluate(item.start), frame.evaluate(item.stop)
                    for arg, first, _, _ in item.carried:
                        values[arg] = frame.evaluate(first)
                    for number in range(start, stop, item.step):
                        values[item.var] = number
                        run(item.body)
                        new = [frame.evaluate(value) for _, _, value, _ in item.carried]
                        for (arg, *_), value in zip(item.carried, new, strict=True):
                            values[arg] = value
                    for arg, _, _, result in item.carried:
                        values[result] = values[arg]
                case While():
                    for arg, first, _, _ in item.carried:
                        values[arg] = frame.evaluate(first)
                    while frame.evaluate(item.condition):
                        run(item.body)
                        new = [frame.evaluate(value) for _, _, value, _ in item.carried]
                        for (arg, *_), value in zip(item.carried, new, strict=True):
                            values[arg] = value
                    for arg, _, _, result in item.carried:
                        values[result] = values[arg]
                case Branch():
                    taken = bool(frame.evaluate(item.condition))
                    run(item.then_body if taken else item.else_body)
                    for var, first, second in item.results:
                        values[var] = frame.evaluate(first if taken else second)

    run(block)
    return out
