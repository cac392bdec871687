"""InitMemRef and MaterializeSemanticAliases: which tiles lie in one buffer."""

import dataclasses

import pytest

from scalebox.ir.core import FunctionType, Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Call, Var, replace
from scalebox.ir.passes import (
    PassContext,
    allocate_memory_addr,
    init_mem_ref,
    insert_mx_scale_addr,
    materialize_semantic_aliases,
    memory_reuse,
)
from scalebox.ir.passes.memrefs import tile_vars, with_memrefs
from scalebox.ir.target import Target, load_target
from scalebox.ir.types import MemRef
from scalebox.ir.visitor import IRMutator

from .kernels import OPERANDS, after, before, buffers, calls_of, kernel, the, tiles
from .memories import Walk

A5 = load_target("a5")


def machine(**settings: int) -> Target:
    return dataclasses.replace(A5, **settings)


def allocated(body: str, target: Target = A5) -> Program:
    with PassContext([], target):
        return after(kernel(body), allocate_memory_addr)


def refused(body: str, target: Target = A5) -> IRValueError:
    with pytest.raises(IRValueError) as caught:
        allocated(body, target)
    return caught.value


# --------------------------------------------------------------------------- InitMemRef


def test_every_tile_gets_a_buffer_of_its_memory_and_its_size() -> None:
    made = after(kernel(OPERANDS), init_mem_ref)
    found = {
        n: (t.memref.name, t.memref.byte_offset, t.memref.size)
        for n, t in tiles(made).items()
        if t.memref
    }
    # 16 x 64 and 64 x 32 bytes of FP8, 16 x 2 and 2 x 32 scales, 16 x 32 sums of four bytes.
    assert found["l"] == ("left_0", -1, 1024)
    assert found["p"] == found["p_bound"] == ("left_0.scale", -1, 32)
    assert found["r"] == ("right_0", -1, 2048)
    assert found["q"] == found["q_bound"] == ("right_0.scale", -1, 64)
    assert found["x"] == ("acc_0", -1, 2048)
    assert init_mem_ref()(made) is made


def test_an_op_in_place_and_another_name_keep_the_buffer() -> None:
    body = f"{OPERANDS}y = pl.matmul_mx_acc(x, l, p, r, q)\nz = y\nm = l\n"
    found = buffers(after(kernel(body), init_mem_ref))
    assert found["x"] == found["y"] == found["z"] == "acc_0"
    assert found["m"] == found["l"]


def test_a_tile_that_has_a_buffer_keeps_it() -> None:
    made = before(kernel(OPERANDS), init_mem_ref)
    ref = MemRef("mine", -1, 1024)
    function = the(made)
    (left,) = (v for v in tile_vars(function) if v.name_hint == "l")
    found = buffers(init_mem_ref()(Program([with_memrefs(function, {left: ref})], "p")))
    assert found["l"] == "mine"
    assert found["p"] == found["p_bound"] == "mine.scale"


def test_a_scale_tile_of_two_data_tiles_has_no_address() -> None:
    # No kernel gets so far: InsertMxScaleAddr moves such a tile again for each.
    more = "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
    made = before(kernel(OPERANDS + more + "x = pl.matmul_mx_acc(x, m, p, r, q)"), init_mem_ref)
    (first, _), *_ = [(v, c) for v, c in calls_of(made, "tile.move") if v.name_hint == "p_again"]

    class OneScale(IRMutator):
        def visit_call(self, op: Call) -> Call:
            if op.name != "tile.tget_scale_addr" or not isinstance(op.args[0], Var):
                return op
            same = op.args[0].name_hint.startswith("p")
            return replace(op, args=(first, op.args[1])) if same else op

    with pytest.raises(IRValueError) as caught:
        init_mem_ref()(OneScale().visit_program(made))
    assert caught.value.message == (
        "The scale tile 'p_again' must serve one data tile of this function, since its address follows "
        "from it, but it serves 'l' and 'm'"
    )


def test_a_scale_tile_that_nobody_binds_has_no_address() -> None:
    made = before(kernel(OPERANDS), insert_mx_scale_addr)
    with pytest.raises(IRValueError) as caught:
        init_mem_ref()(made)
    assert caught.value.message.endswith("since its address follows from it, but it serves none")


@pytest.mark.parametrize(
    "pass_", [init_mem_ref, materialize_semantic_aliases, memory_reuse, allocate_memory_addr]
)
def test_functions_off_the_core_are_left_alone(pass_: type) -> None:
    made = before(kernel(OPERANDS), pass_)
    opaque = Program([replace(the(made), func_type=FunctionType.Opaque)], "p")
    assert pass_()(opaque) is opaque


# --------------------------------------------------------------------------- aliases


LOOP = "for k in pl.range(64, 256, 64):\n    x = pl.matmul_mx_acc(x, l, p, r, q)\n"


