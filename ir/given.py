"""What a caller handed in, in the words of an error message, and what it gets back, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .dtypes import DType

_VOWELS = "AEIOU"


def describe_given(value: object) -> str:
    """Return what a launch input is: a number as it stands, anything else by its kind."""
    import numpy as np  # the language reads this file too, and loads nothing heavy

    if isinstance(value, np.ndarray):
        array = cast("npt.NDArray[Any]", value)
        return f"an array of {array.dtype} of shape {show_shape(array.shape)}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    name = type(value).__name__
    return f"{'an' if name[:1].upper() in _VOWELS or name[:2] == 'MX' else 'a'} {name}"


def article(dtype: DType) -> str:
    """Return "a" or "an", as it goes before a dtype's name."""
    return "an" if dtype.name[0] in _VOWELS or dtype.name[:2] == "MX" else "a"


def show_shape(shape: Sequence[int]) -> str:
    """Return a shape such as `[64, 128]`."""
    return f"[{', '.join(map(str, shape))}]"


class NamedArrays(dict[str, "npt.NDArray[Any]"]):
    """Arrays by name, shown as one line of names, dtypes and shapes instead of all their elements."""

    def __repr__(self) -> str:
        shown = (f"{name}: {array.dtype} {show_shape(array.shape)}" for name, array in self.items())
        return f"{{{', '.join(shown)}}}"
