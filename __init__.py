"""Compile and run microscaling kernels for an Ascend-A5-like NPU, without the NPU.

The public names load what they need on first use, so that `import scalebox` costs nothing:

* `compile`, `run`, `interpret` and `compare`: a program to an executable, a run on the machine model,
  the golden answer in numpy, and the first difference between two results;
* `sweep`: runs of one kernel in many sizes and on many machines;
* `Executable`, `Result`, `Comparison` and `SweepRow`: what these return;
* `pl`, the language that kernels are written in, and `ir`, what a kernel becomes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ir
    from .app.api import compile, interpret, run  # noqa: A004 - the promised name
    from .app.result import Result
    from .app.sweep.rows import SweepRow
    from .app.sweep.runs import sweep
    from .codegen.executable import Executable
    from .ir import language as pl
    from .traces.compare import Comparison, compare

    __version__: str

__all__ = [
    "Comparison",
    "Executable",
    "Result",
    "SweepRow",
    "__version__",
    "compare",
    "compile",
    "interpret",
    "ir",
    "pl",
    "run",
    "sweep",
]

# Public name -> the module that defines it.
_DEFINED_IN = {
    "Comparison": ".traces.compare",
    "Executable": ".codegen.executable",
    "Result": ".app.result",
    "SweepRow": ".app.sweep.rows",
    "compare": ".traces.compare",
    "compile": ".app.api",
    "interpret": ".app.api",
    "run": ".app.api",
    "sweep": ".app.sweep.runs",
}

# Public name -> the module that it names.
_MODULES = {"ir": ".ir", "pl": ".ir.language"}


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        value = getattr(import_module(_DEFINED_IN[name], __name__), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name], __name__)
    elif name == "__version__":
        value = import_module("importlib.metadata").version(__name__)
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
