"""Kernel files: a Python file with one program, read for the command line."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.executable import Executable
from ..ir.core import Program
from ..ir.errors import InputError, Span, UserError
from ..ir.language.params import param_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

_MODULE = "scalebox_kernel_file"


@dataclass(frozen=True)
class KernelFile:
    """What a kernel file holds.

    Attributes:
        path: The file.
        program: Its one program.
        machine: The machine that it names by `MACHINE = "…"`, as a name or a path; None without.
        params: The values that its `pl.param` calls got.
    """

    path: Path
    program: Program
    machine: str | None = None
    params: Mapping[str, int] = field(default_factory=dict[str, int])


def load_kernel_file(path: Path, params: Mapping[str, str] | None = None) -> KernelFile:
    """Read a kernel file.

    Args:
        path: A Python file with one program at module level.
        params: Name to value for its `pl.param` calls.

    Raises:
        UserError: When it cannot be read or run, holds no program or several, or has no such
            parameter; the kernel's own mistakes carry their place.
    """
    if not path.is_file():
        message = f"A kernel must be a Python file, and there is none at {str(path)!r}"
        raise InputError(message)
    with param_overrides(params or {}) as given:
        module = _run(path)
        given.check_all_used()
        values = dict(given.values)
    return KernelFile(path, _program(path, module), _machine(path, module), values)


def load_executable_or_kernel(
    path: Path, params: Mapping[str, str] | None = None
) -> KernelFile | Executable:
    """Read a kernel file, or an executable if the name does not end in `.py`.

    Raises:
        UserError: As :func:`load_kernel_file` and `Executable.load`.
    """
    if path.suffix == ".py" or not path.is_file():
        return load_kernel_file(path, params)
    if params:
        message = f"--param must go with a kernel file, and {str(path)!r} is an executable"
        raise InputError(message)
    return Executable.load(path)


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        message = f"A kernel file must be Python source whose name ends in .py, not {str(path)!r}"
        raise InputError(message)
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except SyntaxError as error:
        message = f"{path.name} must be valid Python: {error.msg}"
        place = Span(str(path), error.lineno or 0, error.offset or 1)
        raise InputError(message, place) from error
    except UnicodeDecodeError as error:
        message = f"{path.name} must be text in UTF-8: {error}"
        raise InputError(message) from error
    except Exception as error:  # the file is the user's: whatever it raises is the user's mistake
        message = f"{path.name} must run without an error, but it raised {_named(error)}"
        raise InputError(message, _last_place(path, error)) from error
    finally:
        sys.path.remove(folder)
        sys.modules.pop(_MODULE, None)
    return module


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _last_place(path: Path, error: Exception) -> Span | None:
    """Return the last line of the file itself in the error's trace."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename) == path and f.lineno is not None]
    return Span(str(path), own[-1].lineno or 0, (own[-1].colno or 0) + 1) if own else None


def _program(path: Path, module: ModuleType) -> Program:
    found = {n: v for n, v in vars(module).items() if isinstance(v, Program)}
    different = {id(program): name for name, program in found.items()}
    if len(different) == 1:
        return next(iter(found.values()))
    names = ", ".join(different.values()) or "none"
    message = f"{path.name} must hold exactly one program at module level; it holds {names}"
    raise InputError(message, hint="a program is a class under @pl.program")


def _machine(path: Path, module: ModuleType) -> str | None:
    named: Any = vars(module).get("MACHINE")
    if named is None:
        return None
    if not isinstance(named, str):
        message = f"MACHINE in {path.name} must be the name or file of a machine, not {named!r}"
        raise InputError(message)
    beside = path.parent / named
    return str(beside) if beside.is_file() else named
