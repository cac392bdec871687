"""Inputs and golden from files of every kind; and golden that the user gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.app.cli import main
from scalebox.ir import numerics
from scalebox.ir.dtypes import DType
from scalebox.traces import hurray
from scalebox.traces.bundle import load_bundle

from .shown import answer

Shown = pytest.CaptureFixture[str]
RNG = np.random.default_rng(9)
A = numerics.quantize(RNG.standard_normal((32, 128)), DType.MXFP8_E4M3, axis=1)
B = numerics.quantize(RNG.standard_normal((128, 64)), DType.MXFP8_E4M3, axis=0)
C = numerics.matmul(A, B)
E8M0 = ml_dtypes.float8_e8m0fnu


@pytest.fixture
def inputs(kernel: Callable[..., str]) -> dict[str, Any]:
    """Launch inputs of `kernel.py`, which is written."""
    kernel()
    return {
        "a": A.elements,
        "sa": numerics.pack_scales_a(A.scales),
        "b": B.elements,
        "sb": numerics.pack_scales_b(B.scales),
    }


def outputs(*arguments: str) -> Any:
    assert main(["run", "kernel.py", "--out", "found", *arguments]) == 0
    found = load_bundle(Path("found")).outputs
    assert found is not None
    return found["c"]


def test_inputs_come_from_every_kind_of_file(inputs: dict[str, Any]) -> None:
    np.savez("all.npz", **inputs)
    assert outputs("--inputs", "all.npz").tobytes() == C.tobytes()
    for name, array in inputs.items():
        np.save(f"{name}.npy", array)
    single = [part for name in inputs for part in ("--inputs", f"{name}.npy")]
    assert outputs(*single).tobytes() == C.tobytes()
    hurray.save("all.hrry", {name: hurray.from_numpy(each) for name, each in inputs.items()})
    assert outputs("--inputs", "all.hrry").tobytes() == C.tobytes()
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--out", "one.hrry"]) == 0
    assert outputs("--inputs", "one.hrry").tobytes() == C.tobytes()
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--out", "folder"]) == 0
    assert outputs("--inputs", "folder").tobytes() == C.tobytes()


def test_boxed_scales_of_a_tensor_file_stay_in_their_boxes(inputs: dict[str, Any]) -> None:
    tensors = {
        "a": hurray.from_numpy(inputs["a"].view(ml_dtypes.float8_e4m3fn)),
        "b": hurray.from_numpy(inputs["b"].view(ml_dtypes.float8_e4m3fn)),
        "sa": hurray.boxed_scales_a(A.scales),
        "sb": hurray.boxed_scales_b(B.scales),
    }
    hurray.save("boxed.hrry", tensors)
    assert outputs("--inputs", "boxed.hrry").tobytes() == C.tobytes()


def test_an_input_that_is_given_twice_is_refused(inputs: dict[str, Any], capsys: Shown) -> None:
    np.savez("all.npz", **inputs)
    np.save("sa.npy", inputs["sa"])
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--inputs", "sa.npy"]) == 2
    assert capsys.readouterr().err == (
        "Error: The input 'sa' must be given once, but sa.npy gives it again\n"
    )


@pytest.mark.parametrize("form", ["c.npz", "c.npy", "c.hrry", "bundle.hrry"])
def test_golden_comes_from_every_kind_of_file(
    form: str, inputs: dict[str, Any], capsys: Shown
) -> None:
    np.savez("all.npz", **inputs)
    np.savez("c.npz", c=C)
    np.save("c.npy", C)
    hurray.save("c.hrry", {"c": hurray.from_numpy(C)})
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--out", "bundle.hrry"]) == 0
    capsys.readouterr()
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--golden", form]) == 0
    shown = capsys.readouterr().out
    assert "golden   equal bit for bit, all 2,048 elements of c" in shown
    assert "(golden is what was given as golden)" in shown
    assert main(["compare", "bundle.hrry", form]) == 0
    assert main(["compare", form, "bundle.hrry"]) == 0


BF16 = """
from scalebox.ir import language as pl

X = pl.Tensor[[16, 64], pl.BF16]


@pl.jit.incore
def double(x: X, y: pl.Out[X]):
    t = pl.load(x, [0, 0], [16, 64])
    y = pl.store(pl.add(t, t), [0, 0], y)
    return y
