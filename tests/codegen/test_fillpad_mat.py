"""pl.fillpad of a tile in Mat: zeros where the tile lies, whatever stood there, and all of it valid."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox import ir
from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.verification.walk import all_calls

from .select.tails import NUMPY, Array, Extents, boxed_a, boxed_b, codes, parsed, small

pytestmark = pytest.mark.usefixtures("dirty")

TILES: tuple[Extents, ...] = ((32, 128, 64), (48, 64, 32))
TAILS: tuple[Extents, ...] = ((1, 1, 1), (17, 50, 33), (32, 64, 31), (16, 33, 16), (31, 63, 32))


def fitting(tails: tuple[Extents, ...], tile: Extents) -> list[Extents]:
    return [each for each in tails if all(v <= p for v, p in zip(each, tile, strict=True))]


CASES = [(tile, valid) for tile in TILES for valid in fitting((*TAILS, tile), tile)]


def plain_kernel(tile: Extents, valid: Extents, dtype: str, out: str) -> str:
    (rows, depth, columns), (m, k, n) = tile, valid
    return f"""
    def tail(self, a: pl.Tensor[[{rows}, {depth}], pl.{dtype}],
             b: pl.Tensor[[{depth}, {columns}], pl.{dtype}],
             c: pl.Out[pl.Tensor[[{rows}, {columns}], pl.{out}]]):
        at = pl.load(a, [0, 0], [{rows}, {depth}], [{m}, {k}], target_memory=pl.Mem.Mat)
        bt = pl.load(b, [0, 0], [{depth}, {columns}], [{k}, {n}], target_memory=pl.Mem.Mat)
        al = pl.move(pl.fillpad(at), target_memory=pl.Mem.Left)
        bl = pl.move(pl.fillpad(bt, pl.PadValue.zero), target_memory=pl.Mem.Right)
        acc = pl.matmul(al, bl)
        c = pl.store(acc, [0, 0], c)
        return c
"""


@pytest.mark.parametrize("dtype", ["FP16", "FP32", "FP8E5M2", "INT8"])
@pytest.mark.parametrize(("tile", "valid"), CASES, ids=str)
def test_a_product_of_filled_tiles_is_whole_and_zero_beyond(
    dtype: str, tile: Extents, valid: Extents
) -> None:
    (rows, depth, columns), (m, k, n) = tile, valid
    out = "INT32" if dtype == "INT8" else "FP32"
    program = parsed(plain_kernel(tile, valid, dtype, out))
    rng = np.random.default_rng((m, k, n))
    a, b = small(rng, m, k), small(rng, k, n)
    inputs = {"a": codes(a, dtype, (rows, depth)), "b": codes(b, dtype, (depth, columns))}
    wanted = np.zeros((rows, columns), NUMPY[out])
    wanted[:m, :n] = a @ b
    for made in (scalebox.run(program, inputs), scalebox.interpret(program, inputs)):
        outputs: dict[str, Any] = made if isinstance(made, dict) else made.outputs
        np.testing.assert_array_equal(outputs["c"], wanted)


@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP4"])
@pytest.mark.parametrize("valid", [(1, 2, 2), (17, 50, 34), (32, 64, 62), (16, 96, 16)], ids=str)
def test_a_block_scaled_product_may_take_all_of_k_from_filled_tiles(
    dtype: str, valid: Extents
) -> None:
    (rows, depth, columns), (m, k, n) = (32, 128, 64), valid
    groups = depth // 32
    program = parsed(f"""
    def tail(self, a: pl.Tensor[[{rows}, {depth}], pl.{dtype}],
             sa: pl.Tensor[[{rows}, {groups}], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[{depth}, {columns}], pl.{dtype}],
             sb: pl.Tensor[[{groups}, {columns}], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[{rows}, {columns}], pl.FP32]]):
        at = pl.load(a, [0, 0], [{rows}, {depth}], [{m}, {k}], target_memory=pl.Mem.Mat)
        st = pl.load(sa, [0, 0], [{rows}, {groups}], target_memory=pl.Mem.Mat)
        bt = pl.load(b, [0, 0], [{depth}, {columns}], [{k}, {n}], target_memory=pl.Mem.Mat)
        tt = pl.load(sb, [0, 0], [{groups}, {columns}], target_memory=pl.Mem.Mat)
        af = pl.fillpad(at)
        bf = pl.fillpad(bt)
        acc = pl.matmul_mx(af, st, bf, tt)
        c = pl.store(acc, [0, 0], c)
        return c
