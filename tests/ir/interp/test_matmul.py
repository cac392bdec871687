"""Kernels with block-scaled matmuls, against exact fractions."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.dtypes import E1M2, DType, SimpleDType
from scalebox.ir.interp import interpret_program
from scalebox.ir.numerics.scales import pack_scales_a, pack_scales_b
from scalebox.ir.passes import default_pipeline

Codes = npt.NDArray[np.uint8]
Oracle = Callable[..., npt.NDArray[np.float32]]
NAMES = {DType.E4M3: "FP8E4M3FN", DType.E5M2: "FP8E5M2", DType.E2M1: "FP4", E1M2: "FP4E1M2"}
CODES = {
    # Every finite code, in both signs.
    DType.E4M3: [c for c in range(256) if c & 0x7F != 0x7F],
    DType.E5M2: [c for c in range(256) if c & 0x7F < 0x7C],
    DType.E2M1: list(range(16)),
    E1M2: list(range(16)),
}

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[{m}, {k}], pl.{a}], sa: pl.Tensor[[{m}, {g}], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[{k}, {n}], pl.{b}], sb: pl.Tensor[[{g}, {n}], pl.FP8E8M0, pl.MX_B_NN],
             {more}c: pl.Out[pl.Tensor[[{m}, {n}], pl.{out}]]):
"""
LOADS = """
        ta = pl.move(pl.load(a, [0, 0], [{m}, {k}]{va}, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        qa = pl.move(pl.load(sa, [0, 0], [{m}, {g}]), target_memory=pl.Mem.LeftScale)
        tb = pl.move(pl.load(b, [0, 0], [{k}, {n}]{vb}, target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        qb = pl.move(pl.load(sb, [0, 0], [{g}, {n}]), target_memory=pl.Mem.RightScale)
"""
STORE = """
        c = pl.store(acc, [0, 0], c)
        return c
"""
PLAIN = LOADS + "        acc = pl.matmul_mx(ta, qa, tb, qb)" + STORE


