"""Dimensions that a launch decides: bound from arrays, by name, or refused with the way out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.commands.run import RunOptions, run_kernel
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, IRValueError

TEXT = '''"""A product of any number of rows, and any depth."""

from scalebox.ir import language as pl

M = pl.dynamic("M")
K = pl.dynamic("K")
N = pl.param("N", 32)


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP16],
        b: pl.Tensor[[K, N], pl.FP16],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        for m in pl.range(0, M, 16):
            acc = pl.matmul(a[m : m + 16, 0:16], b[0:16, :])
            for k in pl.range(16, K, 16):
                acc = pl.matmul_acc(acc, a[m : m + 16, k : k + 16], b[k : k + 16, :])
            c[m : m + 16, :] = acc
        return c
'''


@pytest.fixture(name="program")
def _program() -> Program:
    made = pl.parse(TEXT)
    assert isinstance(made, Program)
    return made


@pytest.fixture(name="kernel")
def _kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def arrays(m: int, k: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, 32))
    return {"a": a.astype(np.float16), "b": b.astype(np.float16)}


@pytest.mark.parametrize(("m", "k"), [(16, 16), (48, 64)])
def test_run_compiles_for_the_arrays_that_it_gets(program: Program, m: int, k: int) -> None:
    given = arrays(m, k)
    found = scalebox.run(program, given, timing=False)
    assert dict(found.dims) == {"K": k, "M": m}
    wanted = given["a"].astype(np.float32) @ given["b"].astype(np.float32)
    np.testing.assert_array_equal(found.outputs["c"], wanted)
    np.testing.assert_array_equal(scalebox.interpret(program, given)["c"], wanted)


def test_a_program_without_such_dimensions_tells_none() -> None:
    made = pl.parse(TEXT.replace('pl.dynamic("M")', "16").replace('pl.dynamic("K")', "16"))
    assert isinstance(made, Program)
    assert scalebox.run(made, arrays(16, 16), timing=False).dims == {}


def test_compile_takes_extents_by_name(program: Program) -> None:
    executable = scalebox.compile(program, bind={"M": 32, "K": 16})
    given = arrays(32, 16)
    found = scalebox.run(executable, given, timing=False)
    assert found.outputs["c"].shape == (32, 32)
    assert found.dims == {}


def test_compile_without_them_names_the_way_out(program: Program) -> None:
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program, bind={"M": 16})
    assert caught.value.message == (
        "All dimensions must be constant to be compiled, but 'K' is a dynamic one"
    )
    assert "scalebox.run binds it from its inputs" in (caught.value.hint or "")
    assert 'bind={"K": 64}' in (caught.value.hint or "")


def test_timing_alone_needs_extents_by_name(program: Program) -> None:
    with pytest.raises(InputError, match="'K' must be an extent of an array") as caught:
        scalebox.run(program, functional=False)
    assert "--param K=64" in (caught.value.hint or "")
    small, large = (
        scalebox.run(program, functional=False, bind={"M": 16, "K": k}).cycles for k in (16, 256)
    )
    assert small < large


@pytest.mark.parametrize(
    ("bind", "sentence"),
    [
        ({"Q": 1}, "bind must name dynamic dimensions of the program, not 'Q'"),
        ({"M": 0}, "The dimension 'M' must be a positive integer, not 0"),
        ({"M": 1.5}, "The dimension 'M' must be a positive integer, not 1.5"),
        ({"M": 16.0}, "The dimension 'M' must be a positive integer, not 16.0"),
        ({"M": True}, "The dimension 'M' must be a positive integer, not True"),
        ({"M": 32}, "The dimension 'M' must be 32, as in bind, not 16 in 'a'"),
        ([1], "bind must map dimension names to extents, not be a list"),
    ],
)
def test_what_binds_nothing_is_refused(program: Program, bind: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        scalebox.run(program, arrays(16, 16), bind=bind)
    assert caught.value.message.startswith(sentence)


def test_an_executable_has_nothing_to_bind(program: Program) -> None:
    executable = scalebox.compile(program, bind={"M": 16, "K": 16})
    with pytest.raises(InputError, match="bind must go with a program"):
        scalebox.run(executable, arrays(16, 16), bind={"M": 16})


class TestCommandLine:
    def test_a_run_draws_inputs_for_the_extents_given(self, kernel: Path, tmp_path: Path) -> None:
        params = {"M": "32", "K": "16", "N": "64"}
        report = run_kernel(RunOptions(kernel=kernel, params=params, out=tmp_path / "run"))
        assert report.ok
        assert report.as_json()["dims"] == {"K": 16, "M": 32}
        assert "dims     K = 16, M = 32" in report.lines()
        assert report.result.outputs["c"].shape == (32, 64)

    def test_inputs_from_a_file_bind_them(self, kernel: Path, tmp_path: Path) -> None:
        np.savez(tmp_path / "inputs.npz", **arrays(48, 32))
        inputs = [tmp_path / "inputs.npz"]
        report = run_kernel(RunOptions(kernel=kernel, inputs=inputs, out=tmp_path / "run"))
        assert report.ok
        assert dict(report.result.dims) == {"K": 32, "M": 48}
        again = run_kernel(RunOptions(kernel=tmp_path / "run"))
        assert again.ok

    def test_without_inputs_the_way_out_is_named(self, kernel: Path) -> None:
        with pytest.raises(InputError) as caught:
            run_kernel(RunOptions(kernel=kernel, params={"M": "16"}))
        assert "--param K=64" in (caught.value.hint or "")

    def test_compile_binds_by_param(
        self, kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "k.sbx"
        assert main(["compile", str(kernel), "-o", str(out), "--param", "M=16"]) != 0
        assert "--param K=64" in capsys.readouterr().err
        command = ["compile", str(kernel), "-o", str(out), "--param", "M=16", "--param", "K=32"]
        assert main(command) == 0
        assert out.is_file()

    def test_a_name_that_is_neither_is_refused(self, kernel: Path) -> None:
        with pytest.raises(InputError, match="has no parameter 'Q'"):
            run_kernel(RunOptions(kernel=kernel, params={"Q": "16", "M": "16", "K": "16"}))
