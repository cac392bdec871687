"""Flags of real kernels: sound for every size, and every single one of them needed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.lower import Lowered, lower
from scalebox.ir.language.text import load_file
from scalebox.ir.target import load_target

from ..emit.scalar_machine import run_scalar_unit
from ..gemm_text import gemm
from ..mixed_kernels import judged_kernel
from .flag_checker import gets_through, judge

Compile = Callable[[str], Executable]

#: Kernels whose loops run three times or more.
SMALL = {"step": 64, "m": 16, "n": 32}
LOOPS: list[dict[str, Any]] = [
    {"k": 512, "stage": None},
    {"k": 512, "stage": 1},
    {"k": 512, "stage": 2},
    {"k": 576, "stage": 2},
    {"k": 768, "stage": 3},
    {"k": 1024, "stage": 4},
    {"k": 1088, "stage": 4},
    {"k": 512, "stage": 2, "bias": True, "out": "BF16"},
    {"k": 512, "stage": 2, "twice": True},
    {"k": 448, "stage": 2, "rows": 3},
    {"k": 512, "stage": 2, "rows": 3, "twice": True, "bias": True},
    {"k": 256, "stage": None, "rows": 3},
]


def name(options: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in options.items())


def kernel_of(compiled: Compile, options: dict[str, Any]) -> Kernel:
    (kernel,) = compiled(gemm(**SMALL, **options)).kernels
    return kernel


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
@pytest.mark.parametrize("k", [256, 512, 768, 1024, 1280, 2048])
def test_the_k_loop_is_sound_for_every_stage_and_size(compiled: Compile, stage: int, k: int):
    step = 256 if stage < 3 else 128
    (kernel,) = compiled(gemm(k, step, stage=stage)).kernels
    assert judge(kernel.program, kernel.views).sound
    assert all(each.mnemonic != "pipe_barrier" for each in kernel.program)


@pytest.mark.parametrize("options", LOOPS, ids=name)
def test_no_queue_is_too_short(compiled: Compile, options: dict[str, Any]):
    kernel = kernel_of(compiled, options)
    assert judge(kernel.program, kernel.views).sound
    issued = run_scalar_unit(kernel.program)
    assert all(gets_through(issued, depth) for depth in (1, 2, 3, 8, 32))


@pytest.mark.parametrize("options", LOOPS, ids=name)
def test_without_any_one_pair_of_flags_something_races(compiled: Compile, options: dict[str, Any]):
    kernel = kernel_of(compiled, options)
    for pair in sorted(judge(kernel.program, kernel.views).pairs):
        verdict = judge(kernel.program, kernel.views, removed=pair)
        assert verdict.races or verdict.stuck or verdict.left_up, (
            f"{kernel.program[pair[0]]} at {pair[0]} and the wait at {pair[1]} are not needed"
        )


@pytest.mark.parametrize("options", LOOPS[2:6], ids=name)
def test_without_any_one_set_or_wait_a_flag_is_left_over(
    compiled: Compile, options: dict[str, Any]
):
    kernel = kernel_of(compiled, options)
    for index, each in enumerate(kernel.program):
        if each.mnemonic in ("set_flag", "wait_flag"):
            verdict = judge(kernel.program, kernel.views, removed=(index,))
            assert verdict.stuck or verdict.left_up


def test_a_long_straight_line_holds_the_loads_back_where_eight_flags_are_short(compiled: Compile):
    """Pairs that no race needs exist only here: they keep a flag from being set while it is up.

    Sixteen products without a loop; of each pair of pipes eight flags may be up, and then the setter
    waits for four older ones at once: two waits a pair of pipes, loads to moves and moves to products.
    """
    kernel = kernel_of(compiled, {"k": 1024, "unrolled": True})
    assert judge(kernel.program, kernel.views).sound
    spare = 0
    for pair in sorted(judge(kernel.program, kernel.views).pairs):
        verdict = judge(kernel.program, kernel.views, removed=pair)
        if not (verdict.races or verdict.stuck or verdict.left_up):
            assert verdict.raised_twice
            spare += 1
    assert spare <= 4


# --------------------------------------------------------------------------- examples

EXAMPLES = {path.stem: path for path in (Path(__file__).parents[3] / "examples").glob("*.py")}
#: Examples without a loop over K, which must fit as a whole.
ONE_PRODUCT = (
    "fp4_cast",
    "mx_accumulate",
    "mx_auto_tile",
    "mx_compound",
    "mx_mixed_fp8",
    "quantise",
)
#: Examples without a K, and what makes their loops run three times or more.
OTHERS = {"layer_norm": {"M": "64"}, "softmax": {"ROWS": "64"}, "mx_epilogue": {"M": "128"}}
#: One core, tiles of one size, and three pairs of them; narrow, since the judge looks at every byte.
PERFORMANCE = {
    "mxfp4_performance": {"GRID_M": "1", "GRID_N": "1", "M": "1536", "N": "32"},
    "mxfp8_performance": {"GRID_M": "1", "GRID_N": "1", "M": "768", "N": "32"},
}


def compiled_example(name: str, k: int) -> Lowered:
    params = OTHERS.get(name, {"K": str(k)} | PERFORMANCE.get(name, {}))
    return lower(load_file(EXAMPLES[name], params=params).program, load_target("a5"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_are_sound(name: str):
    sizes = (64, 128, 256) if name in ONE_PRODUCT else (256, 512, 1024, 2048)
    for k in (0,) if name in OTHERS else sizes:
        lowered = compiled_example(name, k)
        for kernel in lowered.executable.kernels:
            arguments = [0] * len(kernel.scalars)
            assert judged_kernel(lowered, kernel, arguments).sound


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in PERFORMANCE))
        for name in sorted(EXAMPLES)
    ],
)
def test_the_examples_need_every_pair_of_flags(name: str):
    lowered = compiled_example(name, 128 if name in ONE_PRODUCT else 2048)
    for kernel in lowered.executable.kernels:
        arguments = [0] * len(kernel.scalars)
        for pair in sorted(judged_kernel(lowered, kernel, arguments).pairs):
            verdict = judged_kernel(lowered, kernel, arguments, pair)
            assert verdict.races or verdict.stuck or verdict.left_up, pair
