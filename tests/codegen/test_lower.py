"""From program to executable: entries, their names and promises, what is refused before anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.codegen.executable import Executable
from scalebox.codegen.host.program import Launch, Require
from scalebox.codegen.lower import lower
from scalebox.codegen.tensors import Direction, Layout, ParamKind
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, IRValueError, UserError
from scalebox.ir.target import load_target

from .gemm_text import Options, gemm, parsed

Compile = Callable[[str], Executable]

HEAD = """
import scalebox.ir.language as pl
@pl.program
class P:
"""
KERNEL = """
    @pl.function(type=pl.FunctionType.{kind})
    def {name}(self, a: pl.Tensor[[64, 256], pl.FP8E4M3FN],
             sa: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ], b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
             sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[64, 64], pl.FP32]], row: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX]):
        a0 = pl.load(a, [row, k], [16, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [row, k // 32], [16, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [k, 0], [64, 64], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [k // 32, 0], [2, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [row, 0], c)
        return c
"""
CALLER = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def {name}(self, a: pl.Tensor[[64, 256], pl.FP8E4M3FN],
             sa: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ], b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
             sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN], c: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for r in pl.range(0, 64, 16):
            c = self.tile(a, sa, b, sb, c, r, 64)
        return c
"""


def text(*functions: tuple[str, str], kind: str = "InCore") -> str:
    parts = {"kernel": KERNEL, "caller": CALLER}
    return HEAD + "".join(parts[what].format(name=name, kind=kind) for what, name in functions)


def entries(executable: Executable) -> list[str]:
    return [entry.name for entry in executable.entries]


# --------------------------------------------------------------------------- entries


def test_every_kernel_and_every_orchestration_is_an_entry(compiled: Compile):
    executable = compiled(text(("kernel", "tile"), ("caller", "main")))
    assert sorted(entries(executable)) == ["main", "tile"]
    assert [kernel.name for kernel in executable.kernels] == ["tile"]


def test_the_only_orchestration_is_launched_by_default(compiled: Compile):
    executable = compiled(text(("kernel", "tile"), ("caller", "main")))
    assert executable.entry(None).name == "main"


def test_without_an_orchestration_the_only_kernel_is(compiled: Compile):
    executable = compiled(gemm(256))
    assert executable.entry(None).name == "gemm"


def test_of_several_one_must_be_named(compiled: Compile):
    executable = compiled(text(("kernel", "tile"), ("caller", "main"), ("caller", "other")))
    with pytest.raises(InputError):
        executable.entry(None)
    assert executable.entry("other").name == "other"


def test_the_executable_says_where_it_came_from(compiled: Compile):
    executable = compiled(gemm(256))
    target = load_target("a5")
    assert executable.name == "Gemm"
    assert (executable.machine, executable.machine_digest) == (target.name, target.digest)


def test_parameters_stand_as_they_were_written(compiled: Compile):
    (kernel,) = compiled(text(("kernel", "tile"), ("caller", "main"))).kernels
    a, sa, b, sb, c, row, k = kernel.params
    assert (sa.shape, sa.layout, sa.bits) == ((64, 8), Layout.MX_A_ZZ, 8)
    assert (sb.shape, sb.layout) == ((8, 64), Layout.MX_B_NN)
    assert (a.direction, b.direction, c.direction) == (Direction.IN, Direction.IN, Direction.OUT)
    assert row.kind is k.kind is ParamKind.SCALAR


def test_instructions_know_their_source_lines(compiled: Compile):
    source = gemm(512)
    (kernel,) = compiled(source).kernels
    lines = source.splitlines()
    for index, each in enumerate(kernel.program):
        span = kernel.span(index)
        wanted = {
            "mad_mx": "pl.matmul_mx",
            "l0c_to_gm": "pl.store",
            "gm_to_l1_nz": "pl.load",
            "l1_to_l0b": "pl.Mem.Right",
            "set_flag": "",
            "wait_flag": "",
        }.get(each.mnemonic)
        if wanted is not None:
            assert span.is_known
            assert wanted in lines[span.line - 1]


# --------------------------------------------------------------------------- promises


def requirements(executable: Executable, entry: str) -> list[str]:
    return [s.message for s in executable.entry(entry).body if isinstance(s, Require)]


def test_a_kernel_that_others_call_holds_its_scalars_to_what_they_promise(compiled: Compile):
    executable = compiled(text(("kernel", "tile"), ("caller", "main")))
    assert requirements(executable, "tile") == [
        "The scalar 'row' of 'tile' must be a multiple of 16, as every call in the program has it",
        "The scalar 'row' of 'tile' must be non-negative, as every call in the program has it",
        "The scalar 'k' of 'tile' must be a multiple of 64, as every call in the program has it",
        "The scalar 'k' of 'tile' must be non-negative, as every call in the program has it",
    ]
    assert requirements(executable, "main") == []


@pytest.mark.parametrize(
    ("row", "k", "what"),
    [(8, 0, "'row' .* multiple of 16"), (-16, 0, "'row' .* non-negative"), (0, 32, "'k' .* of 64")],
)
def test_a_broken_promise_ends_the_launch(compiled: Compile, row: int, k: int, what: str):
    executable = compiled(text(("kernel", "tile"), ("caller", "main")))
    with pytest.raises(InputError, match=what):
        executable.expand("tile", {"row": row, "k": k})


def test_a_kept_promise_launches_the_kernel(compiled: Compile):
    executable = compiled(text(("kernel", "tile"), ("caller", "main")))
    graph = executable.expand("tile", {"row": 48, "k": 192})
    assert [task.scalars for task in graph.tasks] == [(48, 192)]


def test_a_kernel_without_callers_has_nothing_to_promise(compiled: Compile):
    executable = compiled(gemm(512))
    assert [type(each) for each in executable.entry(None).body] == [Launch]


# --------------------------------------------------------------------------- refusals


def test_a_function_without_a_type_is_refused_with_what_to_write(compiled: Compile):
    source = text(("kernel", "tile"), kind="Opaque")
    with pytest.raises(IRValueError) as caught:
        compiled(source)
    assert caught.value.message == (
        "The function 'tile' must be InCore or Orchestration to be compiled, not Opaque"
    )
    assert caught.value.hint == (
        "write @pl.function(type=pl.FunctionType.InCore) for a kernel, "
        "pl.FunctionType.Orchestration for what calls kernels"
    )
    assert caught.value.span is not None


def test_a_program_without_functions_is_refused():
    with pytest.raises(IRValueError, match="must have at least one function to be compiled"):
        lower(Program([], "Empty"), load_target("a5"))


def test_a_tile_that_is_too_large_is_refused_before_code_is_made(compiled: Compile):
    with pytest.raises(UserError, match="Left buffer usage must be at most"):
        compiled(gemm(2048, 2048))


# --------------------------------------------------------------------------- as a whole


def drawn(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    match name:
        case "z":
            return rng.integers(-3, 3, shape).astype(np.float32)
        case "sa" | "sb":
            return rng.integers(120, 130, shape, dtype=np.uint8)
        case _:
            return rng.integers(0, 0x70, shape, dtype=np.uint8)


TIMES: list[Options] = [
    {"k": 512, "step": 128},
    {"k": 768, "step": 128, "bias": True, "twice": True, "rows": 2},
]


@pytest.mark.parametrize("options", TIMES)
def test_compilation_is_the_same_every_time(options: Options):
    source = gemm(**options)
    first, second = (lower(parsed(source), load_target("a5")).executable for _ in range(2))
    assert first.to_bytes() == second.to_bytes()


def test_the_program_is_handed_back_as_it_stands_after_the_passes():
    lowered = lower(parsed(gemm(512)), load_target("a5"))
    assert "tget_scale_addr" in scalebox.ir.python_print(lowered.program)


def test_an_executable_survives_its_file(compiled: Compile, tmp_path: Path):
    executable = compiled(gemm(768, 128, rows=2, bias=True))
    executable.save(tmp_path / "k.sbx")
    assert Executable.load(tmp_path / "k.sbx") == executable


RUNS: list[Options] = [
    {"k": 512, "step": 128, "stage": 3, "rows": 2, "twice": True},
    {"k": 640, "step": 64, "stage": 4, "m": 16, "n": 32, "rows": 3},
    {"k": 512, "step": 64, "unrolled": True, "bias": True, "out": "BF16"},
    {"k": 512, "step": 128, "stage": None, "out": "FP16"},
]


@pytest.mark.parametrize("options", RUNS)
def test_kernels_compute_what_the_interpreter_computes(compiled: Compile, options: Options):
    source = gemm(**options)
    rng = np.random.default_rng(7)
    (kernel,) = compiled(source).kernels
    inputs = {
        param.name: drawn(param.name, param.shape, rng)
        for param in kernel.tensors
        if param.direction is Direction.IN
    }
    golden = scalebox.interpret(parsed(source), inputs)
    found = scalebox.run(compiled(source), inputs).outputs
    assert scalebox.compare(found, golden)