""")
    rng = np.random.default_rng((m, k, n))
    a, b = small(rng, m, k), small(rng, k, n)
    sa = rng.integers(126, 130, (rows, groups)).astype(np.uint8)
    sb = rng.integers(126, 130, (groups, columns)).astype(np.uint8)
    inputs = {
        "a": codes(a, dtype, (rows, depth)),
        "sa": boxed_a(sa),
        "b": codes(b, dtype, (depth, columns)),
        "sb": boxed_b(sb),
    }
    left = a * np.repeat(2.0 ** (sa.astype(float) - 127), 32, 1)[:m, :k]
    right = b * np.repeat(2.0 ** (sb.astype(float) - 127), 32, 0)[:k, :n]
    wanted = np.zeros((rows, columns), np.float32)
    wanted[:m, :n] = left @ right
    np.testing.assert_array_equal(scalebox.run(program, inputs).outputs["c"], wanted)
    np.testing.assert_array_equal(scalebox.interpret(program, inputs)["c"], wanted)


def test_the_zeros_are_written_in_l1_behind_the_load_and_by_no_vector_core() -> None:
    executable = scalebox.compile(parsed(plain_kernel((32, 64, 32), (20, 50, 32), "FP16", "FP32")))
    text = executable.disassemble()
    fills = [
        line.split(";")[0].split("l1_fill")[1].strip()
        for line in text.splitlines()
        if "l1_fill" in line
    ]
    # Of a: rows 20 to 31 of its four columns of boxes, the last of which is valid in part; of b: rows
    # 50 to 63 of both.
    assert fills == [
        "l1[0x280], lines=4, units=12, pitch=32",
        "l1[0x1640], lines=2, units=14, pitch=64",
    ]
    assert all(kernel.mate is None for kernel in executable.kernels)


def test_a_whole_tile_needs_no_zeros() -> None:
    text = plain_kernel((32, 64, 32), (32, 64, 32), "FP16", "FP32")
    assert "l1_fill" not in scalebox.compile(parsed(text)).disassemble()


def test_the_row_of_a_gemv_is_filled_up_to_its_end() -> None:
    program = parsed("""
    def tail(self, a: pl.Tensor[[1, 96], pl.FP16], b: pl.Tensor[[96, 32], pl.FP16],
             c: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):
        at = pl.load(a, [0, 0], [1, 96], [1, 40], target_memory=pl.Mem.Mat)
        bt = pl.load(b, [0, 0], [96, 32], target_memory=pl.Mem.Mat)
        al = pl.move(pl.fillpad(at), target_memory=pl.Mem.Left)
        bl = pl.move(bt, target_memory=pl.Mem.Right)
        acc = pl.gemv(al, bl)
        c = pl.store(acc, [0, 0], c)
        return c
