"""The ways in which our functions are compiled, and when compiled code is out of date.

numba keeps compiled code as long as the file of the function is the same. Ours has functions and
numbers of other files compiled into it, so here it is kept as long as all of them are the same.
A literal argument makes no function of its own: it is a number like any other.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import llvmlite  # pyright: ignore[reportMissingTypeStubs]

from .checked_numba import numba
from .code_store import KeptCode
from .errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

P = ParamSpec("P")
T = TypeVar("T")

_ROOT = Path(__file__).resolve().parent.parent
_helpers: list[Callable[[str, Path], bool]] = []
_ROOM, _PACKAGE = __name__.rpartition(".")[0], __name__.split(".")[0]
NUMBERS = ("ir/numerics", "ir/dtypes", "ir/jit.py", "ir/code_store.py")
"""Files and folders on which compiled code of the numbers depends."""

MACHINE = (*NUMBERS, "codegen/isa", "sim")
"""The same for code of the machine."""

UNKEPT = (
    "Compiled code cannot be kept on this computer, so that every run compiles anew: set "
    "NUMBA_CACHE_DIR to a folder that you may write to"
)


class CodeCacheWarning(UserWarning):
    """Compiled code cannot be kept."""


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that Python calls, maybe from several threads at once.

    A division by zero in it is our own bug.
    """
    return _compile(function, nogil=True)


def inner(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that only compiled code calls, which spares its wrappers."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def lean(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function as `inner` does that neither makes arrays nor keeps any.

    It only borrows those that it is given, so that nobody counts who holds them: that would take longer
    than what such a function does.
    """
    return _compile(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def is_kept(function: Callable[..., Any]) -> bool:
    """Return whether code of a compiled function is kept, for whatever types."""
    kept = _cache_of(function)
    return kept is not None and kept.files is not None and kept.files.any_kept()


def can_keep(function: Callable[..., Any]) -> bool:
    """Return whether there is a folder in which code of a function may be kept."""
    kept = _cache_of(function)
    return kept is not None and kept.files is not None


def needs(functions: Iterable[Callable[..., Any]]) -> set[Any]:
    """Return functions and all those of ours that they call, themselves or by others."""
    found: set[Any] = set()
    waiting: list[Any] = list(functions)
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        found.add(each)
        names, known = each.py_func.__code__.co_names, each.py_func.__globals__
        waiting += [known[name] for name in names if is_ours(known.get(name))]
    return found


def is_ours(function: object) -> bool:
    """Return whether something is a function that was compiled in one of our ways."""
    return _cache_of(function) is not None


def name_of(function: Any) -> str:
    """Return the name of a compiled function with its module."""
    return f"{function.py_func.__module__}.{function.py_func.__qualname__}"


@contextmanager
def written_elsewhere(wait: Callable[[str, Path], bool]) -> Generator[None]:
    """Within, let somebody be asked for code that is not there before it is compiled.

    Args:
        wait: Called with the module of a function and the file that its code would be in; returns
            whether it is there now.
    """
    _helpers.append(wait)
    try:
        yield
    finally:
        _helpers.remove(wait)


def _compile(function: Callable[P, T], **options: Any) -> Callable[P, T]:
    if numba.config.DISABLE_JIT:
        message = "NUMBA_DISABLE_JIT must not be set: what has to be compiled cannot run without"
        raise InputError(message)
    dispatcher: Any = numba.njit(error_model="numpy", **options)(function)
    # There is no public way to tell numba what else its copy depends on.
    dispatcher._cache = KeptCode(  # noqa: SLF001
        function,
        stamp=_stamp_of(function),
        missing=partial(_missing, function.__module__),
        unkept=_tell_unkept,
    )
    dispatcher.get_call_template = partial(_widened, dispatcher.get_call_template)
    return dispatcher


def _widened(template: Any, args: Any, kws: Any) -> Any:
    """Return numba's template of a call whose literal arguments are numbers like any other."""
    widen = numba.types.unliteral
    return template(
        tuple(widen(each) for each in args), {name: widen(each) for name, each in kws.items()}
    )


def _stamp_of(function: Any) -> str:
    """Return the digest of all that code of a function may depend on."""
    module: str = function.__module__
    sources = source_stamp(NUMBERS if module.startswith(f"{_ROOM}.") else MACHINE)
    own = "" if module.startswith(f"{_PACKAGE}.") else _content(function.__code__.co_filename)
    compilers = f"{numba.__version__} {llvmlite.__version__}"
    return hashlib.sha256(f"{compilers} {sources} {own}".encode()).hexdigest()


@cache
def _content(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _missing(module: str, path: Path) -> bool:
    return any(wait(module, path) for wait in _helpers)


def _cache_of(function: Any) -> KeptCode | None:
    found = getattr(function, "_cache", None)
    return found if isinstance(found, KeptCode) else None


@cache
def _tell_unkept() -> None:
    warnings.warn(f"{UNKEPT}.", CodeCacheWarning, stacklevel=2)


@cache
def source_stamp(sources: tuple[str, ...]) -> str:
    """Return the digest of the names and contents of files, and of all in folders, below the root."""
    digest = hashlib.sha256()
    for place in (_ROOT / source for source in sources):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(place)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
