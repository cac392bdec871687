"""Verilog and a few lines of C++ as a shared library, for whatever is too much for cocotb.

Verilator turns the Verilog into a C++ class `V<top>`; the C++ given beside it wraps that class in
plain C functions, which `ctypes` calls. A build is kept, see `cache`: the same texts and options
never compile twice.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Final

from .cache import cached_build, damaged
from .run import CosimError
from .toolchain import Simulator, environment, require, version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["run_tool", "shared_library"]

_SOURCE: Final = "library.cpp"
_LIBRARY: Final = "library.so"
_BLOCKS: Final = "blocks.vlt"
_OPTIONS: Final = (
    # The lint has its own place: a warning does not stop a build.
    *("--cc", "--exe", "--build", "-O3", "--build-jobs", "2", "-Wno-fatal"),
    *("-CFLAGS", "-O2 -fPIC", "-LDFLAGS", "-shared", "-o", _LIBRARY),
)


def shared_library(
    top: str,
    verilog: Mapping[str, str],
    source: str,
    *,
    blocks: Sequence[str] = (),
    options: Sequence[str] = (),
) -> ctypes.CDLL:
    """Return Verilog and C++ as a loaded library, compiling them where that was never done before.

    Args:
        top: Name of the top module; the C++ finds its class in `V<top>.h`.
        verilog: Text of every Verilog file by its name, such as `unit.v`.
        source: The C++ text: `extern "C"` functions around the class.
        blocks: Modules that Verilator compiles once each and shares between their instances, which
            makes a large array of one module a matter of seconds; the rest is compiled flat.
        options: More options of Verilator.

    Returns:
        The library. The same object again for the same arguments in this process.

    Raises:
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
        CosimError: If something does not compile; carries the end of the compiler's log.
        CacheError: If the cache folder cannot be written, or an earlier build in it is damaged.
    """
    require(Simulator.VERILATOR)
    return _library(top, tuple(verilog.items()), source, tuple(blocks), tuple(options))


@cache
def _library(
    top: str,
    verilog: tuple[tuple[str, str], ...],
    source: str,
    blocks: tuple[str, ...],
    options: tuple[str, ...],
) -> ctypes.CDLL:
    command = ["verilator", *_OPTIONS, *options, "--top-module", top, "--Mdir", "."]
    files = dict(verilog)
    if blocks:
        lines = ("`verilator_config", *(f'hier_block -module "{name}"' for name in blocks), "")
        files[_BLOCKS] = "\n".join(lines)
        command.append("--hierarchical")
    command += [*files, _SOURCE]

    def build(folder: Path) -> None:
        for name, text in {**files, _SOURCE: source}.items():
            (folder / name).write_text(text, encoding="utf-8")
        run_tool(Simulator.VERILATOR, command, folder)

    ingredients = (
        *(part for item in files.items() for part in item),
        source,
        " ".join(command),
        version(Simulator.VERILATOR),
    )
    folder = cached_build(f"library-{top}", ingredients, build)
    try:
        return ctypes.CDLL(os.fspath(folder / _LIBRARY))
    except OSError as error:
        raise damaged(folder, error) from error


def run_tool(simulator: Simulator, command: Sequence[str], folder: Path) -> None:
    """Run one of a simulator's programs in a folder.

    Raises:
        CosimError: If it ends with an error; carries the end of what it printed.
    """
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment(simulator),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        message = f"{simulator.title} must run {command[0]} without an error, not with status {result.returncode}"
        raise CosimError(message, log=result.stdout)
