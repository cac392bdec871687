"""A mistake with scales is found: results that were made with it are explained by it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.scale_faults import explain
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType
from scalebox.ir.numerics.mxarray import MXArray

from .shown import answer

Shown = pytest.CaptureFixture[str]
RNG = np.random.default_rng(11)


def array(shape: tuple[int, int], axis: int) -> MXArray:
    """Return a block-scaled array whose scales all differ from their neighbours."""
    made = numerics.quantize(RNG.standard_normal(shape), DType.MXFP8_E4M3, axis=axis)
    scales = RNG.permutation(made.scales.size).reshape(made.scales.shape) % 23 + 115
    return MXArray(made.elements, scales.astype(np.uint8), made.dtype, axis)


A, B = array((32, 128), 1), array((128, 64), 0)
GROUPS_OF_4 = np.arange(4)


def product(sa: np.ndarray = A.scales, sb: np.ndarray = B.scales) -> dict[str, np.ndarray]:
    left = MXArray(A.elements, sa.astype(np.uint8), A.dtype, 1)
    right = MXArray(B.elements, sb.astype(np.uint8), B.dtype, 0)
    return {"c": numerics.matmul(left, right)}


def boxes(codes: np.ndarray) -> np.ndarray:
    return numerics.pack_scales_a(codes).reshape(codes.shape)


def exchanged() -> np.ndarray:
    """Return the scales of A with each box of 16 by 2 read as one of 2 by 16."""
    packed = numerics.pack_scales_a(A.scales).reshape(2, 2, 16, 2)
    wrong = packed.transpose(0, 1, 3, 2).reshape(2, 2, 16, 2).transpose(0, 2, 1, 3)
    return wrong.reshape(32, 4)


# What the mistake makes of the scales of A, and of those of B.
MISTAKES: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
    "are all taken as 1, as if they were never read": (
        np.full((32, 4), 127),
        np.full((4, 64), 127),
    ),
    "are stored row by row, where boxes are read": (
        A.scales.reshape(2, 2, 16, 2).transpose(0, 2, 1, 3).reshape(32, 4),
        B.scales.reshape(4, 2, 16, 2).transpose(1, 3, 0, 2).reshape(4, 64),
    ),
    "are read row by row, where boxes are stored": (
        A.scales.reshape(2, 16, 2, 2).transpose(0, 2, 1, 3).reshape(32, 4),
        B.scales.reshape(2, 2, 4, 16).transpose(2, 0, 3, 1).reshape(4, 64),
    ),
    "have rows and groups exchanged inside each box": (exchanged(), None),
    "are stored transposed, where boxes are read": (
        A.scales.T.reshape(2, 2, 16, 2).transpose(0, 2, 1, 3).reshape(32, 4),
        B.scales.T.reshape(4, 2, 16, 2).transpose(1, 3, 0, 2).reshape(4, 64),
    ),
    "are stored transposed, where rows are read": (
        A.scales.T.reshape(32, 4),
        B.scales.T.reshape(4, 64),
    ),
    "are read transposed, where rows are stored": (
        A.scales.reshape(4, 32).T,
        B.scales.reshape(64, 4).T,
    ),
    "are those of the group after": (A.scales[:, [1, 2, 3, 0]], B.scales[[1, 2, 3, 0]]),
    "are those of the group before": (A.scales[:, [3, 0, 1, 2]], B.scales[[3, 0, 1, 2]]),
    "are those of the neighbour after, across the groups": (np.roll(A.scales, -1, 0), None),
    "are those of the neighbour before, across the groups": (np.roll(A.scales, 1, 0), None),
}


@pytest.fixture(scope="module")
def kernel_and_inputs(gemm: Callable[..., Program]) -> tuple[Program, dict[str, Any]]:
    inputs = {
        "a": A.elements,
        "sa": numerics.pack_scales_a(A.scales),
        "b": B.elements,
        "sb": numerics.pack_scales_b(B.scales),
    }
    return gemm(32, 128, 64), inputs


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_explains_what_was_made_with_it(
    mistake: str, kernel_and_inputs: tuple[Program, dict[str, Any]]
) -> None:
    program, inputs = kernel_and_inputs
    left, right = MISTAKES[mistake]
    assert explain(program, inputs, product(sa=left)) == [f"the scales of 'sa' {mistake}"]
    if right is not None:
        assert explain(program, inputs, product(sb=right)) == [f"the scales of 'sb' {mistake}"]
        both = product(sa=left, sb=right)
        assert explain(program, inputs, both) == [f"the scales of 'sa' and 'sb' {mistake}"]


def test_what_no_mistake_explains_is_left_alone(
    kernel_and_inputs: tuple[Program, dict[str, Any]],
) -> None:
    program, inputs = kernel_and_inputs
    wrong = product()
    wrong["c"][0, 0] += 1
    assert explain(program, inputs, wrong) == []
    assert explain(program, inputs, {"other": wrong["c"]}) == []
    assert explain(program, {}, wrong) == []


def test_scales_inside_of_a_block_scaled_array_count_too() -> None:
    program = pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[32, 128], pl.MXFP8_E4M3], b: pl.Tensor[[128, 64], pl.MXFP8_E4M3]):
        c = pl.matmul(a, b)
        return c
""")
    assert isinstance(program, Program)
    wrong = product(sb=B.scales[[1, 2, 3, 0]])
    found = explain(program, {"a": A, "b": B}, wrong)
    assert found == ["the scales of 'b' are those of the group after"]


def test_the_command_line_tells_it(
    kernel: Callable[..., str], kernel_and_inputs: tuple[Program, dict[str, Any]], capsys: Shown
) -> None:
    kernel()
    _, inputs = kernel_and_inputs
    np.savez("inputs.npz", **inputs)
    mistake = "are stored row by row, where boxes are read"
    np.savez("golden.npz", c=product(sa=MISTAKES[mistake][0])["c"])
    arguments = ["run", "kernel.py", "--inputs", "inputs.npz", "--golden", "golden.npz"]
    assert main([*arguments, "--json"]) == 1
    sentence = f"golden is what comes out if the scales of 'sa' {mistake}"
    assert answer(capsys)["hints"] == [sentence]
    assert main([*arguments, "--out", "run"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"explained: {sentence}" in shown
    assert main(["compare", "golden.npz", "run", "--json"]) == 1
    assert answer(capsys)["hints"] == [sentence.replace("golden is", "actual is")]
    assert main(["compare", "run", "golden.npz"]) == 1
    assert f"explained: {sentence}" in " ".join(capsys.readouterr().out.split())


def test_of_large_inputs_nothing_is_tried(gemm: Callable[..., Program]) -> None:
    inputs = {"a": np.zeros((1024, 1024), np.uint8), "sa": np.zeros((1024, 32), np.uint8)}
    assert explain(gemm(32, 128, 64), inputs, product()) == []
    assert scalebox.compare(product(), product())
