"""The ways in which this room compiles a function, and when compiled code is out of date.

numba keeps compiled code as long as the file of the function is the same. Code of this room has
functions and numbers of other files compiled into it, so here it is kept as long as all of them
are the same.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

_HERE = Path(__file__).parent
_SOURCES = (
    _HERE,
    _HERE.parent / "codegen" / "isa",
    _HERE.parent / "ir" / "numerics",
    _HERE.parent / "ir" / "dtypes",
)


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that Python calls; a division by zero in it is our own bug."""
    return _compile(function)


def inner(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that only compiled code calls, which spares its wrappers."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def lean(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function as `inner` does that neither makes arrays nor keeps any.

    It only borrows those that it is given, so that nobody counts who holds them: that would take longer
    than what such a function does.
    """
    return _compile(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compile(function: Callable[P, T], **options: Any) -> Callable[P, T]:
    dispatcher: Any = njit(cache=True, error_model="numpy", **options)(function)
    # There is no public way to tell numba what else its copy depends on.
    stamped = dispatcher._cache._cache_file  # noqa: SLF001
    stamped._source_stamp = (stamped._source_stamp, source_stamp())  # noqa: SLF001
    return dispatcher


@cache
def source_stamp() -> tuple[tuple[str, int, int], ...]:
    """Return name, time of change and size of every file that compiled code may depend on."""
    files = sorted(path for folder in _SOURCES for path in folder.rglob("*.py"))
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
