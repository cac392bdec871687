"""The bit patterns of an array's elements, and where they stand on the line of all values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CARRIERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_UNSIGNED_FLOATS = frozenset({"float8_e8m0fnu"})


@dataclass(frozen=True, slots=True)
class ElementType:
    """What must be known of a numpy dtype to compare its elements bit by bit.

    Attributes:
        name: The dtype's name, as numpy prints it.
        bits: Width of an element; less than its storage for sub-byte types.
        is_float: Whether elements are floating-point numbers.
        is_signed: Whether the top bit is a sign.
    """

    name: str
    bits: int
    is_float: bool
    is_signed: bool

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> ElementType | None:
        """Return the description of `dtype`, or None where it holds no plain numbers."""
        bits = 8 * dtype.itemsize
        if dtype.itemsize not in _CARRIERS:
            return None
        match dtype.kind:
            case "b" | "u":
                return cls(dtype.name, bits, is_float=False, is_signed=False)
            case "i":
                return cls(dtype.name, bits, is_float=False, is_signed=True)
            case "f":
                return cls(dtype.name, bits, is_float=True, is_signed=True)
            case _:
                return cls._of_ml_dtype(dtype)

    @classmethod
    def _of_ml_dtype(cls, dtype: np.dtype[Any]) -> ElementType | None:
        library: Any = ml_dtypes  # its stubs leave the parameter of finfo open
        scalar: Any = dtype.type
        if getattr(library, dtype.name, None) is not scalar or "complex" in dtype.name:
            return None
        is_float = "int" not in dtype.name
        limits = library.finfo(scalar) if is_float else library.iinfo(scalar)
        is_signed = not dtype.name.startswith("uint") and dtype.name not in _UNSIGNED_FLOATS
        return cls(dtype.name, int(limits.bits), is_float=is_float, is_signed=is_signed)


def without_void(array: Array) -> Array:
    """Return nameless bytes, as which numpy stores the types of ml_dtypes, as unsigned integers.

    Any other array comes back as it is.
    """
    carrier = _CARRIERS.get(array.dtype.itemsize)
    nameless = array.dtype.type is np.void and array.dtype.names is None
    return array.view(carrier) if nameless and carrier is not None else array


def of_one_type(one: Array, other: Array) -> tuple[Array, Array]:
    """Return bit patterns beside elements of a type of ml_dtypes as elements of that type.

    Bit patterns are nameless bytes, or unsigned integers of that type's item size: numpy's files
    cannot name the types of ml_dtypes.
    """
    one, other = without_void(one), without_void(other)
    return _read_as(one, other.dtype), _read_as(other, one.dtype)


def is_of_ml_dtypes(dtype: np.dtype[Any]) -> bool:
    """Tell whether a type is one that ml_dtypes adds to numpy's own."""
    return getattr(ml_dtypes, dtype.name, None) is dtype.type


def _read_as(array: Array, dtype: np.dtype[Any]) -> Array:
    is_codes = array.dtype == _CARRIERS.get(dtype.itemsize)
    return array.view(dtype) if is_codes and is_of_ml_dtypes(dtype) else array


def codes(array: Array, kind: ElementType) -> Array:
    """Return the bit patterns of `array` as unsigned integers of its item size, flat, row-major.

    Bits of the storage beyond the element's width are cleared.
    """
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    flat = np.ascontiguousarray(native).reshape(-1)
    carrier = _CARRIERS[array.dtype.itemsize]
    words: Array = flat.view(carrier)
    if kind.bits < 8 * array.dtype.itemsize:
        words = words & carrier((1 << kind.bits) - 1)
    return words


def positions(words: Array, kind: ElementType) -> npt.NDArray[np.uint64]:
    """Return the place of each bit pattern on the line of all values, smallest first.

    Neighbours stand one apart, and so do -0 and +0: the place tells every pattern from every other.
    The places of NaNs mean nothing.
    """
    wide = words.astype(np.uint64)
    if not kind.is_signed:
        return wide
    top = np.uint64(1 << (kind.bits - 1))
    if not kind.is_float:
        return wide ^ top
    magnitude = wide & (top - np.uint64(1))
    return np.where(wide & top != 0, top - np.uint64(1) - magnitude, top + magnitude)


def distances(
    left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return how far apart two arrays of :func:`positions` stand, in units in the last place."""
    return np.maximum(left, right) - np.minimum(left, right)


def in_decimal(value: Any, kind: ElementType) -> str:
    """Return one element in decimal digits that read back to the same element."""
    if not kind.is_float:
        return str(int(value))
    if kind.name in {"float16", "float32", "float64"}:
        return str(value)
    return repr(float(value))


def in_hex(word: int, kind: ElementType) -> str:
    """Return a bit pattern as hexadecimal digits, as many as the element's width needs."""
    return f"0x{word:0{-(-kind.bits // 4)}X}"
