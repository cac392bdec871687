"""The one registry of descriptors: names, and the representations that only one may have."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeVar

from ..errors import IRTypeError, IRValueError
from .errors import UnknownDTypeError
from .structure import Structure, describe, first_difference

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .descriptors import DType

D = TypeVar("D", bound="DType")


class Registry:
    """Descriptors by name. Every read and write holds one re-entrant lock.

    A descriptor appears in it complete or not at all, and stays for the life of the process.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_name: dict[str, DType] = {}
        self._holders: dict[Hashable, str] = {}
        self._identities: set[int] = set()

    def publish(
        self, dtype: DType, name: str, structure: Structure, representation: Hashable | None
    ) -> None:
        """Register and seal `dtype` in one step; on any failure nothing has happened.

        Args:
            dtype: The finished descriptor.
            name: Its name, an exact string.
            structure: What is recorded, which seals it.
            representation: What no second descriptor may share, or None.

        Raises:
            IRValueError: If the name or the representation is taken.
        """
        with self._lock:
            self._refuse_taken(name, representation)
            try:
                if representation is not None:
                    self._holders[representation] = name
                object.__setattr__(dtype, "_structure", structure)
                self._identities.add(id(dtype))
                self._by_name[name] = dtype
            except BaseException:
                self._by_name.pop(name, None)
                self._identities.discard(id(dtype))
                if hasattr(dtype, "_structure"):
                    object.__delattr__(dtype, "_structure")
                self._holders.pop(representation, None)
                raise

    def _refuse_taken(self, name: str, representation: Hashable | None) -> None:
        if name in self._by_name:
            message = f"A dtype's name must be new, but {name!r} is registered already"
            raise IRValueError(message)
        holder = None if representation is None else self._holders.get(representation)
        if holder is not None:
            message = (
                "A block-scaled dtype must have an element and levels of its own, but "
                f"{name!r} repeats those of {holder!r}"
            )
            raise IRValueError(message, hint=f"Use DType.from_name({holder!r}).")

    def holds(self, dtype: object) -> bool:
        """Return whether this very object is registered."""
        with self._lock:
            return id(dtype) in self._identities

    def all_of(self, kind: type[D]) -> tuple[D, ...]:
        """Return the registered descriptors of a class, in the order of registration."""
        with self._lock:
            return tuple(dtype for dtype in self._by_name.values() if isinstance(dtype, kind))

    def find(self, name: object, kind: type[D]) -> D:
        """Return the descriptor of a name.

        Raises:
            IRTypeError: If `name` is no string.
            UnknownDTypeError: If no descriptor of that class has it.
        """
        if not isinstance(name, str):
            message = f"A dtype's name must be a string, not {describe(name)}"
            raise IRTypeError(message)
        key = str.__str__(name)
        with self._lock:
            dtype = self._by_name.get(key)
        if isinstance(dtype, kind):
            return dtype
        if dtype is not None:
            message = f"{key!r} must name a {kind.__name__}, not {dtype!r}"
            raise UnknownDTypeError(message)
        names = ", ".join(sorted(known.name for known in self.all_of(kind)))
        message = f"{key!r} must name a registered {kind.__name__}, but no dtype has that name"
        raise UnknownDTypeError(
            message,
            hint=f"Registered are: {names}.",
            note="A dtype that a pickle refers to must be registered before it is loaded.",
        )


REGISTRY: Final = Registry()


def resolve(name: str, structure: Structure) -> DType:
    """Return the descriptor that a pickle names; the receiving process must have it already.

    Raises:
        UnknownDTypeError: If no descriptor has that name here.
        IRValueError: If one has, but with another structure.
    """
    from .descriptors import DType

    dtype = REGISTRY.find(name, DType)
    if dtype.structure() != structure:
        here, there = first_difference(dtype.structure(), structure)
        message = (
            f"The dtype {dtype.name!r} of a pickle must have the structure registered here, "
            f"but the pickle has {there} where {here} stands here"
        )
        raise IRValueError(message)
    return dtype
