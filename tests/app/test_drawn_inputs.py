"""Inputs that nobody gave: the same for the same seed, and such that no mistake can hide in them."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs, given_inputs
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Function, Program
from scalebox.ir.errors import InputError

Gemm = Callable[..., Program]


def function_of(program: Program) -> Function:
    (function,) = program.functions.values()
    return function


def test_every_tensor_that_is_read_gets_an_array_of_its_type(gemm: Gemm) -> None:
    program = gemm(32, 128, 64, a="FP8E5M2", b="FP8E4M3FN", bias=True)
    drawn = draw_inputs(function_of(program), 0)
    assert {name: (array.shape, array.dtype) for name, array in drawn.items()} == {
        "a": ((32, 128), np.dtype(ml_dtypes.float8_e5m2)),
        "sa": ((32, 4), np.dtype(ml_dtypes.float8_e8m0fnu)),
        "b": ((128, 64), np.dtype(ml_dtypes.float8_e4m3fn)),
        "sb": ((4, 64), np.dtype(ml_dtypes.float8_e8m0fnu)),
        "bias": ((1, 64), np.dtype(np.float32)),
    }
    values = drawn["a"].astype(np.float32)
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.1
    assert 0.9 < values.std() < 1.1


def test_4_bit_elements_are_codes_of_4_bits(gemm: Gemm) -> None:
    drawn = draw_inputs(function_of(gemm(32, 128, 64, a="FP4E1M2", b="FP4")), 0)
    codes = drawn["a"]
    assert codes.dtype == np.uint8
    assert set(np.unique(codes).tolist()) <= set(range(16))
    assert len(np.unique(codes)) >= 14
    assert drawn["b"].dtype == np.dtype(ml_dtypes.float4_e2m1fn)


@pytest.mark.parametrize("seed", range(20))
def test_scales_differ_from_row_to_row_from_group_to_group_and_from_box_to_box(
    seed: int, gemm: Gemm
) -> None:
    drawn = draw_inputs(function_of(gemm(64, 256, 64)), seed)
    for name, rows in (("sa", 4), ("sb", 4)):
        boxes = drawn[name].view(np.uint8).reshape(rows, 4, 16, 2).astype(int)
        assert 120 <= boxes.min() <= boxes.max() <= 134
        different = {box.tobytes() for box in boxes.reshape(-1, 32)}
        assert len(different) == boxes.size // 32
        logical = boxes.transpose(0, 2, 1, 3).reshape(64, 8)
        assert all((np.diff(logical, axis=axis) != 0).all() for axis in (0, 1))


def test_the_same_seed_gives_the_same_inputs_and_another_one_others(gemm: Gemm) -> None:
    function = function_of(gemm(32, 128, 64))
    first, again, other = (draw_inputs(function, seed) for seed in (5, 5, 6))
    for name, array in first.items():
        assert array.tobytes() == again[name].tobytes()
        assert array.tobytes() != other[name].tobytes()


def test_a_mistake_in_one_scale_changes_the_output_of_a_drawn_run(gemm: Gemm) -> None:
    executable = scalebox.compile(gemm(32, 128, 32))
    drawn = draw_inputs(function_of(gemm(32, 128, 32)), 0)
    base = scalebox.run(executable, drawn, timing=False).outputs["c"]
    for name in ("sa", "sb"):
        for place in range(drawn[name].size):
            codes = drawn[name].view(np.uint8).copy()
            codes.reshape(-1)[place] ^= 1
            found = scalebox.run(executable, {**drawn, name: codes}, timing=False).outputs["c"]
            assert not np.array_equal(found, base), (name, place)


def test_a_scalar_cannot_be_drawn() -> None:
    program = scalebox.pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        return c
""")
    assert isinstance(program, Program)
    with pytest.raises(InputError) as caught:
        draw_inputs(function_of(program), 0)
    assert caught.value.message == (
        "The scalar 'n' of 'kernel' must be given by --inputs: only tensors are drawn"
    )


def test_arrays_of_rank_0_are_scalars() -> None:
    given = given_inputs({"n": np.array(3), "x": np.zeros((1,))})
    assert given["n"] == 3
    assert isinstance(given["n"], int)
    assert isinstance(given["x"], np.ndarray)


def test_elements_in_nz_are_those_of_nd_in_another_order() -> None:
    text = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[2, 32, 64], pl.FP8E4M3FN{}], b: pl.Tensor[[32, 32], pl.INT8{}]):
    pass
"""
    plain, boxed = (pl.parse(text.format(each, each)) for each in ("", ", pl.NZ"))
    assert isinstance(plain, Function)
    assert isinstance(boxed, Function)
    wanted, found = draw_inputs(plain, 3), draw_inputs(boxed, 3)
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == numerics.pack_nz(array).tobytes()