def kernel(body: str = PLAIN, *, a: SimpleDType = DType.E4M3, **fields: Any) -> Program:
    """Return the program of a 16x64x32 kernel; fields replace its sizes and dtypes."""
    sizes: dict[str, Any] = {
        "m": 16,
        "k": 64,
        "n": 32,
        "out": "FP32",
        "more": "",
        "va": "",
        "vb": "",
    }
    b = fields.pop("b", a)
    sizes |= fields
    sizes |= {"a": NAMES[a], "b": NAMES[b], "g": sizes["k"] // 32}
    program = pl.parse((HEAD + body).format(**sizes))
    assert isinstance(program, Program)
    return program


def operands(
    a: SimpleDType = DType.E4M3,
    b: SimpleDType | None = None,
    *,
    m: int = 16,
    k: int = 64,
    n: int = 32,
    seed: int = 1,
    scales: tuple[int, int] = (118, 134),
) -> dict[str, Codes]:
    """Draw codes and scales; scales differ per row and group, so that a wrong box shows."""
    rng = np.random.default_rng(seed)
    low, high = scales
    return {
        "a": rng.choice(CODES[a], (m, k)).astype(np.uint8),
        "sa": rng.integers(low, high, (m, k // 32), dtype=np.uint8),
        "b": rng.choice(CODES[b or a], (k, n)).astype(np.uint8),
        "sb": rng.integers(low, high, (k // 32, n), dtype=np.uint8),
    }


def packed(drawn: dict[str, Codes]) -> dict[str, Any]:
    return drawn | {"sa": pack_scales_a(drawn["sa"]), "sb": pack_scales_b(drawn["sb"])}


def launch(program: Program, drawn: dict[str, Codes], **more: Any) -> npt.NDArray[Any]:
    return interpret_program(program, packed(drawn), **more)["c"]


def assert_same(found: npt.NDArray[np.float32], wanted: npt.NDArray[np.float32]) -> None:
    """All bits are equal; all NaNs are one, and leave as 0x7FC00000."""
    assert (np.isnan(found) == np.isnan(wanted)).all()
    assert (found.view(np.uint32)[np.isnan(found)] == 0x7FC00000).all()
    there = ~np.isnan(wanted)
    assert (found.view(np.uint32) == wanted.view(np.uint32))[there].all()


PAIRS = [
    (DType.E4M3, DType.E4M3),
    (DType.E5M2, DType.E4M3),
    (DType.E5M2, DType.E5M2),
    (DType.E2M1, DType.E2M1),
    (E1M2, DType.E2M1),
]


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda dtype: dtype.name)
def test_every_pair_of_formats(oracle: Oracle, a: SimpleDType, b: SimpleDType) -> None:
    drawn = operands(a, b)
    wanted = oracle(**_for_oracle(drawn), dtypes=(a, b))
    assert_same(launch(kernel(a=a, b=b), drawn), wanted)


def _for_oracle(drawn: dict[str, Codes]) -> dict[str, Codes]:
    return {"a": drawn["a"], "a_scales": drawn["sa"], "b": drawn["b"], "b_scales": drawn["sb"]}


def test_element_by_element_is_another_order(oracle: Oracle) -> None:
    drawn = operands(seed=5)
    wanted = oracle(**_for_oracle(drawn), group=1)
    found = launch(kernel(), drawn, sum="sequential")
    assert_same(found, wanted)
    assert (found != launch(kernel(), drawn)).any()


class TestSpecials:
    ONES = np.full((16, 64), 0x38, np.uint8), np.full((64, 32), 0x38, np.uint8)

    @pytest.mark.parametrize(("left", "right"), [(0xFF, 0x00), (0xFF, 0x7F), (0x00, 0xFF)])
    def test_a_nan_scale_poisons(self, left: int, right: int) -> None:
        a, b = self.ONES
        scales = np.full((16, 2), left, np.uint8), np.full((2, 32), right, np.uint8)
        found = launch(kernel(), {"a": a, "sa": scales[0], "b": b, "sb": scales[1]})
        assert np.isnan(found).all()

    def test_one_nan_scale_poisons_its_row(self, oracle: Oracle) -> None:
        drawn = operands(seed=9)
        drawn["sa"][3, 1] = 255
        drawn["a"][3, 32:] = 0
        found = launch(kernel(), drawn)
        assert np.isnan(found[3]).all()
        assert np.isfinite(np.delete(found, 3, axis=0)).all()
        assert_same(found, oracle(**_for_oracle(drawn)))

    def test_a_nan_element_poisons_its_row(self, oracle: Oracle) -> None:
        drawn = operands(seed=11)
        drawn["a"][5, 40] = 0x7F
        drawn["b"][7, 2] = 0xFF
        found = launch(kernel(), drawn)
        assert np.isnan(found[5]).all()
        assert np.isnan(found[:, 2]).all()
        assert_same(found, oracle(**_for_oracle(drawn)))

    def test_infinities_follow_ieee(self) -> None:
        a, b = np.full((16, 64), 0x3C, np.uint8), np.full((64, 32), 0x3C, np.uint8)
        a[0, 0] = 0x7C  # +inf · 1
        a[1, 0], a[1, 1] = 0x7C, 0xFC  # +inf and -inf
        a[2, 0], b[0, 0] = 0x7C, 0x00  # +inf · 0 in column 0
        ones = np.full((16, 2), 127, np.uint8), np.full((2, 32), 127, np.uint8)
        program = kernel(a=DType.E5M2)
        found = launch(program, {"a": a, "sa": ones[0], "b": b, "sb": ones[1]})
        assert np.isnan(found[0, 0])
        assert found[0, 1] == np.inf
        assert np.isnan(found[1, 1])
        assert np.isnan(found[2, 0])
        assert found[3, 1] == 64.0

    def test_a_result_beyond_float32_is_infinite(self) -> None:
        a, b = self.ONES
        scales = np.full((16, 2), 254, np.uint8), np.full((2, 32), 127, np.uint8)
        scales[1][:, 0] = 126
        found = launch(kernel(), {"a": a, "sa": scales[0], "b": b, "sb": scales[1]})
        assert (found == np.inf).all()

    def test_subnormals_are_kept_and_underflow_keeps_its_sign(self, oracle: Oracle) -> None:
        a, b = (part.copy() for part in self.ONES)
        a[1] = 0xB8  # -1
        scales = np.full((16, 2), 52, np.uint8), np.full((2, 32), 52, np.uint8)
        scales[0][2:] = 0
        drawn = {"a": a, "sa": scales[0], "b": b, "sb": scales[1]}
        found = launch(kernel(), drawn)
        assert found[0, 0] == 64 * 2.0**-150
        assert found[1, 0] == -64 * 2.0**-150
        assert found[2, 0] == 0
        assert_same(found, oracle(**_for_oracle(drawn)))

    def test_scale_code_zero_is_a_number(self) -> None:
        a, b = self.ONES
        scales = np.zeros((16, 2), np.uint8), np.full((2, 32), 254, np.uint8)
        found = launch(kernel(), {"a": a, "sa": scales[0], "b": b, "sb": scales[1]})
        assert (found == 64.0).all()


class TestAccumulating:
    TWICE = (
        LOADS
        + """
        acc = pl.matmul_mx(ta, qa, tb, qb)
        base = pl.store(acc, [0, 0], base)
        acc = pl.matmul_mx_acc(acc, ta, qa, tb, qb)
        c = pl.store(acc, [0, 0], c)
        return base, c
"""
    )

    def test_the_base_is_stored_before_it_is_added_to(self, oracle: Oracle) -> None:
        drawn = operands(seed=23)
        program = kernel(self.TWICE, more="base: pl.Out[pl.Tensor[[16, 32], pl.FP32]], ")
        outputs = interpret_program(program, packed(drawn))
        base = oracle(**_for_oracle(drawn))
        assert list(outputs) == ["base", "c"]
        assert_same(outputs["base"], base)
        assert_same(outputs["c"], oracle(**_for_oracle(drawn), start=base))

    def test_a_bias_starts_every_row(self, oracle: Oracle) -> None:
        body = LOADS + """
        t = pl.move(pl.load(bias, [0, 0], [1, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
        acc = pl.matmul_mx_bias(ta, qa, tb, qb, t)
""" + STORE  # fmt: skip
        program = kernel(body, more="bias: pl.Tensor[[1, 32], pl.FP32], ")
        drawn = operands(seed=3)
        bias = np.linspace(-1e4, 1e4, 32, dtype=np.float32)[None]
        found = interpret_program(program, packed(drawn) | {"bias": bias})["c"]
        start = np.repeat(bias, 16, axis=0)
        assert_same(found, oracle(**_for_oracle(drawn), start=start))

    LOOP = """
        acc = pl.matmul_mx(
            pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left),
            pl.move(pl.load(sa, [0, 0], [16, 2]), target_memory=pl.Mem.LeftScale),
            pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right),
            pl.move(pl.load(sb, [0, 0], [2, 32]), target_memory=pl.Mem.RightScale))
        for k in pl.pipeline(64, 256, 64, stage=2):
            g = k // 32
            ta = pl.load(a, [0, k], [16, 64])
            qa = pl.load(sa, [0, g], [16, 2])
            tb = pl.load(b, [k, 0], [64, 32])
            qb = pl.load(sb, [g, 0], [2, 32])
            acc = pl.matmul_mx_acc(acc, ta, qa, tb, qb)
"""

    def test_k_tiles_add_up_to_the_whole(self, oracle: Oracle) -> None:
        drawn = operands(k=256, seed=7)
        found = launch(kernel(self.LOOP + STORE, k=256), drawn)
        assert_same(found, oracle(**_for_oracle(drawn)))

    @pytest.mark.parametrize(("out", "kind"), [("BF16", ml_dtypes.bfloat16), ("FP16", np.float16)])
    def test_a_narrow_output_is_rounded_once(self, oracle: Oracle, out: str, kind: type) -> None:
        drawn = operands(seed=13)
        found = launch(kernel(out=out), drawn)
        wanted = oracle(**_for_oracle(drawn))
        assert found.dtype == kind
        with np.errstate(over="ignore"):
            assert (found == wanted.astype(kind)).all()
        if out == "FP16":
            assert np.isinf(found).any()

    def test_nothing_changes_from_pass_to_pass(self) -> None:
        drawn = operands(k=256, seed=17)
        program = kernel(self.LOOP + STORE, k=256)
        wanted = launch(program, drawn)
        names: list[str] = []
        for each in default_pipeline():
            program = each(program)
            names.append(each.get_name())
            assert_same(launch(program, drawn), wanted)
        assert "BlockMxScaleTensorViews" in names
        assert "LowerPipelineLoops" in names


class TestTails:
    """Only elements below the valid K and groups below its ceiling take part."""

    @pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 63])
    def test_what_stands_beyond_the_valid_k_changes_nothing(self, oracle: Oracle, k: int) -> None:
        program = kernel(va=f", [16, {k}]", vb=f", [{k}, 32]")
        drawn = operands(seed=k)
        groups = -(-k // 32)
        narrow = {
            "a": drawn["a"][:, :k],
            "a_scales": drawn["sa"][:, :groups],
            "b": drawn["b"][:k],
            "b_scales": drawn["sb"][:groups],
        }
        wanted = oracle(**narrow)
        for data, scale in ((0x00, 0x00), (0x7F, 0xFF), (0x38, 0x7F)):
            drawn["a"][:, k:] = data
            drawn["b"][k:] = data
            drawn["sa"][:, groups:] = scale
            drawn["sb"][groups:] = scale
            assert_same(launch(program, drawn), wanted)

    def test_a_nan_scale_counts_within_the_valid_k(self) -> None:
        drawn = operands()
        drawn["a"][:] = 0
        drawn["sa"][:, 1] = 255
        inside = kernel(va=", [16, 33]", vb=", [33, 32]")
        outside = kernel(va=", [16, 32]", vb=", [32, 32]")
        assert np.isnan(launch(inside, drawn)).all()
        assert (launch(outside, drawn) == 0).all()

    def test_a_narrow_result_leaves_the_rest_of_the_tensor_alone(self, oracle: Oracle) -> None:
        program = kernel(va=", [10, 64]", vb=", [64, 20]")
        drawn = operands(seed=19)
        before = np.full((16, 32), 7, np.float32)
        found = interpret_program(program, packed(drawn) | {"c": before})["c"]
        assert_same(found[:10, :20].copy(), oracle(**_for_oracle(drawn))[:10, :20].copy())
        assert (found[10:] == 7).all()
        assert (found[:, 20:] == 7).all()
        assert (before == 7).all()


def test_padding_groups_change_no_bit() -> None:
    """K = 160 in a tensor padded to 192: five groups count, whatever the sixth holds."""
    body = (
        """
        ta = pl.load(a, [0, 0], [16, 192], [16, 160])
        qa = pl.load(sa, [0, 0], [16, 6])
        tb = pl.load(b, [0, 0], [192, 32], [160, 32])
        qb = pl.load(sb, [0, 0], [6, 32])
        acc = pl.matmul_mx(ta, qa, tb, qb)
"""
        + STORE
    )
    drawn = operands(k=192, seed=29)
    results: list[bytes] = []
    for padding in (0x00, 0x7F, 0xFF):
        drawn["sa"][:, 5] = padding
        drawn["sb"][5] = padding
        results.append(launch(kernel(body, k=192), drawn).tobytes())
    assert results[0] == results[1] == results[2]