"""


@pytest.mark.parametrize("codes", [True, False])
def test_numpy_files_of_a_type_that_numpy_cannot_name_are_taken(
    codes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bf16.py").write_text(BF16)
    x: Any = RNG.standard_normal((16, 64)).astype(ml_dtypes.bfloat16)
    y: Any = x + x
    given = {"x": x.view(np.uint16), "y": y.view(np.uint16)} if codes else {"x": x, "y": y}
    for name, array in given.items():
        np.save(f"{name}.npy", array)
    np.savez("both.npz", y=given["y"])
    run = ["run", "bf16.py", "--inputs", "x.npy", "--out", "made"]
    for golden in ("y.npy", "both.npz"):
        assert main([*run, "--golden", golden]) == 0
        assert "equal bit for bit, all 1,024 elements of y" in capsys.readouterr().out
        assert main(["compare", "made", golden]) == 0
    np.save("y.npy", y.astype(np.float32))
    capsys.readouterr()
    assert main(["compare", "made", "y.npy"]) == 2
    assert capsys.readouterr().err == (
        "Error: actual and golden 'y' must be of one type, not bfloat16 and float32\n"
        "  = help: .astype(ml_dtypes.bfloat16) rounds to it; codes in uint16 are taken for "
        "bfloat16, too\n"
    )


def test_golden_of_a_user_is_kept_and_need_not_be_what_numpy_computes(
    inputs: dict[str, Any], capsys: Shown
) -> None:
    np.savez("all.npz", **inputs)
    np.save("c.npy", np.nextafter(C, np.float32(np.inf)))
    arguments = ["run", "kernel.py", "--inputs", "all.npz", "--golden", "c.npy"]
    assert main([*arguments, "--out", "exact"]) == 1
    assert "golden   DIFFERENT from what was given as golden" in capsys.readouterr().out
    assert main([*arguments, "--rule", "ulp:1", "--out", "near"]) == 0
    assert "golden   equal by the rule ulp:1" in capsys.readouterr().out
    assert main(["run", "exact"]) == 1
    assert main(["run", "near"]) == 0
    assert "(golden is what the bundle keeps)" in capsys.readouterr().out


def test_an_executable_is_compared_with_golden_that_is_given(
    inputs: dict[str, Any], capsys: Shown
) -> None:
    np.savez("all.npz", **inputs)
    np.save("c.npy", C)
    assert main(["compile", "kernel.py", "-o", "kernel.sbx"]) == 0
    capsys.readouterr()
    arguments = ["run", "kernel.sbx", "--inputs", "all.npz", "--golden", "c.npy", "--json"]
    assert main(arguments) == 0
    assert answer(capsys)["outputs"]["c"]["equal"] is True


def test_a_comparison_with_a_bundle_names_what_wrote_an_element(
    inputs: dict[str, Any], capsys: Shown
) -> None:
    np.savez("all.npz", **inputs)
    assert main(["run", "kernel.py", "--inputs", "all.npz", "--out", "run"]) == 0
    other = C.copy()
    other[17, 40] += 1
    np.save("c.npy", other)
    line = Path("kernel.py").read_text().splitlines().index("        c = pl.store(acc, [0, 0], c)")
    for arguments in (("run", "c.npy"), ("c.npy", "run")):
        capsys.readouterr()
        assert main(["compare", *arguments, "--json"]) == 1
        first = answer(capsys)["first_difference"]
        assert (first["index"], first["tile"]) == ([17, 40], [0, 0])
        assert first["instruction"].startswith("l0c_to_gm ")
        assert first["source"].startswith(f"kernel.py:{line + 1}:")


def test_a_picture_of_the_differences(inputs: dict[str, Any], capsys: Shown) -> None:
    other = C.copy()
    other[3, 4] = np.nan
    np.save("c.npy", C)
    np.save("other.npy", other)
    assert main(["compare", "other.npy", "c.npy", "--plot", "map.png"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.endswith("blue lines are the edges of tiles")
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert main(["compare", "other.npy", "c.npy", "--plot", "map.png", "--json"]) == 1
    found = answer(capsys)
    assert found["plot"] == "map.png"
    assert found["outputs"]["out"]["histogram"] == {"bins": [], "special": 1}
    assert found["outputs"]["out"]["guesses"] == [
        "NaN in 1 element of actual only: a scale code of 255 or a NaN element makes one"
    ]
