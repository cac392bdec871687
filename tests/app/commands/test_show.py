"""`scalebox show`: what a bundle or a file of arrays holds, as text and as JSON."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from scalebox.app.cli import main
from scalebox.ir import numerics
from scalebox.ir.dtypes import DType
from scalebox.traces import hurray
from scalebox.traces.bundle import Bundle, save_bundle

from ..shown import answer

Shown = pytest.CaptureFixture[str]


@pytest.mark.parametrize("form", ["run", "run.hrry"])
def test_a_bundle_is_told_whole(form: str, kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(), "--seed", "4", "--set", "cores=3", "--json", "--out", form]) == 0
    cycles = answer(capsys)["cycles"]
    assert main(["show", form]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0] == f"{form}: a run of kernel.py"
    assert max(map(len, lines)) <= 80
    for line in (
        "entry      gemm",
        "checks     error",
        "sum        group",
        f"cycles     {cycles:,}",
        "seed       4",
        "settings   cores 3",
        "rule       exact",
        "outputs    equal golden",
        "has        executable, machine, program, timeline",
    ):
        assert line in lines
    (row,) = (line for line in lines if line.startswith("input   sa "))
    assert row.split()[:7] == ["input", "sa", "float8_e8m0fnu", "32", "x", "4", "128"]
    assert {line.split()[0] for line in lines if " float32 " in line} == {"output", "golden"}


def test_the_json_of_a_bundle(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(), "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["show", "run", "--json"]) == 0
    found = answer(capsys)
    assert (found["ok"], found["equal"]) == (True, True)
    assert set(found["has"].values()) == {True}
    assert found["options"]["entry"] == "gemm"
    (c,) = (row for row in found["arrays"] if row["role"] == "output")
    assert (c["name"], c["dtype"], c["shape"], c["bytes"]) == ("c", "float32", [32, 64], 8192)


def test_a_bundle_without_results_and_one_that_differs(tmp_path: Path, capsys: Shown) -> None:
    bare, wrong = tmp_path / "bare.hrry", tmp_path / "wrong.hrry"
    save_bundle(bare, Bundle(inputs={}))
    assert main(["show", str(bare)]) == 0
    assert "has        nothing to be run again" in capsys.readouterr().out
    save_bundle(wrong, Bundle(inputs={}, outputs={"c": np.ones(3)}, golden={"c": np.zeros(3)}))
    assert main(["show", str(wrong)]) == 0
    assert "outputs    DIFFERENT from golden" in capsys.readouterr().out


def test_files_of_arrays_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.array([[1, np.nan, -2.5]], np.float32)
    mx = numerics.quantize(np.ones((4, 64), np.float32), DType.MXFP4, axis=1)
    np.savez("x.npz", a=array, text=np.array("hello"), n=np.array(3))
    np.save("y.npy", array.astype(ml_dtypes.bfloat16).view(np.uint16))
    tensors = {"a": hurray.from_numpy(array), **hurray.mx_tensors("m", mx, boxed=True)}
    hurray.save("z.hrry", tensors)
    assert main(["show", "x.npz"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "x.npz: 3 arrays",
        "",
        "array  type     shape   bytes  values",
        "a      float32  1 x 3      12  -2.5 to 1, 1 NaN",
        "text   str160   scalar     20",
        "n      int64    scalar      8  3",
    ]
    assert main(["show", "y.npy"]) == 0
    assert "y      uint16  1 x 3      6  " in capsys.readouterr().out
    assert main(["show", "z.hrry", "--json"]) == 0
    found = {row["name"]: row for row in answer(capsys)["arrays"]}
    assert set(found) == {"a", "m"}
    assert (found["m"]["dtype"], found["m"]["shape"]) == ("MXFP4", [4, 64])


def test_tensors_that_are_no_arrays_are_listed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """The extension section tells a stranger how many bytes a private type takes."""
    monkeypatch.chdir(tmp_path)
    private = hurray.Dtype.from_tag(0xF2)
    int24 = hurray.ExtensionType(24, is_signed=True)
    mx = numerics.quantize(np.ones((4, 64), np.float32), DType.MXINT8, axis=1)
    tensors = {
        "t": hurray.Tensor(bytes(12), private, [4], extension_type=int24),
        "d": hurray.Tensor(bytes(4), hurray.float32, [None, 2]),
        "whole": hurray.from_numpy(np.ones(1, np.float32)),
        **{name: each for name, each in hurray.mx_tensors("m", mx).items() if name == "m"},
    }
    hurray.save("x.hrry", tensors)
    assert main(["show", "x.hrry"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "x.hrry: 4 arrays",
        "",
        "array  type                   shape   bytes  values",
        "t      private 0xF2, 24 bits  4          12  row_major",
        "d      float32                ? x 2       4  row_major",
        "whole  float32                1           4  1",
        "m      int8                   4 x 64    256  row_major",
    ]
    assert main(["show", "x.hrry", "--json"]) == 0
    assert [row["shape"] for row in answer(capsys)["arrays"]] == [[4], [None, 2], [1], [4, 64]]


def test_what_a_bundle_says_cannot_steer_the_terminal(tmp_path: Path, capsys: Shown) -> None:
    place = tmp_path / "x.hrry"
    save_bundle(place, Bundle(inputs={"a\x1b[2J": np.ones(1)}, options={"kernel": "k\x1b[31m"}))
    assert main(["show", str(place)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "a\\x1b[2J" in shown


def test_a_bundle_without_arrays_has_no_table(tmp_path: Path, capsys: Shown) -> None:
    save_bundle(tmp_path / "x.hrry", Bundle(inputs={}))
    assert main(["show", str(tmp_path / "x.hrry")]) == 0
    assert not any("array" in line.split() for line in capsys.readouterr().out.splitlines())
