"""Two results side by side, element by element: what all reports of a comparison start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..ir.errors import InputError
from .bits import Array, ElementType, codes, distances, is_of_ml_dtypes, of_one_type, positions
from .rules import Rule, broken

if TYPE_CHECKING:
    import numpy.typing as npt

BARE_NAME = "out"
"""The name of a result that was given as a bare array."""

Arrays = Any  # an array, or a mapping of names to arrays


@dataclass(frozen=True, eq=False)
class Pair:
    """An output and what it should be.

    Attributes:
        name: Name of the output.
        actual: The output.
        golden: What it should be, of the same shape and type.
        kind: The type of their elements.
        differs: Where an element breaks the rule, in the shape of the output.
    """

    name: str
    actual: Array
    golden: Array
    kind: ElementType
    differs: npt.NDArray[np.bool_]

    @cached_property
    def count(self) -> int:
        """How many elements differ."""
        return int(np.count_nonzero(self.differs))

    @cached_property
    def places(self) -> npt.NDArray[np.intp]:
        """The flat, row-major places of the elements that differ, ascending."""
        return np.flatnonzero(self.differs)

    @cached_property
    def values(self) -> tuple[Array, Array]:
        """The elements that differ, actual and golden, each `[n]`."""
        return self.actual.reshape(-1)[self.places], self.golden.reshape(-1)[self.places]

    @cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Which of the elements that differ are finite on both sides, `[n]`."""
        actual, golden = self.values
        if not self.kind.is_float:
            return np.ones(actual.shape, np.bool_)
        return np.isfinite(actual) & np.isfinite(golden)

    @cached_property
    def ulps(self) -> npt.NDArray[np.uint64]:
        """How far apart those are that differ, `[n]`; it means nothing where they are not finite."""
        actual, golden = (positions(codes(each, self.kind), self.kind) for each in self.values)
        return distances(actual, golden)


def outputs_of(given: Arrays) -> Arrays:
    """Return the outputs of a run; what is an array or a mapping already comes back as it is."""
    outputs = getattr(given, "outputs", None)
    return cast("Arrays", outputs) if isinstance(outputs, Mapping) else given


def examine(actual: Arrays, golden: Arrays, rule: Rule) -> dict[str, Pair]:
    """Return each output beside what it should be, in the golden result's order.

    Raises:
        InputError: Names, shapes or dtypes do not agree.
    """
    actual_by_name, golden_by_name = _named(actual, golden)
    return {
        name: _pair(name, actual_by_name[name], expected, rule)
        for name, expected in golden_by_name.items()
    }


def _named(actual: Arrays, golden: Arrays) -> tuple[dict[str, Array], dict[str, Array]]:
    if isinstance(actual, Mapping) != isinstance(golden, Mapping):
        one, other = ("mapping", "array") if isinstance(actual, Mapping) else ("array", "mapping")
        message = (
            f"actual and golden must both be arrays or both be mappings, not {one} and {other}"
        )
        raise InputError(message)
    left, right = _as_arrays(actual), _as_arrays(golden)
    if left.keys() != right.keys():
        message = f"actual must have the outputs of golden, {_listed(right)}, not {_listed(left)}"
        raise InputError(message)
    return left, right


def _as_arrays(arrays: Arrays) -> dict[str, Array]:
    if isinstance(arrays, Mapping):
        by_name = cast("Mapping[str, Any]", arrays)
        return {str(name): np.asarray(array) for name, array in by_name.items()}
    return {BARE_NAME: np.asarray(arrays)}


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in names) if names else "none"


def _pair(name: str, actual: Array, golden: Array, rule: Rule) -> Pair:
    actual, golden = of_one_type(actual, golden)
    kind = _common_type(name, actual, golden)
    actual_words, golden_words = codes(actual, kind), codes(golden, kind)
    suspects = np.flatnonzero(actual_words != golden_words)
    differs = np.zeros(golden.size, np.bool_)
    # Signalling NaNs and differences beyond the largest float are no accidents here.
    with np.errstate(invalid="ignore", over="ignore"):
        differs[suspects] = broken(
            rule,
            actual.reshape(-1)[suspects],
            golden.reshape(-1)[suspects],
            actual_words[suspects],
            golden_words[suspects],
            kind,
        )
    return Pair(name, actual, golden, kind, differs.reshape(golden.shape))


def _common_type(name: str, actual: Array, golden: Array) -> ElementType:
    if actual.dtype.newbyteorder("=") != golden.dtype.newbyteorder("="):
        names = (actual.dtype.name, golden.dtype.name)
        message = f"actual and golden {name!r} must be of one type, not {names[0]} and {names[1]}"
        raise InputError(message, hint=_how_to_agree(actual.dtype, golden.dtype))
    if actual.shape != golden.shape:
        message = f"actual {name!r} must have the shape {golden.shape}, not {actual.shape}"
        raise InputError(message)
    kind = ElementType.of(golden.dtype)
    if kind is None:
        message = f"{name!r} must hold integers or floats of 1, 2, 4 or 8 bytes, not {golden.dtype}"
        raise InputError(message)
    return kind


def _how_to_agree(one: np.dtype[Any], other: np.dtype[Any]) -> str | None:
    narrow = one if is_of_ml_dtypes(one) else other
    if not is_of_ml_dtypes(narrow):
        return None
    return (
        f".astype(ml_dtypes.{narrow.name}) rounds to it; codes in uint{8 * narrow.itemsize} are "
        f"taken for {narrow.name}, too"
    )
