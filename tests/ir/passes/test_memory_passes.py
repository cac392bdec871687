"""InitMemRef, MaterializeSemanticAliases, MemoryReuse and AllocateMemoryAddr."""

import dataclasses

import pytest

from scalebox.ir.core import Function, FunctionType, Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Var, replace
from scalebox.ir.passes import (
    PassContext,
    allocate_memory_addr,
    init_mem_ref,
    materialize_semantic_aliases,
    memory_reuse,
)
from scalebox.ir.passes.memrefs import tile_vars, with_memrefs
from scalebox.ir.target import Target, load_target
from scalebox.ir.tile_bytes import ALIGNMENT
from scalebox.ir.types import MemorySpace, MemRef

from .kernels import OPERANDS, after, before, buffers, kernel, the, tiles
from .memories import Overwritten, Walk

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
    assert first.startswith(f"The tile '{needed}")
    assert second.startswith(f"'{written}")
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
        "The tile 't__iter_v1' must not be needed after this statement, which writes 'u' into the same "
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


# --------------------------------------------------------------------------- reuse


SEQUENCE = "".join(
    f"m{i} = pl.load(a, [0, {64 * i}], [128, 256])\n"
    f"o{i} = pl.load(sa, [0, {2 * i}], [128, 8])\n"
    f"y{i} = pl.matmul_mx(m{i}, o{i}, b1, q1)\n"
    for i in range(4)
)
WIDE = "b1 = pl.load(b, [0, 0], [256, 32])\nq1 = pl.load(sb, [0, 0], [8, 32])\n" + SEQUENCE


def test_nothing_is_shared_while_everything_fits() -> None:
    made = before(kernel(OPERANDS), memory_reuse)
    assert memory_reuse()(made) is made


def test_buffers_spread_over_the_room_there_is() -> None:
    # Four left tiles of 32,768 bytes in turn, and room for two.
    found = buffers(after(kernel(WIDE), memory_reuse))
    assert [found[f"m{i}_Left"] for i in range(4)] == ["left_0", "left_1", "left_0", "left_1"]
    assert [found[f"o{i}_LeftScale"] for i in range(4)] == [
        f"{found[f'm{i}_Left']}.scale" for i in range(4)
    ]


def k_loop(stage: int, n: int = 128) -> str:
    """The K-loop whose right tiles take half of L0B at 128 columns."""
    loads = (
        f"pl.load(a, [0, {{k}}], [16, 256]), pl.load(sa, [0, {{g}}], [16, 8]), "
        f"pl.load(b, [{{k}}, 0], [256, {n}]), pl.load(sb, [{{g}}, 0], [8, {n}])"
    )
    first, rest = loads.format(k=0, g=0), loads.format(k="k", g="k // 32")
    return (
        f"x = pl.matmul_mx({first})\n"
        f"for k in pl.pipeline(256, 2048, 256, stage={stage}):\n"
        f"    x = pl.matmul_mx_acc(x, {rest})\n"
        f"c = pl.store(x, [0, 0], c)"
    )


def right_buffers(made: Program, prefix: str) -> dict[str, str]:
    return {
        name: buffer
        for name, buffer in buffers(made).items()
        if tiles(made)[name].memory_space is MemorySpace.Right and prefix in name
    }


def test_the_k_loop_fits_and_its_copies_stay_apart() -> None:
    made = after(kernel(k_loop(2)), memory_reuse)
    found = right_buffers(made, "")
    assert len(found) == 1 + 2 + 1  # the first step, two copies, the trip that is left
    zero, one = (found[n] for n in found if n.endswith(("_s0", "_s1")))
    assert zero != one
    assert set(found.values()) == {zero, one}


def test_more_copies_than_room_share_the_place_that_was_idle_for_longest() -> None:
    made = after(kernel(k_loop(3)), memory_reuse)
    found = right_buffers(made, "")
    zero, one, two = (found[n] for n in found if n.endswith(("_s0", "_s1", "_s2")))
    assert zero == two != one


def test_copies_that_must_share_do() -> None:
    target = machine(l0b_bytes=32768)
    with PassContext([], target):
        made = after(kernel(k_loop(2)), memory_reuse)
    assert len(set(right_buffers(made, "").values())) == 1


def test_what_is_in_use_together_is_never_shared() -> None:
    for stage in (1, 2, 3):
        for bytes_ in (32768, 65536):
            target = machine(l0b_bytes=bytes_, l1_bytes=120_000)
            walk = Walk(allocated(k_loop(stage), target), {"n": 0}, target)
            assert walk.reads > 50


# --------------------------------------------------------------------------- addresses


def refs(made: Program) -> dict[str, MemRef]:
    found: dict[str, MemRef] = {}
    for name, tile in tiles(made).items():
        assert tile.memref is not None
        found[name] = tile.memref
    return found


def test_addresses_count_up_and_scales_lie_at_a_sixteenth_of_their_data() -> None:
    found = refs(allocated(WIDE))
    assert [found[f"m{i}_Left"].byte_offset for i in range(2)] == [0, 32768]
    # 32768 >> 4, once.
    assert [found[f"o{i}_LeftScale"].byte_offset for i in range(2)] == [0, 2048]
    assert [found[f"o{i}_LeftScale_bound"].byte_offset for i in range(2)] == [0, 2048]


