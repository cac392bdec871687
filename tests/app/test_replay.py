"""A saved run is run again: the same bytes, or what differs is named."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.codegen.isa.program import make
from scalebox.ir.core import Program
from scalebox.traces.bundle import Bundle, load_bundle, save_bundle

from .shown import answer
from .test_dynamic_dims import TEXT

Shown = pytest.CaptureFixture[str]
FORMS = ("run", "run.hrry")
EXAMPLES = sorted(path.name for path in (Path(__file__).parents[2] / "examples").glob("*.py"))


def files(place: Path) -> dict[str, bytes]:
    """Return all bytes of a bundle of either form."""
    if place.is_file():
        return {"": place.read_bytes()}
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_gives_the_same_bytes_and_leaves_the_same_bundle(
    form: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--seed", "3", "--sum", "sequential", "--out", form]) == 0
    Path("kernel.py").unlink()  # the bundle holds all
    before = files(Path(form))
    capsys.readouterr()
    assert main(["run", form]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{form}: gemm on machine a5, inputs drawn with seed 3"
    assert lines[2:6] == [
        "replay   equal byte for byte, all 2,048 elements of c",
        "         (to the outputs that the bundle keeps)",
        "golden   equal bit for bit, all 2,048 elements of c",
        "         (golden is what the bundle keeps, and what numpy computes from its kernel)",
    ]
    assert not any(line.startswith("bundle ") for line in lines)
    assert files(Path(form)) == before
    assert [path.name for path in Path().iterdir()] == [form]
    again = "again" + Path(form).suffix
    assert main(["run", form, "--out", again]) == 0
    assert files(Path(again)) == before


def header(shown: str) -> list[str]:
    """Return what a report says before its verdict, but for what ran."""
    head, _, rest = shown.partition("\n\n")
    return [
        *head.splitlines()[1:],
        *(line for line in rest.splitlines() if line.startswith("dims")),
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [(), ("--param", "N=64", "--set", "l2_bytes=1MiB", "--warm")])
def test_the_header_tells_what_was_set_as_that_of_the_run_did(
    form: str, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """Of the kernel's sizes, one has a value of its own, and two must be given."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(TEXT)
    given = ("--param", "M=32", "--param", "K=16", *more)
    assert main(["run", "kernel.py", *given, "--out", form]) == 0
    first = header(capsys.readouterr().out)
    assert first == ["with     " + " ".join(given), "dims     K = 16, M = 32"]
    assert main(["run", form]) == 0
    assert header(capsys.readouterr().out) == first
    assert main(["report", form]) == 0
    assert header(capsys.readouterr().out) == first[:1]
    assert main(["run", form, "--json"]) == 0
    found = answer(capsys)
    assert list(found["params"]) == ["M", "K", "N"][: 2 + bool(more)]
    assert found["dims"] == {"K": 16, "M": 32}
    assert load_bundle(Path(form)).options["params"] == {"N": 64 if more else 32}


def test_a_bundle_of_an_older_version_tells_all_of_its_parameters(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--out", "run"]) == 0
    bundle = load_bundle(Path("run"))
    options = {
        name: value for name, value in bundle.options.items() if name not in ("given", "dims")
    }
    save_bundle(Path("old"), replace(bundle, options={**options, "params": {"M": 32}}))
    capsys.readouterr()
    assert main(["run", "old"]) == 0
    assert header(capsys.readouterr().out) == ["with     --param M=32"]


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.usefixtures("examples")
def test_every_example_can_be_replayed(example: str, capsys: Shown) -> None:
    assert main(["run", f"examples/{example}", "--out", "run.hrry"]) == 0
    capsys.readouterr()
    assert main(["run", "run.hrry", "--json"]) == 0
    found = answer(capsys)
    assert found["ok"] is True
    assert found["replay"]["same_bytes"] is True
    assert found["replay"]["kept_cycles"] == found["cycles"]
    assert found["replay"]["golden"]["differing"] == 0  # of the kernel as the bundle keeps it


def test_the_forms_hold_the_same(kernel: Callable[..., str]) -> None:
    for form in FORMS:
        assert main(["run", kernel(), "--out", form]) == 0
    one, other = (load_bundle(Path(form)) for form in FORMS)
    for member in ("executable", "machine", "program", "options", "timeline"):
        assert getattr(one, member) == getattr(other, member)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_from_python_can_be_replayed_and_its_golden_computed(
    form: str, gemm: Callable[..., Program], mx_inputs: Any, tmp_path: Path, capsys: Shown
) -> None:
    rng = np.random.default_rng(1)
    inputs = mx_inputs(
        rng.integers(0, 120, (32, 128), np.uint8),
        rng.integers(120, 130, (32, 4)),
        rng.integers(0, 120, (128, 64), np.uint8),
        rng.integers(120, 130, (4, 64)),
    )
    result = scalebox.run(gemm(32, 128, 64), inputs, machine="a5")
    result.save(tmp_path / form)
    assert load_bundle(tmp_path / form).golden is None
    assert main(["run", str(tmp_path / form), "--json"]) == 0
    found = answer(capsys)
    assert found["ok"] is True
    assert found["bundle"] is None
    assert found["replay"]["same_bytes"] is True
    assert found["replay"]["outputs"]["differing"] == 0
    assert found["outputs"]["c"]["equal"] is True
    scalebox.run(result.executable, inputs).save(tmp_path / "bare")
    assert main(["run", str(tmp_path / "bare")]) == 0
    assert "golden   not compared" in capsys.readouterr().out


def test_scalars_machine_and_options_are_kept(
    kernel: Callable[..., str], capsys: Shown, tmp_path: Path
) -> None:
    arguments = ["--set", "l2_miss_cycles=1000", "--set", "cores=2", "--checks", "warn"]
    assert main(["run", kernel(), *arguments, "--json", "--out", "run"]) == 0
    first = answer(capsys)
    assert main(["run", "run", "--json"]) == 0
    again = answer(capsys)
    assert again["warnings"] == []
    for key in ("cycles", "pipes", "instructions", "machine", "entry"):
        assert again[key] == first[key]
    assert again["replay"]["kept_cycles"] == first["cycles"]


def test_a_timing_only_run_is_replayed_as_one(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(), "--timing-only", "--out", "run"]) == 0
    assert main(["run", "run", "--out", "again"]) == 0
    assert "replay   of a run that computed only cycles" in capsys.readouterr().out
    assert files(Path("run")) == files(Path("again"))


