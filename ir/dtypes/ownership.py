"""Members that the framework owns and that no extension may redefine, hide or assign.

Descriptors and rules are open for subclasses, yet their identity must not be. Three measures hold
that, for class bodies, for bases of any kind and for instances alike:

* a class that redefines an owned member, itself or through a mixin, is refused when it is made;
* the framework's own member is then pinned into the class, so that a mixin changed later on cannot
  come before it;
* owned members are data descriptors, so that an instance dictionary cannot hide them.
"""

from __future__ import annotations

import weakref
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .errors import OwnedMemberError, SealedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

F = TypeVar("F", bound="Callable[..., object]")
M = TypeVar("M", bound="OwnedMeta")

FRAMEWORK: Final = object()
"""The token by which a class of this package says that it is part of the framework."""

_OWNED_DUNDERS: Final = frozenset(
    {
        "__copy__",
        "__deepcopy__",
        "__delattr__",
        "__eq__",
        "__getattribute__",
        "__hash__",
        "__ne__",
        "__reduce__",
        "__reduce_ex__",
        "__setattr__",
    }
)
"""Those that a framework class defines are owned; of other dunders none is."""
_OPEN: Final = frozenset({"structure_extension", "validate", "_abc_impl"})
"""What a subclass is meant to define, and what Python itself leaves in every abstract class."""
_NEVER_DEFINED: Final = frozenset({"__class__", "__getattr__"})
"""Attribute hooks that the framework itself lacks and that could stand in for its members."""


class _OwnedMethod:
    """A method that an instance dictionary cannot hide, for it is a data descriptor."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self.function if instance is None else self.function.__get__(instance, owner)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise _owned(type(instance), self.function.__name__)

    def __delete__(self, instance: object) -> NoReturn:
        raise _owned(type(instance), self.function.__name__)


def owned_method(function: F) -> F:
    """Make a method of a framework class one that no instance attribute can hide."""
    return cast("F", _OwnedMethod(function))


class _Ownership:
    """What a class must leave alone: members of the framework, and slots of its own bases."""

    __slots__ = ("framework", "is_framework", "slots")

    def __init__(self, *, is_framework: bool) -> None:
        self.is_framework = is_framework
        self.framework: dict[str, object] = {}
        self.slots: dict[str, object] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.framework or name in self.slots or name in _NEVER_DEFINED


_OWNERSHIP: Final[weakref.WeakKeyDictionary[type, _Ownership]] = weakref.WeakKeyDictionary()


class OwnedMeta(type):
    """The metaclass that holds ownership for every class below a framework class."""

    def __new__(
        mcls: type[M],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        framework: object = None,
        **keywords: Any,
    ) -> M:
        """Make a class, and refuse one that redefines what the framework owns."""
        cls = super().__new__(mcls, name, bases, namespace, **keywords)
        ownership = _inherited(cls, is_framework=framework is FRAMEWORK)
        slots = _slots_of(cls)
        if ownership.is_framework:
            ownership.framework |= {key: vars(cls)[key] for key in namespace if _is_owned(key)}
            ownership.framework |= slots
        else:
            _refuse_redefinition(cls, ownership)
            for key, member in (ownership.framework | ownership.slots).items():
                type.__setattr__(cls, key, member)
            ownership.slots |= slots
        _OWNERSHIP[cls] = ownership
        return cls

    def __setattr__(cls, name: str, value: object) -> None:
        _refuse_class_change(cls, name)
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        _refuse_class_change(cls, name)
        super().__delattr__(name)


def own_class_attributes(cls: type, members: Mapping[str, object]) -> None:
    """Give a framework class further attributes, owned from now on by it and by all below it."""
    for name, member in members.items():
        type.__setattr__(cls, name, member)
    for below, ownership in list(_OWNERSHIP.items()):
        if issubclass(below, cls):
            ownership.framework.update(members)


def refuse_owned(instance: object, name: str) -> None:
    """Raise if `name` is a member of the framework, which an instance may not assign.

    Raises:
        OwnedMemberError: If it is.
    """
    if name in _OWNERSHIP[type(instance)].framework or name in _NEVER_DEFINED:
        raise _owned(type(instance), name)


def refuse_hiding(instance: object) -> None:
    """Raise if the instance's dictionary holds the name of an owned member.

    Raises:
        OwnedMemberError: Naming the first such member.
    """
    ownership = _OWNERSHIP[type(instance)]
    for name in getattr(instance, "__dict__", ()):
        if name in ownership:
            raise _owned(type(instance), name)


def _is_owned(name: str) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name in _OWNED_DUNDERS
    return name not in _OPEN


def _slots_of(cls: type) -> dict[str, object]:
    return {key: value for key, value in vars(cls).items() if type(value) is MemberDescriptorType}


def _inherited(cls: type, *, is_framework: bool) -> _Ownership:
    merged = _Ownership(is_framework=is_framework)
    for base in reversed(cls.__mro__[1:-1]):
        ownership = _OWNERSHIP.get(base)
        if ownership is None:
            merged.slots |= _slots_of(base)
        else:
            merged.framework |= ownership.framework
            merged.slots |= ownership.slots
    return merged


def _refuse_redefinition(cls: type, inherited: _Ownership) -> None:
    owned = inherited.framework | inherited.slots
    for base in cls.__mro__[:-1]:
        ownership = _OWNERSHIP.get(base)
        if ownership is not None and ownership.is_framework:
            continue
        for name, value in vars(base).items():
            if name in _NEVER_DEFINED or (name in owned and value is not owned[name]):
                raise _owned(cls, name)


def _refuse_class_change(cls: type, name: str) -> None:
    ownership = _OWNERSHIP.get(cls)
    if ownership is None:
        return
    if ownership.is_framework:
        message = f"The attributes of class {cls.__name__} must stay as they are, {name!r} included"
        raise SealedError(message)
    if name in ownership:
        raise _owned(cls, name)


def _owned(cls: type, name: str) -> OwnedMemberError:
    message = (
        f"Class {cls.__qualname__} must leave {name!r} to the framework, not redefine or hide it"
    )
    return OwnedMemberError(message, hint="Use another name for a member of your own.")
