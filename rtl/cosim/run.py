"""Building a unit for cocotb and running a test bench on it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...ir.errors import UserError
from ...traces.whole import written_whole
from .cache import cached_build, damaged
from .toolchain import (
    Simulator,
    process_environment,
    require,
    require_cocotb,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_TIMESCALE = ("1ns", "1ps")
_LOG_LINES_SHOWN = 40
_WAVES = "dump.vcd"
"""What cocotb's Verilator calls its waves."""
_BUILD_ARGS: dict[Simulator, list[str]] = {
    # Only the ports of the top stay public: whatever else cocotb could see would be kept alive.
    # The lint has its own place: a warning does not stop a build.
    Simulator.VERILATOR: ["--public-depth", "1", "--no-public-flat-rw", "-Wno-fatal"],
    Simulator.ICARUS: [],
}


class CosimError(UserError):
    """A build that failed, or a test bench that failed or did nothing.

    Args:
        message: What must be, and what was found.
        log: What the tool printed; its end goes into the note, and below a traceback.
        hint: What else there is to say.
    """

    def __init__(self, message: str, *, log: str = "", hint: str | None = None) -> None:
        lines = log.splitlines()[-_LOG_LINES_SHOWN:]
        note = "\n".join(["the end of the log:", *lines]) if lines else None
        super().__init__(message, hint=hint, note=note)
        if note is not None:
            self.add_note(note)


@dataclass(frozen=True, slots=True)
class Model:
    """Verilog compiled for cocotb.

    Attributes:
        simulator: Where it runs.
        top: Name of its top module.
        folder: Where it lies; shared between runs, never to be written.
    """

    simulator: Simulator
    top: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of a test bench came to.

    Attributes:
        passed: Names of the tests that ran, all of which passed.
        log: What the simulator and the tests printed.
    """

    passed: tuple[str, ...]
    log: str


def build_model(simulator: Simulator, verilog: str, *, top: str, waves: bool = False) -> Model:
    """Compile Verilog for cocotb, or take an earlier build of the same text.

    Args:
        simulator: What to compile for.
        verilog: Text of the design.
        top: Name of its top module.
        waves: Whether its runs can leave waves; with Verilator only.

    Raises:
        MissingSimulatorError: If the simulator or cocotb is not installed.
        CosimError: If the Verilog does not compile.
    """
    require(simulator)
    require_cocotb()
    import cocotb
    import cocotb_tools.config
    from cocotb_tools.runner import get_runner

    def build(folder: Path) -> None:
        source = folder / f"{top}.v"
        source.write_text(verilog, encoding="utf-8")
        log = folder / "build.log"
        try:
            with process_environment(simulator):
                get_runner(simulator.value).build(
                    sources=[source],
                    hdl_toplevel=top,
                    build_dir=folder,
                    build_args=_BUILD_ARGS[simulator],
                    waves=waves,
                    timescale=_TIMESCALE,
                    log_file=log,
                )
        except (RuntimeError, SystemExit) as error:
            message = f"{simulator.title} must compile {top}, but it reported an error: {error}"
            raise CosimError(message, log=_read(log)) from error

    ingredients = (
        verilog,
        top,
        version(simulator),
        cocotb.__version__,
        str(cocotb_tools.config.libs_dir),
        *_BUILD_ARGS[simulator],
        *(["waves"] if waves else []),
    )
    return Model(
        simulator, top, cached_build(f"cocotb-{simulator.value}-{top}", ingredients, build)
    )


def run_tests(
    model: Model,
    module: str,
    *,
    search: Path,
    test_filter: str | None = None,
    seed: int | None = None,
    variables: Mapping[str, str] | None = None,
    waves: Path | None = None,
) -> Report:
    """Run the cocotb tests of a module on a model.

    Args:
        model: What :func:`build_model` returned.
        module: Name of the Python module that holds the tests.
        search: Folder in which Python finds the module.
        test_filter: Regular expression; only the tests that it matches run.
        seed: Seed of everything random in the tests.
        variables: More environment variables for the tests.
        waves: Where the waves of the run go, if the model was built for them (.vcd).

    Raises:
        InputError: If the waves cannot be written there.
        CosimError: If a test failed, or the simulator broke down, or no test ran at all.
        CacheError: If the model is not there any more.
    """
    from cocotb_tools.runner import get_runner

    with tempfile.TemporaryDirectory(prefix="scalebox-cosim-") as name:
        folder = Path(name)
        results, log = folder / "results.xml", folder / "test.log"
        broken = ""
        try:
            with process_environment(model.simulator), _search_path(search):
                get_runner(model.simulator.value).test(
                    test_module=module,
                    hdl_toplevel=model.top,
                    hdl_toplevel_lang="verilog",
                    build_dir=model.folder,
                    test_dir=folder,
                    results_xml=str(results),
                    log_file=log,
                    test_filter=test_filter,
                    seed=seed,
                    waves=waves is not None,
                    extra_env=variables or {},
                )
        except (RuntimeError, SystemExit) as error:
            broken = str(error)
        except FileNotFoundError as error:
            raise damaged(model.folder, error) from error
        report = _judge(model, module, results, log, test_filter=test_filter, broken=broken)
        if waves is not None:
            with written_whole(waves) as temporary:
                shutil.copyfile(folder / _WAVES, temporary)
        return report


def _judge(
    model: Model, module: str, results: Path, log: Path, *, test_filter: str | None, broken: str
) -> Report:
    where = f"{module} on {model.simulator.title}"
    if not results.is_file():
        message = f"The simulation of {where} must come to its end, but it broke down: {broken}"
        raise CosimError(message, log=_read(log))
    passed: list[str] = []
    failed: list[str] = []
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        bad = case.find("failure") is not None or case.find("error") is not None
        (failed if bad else passed).append(case.get("name", "?"))
    if failed:
        total = len(failed) + len(passed)
        message = f"Every test of {where} must pass, not {len(passed)} of {total}"
        raise CosimError(message, hint=f"Failed: {', '.join(failed)}", log=_read(log))
    if broken:
        message = f"The simulation of {where} must end without an error, not with: {broken}"
        raise CosimError(message, log=_read(log))
    if not passed:
        chosen = "" if test_filter is None else f" matching {test_filter!r}"
        message = f"At least one test of {where}{chosen} must run, not none"
        raise CosimError(message, log=_read(log))
    return Report(tuple(passed), _read(log))


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


@contextmanager
def _search_path(folder: Path) -> Generator[None]:
    """Let the simulator's Python, which inherits `sys.path`, find modules in a folder."""
    before = list(sys.path)
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path[:] = before
