"""Tiles that loops and branches hand on: the machine's numbers are the interpreter's."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from .vector_kernels import agreed, instructions, kernel

Array = npt.NDArray[Any]

SOURCE = "[[64, 64], pl.FP32]"
RESULT = "[[16, 64], pl.FP32]"
X = np.random.default_rng(21).standard_normal((64, 64)).astype(np.float32)
BLOCKS = [X[16 * i : 16 * i + 16] for i in range(4)]


def load(row: str) -> str:
    return f"pl.load(a, [{row}, 0], [16, 64], target_memory=pl.Mem.Vec)"


def run(*lines: str, s: int | None = None, copies: int | None = None) -> Array:
    params = {"a": SOURCE} | ({} if s is None else {"s": "INT32"})
    program = kernel(params, [*lines], RESULT)
    if copies is not None:
        assert len(instructions(program, "v_move")) == copies
    return agreed(program, {"a": X} | ({} if s is None else {"s": s}))


@pytest.mark.parametrize(
    "header", ["pl.range(4)", "pl.pipeline(4, stage=2)", "pl.pipeline(4, stage=3)", "pl.unroll(4)"]
)
def test_a_running_sum(header: str):
    found = run(
        "s = pl.full([16, 64], pl.FP32, 1.0)",
        f"for i in {header}:",
        f"    s = pl.add(s, {load('i * 16')})",
        "out = pl.store(s, [0, 0], out)",
        copies=0,
    )
    wanted = np.ones((16, 64), np.float32)
    for block in BLOCKS:
        wanted = wanted + block
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("stage", [1, 2, 4])
def test_blocks_that_are_worked_on_one_by_one(stage: int):
    program = kernel(
        {"a": SOURCE},
        [
            f"for i in pl.pipeline(0, 64, 8, stage={stage}):",
            "    t = pl.load(a, [i, 0], [8, 64])",
            "    out = pl.store(pl.mul(pl.add(t, 1.0), t), [i, 0], out)",
        ],
        SOURCE,
    )
    np.testing.assert_array_equal(agreed(program, {"a": X}), (X + np.float32(1)) * X)


def test_a_running_maximum_whose_predecessor_is_needed():
    found = run(
        f"m = {load('0')}",
        "s = pl.full([16, 64], pl.FP32, 0.0)",
        "for i in pl.range(1, 4):",
        f"    n = pl.maximum(m, {load('i * 16')})",
        "    s = pl.add(s, pl.sub(n, m))",
        "    m = n",
        "out = pl.store(pl.add(s, m), [0, 0], out)",
        copies=1,
    )
    most, rise = BLOCKS[0], np.zeros((16, 64), np.float32)
    for block in BLOCKS[1:]:
        rise, most = rise + (np.maximum(most, block) - most), np.maximum(most, block)
    np.testing.assert_array_equal(found, rise + most)


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_two_tiles_that_change_places(trips: int):
    found = run(
        f"p = {load('0')}",
        f"q = {load('16')}",
        "for i in pl.range(s):",
        "    t = p",
        "    p = q",
        "    q = t",
        "out = pl.store(pl.sub(p, q), [0, 0], out)",
        s=trips,
    )
    difference = BLOCKS[0] - BLOCKS[1]
    np.testing.assert_array_equal(found, difference if trips % 2 == 0 else -difference)


def test_each_of_two_follows_from_both():
    found = run(
        f"p = {load('0')}",
        f"q = {load('16')}",
        "for i in pl.range(3):",
        "    t = pl.add(p, q)",
        "    p = q",
        "    q = t",
        "out = pl.store(q, [0, 0], out)",
    )
    p, q = BLOCKS[0], BLOCKS[1]
    for _ in range(3):
        p, q = q, p + q
    np.testing.assert_array_equal(found, q)


@pytest.mark.parametrize("s", [0, 1, 2])
def test_arms_that_hand_on_different_tiles(s: int):
    found = run(
        f"p = {load('0')}",
        f"q = {load('16')}",
        "if s == 0:",
        "    r = pl.add(p, q)",
        "elif s == 1:",
        "    r = p",
        "else:",
        "    r = q",
        "out = pl.store(pl.sub(r, p), [0, 0], out)",
        s=s,
    )
    wanted = [BLOCKS[0] + BLOCKS[1], BLOCKS[0], BLOCKS[1]][s] - BLOCKS[0]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("s", [0, 1, 3])
def test_a_loop_that_runs_as_long_as_the_caller_says(s: int):
    found = run(
        f"p = {load('0')}",
        "i = 0",
        "while i < s:",
        "    p = pl.sels(pl.cmps(p, 0.0, cmp_type=2), pl.neg(p), 1.5)",
        "    i = i + 1",
        "out = pl.store(p, [0, 0], out)",
        s=s,
    )
    wanted = BLOCKS[0]
    for _ in range(s):
        wanted = np.where(wanted < 0, -wanted, np.float32(1.5))
    np.testing.assert_array_equal(found, wanted)


def test_a_nest_of_loops():
    found = run(
        "s = pl.full([16, 64], pl.FP32, 0.0)",
        "for i in pl.range(4):",
        f"    r = {load('i * 16')}",
        "    for j in pl.range(3):",
        "        r = pl.add(r, s)",
        "    s = pl.add(s, r)",
        "out = pl.store(s, [0, 0], out)",
    )
    s = np.zeros((16, 64), np.float32)
    for block in BLOCKS:
        r = block
        for _ in range(3):
            r = r + s
        s = s + r
    np.testing.assert_array_equal(found, s)


def test_a_tile_that_is_loaded_again_before_it_was_stored():
    program = kernel(
        {"a": SOURCE},
        [
            f"t = {load('0')}",
            "for i in pl.range(1, 4):",
            "    out = pl.store(t, [i * 16 - 16, 0], out)",
            f"    t = {load('i * 16')}",
            "out = pl.store(t, [48, 0], out)",
        ],
        SOURCE,
    )
    np.testing.assert_array_equal(agreed(program, {"a": X}), X)


def test_a_chain_of_tiles_that_fill_ub_is_computed_in_one_place():
    shape = "[[128, 256], pl.FP32]"
    body = [
        "t = pl.load(a, [0, 0], [128, 256])",
        "u = pl.relu(pl.mul(pl.sub(t, 0.25), 3.0))",
        "out = pl.store(u, [0, 0], out)",
    ]
    program = kernel({"a": shape}, body, shape)
    x = np.random.default_rng(22).standard_normal((128, 256)).astype(np.float32)
    found = agreed(program, {"a": x})
    np.testing.assert_array_equal(
        found, np.maximum((x - np.float32(0.25)) * np.float32(3), np.float32(0))
    )
    addresses = {each["dst"] for each in instructions(program, "v_scalar", "v_unary")}
    assert addresses == {0}


@pytest.mark.parametrize(
    "filled",
    [
        "pl.fillpad(pl.set_validshape(pl.add(t, 1.0), 3, 64), pl.PadValue.max)",
        "pl.slice(pl.add(t, 1.0), [16, 64], [0, 0], [3, 64], pad_value=pl.PadValue.max)",
        "pl.slice(pl.set_validshape(pl.add(t, 1.0), 3, 64), [16, 64], [0, 0], clamp=True, "
        "pad_value=pl.PadValue.max)",
    ],
)
def test_a_tile_that_is_filled_up_in_each_trip(filled: str):
    body = [
        "t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)",
        "for i in pl.range(2):",
        f"    t = {filled}",
        "out = pl.store(t, [0, 0], out)",
    ]
    program = kernel({"a": "[[16, 64], pl.FP32]"}, body, "[[16, 64], pl.FP32]")
    wanted = np.full((16, 64), np.inf, np.float32)
    wanted[:3] = X[:3] + np.float32(1) + np.float32(1)
    np.testing.assert_array_equal(agreed(program, {"a": X[:16]}), wanted)