def changed(place: str, **changes: Any) -> Bundle:
    bundle = replace(load_bundle(Path(place)), **changes)
    save_bundle(Path(place), bundle)
    return bundle


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_longer_the_same_is_named(
    form: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--out", form]) == 0
    bundle = load_bundle(Path(form))
    assert bundle.outputs is not None
    other = np.array(bundle.outputs["c"])
    other[7, 9] += 1
    changed(form, outputs={"c": other}, options={**bundle.options, "cycles": 5})
    capsys.readouterr()
    assert main(["run", form]) == 1
    shown = capsys.readouterr().out
    assert "replay   DIFFERENT from the outputs that the bundle keeps" in shown
    assert "first at [7, 9], tile [0, 0]" in shown
    assert "golden   equal bit for bit" in shown
    assert "warning  the bundle keeps 5 cycles, not " in shown

    changed(form, outputs=bundle.outputs, golden={"c": other})
    assert main(["run", form]) == 1
    shown = capsys.readouterr().out
    assert "replay   equal byte for byte" in shown
    assert "golden   DIFFERENT: numpy computes from the kernel what the bundle does not" in shown
    assert "golden   DIFFERENT from what the bundle keeps" in shown


def test_a_damaged_executable_in_a_bundle_is_noticed(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--out", "run"]) == 0
    executable = scalebox.Executable.from_bytes(load_bundle(Path("run")).executable or b"")
    (only,) = executable.kernels
    program = tuple(
        make("mad_mx", **{**each.fields, "a_type": 1}) if each.mnemonic == "mad_mx" else each
        for each in only.program
    )
    wrong = replace(executable, kernels=(replace(only, program=program),))
    changed("run", executable=wrong.to_bytes())
    assert main(["run", "run", "--json"]) == 1
    found = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert found["replay"]["same_bytes"] is False


@pytest.mark.parametrize(
    "arguments",
    [
        ["--param", "M=3"],
        ["--set", "cores=2"],
        ["--machine", "a5"],
        ["--inputs", "x.npz"],
        ["--golden", "x.npz"],
        ["--rule", "exact"],
        ["--entry", "main"],
        ["--seed", "0"],
        ["--timing-only"],
        ["--warm"],
        ["--checks", "error"],
        ["--sum", "group"],
    ],
)
def test_what_would_make_it_another_run_is_refused(
    arguments: list[str], tmp_path: Path, capsys: Shown
) -> None:
    save_bundle(tmp_path / "run.hrry", Bundle(inputs={}))
    assert main(["run", str(tmp_path / "run.hrry"), *arguments]) == 2
    assert capsys.readouterr().err == (
        f"Error: {arguments[0]} must go with a kernel or an executable: a bundle is replayed as it "
        "was run\n"
    )


def test_what_cannot_be_replayed_is_told(tmp_path: Path, capsys: Shown) -> None:
    place = tmp_path / "run.hrry"
    save_bundle(place, Bundle(inputs={}))
    assert main(["run", str(place)]) == 2
    assert capsys.readouterr().err == (
        f"Error: The bundle {str(place)!r} must hold an executable to be run again; it has none\n"
    )
    place.write_bytes(place.read_bytes()[:-1])
    assert main(["run", str(place)]) == 2
    assert "must be a bundle that can be read" in capsys.readouterr().err
    save_bundle(tmp_path / "run", Bundle(inputs={}, executable=b"nonsense"))
    assert main(["run", str(tmp_path / "run")]) == 2
    assert "An executable must begin with" in capsys.readouterr().err


def test_a_kernel_that_does_not_run_to_its_end_is_told_and_stops_no_comparison(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--out", "run.hrry"]) == 0
    bundle = load_bundle(Path("run.hrry"))
    other: dict[str, Any] = {
        name: np.asarray(each) + 1 for name, each in (bundle.outputs or {}).items()
    }
    np.savez("other.npz", **other)
    save_bundle(Path("bad.hrry"), replace(bundle, program="print('x')\nraise SystemExit(3)"))
    capsys.readouterr()
    assert main(["run", "bad.hrry", "--json"]) == 1
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert not told["ok"]
    assert told["error"] == "The kernel of a bundle must run to its end, but it exits with 3"
    assert "must run to its end, but it exits with 3" in shown.err
    assert main(["compare", "other.npz", "bad.hrry"]) == 1
    assert "written by" in capsys.readouterr().out
