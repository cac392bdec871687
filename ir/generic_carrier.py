"""The carrier that keeps its values in a numpy array.

A slot holds one value. Formats that numpy has are stored as numbers, all others as codes, one code
a slot whatever its width; packing is no matter of a carrier.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from .carriers import Carrier, SlotIndexError, accepts_storage_dtype, validate_storage_dtype
from .dtypes.descriptors import DType
from .dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS, IntegerFormat
from .dtypes.structure import describe
from .errors import IRTypeError, IRValueError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self, SupportsIndex

    import numpy.typing as npt

Array = np.ndarray[tuple[int], np.dtype[Any]]


class SlotOverflowError(UserError, OverflowError):
    """A value outside the range of a carrier's dtype."""


@dataclass(frozen=True, kw_only=True)
class _Storage:
    """How values of a dtype lie in numpy."""

    numpy: np.dtype[Any]
    what: str
    """A valid value, for messages."""
    types: tuple[type, ...]
    """Of valid values that come one by one."""
    kinds: str
    """Of numpy arrays of valid values."""
    limits: tuple[int, int] | None = None
    """Of integers."""
    zero: float | int | bool | None


_INTEGERS: Final = (int, np.integer)
_NUMBERS: Final = (int, np.integer, float, np.floating)


def _integer_storage(known: IntegerFormat) -> _Storage:
    prefix = "i" if known.signed else "u"
    return _Storage(
        numpy=np.dtype(f"{prefix}{max(8, known.bits) // 8}"),
        what="an integer",
        types=_INTEGERS,
        kinds="iu",
        limits=(known.min, known.max),
        zero=0,
    )


def _storages() -> dict[DType, _Storage]:
    objects = _Storage(
        numpy=np.dtype(object), what="an object", types=(object,), kinds="", zero=None
    )
    table: dict[DType, _Storage] = {DType.Any: objects, DType.Floating: objects}
    table[DType.Bool] = _Storage(
        numpy=np.dtype(np.bool_),
        what="True or False",
        types=(bool, np.bool_),
        kinds="b",
        zero=False,
    )
    for dtype, known in INTEGER_FORMATS.items():
        table[dtype] = _integer_storage(known)
    for dtype, row in FLOAT_FORMATS.items():
        table[dtype] = _Storage(
            numpy=np.dtype(f"u{max(8, row.bits) // 8}"),
            what="an integer code",
            types=_INTEGERS,
            kinds="iu",
            limits=(0, row.code_count - 1),
            zero=0 if row.has_zero else None,
        )
    for name in ("Float16", "Float32", "Float64"):
        table[DType.from_name(name)] = _Storage(
            numpy=np.dtype(name.lower()), what="a number", types=_NUMBERS, kinds="iuf", zero=0.0
        )
    return table


_STORAGES: Final = _storages()
_ACCEPTED: Final = tuple(_STORAGES)


def storage_zero(dtype: DType) -> float | int | bool | None:
    """Return what an initialised slot of a Generic means by zero, or None if it has no zero.

    Formats that are stored as codes give the code of zero.
    """
    storage = _STORAGES.get(dtype)
    return None if storage is None else storage.zero


