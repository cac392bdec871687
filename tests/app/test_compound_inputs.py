"""Compound parameters from outside: one block-scaled array, whatever the passes have made of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.signature import entry_function
from scalebox.codegen.executable import Executable
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import BlockScaledDType, DType
from scalebox.ir.errors import InputError
from scalebox.ir.passes import default_pipeline
from scalebox.traces.arrays import load_arrays
from scalebox.traces.bundle import load_bundle

Shown = pytest.CaptureFixture[str]
DTYPES = [DType.MXFP8_E4M3, DType.MXFP8_E5M2, DType.MXFP4]
KERNEL = """
from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[32, 128], pl.{dtype}], b: pl.Tensor[[128, 64], pl.{dtype}],
             unused: pl.Tensor[[32, 32], pl.{dtype}]):
        c = pl.matmul(a, b)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 128], pl.{dtype}], b: pl.Tensor[[128, 64], pl.{dtype}],
             a_scale: pl.Tensor[[32, 32], pl.{dtype}]):
        product = self.gemm(a, b, a_scale)
        return product
"""


def program(dtype: BlockScaledDType) -> Program:
    made = pl.parse(KERNEL.format(dtype=dtype.name))
    assert isinstance(made, Program)
    return made


def arrays(dtype: BlockScaledDType, third: str = "a_scale", axis: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    left = rng.standard_normal((32, 128)) * np.exp2(rng.integers(-8, 8, (32, 1)))
    right = rng.standard_normal((128, 64)) * np.exp2(rng.integers(-8, 8, (1, 64)))
    return {
        "a": numerics.quantize(left, dtype, axis=1),
        "b": numerics.quantize(right, dtype, axis=0),
        third: numerics.quantize(np.ones((32, 32)), dtype, axis=axis),
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_array_a_parameter_everywhere(dtype: BlockScaledDType, tmp_path: Path) -> None:
    made, given = program(dtype), arrays(dtype)
    wanted = numerics.matmul(given["a"], given["b"])
    stage = made
    for each in default_pipeline():
        stage = each(stage)
        assert scalebox.interpret(stage, given)["product"].tobytes() == wanted.tobytes(), each.name
    executable = scalebox.compile(made)
    executable.save(tmp_path / "kernel.bin")
    for what in (made, executable, Executable.load(tmp_path / "kernel.bin")):
        found = scalebox.run(what, given, timing=False)
        assert list(found.outputs) == ["product"]
        assert found.outputs["product"].tobytes() == wanted.tobytes()


def test_a_kernel_alone() -> None:
    given = arrays(DType.MXFP4, "unused")
    found = scalebox.run(program(DType.MXFP4), given, entry="gemm", timing=False)
    assert found.outputs["c"].tobytes() == numerics.matmul(given["a"], given["b"]).tobytes()


def test_what_no_matmul_takes_may_be_grouped_along_any_axis() -> None:
    given = arrays(DType.MXFP4, axis=0)
    found = scalebox.run(program(DType.MXFP4), given, timing=False)
    assert found.outputs["product"].tobytes() == (numerics.matmul(given["a"], given["b"]).tobytes())


class TestRefusals:
    """The machine refuses what the interpreter refuses, by the same sentences."""

    def refusals(self, **changed: Any) -> set[str]:
        given = {**arrays(DType.MXFP8_E4M3), **changed}
        made = program(DType.MXFP8_E4M3)
        found: set[str] = set()
        for call in (scalebox.interpret, scalebox.run):
            with pytest.raises(InputError) as caught:
                call(made, given)
            found.add(f"{caught.value.message} / {caught.value.hint}")
        return found

    def test_another_axis(self) -> None:
        turned = numerics.quantize(np.ones((32, 128)), DType.MXFP8_E4M3, axis=0)
        assert self.refusals(a=turned) == {
            "a must be an MXFP8_E4M3 array of shape [32, 128], grouped along axis 1, not along axis "
            "0 / numerics.quantize(x, pl.MXFP8_E4M3, axis=1) makes it"
        }

    def test_another_dtype(self) -> None:
        other = numerics.quantize(np.ones((128, 64)), DType.MXFP8_E5M2, axis=0)
        assert self.refusals(b=other) == {
            "b must be an MXFP8_E4M3 array of shape [128, 64], grouped along axis 0, not of "
            "MXFP8_E5M2 / numerics.quantize(x, pl.MXFP8_E4M3, axis=0) makes it"
        }

    def test_elements_alone(self) -> None:
        (sentence,) = self.refusals(a=np.ones((32, 128), np.uint8))
        assert "not an array of uint8 of shape [32, 128]" in sentence

    def test_a_plane_by_its_own_name(self) -> None:
        given = arrays(DType.MXFP8_E4M3)
        scales = numerics.pack_scales_b(given["b"].scales)
        with pytest.raises(InputError, match=r"^main has no parameter 'b_scale'$"):
            scalebox.run(program(DType.MXFP8_E4M3), {**given, "b_scale": scales})

    def test_nothing(self) -> None:
        (sentence,) = self.refusals(b=None)
        assert "b must be an MXFP8_E4M3 array of shape [128, 64]" in sentence
        assert "but it was not given" in sentence


class TestDrawn:
    def test_scales_differ_along_every_axis(self) -> None:
        entry = scalebox.compile(program(DType.MXFP8_E4M3)).entry()
        drawn = draw_inputs(entry_function(entry), 0)
        assert list(drawn) == ["a", "b", "a_scale"]
        for name, axis, shape in (("a", 1, (32, 4)), ("b", 0, (4, 64))):
            array = drawn[name]
            assert isinstance(array, numerics.MXArray)
            assert (array.axis, array.scales.shape) == (axis, shape)
            assert (np.diff(array.scales.astype(int), axis=0) != 0).all()
            assert (np.diff(array.scales.astype(int), axis=1) != 0).all()
        again = draw_inputs(entry_function(entry), 0)
        assert all((drawn[n].elements == again[n].elements).all() for n in drawn)

    @pytest.mark.parametrize("dtype", [DType.NVFP4, DType.MXINT8, DType.MXFP6_E2M3])
    def test_what_is_only_interpreted_is_drawn_too(self, dtype: BlockScaledDType) -> None:
        made = program(dtype)
        function = made.get_function("gemm")
        assert function is not None
        a, b, _ = function.params
        drawn = draw_inputs(function, 1, grouped_axes={a: 1, b: 0})
        found = scalebox.interpret(made, drawn, entry="gemm")["c"]
        assert found.tobytes() == numerics.matmul(drawn["a"], drawn["b"]).tobytes()


class TestCommandLine:
    @pytest.fixture(name="kernel")
    def _kernel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        place = tmp_path / "kernel.py"
        place.write_text(KERNEL.format(dtype="MXFP8_E4M3"), encoding="utf-8")
        return place

    def test_inputs_are_drawn_and_the_bundle_runs_again(self, kernel: Path, capsys: Shown) -> None:
        assert main(["run", str(kernel), "--json", "--out", "first"]) == 0
        first = json.loads(capsys.readouterr().out)
        assert first["ok"]
        assert first["outputs"]["product"]["equal"]
        bundle = load_bundle(Path("first"))
        assert isinstance(bundle.inputs["a"], numerics.MXArray)
        command = ["run", str(kernel), "--json", "--inputs", "first/inputs.npz", "--out", "second"]
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["ok"]
        outputs = [load_arrays(Path(run) / "outputs.npz")["product"] for run in ("first", "second")]
        assert isinstance(outputs[0], np.ndarray)
        assert outputs[0].tobytes() == np.asarray(outputs[1]).tobytes()

    def test_a_saved_executable_takes_the_same_arrays(self, kernel: Path, capsys: Shown) -> None:
        assert main(["compile", str(kernel), "--output", "kernel.bin"]) == 0
        assert main(["run", str(kernel), "--out", "first"]) == 0
        command = ["run", "kernel.bin", "--inputs", "first/inputs.npz", "--out", "second", "--json"]
        capsys.readouterr()
        assert main(command) == 0
        assert json.loads(capsys.readouterr().out)["outputs"]["product"]["shape"] == [32, 64]
        one, other = (
            np.asarray(load_arrays(Path(run) / "outputs.npz")["product"])
            for run in ("first", "second")
        )
        assert one.tobytes() == other.tobytes()
