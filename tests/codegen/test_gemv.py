"""Rows times matrices with scales: every depth, and the decode step of the examples."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.ir.core import Program
from scalebox.ir.target import load_target

from .select.tails import NUMPY, POISON, Array, boxed_b, check, codes, parsed, round_up, small

A5 = load_target("a5")
pytestmark = pytest.mark.usefixtures("dirty")

BODY = """
    def row(self, a: pl.Tensor[[1, {depth}], pl.{left}],
            sa: pl.Tensor[[1, {groups}], pl.{scales}],
            b: pl.Tensor[[{depth}, {columns}], pl.{right}],
            sb: pl.Tensor[[{groups}, {columns}], pl.FP8E8M0, pl.MX_B_NN],
            z: pl.Tensor[[1, {columns}], pl.FP32],
            c: pl.Out[pl.Tensor[[1, {n}], pl.FP32]]):
        al = pl.load(a, [0, 0], [1, {depth}], [1, {k}])
        pl_ = pl.load(sa, [0, 0], [1, {groups}], [1, {vg}], target_memory=pl.Mem.Mat)
        bl = pl.load(b, [0, 0], [{depth}, {columns}], [{k}, {n}])
        ql = pl.load(sb, [0, 0], [{groups}, {columns}], [{vg}, {n}])
        zl = pl.load(z, [0, 0], [1, {columns}], [1, {n}])
        acc = pl.gemv_mx{start}(al, pl_, bl, ql{bias})
        acc = pl.gemv_mx_acc(acc, al, pl_, bl, ql)
        c = pl.store(acc, [0, 0], c)
        return c
"""


DEPTHS = (2, 30, 32, 50, 64, 72, 110, 128, 192)


@pytest.mark.parametrize(
    ("k", "scales", "start"),
    [*((k, "FP8E8M0", "_bias") for k in DEPTHS), (72, "UINT8", "_bias"), (30, "FP8E8M0", "")],
)
@pytest.mark.parametrize("pair", [("FP8E4M3FN", "FP8E5M2"), ("FP4", "FP4")], ids="-".join)
def test_a_row_with_scales_times_a_matrix_is_exact(
    pair: tuple[str, str], k: int, scales: str, start: str
) -> None:
    n, depth, columns = 46, round_up(k, 64), 64
    groups, vg = depth // 32, -(-k // 32)
    program = parsed(
        BODY.format(
            depth=depth, columns=columns, groups=groups, vg=vg, k=k, n=n, left=pair[0],
            right=pair[1], scales=scales, start=start, bias=", zl" if start else "",
        )
    )  # fmt: skip
    rng = np.random.default_rng(k)
    a, b, z = small(rng, 1, k), small(rng, k, n), small(rng, 1, n)
    sa, sb = rng.integers(126, 130, (1, vg)), rng.integers(126, 130, (vg, n))
    boxes = np.full((groups, columns), POISON, np.uint8)
    boxes[:vg, :n] = sb
    inputs = {
        "a": codes(a, pair[0], (1, depth)),
        "sa": np.concatenate([sa, np.full((1, groups - vg), POISON)], 1).astype(np.uint8),
        "b": codes(b, pair[1], (depth, columns)),
        "sb": boxed_b(boxes),
        "z": codes(z, "FP32", (1, columns)),
    }
    left = a * np.repeat(2.0 ** (sa - 127), 32, 1)[:, :k]
    right = b * np.repeat(2.0 ** (sb - 127), 32, 0)[:k]
    expected = 2 * (left @ right) + (z if start else 0)
    check(program, inputs, expected.astype(np.float32))


@pytest.mark.parametrize("k", [1000, 2048])
@pytest.mark.parametrize("start", ["", "_bias"])
@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP4"])
def test_a_long_row_is_cut_into_steps_that_are_loaded_while_others_are_multiplied(
    dtype: str, start: str, k: int
) -> None:
    n, depth = 128, round_up(k, 64)
    groups, vg = depth // 32, -(-k // 32)
    once = BODY.replace("        acc = pl.gemv_mx_acc(acc, al, pl_, bl, ql)\n", "")
    program = parsed(
        once.format(
            depth=depth, columns=n, groups=groups, vg=vg, k=k, n=n, left=dtype, right=dtype,
            scales="FP8E8M0", start=start, bias=", zl" if start else "",
        )
    )  # fmt: skip
    rng = np.random.default_rng(k)
    a, b, z = small(rng, 1, k), small(rng, k, n), small(rng, 1, n)
    sa, sb = rng.integers(126, 129, (1, vg)), rng.integers(126, 129, (vg, n))
    boxes = np.full((groups, n), POISON, np.uint8)
    boxes[:vg] = sb
    inputs = {
        "a": codes(a, dtype, (1, depth)),
        "sa": np.concatenate([sa, np.full((1, groups - vg), POISON)], 1).astype(np.uint8),
        "b": codes(b, dtype, (depth, n)),
        "sb": boxed_b(boxes),
        "z": codes(z, "FP32", (1, n)),
    }
    left = a * np.repeat(2.0 ** (sa - 127), 32, 1)[:, :k]
    right = b * np.repeat(2.0 ** (sb - 127), 32, 0)[:k]
    check(program, inputs, (left @ right + (z if start else 0)).astype(np.float32))
    bits = 4 if dtype == "FP4" else 8
    loads = k * n * bits // 8 / A5.gm_port_bytes_per_cycle
    moves = k * n * bits // 8 / A5.l1_to_l0b_bytes_per_cycle
    work = scalebox.run(program, inputs).cycles - round(A5.launch_seconds * A5.clock_hz)
    assert work < 1500 + loads + moves / 4


def test_the_decode_step_of_the_examples_is_exact(root: Path) -> None:
    program = scalebox.pl.parse((root / "examples" / "mx_gemv.py").read_text())
    assert isinstance(program, Program)
    rng = np.random.default_rng(4096)
    x, w, bias = small(rng, 1, 4096), small(rng, 4096, 512), small(rng, 1, 512)
    sx, sw = rng.integers(126, 129, (1, 128)), rng.integers(126, 129, (128, 512))
    inputs: dict[str, Array] = {
        "x": x.astype(NUMPY["FP8E4M3FN"]),
        "x_scale": sx.astype(np.uint8),
        "w": w.astype(NUMPY["FP8E4M3FN"]),
        "w_scale": boxed_b(sw.astype(np.uint8)),
        "bias": bias.astype(np.float32),
    }
    left, right = x * np.repeat(2.0 ** (sx - 127), 32, 1), w * np.repeat(2.0 ** (sw - 127), 32, 0)
    exact = (left @ right + bias).astype(np.float32)
    assert np.array_equal(exact, left @ right + bias)
    ran = scalebox.run(program, inputs)
    assert not ran.simulation.warnings
    assert scalebox.compare(ran.outputs["y"], exact.astype(ml_dtypes.bfloat16))
    assert scalebox.compare(ran.outputs, scalebox.interpret(program, inputs))