class Generic(Carrier):
    """A carrier whose slots are a numpy array of its own.

    Args:
        values: One for each slot, or an array of shape (size,). Values of a format that numpy
            lacks, E4M3 or BFloat16 say, are codes.
        mutable: Whether it can be written.
        dtype: Of every slot. Any and Floating hold objects as they come.

    Raises:
        TypeError: If `values` is not iterable, a value of the wrong type, or `dtype` no dtype.
        ValueError: If `dtype` cannot be stored, or `values` is an array of another rank.
        OverflowError: If a value is outside the range of the dtype.
    """

    def __init__(
        self, values: Iterable[Any], *, mutable: bool = True, dtype: DType = DType.Floating
    ) -> None:
        self._dtype = validate_storage_dtype(dtype, carrier=type(self).__name__, accepted=_ACCEPTED)
        self._slots = _stored(values, dtype)
        self._mutable = bool(mutable)

    def size(self) -> int:
        """Return the number of slots; 0 when released."""
        return len(self._slots)

    def dtype(self) -> DType:
        """Return the dtype of every slot."""
        return self._dtype

    @property
    def array(self) -> npt.NDArray[Any]:
        """All slots as a read-only view of shape (size,)."""
        self._check_live()
        view = self._slots.view()
        view.flags.writeable = False
        return view

    def get_value(self, index: SupportsIndex) -> Any:
        """Return the value of a slot as a Python number, or the object stored there."""
        self._check_live()
        value: object = self._slots[self._checked_index(index)]
        return cast("Any", value.item()) if isinstance(value, np.generic) else value

    def set_value(self, index: SupportsIndex, value: Any) -> None:
        """Write a slot, and count it as one version."""
        slot = self._checked_index(index)
        self._slots[slot] = _stored([value], self._dtype)[0]

    def put(self, indices: npt.ArrayLike, values: Iterable[Any]) -> None:
        """Write many slots at once, and count it as one version.

        Args:
            indices: Integers of shape (n,), such as a layout's `offsets`.
            values: n values.

        Raises:
            IRTypeError: If the indices are no integers.
            IRValueError: If there are not as many values as indices.
            SlotIndexError: If an index is outside 0..size - 1.
            CarrierStateError: If the carrier is not mutable.
        """
        self._check_writable()
        slots = np.asarray(indices)
        if slots.dtype.kind not in "iu":
            message = f"The indices must be integers, not of {slots.dtype}"
            raise IRTypeError(message)
        new = _stored(values, self._dtype)
        if slots.shape != new.shape:
            message = f"{slots.size} indices must come with as many values, not with {new.size}"
            raise IRValueError(message)
        if slots.size and not 0 <= int(slots.min()) <= int(slots.max()) < self.size():
            found = int(slots.min()) if int(slots.min()) < 0 else int(slots.max())
            raise self._outside(found)
        self._slots[slots] = new
        self._version += 1

    def new_like(
        self, values: Iterable[Any], *, mutable: bool = True, dtype: DType | None = None
    ) -> Self:
        """Return a new carrier of the same kind that holds `values`."""
        return type(self)(values, mutable=mutable, dtype=self._dtype if dtype is None else dtype)

    def allocate_like(
        self, size: int, *, mutable: bool = True, dtype: DType | None = None, empty: bool = False
    ) -> Self:
        """Return a new carrier of the same kind with `size` slots, all initialised.

        Slots hold zero, or None where they hold objects, or code 0 where the format has no zero.

        Raises:
            TypeError: If `size` is no integer.
            IRValueError: If it is negative, or `dtype` cannot be stored.
        """
        count = operator.index(size)
        if count < 0:
            message = f"The size of a carrier must be 0 or more, not {count}"
            raise IRValueError(message)
        kind = validate_storage_dtype(
            self._dtype if dtype is None else dtype,
            carrier=type(self).__name__,
            accepted=_ACCEPTED,
        )
        storage = _STORAGES[kind].numpy
        values = np.full(count, None, object) if storage.kind == "O" else np.zeros(count, storage)
        return self.new_like(values, mutable=mutable, dtype=kind)

    def release(self) -> None:
        """Give up the storage for good; a second call does nothing."""
        super().release()
        self._slots = np.zeros(0, self._slots.dtype)

    def __copy__(self) -> Self:
        """Return a carrier with slots of its own, so that no write to one goes uncounted."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made._slots = self._slots.copy()
        return made

    def _is_mutable(self) -> bool:
        return self._mutable

    def _supports_storage_dtype(self, dtype: DType) -> bool:
        return accepts_storage_dtype(dtype, _ACCEPTED)

    def _checked_index(self, index: SupportsIndex) -> int:
        slot = operator.index(index)
        if not 0 <= slot < len(self._slots):
            raise self._outside(slot)
        return slot

    def _outside(self, found: int) -> SlotIndexError:
        return SlotIndexError(f"An index must lie in 0..{self.size() - 1}, not {found}")


def _stored(values: Iterable[Any], dtype: DType) -> Array:
    """Return values as a new array of what a carrier of `dtype` stores."""
    storage = _STORAGES[dtype]
    given = _as_array(values)
    if storage.numpy.kind == "O":
        return given.astype(object)
    bad = _first_bad(given, storage)
    if bad is not None:
        message = f"A value of dtype {dtype.name} must be {storage.what}, not {bad}"
        raise IRTypeError(message)
    if storage.limits is not None and len(given):
        low, high = storage.limits
        smallest, largest = int(given.min()), int(given.max())
        if not low <= smallest <= largest <= high:
            found = smallest if smallest < low else largest
            message = f"A value of dtype {dtype.name} must lie in {low}..{high}, not be {found}"
            raise SlotOverflowError(message)
    return _rounded(given, storage.numpy, dtype)


def _as_array(values: Iterable[Any]) -> Array:
    if isinstance(values, np.ndarray):
        array = cast("npt.NDArray[Any]", values)
        if array.ndim != 1:
            message = f"The values of a carrier must be of rank 1, not of shape {array.shape}"
            raise IRValueError(message)
        return cast("Array", array)
    if not hasattr(type(values), "__iter__"):
        message = f"The values of a carrier must be iterable, not {describe(values)}"
        raise IRTypeError(message)
    items = list(values)
    boxed = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        boxed[position] = item
    return boxed


def _first_bad(given: Array, storage: _Storage) -> str | None:
    """Return what is wrong with the type of a value, or None."""
    if given.dtype != object:
        return None if given.dtype.kind in storage.kinds else f"of an array of {given.dtype}"
    for value in given.tolist():
        is_bool = isinstance(value, bool | np.bool_)
        if not isinstance(value, storage.types) or is_bool != (storage.kinds == "b"):
            return describe(value)
    return None


def _rounded(given: Array, storage: np.dtype[Any], dtype: DType) -> Array:
    """Return checked values in their storage; a finite one that becomes infinite is an error."""
    if storage.kind != "f":
        return given.astype(storage)
    with np.errstate(over="ignore"):
        try:
            wide = given if given.dtype.kind == "f" else given.astype(np.float64)
            stored = wide.astype(storage)
        except OverflowError:
            stored, wide = np.array([np.inf]), np.zeros(1)
    if np.any(np.isinf(stored) & np.isfinite(wide)):
        message = f"A value of dtype {dtype.name} must be within its range, not beyond its maximum"
        raise SlotOverflowError(message)
    return stored
