"""Objects that are finished after construction: their structure is recorded, then they are sealed.

Descriptors and rules are both of this kind. While the most derived constructor runs, an object's
own attributes are assigned as usual; when it has returned, the metaclass asks for the structure
extension, records the structure and seals the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import IRTypeError
from .errors import SealedError
from .ownership import FRAMEWORK, OwnedMeta, owned_method, refuse_hiding, refuse_owned
from .structure import Structure, encode_extension

if TYPE_CHECKING:
    from typing import NoReturn, Self

S = TypeVar("S")


class SealedMeta(OwnedMeta):
    """Finishes an object after its most derived constructor has returned."""

    def __call__(cls: type[S], *args: Any, **keywords: Any) -> S:  # noqa: N805 - a metaclass
        """Construct an object, record its structure and seal it."""
        made: S = type.__call__(cls, *args, **keywords)
        if type(made) is not cls or is_sealed(made):
            message = f"{cls.__name__}.__new__ must return a new {cls.__name__}, not another object"
            raise IRTypeError(message)
        assert isinstance(made, Sealed)
        finish(made)
        return made

    def record(cls, made: Any, extension: Structure) -> None:  # noqa: N805 - a metaclass
        """Record the structure of a finished object, which seals it.

        Args:
            made: An object of this class.
            extension: What the object itself adds to its structure.
        """
        raise NotImplementedError


class Sealed(metaclass=SealedMeta, framework=FRAMEWORK):
    """An object with a recorded structure that can no longer change; copies are the object."""

    __slots__ = ("__weakref__", "_structure")
    _structure: Structure

    __getattribute__ = object.__getattribute__

    @owned_method
    def structure(self) -> Structure:
        """Return what was recorded when the object was finished: immutable, compared by value."""
        return self._structure

    def structure_extension(self) -> tuple[object, ...]:
        """Return what a subclass adds to the structure; called once, after construction.

        Permitted are exact str, int, float, bool, None, Whole and nested tuples of these.
        """
        return ()

    def __setattr__(self, name: str, value: object) -> None:
        if is_sealed(self):
            _refuse_change(self, name)
        refuse_owned(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if is_sealed(self):
            _refuse_change(self, name)
        refuse_owned(self, name)
        object.__delattr__(self, name)

    @owned_method
    def __copy__(self) -> Self:
        return self

    @owned_method
    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def is_sealed(value: object) -> bool:
    """Return whether the structure of an object is recorded."""
    return hasattr(value, "_structure")


def store(value: Sealed, name: str, field: object) -> None:
    """Store a field that the framework owns, once, while the object is under construction.

    Raises:
        SealedError: If the object is finished, or has the field already.
    """
    if is_sealed(value):
        _refuse_change(value, name)
    if hasattr(value, name):
        message = f"The constructor of {type(value).__name__} must call that of its base only once"
        raise SealedError(message)
    object.__setattr__(value, name, field)


def finish(made: Sealed) -> None:
    """Check a constructed object, ask for its extension and record its structure.

    Raises:
        OwnedMemberError: If its dictionary hides a member of the framework.
        IRTypeError: If the extension may not stand in a structure.
    """
    refuse_hiding(made)
    extension = encode_extension(made.structure_extension())
    refuse_hiding(made)
    type(made).record(made, extension)


def _refuse_change(value: Sealed, name: str) -> NoReturn:
    message = f"Attribute {name!r} of {value!r} must stay as it is, for it is sealed"
    raise SealedError(message)
