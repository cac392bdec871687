"""When buffers are in use."""

from scalebox.ir.passes import materialize_semantic_aliases
from scalebox.ir.passes.lifetimes import Buffer, Lifetimes
from scalebox.ir.types import MemorySpace

from .kernels import OPERANDS, after, buffers, kernel, the


def lifetimes(body: str) -> dict[str, Buffer]:
    """The buffer of each tile by the tile's name, after all joins."""
    made = after(kernel(body), materialize_semantic_aliases)
    found = Lifetimes(the(made)).buffers
    return {n: found[b.removesuffix(".scale")] for n, b in buffers(made).items()}


def apart(one: Buffer, other: Buffer) -> bool:
    return one.last < other.first or other.last < one.first


def test_a_buffer_lives_from_its_first_write_to_its_last_use() -> None:
    body = f"""{OPERANDS}
m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)
o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)
y = pl.matmul_mx(m, o, r, q)
"""
    found = lifetimes(body)
    assert apart(found["l"], found["m"])
    assert not apart(found["r"], found["m"])
    assert found["r"].last == found["m"].last


def test_scales_count_into_their_data_tile() -> None:
    # The scales of m are filled before m is.
    body = f"""{OPERANDS}
o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)
y = pl.matmul_mx(l, p, r, q)
m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)
z = pl.matmul_mx(m, o, r, q)
"""
    found = lifetimes(body)
    assert found["o"] is found["m"]
    assert not apart(found["m"], found["l"])
    assert (found["m"].space, found["m"].size_bytes, found["m"].scale_bytes) == (
        MemorySpace.Left, 1024, 32,
    )  # fmt: skip
    assert found["m"].tiles == {"m": 1024}


def test_what_comes_from_outside_of_a_loop_lives_to_its_end() -> None:
    body = f"""{OPERANDS}
for k in pl.range(64, 256, 64):
    y = pl.matmul_mx(l, p, r, q)
    m = pl.move(pl.load(a, [0, k], [16, 64]), pl.Mem.Left)
    o = pl.move(pl.load(sa, [0, k // 32], [16, 2]), pl.Mem.LeftScale)
    z = pl.matmul_mx(m, o, r, q)
"""
    found = lifetimes(body)
    assert not apart(found["l"], found["m"])
    assert found["l"].last > found["m"].last


def test_what_a_loop_carries_lives_through_all_of_it() -> None:
    body = f"""{OPERANDS}
for k in pl.range(64, 256, 64):
    y = pl.matmul_mx(l, p, r, q)
    x = pl.matmul_mx_acc(x, l, p, r, q)
    z = pl.matmul_mx(l, p, r, q)
"""
    found = lifetimes(body)
    assert found["x"].first < found["y"].first
    assert found["x"].last > found["z"].last
    assert apart(found["y"], found["z"])


def test_the_arms_of_a_branch_are_never_in_use_together() -> None:
    body = f"""{OPERANDS}
if n > 0:
    y = pl.matmul_mx(l, p, r, q)
else:
    z = pl.matmul_mx(l, p, r, q)
"""
    found = lifetimes(body)
    assert apart(found["y"], found["z"])


def test_copies_of_a_pipelined_body_are_known() -> None:
    body = f"""{OPERANDS}
for k in pl.pipeline(64, 320, 64, stage=2):
    m = pl.move(pl.load(a, [0, k], [16, 64]), pl.Mem.Left)
    o = pl.move(pl.load(sa, [0, k // 32], [16, 2]), pl.Mem.LeftScale)
    x = pl.matmul_mx_acc(x, m, o, r, q)
"""
    found = lifetimes(body)
    ((one, zero),) = found["m_s0"].stages
    ((other, first),) = found["m_s1"].stages
    assert one == other
    assert (zero, first) == (0, 1)
    assert found["l"].stages == set()


def test_buffers_are_listed_by_memory_in_order_of_first_use() -> None:
    made = after(kernel(OPERANDS), materialize_semantic_aliases)
    spaces = Lifetimes(the(made)).by_space()
    assert [s.name for s in spaces] == ["Mat", "Left", "Right", "Acc"]
    mats = spaces[MemorySpace.Mat]
    assert [b.name for b in mats] == ["mat_0", "mat_1", "mat_2", "mat_3"]
    assert [b.first for b in mats] == sorted(b.first for b in mats)