def test_every_address_is_aligned_for_its_memory() -> None:
    made = allocated(WIDE)
    for tile in tiles(made).values():
        assert tile.memref is not None
        assert tile.memory_space is not None
        assert tile.memref.byte_offset % ALIGNMENT[tile.memory_space] == 0
    assert allocate_memory_addr()(made) is made


def test_a_tile_larger_than_its_memory_is_refused() -> None:
    error = refused(
        "t = pl.move(pl.load(a, [0, 0], [128, 1024], target_memory=pl.Mem.Mat), pl.Mem.Left)"
    )
    assert error.message == (
        "Left buffer usage must be at most the 65536 bytes of L0A, not 131072 bytes: t (131072 bytes)"
    )
    assert error.hint == "use smaller tiles or fewer stages"
    assert error.span is not None


def test_the_error_lists_what_is_in_use_at_the_worst_moment() -> None:
    # m, u and w are needed together; v is gone by then.
    body = """
v = pl.move(pl.load(a, [0, 0], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
vs = pl.move(pl.load(sa, [0, 0], [128, 4]), pl.Mem.LeftScale)
r = pl.load(b, [0, 0], [128, 32])
q = pl.load(sb, [0, 0], [4, 32])
y = pl.matmul_mx(v, vs, r, q)
m = pl.move(pl.load(a, [0, 0], [128, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
u = pl.move(pl.load(a, [0, 0], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
w = pl.move(pl.load(a, [0, 0], [64, 512], target_memory=pl.Mem.Mat), pl.Mem.Left)
R = pl.load(b, [0, 0], [256, 32])
Q = pl.load(sb, [0, 0], [8, 32])
z = pl.matmul_mx(m, pl.load(sa, [0, 0], [128, 8]), R, Q)
z = pl.matmul_mx(u, pl.load(sa, [0, 0], [128, 4]), r, q)
o = pl.matmul_mx(w, pl.load(sa, [0, 0], [64, 16]), pl.load(b, [0, 0], [512, 32]), pl.load(sb, [0, 0], [16, 32]))
"""
    error = refused(body)
    assert error.message == (
        "Left buffer usage must be at most the 65536 bytes of L0A, not 81920 bytes: m (32768 bytes); "
        "w (32768 bytes); u (16384 bytes)"
    )


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({"l1_bytes": 1024}, "Mat buffer usage must be at most the 1024 bytes of L1, not "),
        ({"l0a_bytes": 512}, "Left buffer usage must be at most the 512 bytes of L0A, not 1024 "),
        (
            {"l0b_bytes": 1024},
            "Right buffer usage must be at most the 1024 bytes of L0B, not 2048 ",
        ),
        ({"l0c_bytes": 1024}, "Acc buffer usage must be at most the 1024 bytes of L0C, not 2048 "),
    ],
)
def test_each_memory_is_named_with_its_limit(settings: dict[str, int], begins: str) -> None:
    assert refused(OPERANDS, machine(**settings)).message.startswith(begins)


def test_a_memory_may_be_filled_to_its_last_byte() -> None:
    exact = machine(l0a_bytes=1024, l0b_bytes=2048, l0c_bytes=2048, bias_bytes=128)
    body = OPERANDS + "d = pl.load(bias, [0, 0], [1, 32])\nx = pl.matmul_mx_bias(l, p, r, q, d)"
    Walk(allocated(body, exact), {"n": 0}, exact)


def test_scales_beyond_their_buffer_are_refused() -> None:
    error = refused(WIDE, machine(scale_a_bytes=2048))
    assert error.message == (
        "The scales of m1_Left, m3_Left must end within the 2048 bytes of the left scale buffer, not at "
        "byte 3072: they lie at their data tile's address >> 4"
    )


# --------------------------------------------------------------------------- the walk itself


def moved(made: Program, changes: dict[str, int]) -> Program:
    """The program with some tiles at other addresses."""
    function: Function = the(made)
    found: dict[Var, MemRef] = {}
    for var in tile_vars(function):
        if var.name_hint in changes:
            ref = tiles(made)[var.name_hint].memref
            assert ref is not None
            found[var] = dataclasses.replace(ref, byte_offset=changes[var.name_hint])
    return Program([with_memrefs(function, found)], "p")


def test_the_walk_notices_a_place_that_two_tiles_share() -> None:
    more = "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n" + ACC
    made = allocated(OPERANDS + more)
    Walk(made, {"n": 0}, A5)
    with pytest.raises(Overwritten):
        Walk(moved(made, {"m": 512}), {"n": 0}, A5)


def test_the_walk_notices_a_scale_at_the_wrong_address() -> None:
    made = allocated(OPERANDS)
    with pytest.raises(AssertionError):
        Walk(moved(made, {"p_bound": 32}), {"n": 0}, A5)


def test_a_long_sequence_shares_all_the_places_there_are() -> None:
    count = 600
    lines = [f"t{i} = pl.load(sa, [0, {2 * (i % 32)}], [16, 2])" for i in range(count)]
    found = refs(allocated("\n".join(lines), machine(l1_bytes=512 * 100)))
    addresses = [found[f"t{i}"].byte_offset for i in range(count)]
    # One after another, each in the place that was idle for longest.
    assert addresses == [512 * (i % 100) for i in range(count)]
