"""Carriers: one-dimensional storage of one dtype, whose writes are counted."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from .dtypes.compound import CompoundDType
from .dtypes.descriptors import DType
from .dtypes.structure import describe
from .errors import IRTypeError, IRValueError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self, SupportsIndex

D = TypeVar("D", bound=DType)


class CarrierStateError(UserError, RuntimeError):
    """A write to a carrier that is not mutable, or an access to one that is released."""


class SlotIndexError(UserError, IndexError):
    """An index outside a carrier."""


def accepts_storage_dtype(dtype: object, accepted: tuple[DType, ...]) -> bool:
    """Return whether `dtype` is one of the accepted descriptors, by identity."""
    return any(dtype is candidate for candidate in accepted)


def validate_storage_dtype(dtype: D, *, carrier: str, accepted: tuple[DType, ...]) -> D:
    """Return `dtype` if it is one of the accepted descriptors.

    Args:
        dtype: The descriptor that is asked for.
        carrier: What asks, for the message.
        accepted: All descriptors that it can store.

    Raises:
        IRTypeError: If `dtype` is no descriptor.
        IRValueError: If it is another one.
    """
    check_descriptor(dtype, f"{carrier}'s dtype")
    if accepts_storage_dtype(dtype, accepted):
        return dtype
    if isinstance(dtype, CompoundDType):
        message = (
            f"{carrier} must hold one simple dtype, not the compound {dtype.name}: "
            f"each of its {dtype.num_carriers} planes needs a carrier of its own"
        )
        raise IRValueError(message, hint="Use a TensorRepresentation with one Subtensor a plane.")
    names = ", ".join(known.name for known in accepted)
    message = f"{carrier}'s dtype must be one that it can store, not {dtype.name}"
    raise IRValueError(message, hint=f"Valid are: {names}.")


class Carrier(ABC):
    """Storage of one dtype, with a version that every public write raises by one.

    A subclass gives `size`, `dtype` and `get_value`; one that can be written also `set_value` and
    `_is_mutable`; one that can store more dtypes than its own also `_supports_storage_dtype`.
    """

    _version: int = 0
    _released: bool = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "set_value" in vars(cls):
            cls._count_writes(cls.set_value)

    @classmethod
    def _count_writes(cls, write: Callable[[Any, Any, Any], None]) -> None:
        """Make the class's own `set_value` check the carrier's state and count a version."""

        @functools.wraps(write)
        def set_value(self: Carrier, index: Any, value: Any) -> None:
            is_outermost = type(self).set_value is set_value
            if is_outermost:
                self._check_writable()
            write(self, index, value)
            if is_outermost:
                self._version += 1

        type.__setattr__(cls, "set_value", set_value)

    @abstractmethod
    def size(self) -> int:
        """Return the number of slots."""

    @abstractmethod
    def dtype(self) -> DType:
        """Return the dtype of every slot."""

    @abstractmethod
    def get_value(self, index: SupportsIndex) -> Any:
        """Return the value of a slot.

        Raises:
            TypeError: If the index is no integer.
            IndexError: If it is outside 0..size - 1.
            CarrierStateError: If the carrier is released.
        """

    def set_value(self, index: SupportsIndex, value: Any) -> None:
        """Write a slot, and count it as one version.

        Raises:
            TypeError: If the index is no integer, or the value of the wrong type.
            IndexError: If the index is outside 0..size - 1.
            OverflowError: If the value is outside the range of the dtype.
            CarrierStateError: If the carrier is not mutable.
        """
        raise _not_mutable(self)

    def __getitem__(self, index: SupportsIndex) -> Any:
        self._check_live()
        return self.get_value(index)

    def __setitem__(self, index: SupportsIndex, value: Any) -> None:
        self.set_value(index, value)

    @property
    def version(self) -> int:
        """The number of public writes so far."""
        return self._version

    def is_mutable(self) -> bool:
        """Return whether public writes are allowed now."""
        return not self._released and self._is_mutable()

    def release(self) -> None:
        """Give up the storage for good; a second call does nothing."""
        self._released = True

    def is_released(self) -> bool:
        """Return whether the storage has been given up."""
        return self._released

    def supports_storage_dtype(self, dtype: DType) -> bool:
        """Return whether carriers of this kind can hold `dtype`; allocates nothing.

        Raises:
            IRTypeError: If `dtype` is no descriptor.
        """
        check_descriptor(dtype, "A storage dtype")
        return self._supports_storage_dtype(dtype)

    def new_like(
        self, values: Iterable[Any], *, mutable: bool = True, dtype: DType | None = None
    ) -> Self:
        """Return a new carrier of the same kind that holds `values`.

        Args:
            values: One for each slot.
            mutable: Whether it can be written.
            dtype: Of the new carrier; this one's if None.
        """
        raise NotImplementedError

    def allocate_like(
        self, size: int, *, mutable: bool = True, dtype: DType | None = None, empty: bool = False
    ) -> Self:
        """Return a new carrier of the same kind with `size` slots.

        Args:
            size: The number of slots.
            mutable: Whether it can be written.
            dtype: Of the new carrier; this one's if None.
            empty: Whether the slots may be left uninitialised.
        """
        raise NotImplementedError

    def _is_mutable(self) -> bool:
        """Return whether the storage can be written at all."""
        return False

    def _supports_storage_dtype(self, dtype: DType) -> bool:
        return dtype is self.dtype()

    def _check_live(self) -> None:
        if self._released:
            message = f"A {type(self).__name__} must be live to be accessed, but it is released"
            raise CarrierStateError(message)

    def _check_writable(self) -> None:
        self._check_live()
        if not self._is_mutable():
            raise _not_mutable(self)


def check_descriptor(value: object, what: str) -> None:
    """Raise IRTypeError if `value` is no descriptor."""
    if not isinstance(value, DType):
        message = f"{what} must be a DType, not {describe(value)}"
        raise IRTypeError(message)


def _not_mutable(carrier: Carrier) -> CarrierStateError:
    return CarrierStateError(
        f"A {type(carrier).__name__} must be mutable to be written, but it is not"
    )
