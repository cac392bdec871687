"""Random trees of machine code that share a few small addresses, for tests of their flags."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from scalebox.codegen.access import accesses
from scalebox.codegen.isa.vocabulary import (
    Convert,
    ElementType,
    FixConvert,
    MadInit,
    VectorType,
    VectorUnary,
)
from scalebox.codegen.tensors import Layout, View
from scalebox.codegen.tree import Block, Branch, Loop, Step, While
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import Span
from scalebox.ir.expr import Add, And, ConstInt, Eq, Expr, FloorMod, Lt, ScalarType, Var, index

SPAN = Span("tree", 1, 1, 1, 2)
VIEWS = (
    View(0, Layout.ND, 8, (64, 64), (64, 1)),
    View(1, Layout.ND, 32, (64, 64), (64, 1)),
    View(1, Layout.ND, 8, (64, 256), (256, 1)),
)
PARAMS = tuple(Var(f"p{number}", ScalarType(Index)) for number in range(4))
ZERO = index(0)


def step(mnemonic: str, **fields: int | Expr) -> Step:
    """Return an instruction with the bytes that it touches."""
    return Step(mnemonic, fields, SPAN, *accesses(mnemonic, fields, VIEWS))


def row(slot: int, units: int = 1, view: int = 0) -> Step:
    """MTE2: some bytes from GM into L1; view 2 is of the tensor that `drain` writes."""
    return step("gm_to_l1_row", view=view, xr=ZERO, xc=ZERO, l1=slot * 32, cols=units * 32)


def bias(slot: int, target: int) -> Step:
    """MTE1: 32 bytes from L1 into the bias table."""
    return step("l1_to_bias", src=slot * 32, dst=target * 32, bytes=32)


def left(slot: int, target: int) -> Step:
    """MTE1: 512 bytes from L1 into L0A."""
    return step(
        "l1_to_l0a", src=slot * 32, dst=target * 512, row_boxes=1, col_boxes=1, src_pitch=1, dst_pitch=1
    )  # fmt: skip


def mad(left_box: int, sums: int, init: MadInit = MadInit.ZERO, bias_slot: int = 0) -> Step:
    """M: a product of one box."""
    return step(
        "mad_mx",
        c=sums * 1024,
        a=left_box * 512,
        b=0,
        bias=bias_slot * 32 if init is MadInit.BIAS else 0,
        m=16,
        k=32,
        n=8,
        a_type=ElementType.E4M3,
        b_type=ElementType.E4M3,
        init=init,
    )


def drain(sums: int) -> Step:
    """FIX: sums into GM."""
    return step(
        "l0c_to_gm", view=1, xr=ZERO, xc=ZERO, l0c=sums * 1024, rows=16, cols=16, src_rows=16,
        convert=Convert.FP32,
    )  # fmt: skip


def fetch(tile: int) -> Step:
    """MTE2 of the vector core: a tile of 1 KB from GM into UB."""
    return step(
        "gm_to_ub", view=1, xr=ZERO, xc=ZERO, ub=tile * 1024, rows=16, cols=16, pitch=2
    )  # fmt: skip


def work(source: int, target: int) -> Step:
    """V: a tile from another one."""
    return step(
        "v_unary", dst=target * 1024, src=source * 1024, op=VectorUnary.NEG, type=VectorType.FP32,
        rows=16, cols=16, dst_pitch=2, src_pitch=2,
    )  # fmt: skip


def hand(tile: int, slot: int) -> Step:
    """MTE3: 32 bytes from UB into L1."""
    return step(
        "ub_to_l1", ub=tile * 1024, l1=slot * 32, lines=1, units=1, ub_pitch=1, l1_pitch=1
    )  # fmt: skip


def keep(tile: int) -> Step:
    """MTE3: a tile from UB into GM."""
    return step(
        "ub_to_gm", view=1, xr=ZERO, xc=ZERO, ub=tile * 1024, rows=16, cols=16, pitch=2
    )  # fmt: skip


def give(sums: int, tile: int) -> Step:
    """FIX: sums into UB."""
    return step(
        "l0c_to_ub", l0c=sums * 1024, ub=tile * 1024, core=0, rows=16, cols=16, src_boxes=1,
        convert=FixConvert.FP32, relu=0, pitch=2,
    )  # fmt: skip


_SLOT = st.integers(0, 3)
_FEW = st.integers(0, 1)
STEPS = st.one_of(
    st.builds(row, _SLOT, st.integers(1, 2)),
    st.builds(row, _SLOT, st.just(1), st.just(2)),
    st.builds(bias, _SLOT, _FEW),
    st.builds(left, _SLOT, _FEW),
    st.builds(mad, _FEW, _FEW, st.sampled_from(MadInit), _FEW),
    st.builds(drain, _FEW),
)

BOTH_STEPS = st.one_of(
    STEPS,
    st.builds(give, _FEW, _FEW),
    st.builds(hand, _FEW, _SLOT),
    st.builds(fetch, _FEW),
    st.builds(work, _FEW, _FEW),
    st.builds(keep, _FEW),
)


@dataclass
class _Shape:
    """A loop or a branch without its variables."""

    kind: str
    number: int
    first: "list[Step | _Shape]"
    second: "list[Step | _Shape]"


_LOOP_TRIPS = st.integers(-len(PARAMS), 4)  # negative: an argument of the launch
_TESTS = st.integers(0, 3)


def _nested(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bodies = st.lists(items, max_size=4)
    return st.one_of(
        st.builds(
            _Shape, st.sampled_from(("loop", "loop", "while")), _LOOP_TRIPS, bodies, st.just([])
        ),
        st.builds(_Shape, st.just("branch"), _TESTS, bodies, bodies),
    )


def _trees(
    leaves: int, items: int, steps: st.SearchStrategy[Step] = STEPS
) -> st.SearchStrategy[Block]:
    nested = st.recursive(steps, lambda inner: st.one_of(inner, _nested(inner)), max_leaves=leaves)
    return st.lists(nested, min_size=1, max_size=items).map(build)


ARGUMENTS = st.lists(st.integers(0, 3), min_size=len(PARAMS), max_size=len(PARAMS))


def build(shapes: list[Step | _Shape], loops: tuple[Var, ...] = ()) -> Block:
    """Return a tree with loops from 0 and tests of arguments and loop variables."""
    block = Block()
    for shape in shapes:
        if isinstance(shape, Step):
            copy = Step(shape.mnemonic, shape.fields, SPAN, shape.reads, shape.writes)
            block.items.append(copy)
        elif shape.kind in ("loop", "while"):
            var = Var(f"i{len(loops)}", ScalarType(Index))
            trips = shape.number
            stop: Expr = index(trips) if trips >= 0 else PARAMS[-trips - 1]
            body = build(shape.first, (*loops, var))
            if shape.kind == "loop":
                block.items.append(Loop(var, ZERO, stop, 1, body, SPAN))
            else:
                after = Var(f"n{len(loops)}", ScalarType(Index))
                carried = ((var, ZERO, Add(var, index(1), Index), after),)
                block.items.append(While(Lt(var, stop, DType.Bool), body, SPAN, carried))
        else:
            arms = build(shape.first, loops), build(shape.second, loops)
            block.items.append(Branch(_test(shape.number, loops), *arms, SPAN))
    return block


TREES = _trees(14, 6)
DEEP_TREES = _trees(40, 12)
PAIRED_TREES = _trees(16, 8, BOTH_STEPS)
DEEP_PAIRED_TREES = _trees(40, 12, BOTH_STEPS)


def _test(number: int, loops: tuple[Var, ...]) -> Expr:
    tested: Expr = PARAMS[number]
    if loops and number:
        tested = loops[-min(number, len(loops))]
    odd = Eq(FloorMod(tested, index(2), Index), ConstInt(1, Index), DType.Bool)
    return And(odd, odd, DType.Bool)
