"""InferTileMemorySpace: where loads go, and which moves appear."""

import pytest

from scalebox.ir.expr import Call
from scalebox.ir.passes import infer_tile_memory_space
from scalebox.ir.types import MemorySpace, constant_dims

from .kernels import OPERANDS, after, calls_of, kernel, tiles


def inferred(body: str) -> dict[str, MemorySpace | None]:
    made = after(kernel(body), infer_tile_memory_space)
    assert infer_tile_memory_space()(made) is made
    return {name: tile.memory_space for name, tile in tiles(made).items()}


def test_what_the_kernel_placed_is_never_changed() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    assert infer_tile_memory_space()(made) is made
    assert [var.name_hint for var, _ in calls_of(made, "tile.move")] == ["l", "p", "r", "q"]


@pytest.mark.parametrize(
    ("use", "space"),
    [
        ("pl.move(t, pl.Mem.Left)", MemorySpace.Mat),
        ("pl.move(t, pl.Mem.Mat)", MemorySpace.Mat),
        ("pl.matmul_mx(t, p, r, q)", MemorySpace.Mat),
        ("t", MemorySpace.Mat),
    ],
)
def test_a_load_for_the_cube_goes_to_mat(use: str, space: MemorySpace) -> None:
    body = f"{OPERANDS}t = pl.load(a, [0, 64], [16, 64])\nu = {use}"
    assert inferred(body)["t"] is space


def test_a_load_that_is_only_stored_goes_to_vec() -> None:
    body = "t = pl.load(bias, [0, 0], [1, 128])\nc = pl.store(t, [0, 0], c)"
    assert inferred(body) == {"t": MemorySpace.Vec}


def test_a_load_that_is_stored_and_multiplied_goes_to_mat_by_way_of_vec() -> None:
    # A tile in Mat cannot be stored.
    body = f"""{OPERANDS}
t = pl.load(bias, [0, 0], [1, 32])
x = pl.matmul_mx_bias(l, p, r, q, t)
c = pl.store(t, [0, 0], c)
"""
    found = inferred(body)
    assert found["t"] is MemorySpace.Vec
    assert found["t_Mat"] is MemorySpace.Mat
    assert found["t_Bias"] is MemorySpace.Bias


def test_one_move_serves_a_sequence_and_each_inner_one_has_its_own() -> None:
    body = f"""{OPERANDS}
t = pl.load(a, [0, 64], [16, 64])
x = pl.matmul_mx_acc(x, t, p, r, q)
x = pl.matmul_mx_acc(x, t, p, r, q)
if n > 0:
    x = pl.matmul_mx_acc(x, t, p, r, q)
x = pl.matmul_mx_acc(x, t, p, r, q)
"""
    made = after(kernel(body), infer_tile_memory_space)
    moves = [call for var, call in calls_of(made, "tile.move") if var.name_hint == "t_Left"]
    assert len(moves) == 2


@pytest.mark.parametrize(
    "change",
    [
        "for k in pl.range(64, 256, 64):\n    t = pl.load(a, [0, k], [16, 64])",
        "for k in pl.pipeline(64, 256, 64, stage=2):\n"
        "    x = pl.matmul_mx_acc(x, t, p, r, q)\n    t = pl.load(a, [0, k], [16, 64])",
        "if n > 0:\n    t = pl.load(a, [0, 64], [16, 64])",
        "if n > 0:\n    t = pl.load(a, [0, 64], [16, 64])\nelse:\n    t = pl.load(a, [0, 128], [16, 64])",
        "u = t\nt = u",
        "i = 0\nwhile i < 3:\n    t = pl.load(a, [0, 64], [16, 64])\n    i = i + 1",
    ],
)
def test_the_names_of_one_value_go_to_one_memory(change: str) -> None:
    body = f"{OPERANDS}t = pl.load(a, [0, 0], [16, 64])\n{change}\ny = pl.matmul_mx(t, p, r, q)"
    found = inferred(body)
    spaces = {space for name, space in found.items() if name.split("__")[0] in ("t", "u")}
    assert spaces == {MemorySpace.Mat} or spaces == {MemorySpace.Mat, MemorySpace.Left}
    assert found["t"] is MemorySpace.Mat


def test_the_names_of_a_value_that_is_only_stored_go_to_vec() -> None:
    body = """
t = pl.load(bias, [0, 0], [1, 128])
for k in pl.range(4):
    t = pl.load(bias, [0, 0], [1, 128])
c = pl.store(t, [0, 0], c)
"""
    assert set(inferred(body).values()) == {MemorySpace.Vec}


def test_a_narrowed_load_keeps_its_valid_shape() -> None:
    body = f"{OPERANDS}t = pl.load(a, [0, 0], [16, 64], [9, 40])\nu = pl.move(t, pl.Mem.Left)"
    made = after(kernel(body), infer_tile_memory_space)
    for name in ("t", "u"):
        assert constant_dims(tiles(made)[name].valid_shape) == (9, 40)


def test_a_load_keeps_its_attributes_and_its_place() -> None:
    made = after(kernel(f"{OPERANDS}t = pl.load(a, [0, 0], [16, 64])"), infer_tile_memory_space)
    ((_, load),) = [(v, c) for v, c in calls_of(made, "tile.load") if v.name_hint == "t"]
    assert isinstance(load, Call)
    assert load.span.is_known


VECTOR = "t = pl.load(a, [0, 64], [16, 64])\nv = pl.load(bias, [0, 0], [1, 32])\n"


def test_a_load_that_only_the_vector_core_works_on_goes_to_vec() -> None:
    found = inferred(f"{VECTOR}u = pl.cast(t, pl.FP32)\nw = pl.exp(v)")
    assert {found[name] for name in ("t", "u", "v", "w")} == {MemorySpace.Vec}


def test_what_the_vector_core_makes_reaches_the_cube_by_way_of_mat() -> None:
    body = f"{OPERANDS}{VECTOR}u = pl.cast(pl.cast(t, pl.FP32), pl.FP8E4M3FN)\ny = pl.matmul_mx(u, p, r, q)"
    found = inferred(body)
    assert (found["u"], found["u_Mat"], found["u_Left"]) == (
        MemorySpace.Vec,
        MemorySpace.Mat,
        MemorySpace.Left,
    )


def test_a_load_for_both_cores_goes_to_vec_and_on_to_mat() -> None:
    body = f"{OPERANDS}{VECTOR}w = pl.exp(v)\ny = pl.matmul_mx_bias(l, p, r, q, v)"
    found = inferred(body)
    assert (found["v"], found["v_Mat"], found["v_Bias"]) == (
        MemorySpace.Vec,
        MemorySpace.Mat,
        MemorySpace.Bias,
    )


def test_sums_that_the_vector_core_works_on_go_to_vec() -> None:
    found = inferred(f"{OPERANDS}y = pl.relu(x)")
    assert (found["x"], found["x_Vec"], found["y"]) == (
        MemorySpace.Acc,
        MemorySpace.Vec,
        MemorySpace.Vec,
    )