""")
    rng = np.random.default_rng(3)
    a, b = small(rng, 1, 40), small(rng, 96, 32)
    inputs: dict[str, Array] = {"a": codes(a, "FP16", (1, 96)), "b": codes(b, "FP16", (96, 32))}
    wanted = (a @ b[:40]).astype(np.float32)
    np.testing.assert_array_equal(scalebox.run(program, inputs).outputs["c"], wanted)
    np.testing.assert_array_equal(scalebox.interpret(program, inputs)["c"], wanted)


def test_a_loop_fills_each_of_its_tiles_also_where_it_is_pipelined() -> None:
    program = parsed("""
    def tail(self, a: pl.Tensor[[32, 200], pl.FP16], b: pl.Tensor[[200, 32], pl.FP16],
             c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        at = pl.load(a, [0, 192], [32, 64], [20, 8], target_memory=pl.Mem.Mat)
        bt = pl.load(b, [192, 0], [64, 32], [8, 32], target_memory=pl.Mem.Mat)
        acc = pl.matmul(pl.fillpad(at), pl.fillpad(bt))
        for k in pl.pipeline(3, stage=2):
            a2 = pl.load(a, [0, k * 64], [32, 64], [20, 64], target_memory=pl.Mem.Mat)
            b2 = pl.load(b, [k * 64, 0], [64, 32], target_memory=pl.Mem.Mat)
            acc = pl.matmul_acc(acc, pl.fillpad(a2), b2)
        c = pl.store(acc, [0, 0], c)
        return c
""")
    rng = np.random.default_rng(4)
    a, b = small(rng, 20, 200), small(rng, 200, 32)
    inputs: dict[str, Array] = {"a": codes(a, "FP16", (32, 200)), "b": codes(b, "FP16", (200, 32))}
    wanted = np.zeros((32, 32), np.float32)
    wanted[:20] = a @ b
    np.testing.assert_array_equal(scalebox.run(program, inputs).outputs["c"], wanted)
    np.testing.assert_array_equal(scalebox.interpret(program, inputs)["c"], wanted)


# --------------------------------------------------------------------------- the op


def body(lines: str, *, more: str = "") -> str:
    return f"""
    def tail(self, a: pl.Tensor[[32, 64], pl.FP16], {more}b: pl.Tensor[[64, 32], pl.FP16],
             c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        at = pl.load(a, [0, 0], [32, 64], [20, 50], target_memory=pl.Mem.Mat)
        bt = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
{lines}        c = pl.store(acc, [0, 0], c)
        return c
"""


def test_what_it_is_called_goes_by_where_the_tile_lies_and_prints_as_it_parses() -> None:
    program = parsed(
        body("        acc = pl.matmul(pl.tile.fillpad(at), pl.tile.fillpad_mat(bt))\n")
    )
    (function,) = program.functions.values()
    names = [call.op.name for call in all_calls(function)]
    assert names.count("tile.fillpad_mat") == 2
    printed = ir.python_print(program)
    ir.assert_structural_equal(scalebox.pl.parse(printed), program)


@pytest.mark.parametrize(
    ("lines", "clause"),
    [
        (
            "        acc = pl.matmul(pl.fillpad(at, pl.PadValue.max), bt)\n",
            "pl operation 'fillpad': pad_value must be zero in Mat, which is filled up with zeros only, "
            "not max",
        ),
        (
            "        al = pl.move(at, target_memory=pl.Mem.Left)\n"
            "        acc = pl.matmul(pl.tile.fillpad_mat(al), bt)\n",
            "pl operation 'tile.fillpad_mat': x must lie in Mat, not in Left",
        ),
        (
            "        st = pl.load(s, [0, 0], [32, 2], target_memory=pl.Mem.Mat)\n"
            "        sf = pl.fillpad(st)\n        acc = pl.matmul(at, bt)\n",
            "pl operation 'fillpad': x must hold elements, not scales in MX_A_ZZ, "
            "which have no zero",
        ),
    ],
)
def test_what_no_zeros_fill_is_refused(lines: str, clause: str) -> None:
    with pytest.raises(UserError) as caught:
        parsed(body(lines, more="s: pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ], "))
    assert caught.value.message == clause


@pytest.mark.parametrize(
    ("lines", "clause"),
    [
        (
            "        an = pl.set_validshape(at, 3, 5)\n"
            "        acc = pl.matmul(pl.fillpad(an), bt)\n",
            "A tile that pl.fillpad fills up in Mat must be as it was loaded or moved there, not as "
            "pl.set_validshape made it",
        ),
        (
            "        v = pl.load(r, [0, 0], [1, 64], [1, 5], target_memory=pl.Mem.Vec)\n"
            "        rt = pl.move(v, target_memory=pl.Mem.Mat, blayout=pl.TileLayout.row_major, "
            "slayout=pl.TileLayout.none_box)\n"
            "        rf = pl.fillpad(rt)\n        acc = pl.matmul(pl.fillpad(at), bt)\n",
            "A row that pl.fillpad fills up in Mat must come from a tensor, or end with 32 bytes, not be "
            "5 elements of Float16 from Vec",
        ),
    ],
)
def test_a_tile_that_would_keep_something_beyond_what_is_valid_is_refused(
    lines: str, clause: str
) -> None:
    program = parsed(body(lines, more="r: pl.Tensor[[1, 64], pl.FP16], "))
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program)
    assert caught.value.message == clause


def test_a_tile_that_came_from_a_vector_core_is_filled_as_a_loaded_one() -> None:
    program = parsed(
        body(
            "        v = pl.load(a, [0, 0], [32, 64], [20, 50], target_memory=pl.Mem.Vec)\n"
            "        at2 = pl.move(pl.add(v, v), target_memory=pl.Mem.Mat)\n"
            "        acc = pl.matmul(pl.fillpad(at2), bt)\n"
        )
    )
    rng = np.random.default_rng(5)
    a, b = small(rng, 20, 50), small(rng, 64, 32)
    inputs: dict[str, Array] = {"a": codes(a, "FP16", (32, 64)), "b": codes(b, "FP16", (64, 32))}
    wanted = np.zeros((32, 32), np.float32)
    wanted[:20] = 2 * a @ b[:50]
    np.testing.assert_array_equal(scalebox.run(program, inputs).outputs["c"], wanted)
    np.testing.assert_array_equal(scalebox.interpret(program, inputs)["c"], wanted)
