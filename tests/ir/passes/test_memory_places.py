"""MemoryReuse and AllocateMemoryAddr: which buffers share a place, and where it is."""

import dataclasses

import pytest

from scalebox.ir.core import Function, Program
from scalebox.ir.errors import IRValueError, Span
from scalebox.ir.passes import (
    PassContext,
    allocate_memory_addr,
    memory_reuse,
)
from scalebox.ir.passes.lifetimes import Buffer
from scalebox.ir.passes.memory_reuse import Slot
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


# --------------------------------------------------------------------------- reuse


SEQUENCE = "".join(
    f"m{i} = pl.load(a, [0, {64 * i}], [128, 256], target_memory=pl.Mem.Mat)\n"
    f"m{i}_Left = pl.move(m{i}, pl.Mem.Left)\n"
    f"o{i}_LeftScale = pl.move(pl.load(sa, [0, {2 * i}], [128, 8]), pl.Mem.LeftScale)\n"
    f"y{i} = pl.matmul_mx(m{i}_Left, o{i}_LeftScale, b1, q1)\n"
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


def test_copies_stay_apart_where_others_must_share_for_it() -> None:
    # Left tiles of 16,384 bytes, of which four fit, and a small one that is needed all the time: a place
    # for each of u0, u1, u2 and the first copy would leave none for it.
    big = "pl.load(a, [0, {0}], [128, 128]), pl.load(sa, [0, 0], [128, 4]), r1, q1"
    first = "".join(f"u{i} = pl.matmul_mx({big.format(128 * i)})\n" for i in range(3))
    body = f"""{OPERANDS}
r1 = pl.load(b, [0, 0], [128, 32])
q1 = pl.load(sb, [0, 0], [4, 32])
{first}
for k in pl.pipeline(512, 1024, 128, stage=2):
    v = pl.matmul_mx({big.format("k")})
x = pl.matmul_mx_acc(x, l, p, r, q)
"""
    made = allocated(body)
    left = {n: t for n, t in tiles(made).items() if t.memory_space is MemorySpace.Left}
    zero, one = (buffers(made)[n] for n in left if n.endswith(("_s0", "_s1")))
    assert zero != one
    Walk(made, {"n": 0}, A5)


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


def used(first: int, last: int) -> Buffer:
    return Buffer(f"b{first}", MemorySpace.Left, Span.unknown(), 512, 0, first, last)


def test_a_place_is_free_between_its_buffers_but_not_in_their_statements() -> None:
    slot = Slot(used(10, 20), 512)
    slot.add(used(40, 50))
    for first, last in ((0, 9), (21, 39), (25, 30), (51, 60)):
        assert slot.is_free(used(first, last))
    # One that is written in the very statement that reads the other would overwrite it.
    for first, last in ((0, 10), (20, 30), (21, 40), (50, 60), (12, 15), (0, 60), (15, 45)):
        assert not slot.is_free(used(first, last))
    assert [slot.last_before(used(at, at)) for at in (5, 30, 60)] == [-1, 20, 50]


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
    assert error.hint == (
        "t alone has 131072 bytes, of which 65536 fit: work on it in tiles of at most 1/2 of it"
    )
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
    old = refs(made)
    found = {
        var: dataclasses.replace(old[var.name_hint], byte_offset=changes[var.name_hint])
        for var in tile_vars(function)
        if var.name_hint in changes
    }
    return Program([with_memrefs(function, found)], "p")


def test_the_walk_notices_a_place_that_two_tiles_share() -> None:
    more = "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
    made = allocated(OPERANDS + more + "x = pl.matmul_mx_acc(x, l, p, r, q)")
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
