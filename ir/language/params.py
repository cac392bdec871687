"""Sizes that the command line may replace: `M = pl.param("M", 4096)` in a kernel file."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import InputError
from ..suggest import near
from .source import caller_span

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping


@dataclass
class Parameters:
    """The parameters that a kernel file asked for, and what replaces them.

    Attributes:
        overrides: Name -> the value to use, as an integer or as it was typed.
        values: Name -> the value that the file got, in the order of the file.
        dims: Name -> the extent of a dynamic dimension that an override gives.
    """

    overrides: Mapping[str, int | str]
    values: dict[str, int] = field(default_factory=dict[str, int])
    dims: dict[str, int] = field(default_factory=dict[str, int])

    def get(self, name: str, default: int, least: int | None = None) -> int:
        """Return the value of a parameter and remember that the file asked for it."""
        value = _number(name, self.overrides.get(name, default))
        if least is not None and value < least:
            message = f"The parameter {name} must be at least {least}, not {value}"
            raise InputError(message)
        self.values[name] = value
        return value

    def sizes(self, dims: Iterable[str]) -> Mapping[str, int]:
        """Return the extents that overrides give to dimensions of these names."""
        for name in dims:
            if name in self.overrides and name not in self.values:
                self.dims[name] = _number(name, self.overrides[name])
        return self.dims

    def check_all_used(self) -> None:
        """Raise InputError for an override that no parameter asked for."""
        for name in self.overrides:
            if name not in self.values and name not in self.dims:
                message = f"The kernel file has no parameter {name!r}"
                declared = f'{name} = pl.param("{name}", 64) in the file makes one, 64 by default'
                hint = near(name, self.values, all_of_them=True) if self.values else declared
                raise InputError(message, hint=hint)


def _number(name: str, given: int | str) -> int:
    try:
        return int(given, 0) if isinstance(given, str) else int(given)
    except ValueError as error:
        message = f"The parameter {name} must be an integer, not {given!r}"
        raise InputError(message) from error


_active: ContextVar[Parameters | None] = ContextVar("parameters", default=None)


@contextmanager
def param_overrides(overrides: Mapping[str, int | str]) -> Generator[Parameters]:
    """Replace the values of `pl.param` in the kernel files that are read inside.

    Args:
        overrides: Parameter name -> an integer, or its text (`"128"`, `"0x80"`).

    Raises:
        InputError: At the end, if no file asked for one of the names; the hint lists those asked for.
    """
    record = Parameters(dict(overrides))
    token = _active.set(record)
    try:
        yield record
    finally:
        _active.reset(token)
    record.check_all_used()


def param(name: str, default: int, *, least: int | None = None) -> int:
    """Return an integer of a kernel file that `--param name=value` replaces.

    Args:
        name: What the command line calls it.
        default: Its value when nothing replaces it.
        least: The smallest value that `--param` may give it, if the file needs one.

    Raises:
        InputError: If the default or the replacement is no integer, or the replacement too small.
    """
    if isinstance(default, bool) or not isinstance(default, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"The default of pl.param({name!r}, …) must be an integer, not {default!r}"
        raise InputError(message, caller_span())
    record = _active.get()
    return record.get(name, default, least) if record is not None else default
