"""The two ways in which this room compiles a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that Python calls; a division by zero in it is our own bug."""
    return njit(cache=True, error_model="numpy")(function)


def inner(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function that only compiled code calls, which spares its wrappers."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(cache=True, error_model="numpy", **options)(function)