def test_what_a_loop_carries_lies_in_one_buffer() -> None:
    found = buffers(after(kernel(OPERANDS + LOOP), materialize_semantic_aliases))
    assert {found[n] for n in found if n.startswith("x")} == {"acc_0"}


def test_what_a_branch_makes_lies_in_one_buffer_and_its_scales_follow() -> None:
    body = f"""{OPERANDS}
m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)
if n > 0:
    m = pl.move(pl.load(a, [0, 128], [16, 64]), pl.Mem.Left)
o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)
x = pl.matmul_mx_acc(x, m, o, r, q)
"""
    found = buffers(after(kernel(body), materialize_semantic_aliases))
    (buffer,) = {found[n] for n in found if n.startswith("m")}
    assert found["o"] == found["o_bound"] == f"{buffer}.scale"
    assert found["l"] != buffer


ACC = "x = pl.matmul_mx_acc(x, l, p, r, q)\n"
OVERWRITTEN = [
    # The old sum is stored after the new one was made in its place.
    ("y = pl.matmul_mx_acc(x, l, p, r, q)\nc = pl.store(x, [0, 0], c)", "x", "y"),
    # A loop adds to what is needed after it, or in its next trip.
    (
        "y = x\nfor k in pl.range(3):\n    y = pl.matmul_mx_acc(y, l, p, r, q)\nc = pl.store(x, [0, 0], c)",
        "x",
        "y",
    ),
    (
        "for k in pl.range(3):\n    y = pl.matmul_mx_acc(x, l, p, r, q)\n    c = pl.store(y, [0, 0], c)",
        "x",
        "y",
    ),
    # Two accumulators that change places.
    (
        "y = pl.matmul_mx(l, p, r, q)\n"
        "for k in pl.range(3):\n    t = x\n    x = y\n    y = pl.matmul_mx_acc(t, l, p, r, q)",
        "x",
        "y",
    ),
    # A branch chooses between two tiles that both exist.
    (
        "y = pl.matmul_mx(l, p, r, q)\nif n > 0:\n    z = x\nelse:\n    z = y\n"
        "c = pl.store(z, [0, 0], c)",
        "x",
        "y",
    ),
    # In one arm only.
    ("if n > 0:\n    y = pl.matmul_mx_acc(x, l, p, r, q)\nc = pl.store(x, [0, 0], c)", "x", "y"),
]


@pytest.mark.parametrize(("more", "needed", "written"), OVERWRITTEN)
def test_a_sum_that_is_needed_must_not_be_overwritten(more: str, needed: str, written: str) -> None:
    error = refused(OPERANDS + more)
    first, second = error.message.split(" must not be needed after this statement, which writes ")
    assert first == f"The tile '{needed}'"
    assert second.startswith(f"'{written}'")
    assert second.endswith(" into the same buffer")
    assert error.hint == "store it before, or compute it again: accumulators cannot be copied"
    assert error.span is not None


def test_a_tile_of_the_last_trip_must_not_be_needed_after_the_next_was_loaded() -> None:
    body = f"""{OPERANDS}
t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
for k in pl.range(64, 256, 64):
    u = pl.load(a, [0, k], [16, 64], target_memory=pl.Mem.Mat)
    x = pl.matmul_mx_acc(x, t, p, r, q)
    t = u
"""
    error = refused(body)
    assert error.message == (
        "The tile 't' must not be needed after this statement, which writes 'u' into the same "
        "buffer"
    )
    assert error.hint == "load or move it again where it is used"


KEPT = [
    "c = pl.store(x, [0, 0], c)\n" + ACC + "c = pl.store(x, [16, 0], c)",
    "if n > 0:\n    " + ACC + "c = pl.store(x, [0, 0], c)",
    "for k in pl.range(3):\n    x = pl.matmul_mx(l, p, r, q)\n    c = pl.store(x, [0, 0], c)",
    "y = x\ny = pl.matmul_mx_acc(y, l, p, r, q)\nc = pl.store(y, [0, 0], c)",
    "if n > 0:\n    y = pl.matmul_mx(l, p, r, q)\nelse:\n    y = x\nc = pl.store(y, [0, 0], c)",
    "for k in pl.range(3):\n    y = pl.matmul_mx(l, p, r, q)\n    for j in pl.range(2):\n"
    "        y = pl.matmul_mx_acc(y, l, p, r, q)\n    c = pl.store(y, [0, 0], c)\nc = pl.store(x, [0, 0], c)",
]


@pytest.mark.parametrize("more", KEPT)
def test_what_is_no_longer_needed_may_be_overwritten(more: str) -> None:
    made = allocated(OPERANDS + more)
    for n in (0, 1):
        Walk(made, {"n": n}, A5)
