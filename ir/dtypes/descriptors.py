"""Descriptors: what a dtype is, and the kinds that need no planes, categories and simple dtypes.

A descriptor is an identity: equal to nothing but itself, and the same object after copying,
pickling and unpickling. A descriptor registers when its most derived constructor has returned; a
constructor that fails, however late, leaves its name free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from ..errors import IRTypeError, IRValueError
from .errors import UnregisteredDTypeError
from .ownership import FRAMEWORK, owned_method
from .registry import REGISTRY, resolve
from .sealed import Sealed, SealedMeta, store
from .structure import Structure, describe, encode_leaf, exact_int

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .block_scaled import BlockScaledDType
    from .rules import RepresentationRule

D = TypeVar("D", bound="DType")
E = TypeVar("E")
M = TypeVar("M", bound="DTypeMeta")

Reducer = tuple["Callable[[str, Structure], DType]", tuple[str, Structure]]


@dataclass(frozen=True)
class Contract:
    """What a framework class contributes to the identity of its descriptors.

    Args:
        layer: Gives the class's layer of structure from a constructed descriptor.
        is_kind: Whether the class is one of the three kinds that a descriptor can be of.
        unique: Gives what no two descriptors may share, or is None.
    """

    layer: Callable[[Any], Structure]
    is_kind: bool = False
    unique: Callable[[Any], Hashable] | None = None


CONTRACTS: Final[dict[type, Contract]] = {}
"""The contracts by class, held outside the classes so that no extension can replace one."""

_CONCRETE: Final[set[type]] = set()


class DTypeMeta(SealedMeta):
    """Makes descriptor classes abstract unless they say otherwise, and publishes descriptors."""

    def __new__(
        mcls: type[M],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        abstract: bool = True,
        **keywords: Any,
    ) -> M:
        """Make a descriptor class.

        Args:
            name: Of the class.
            bases: Of the class.
            namespace: Of the class.
            abstract: Whether the class has no descriptors of its own; not inherited.
            keywords: For the base classes.
        """
        cls = super().__new__(mcls, name, bases, namespace, **keywords)
        if not abstract:
            _CONCRETE.add(cls)
        return cls

    def __call__(cls: type[E], *args: Any, **keywords: Any) -> E:  # noqa: N805 - a metaclass
        """Construct, check and register a descriptor.

        Raises:
            IRTypeError: If the class is abstract; no argument is looked at then.
        """
        if cls not in _CONCRETE:
            message = f"A dtype must be made from a concrete class, but {cls.__name__} is abstract"
            raise IRTypeError(message, hint="State abstract=False where the class is defined.")
        return SealedMeta.__call__(cls, *args, **keywords)

    def record(cls, made: DType, extension: Structure) -> None:  # noqa: N805 - a metaclass
        """Register a constructed descriptor with its structure."""
        contracts = [CONTRACTS[base] for base in reversed(cls.__mro__) if base in CONTRACTS]
        if not any(contract.is_kind for contract in contracts):
            message = (
                f"Class {cls.__name__} must derive from DTypeCategory, SimpleDType or "
                "CompoundDType, not directly from DType"
            )
            raise IRTypeError(message)
        try:
            name = made.name
            layers = tuple(item for contract in contracts for item in contract.layer(made))
            unique = [contract.unique(made) for contract in contracts if contract.unique]
        except AttributeError as error:
            message = f"The constructor of {cls.__name__} must call the one of its base class"
            raise IRTypeError(message) from error
        REGISTRY.publish(made, name, (*layers, extension), unique[-1] if unique else None)


class DType(Sealed, metaclass=DTypeMeta, framework=FRAMEWORK):
    """The root of all descriptors; its public attributes are the built-in descriptors.

    Subclass one of its kinds (DTypeCategory, SimpleDType, CompoundDType) instead.
    """

    __slots__ = ("_name", "_supertype")
    _name: str
    _supertype: DTypeCategory | None

    Any: ClassVar[DTypeCategory]
    Floating: ClassVar[DTypeCategory]
    Integer: ClassVar[DTypeCategory]
    Bool: ClassVar[SimpleDType]
    Int32: ClassVar[SimpleDType]
    Int8: ClassVar[SimpleDType]
    Float32: ClassVar[SimpleDType]
    Float64: ClassVar[SimpleDType]
    E8M0: ClassVar[SimpleDType]
    E5M2: ClassVar[SimpleDType]
    E4M3: ClassVar[SimpleDType]
    E3M2: ClassVar[SimpleDType]
    E2M3: ClassVar[SimpleDType]
    E2M1: ClassVar[SimpleDType]
    MXFP8_E4M3: ClassVar[BlockScaledDType]
    MXFP8_E5M2: ClassVar[BlockScaledDType]
    MXFP6_E3M2: ClassVar[BlockScaledDType]
    MXFP6_E2M3: ClassVar[BlockScaledDType]
    MXFP4: ClassVar[BlockScaledDType]
    MXINT8: ClassVar[BlockScaledDType]
    NVFP4: ClassVar[BlockScaledDType]

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __init__(self, name: str, *, supertype: DTypeCategory | None = None) -> None:
        store(self, "_name", checked_name(name))
        store(self, "_supertype", checked_supertype(supertype, optional=True))

    @property
    def name(self) -> str:
        """The key under which the descriptor is registered."""
        return self._name

    @property
    def value(self) -> str:
        """The same as `name`."""
        return self._name

    @property
    def supertype(self) -> DTypeCategory | None:
        """The immediately enclosing category, or None for a root."""
        return self._supertype

    @property
    def representation_rules(self) -> tuple[RepresentationRule, ...]:
        """The logical constraints of a compound dtype in order; empty for other kinds."""
        return ()

    @owned_method
    def is_category(self) -> bool:
        """Return whether this is a category, which has no encoding of its own."""
        return False

    @owned_method
    def is_simple(self) -> bool:
        """Return whether this is a simple dtype, one fixed-width encoding."""
        return False

    @owned_method
    def is_compound(self) -> bool:
        """Return whether this is a compound dtype, assembled from planes."""
        return False

    @owned_method
    def is_opaque_storage(self) -> bool:
        """Return whether this is a category of values that a carrier may hold without encoding."""
        return False

    @owned_method
    def supertypes(self) -> tuple[DTypeCategory, ...]:
        """Return the enclosing categories, nearest first."""
        found: list[DTypeCategory] = []
        category = self._supertype
        while category is not None:
            found.append(category)
            category = category.supertype
        return tuple(found)

    @owned_method
    def is_subtype_of(self, other: DType) -> bool:
        """Return whether this is `other` or lies within it.

        Raises:
            IRTypeError: If `other` is no descriptor.
        """
        if not is_kind(other, DType):
            message = f"is_subtype_of() must be given a DType, not {describe(other)}"
            raise IRTypeError(message)
        return self is other or any(category is other for category in self.supertypes())

    @classmethod
    def registered(cls: type[D]) -> tuple[D, ...]:
        """Return the descriptors of this class that are registered now, oldest first."""
        return REGISTRY.all_of(cls)

    @classmethod
    def from_name(cls: type[D], name: str) -> D:
        """Return the descriptor of this class that is registered under `name`.

        Raises:
            IRTypeError: If `name` is no string.
            UnknownDTypeError: If there is none, or it is of another class.
        """
        return REGISTRY.find(name, cls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, '_name', None)!r})"

    @owned_method
    def __reduce__(self) -> Reducer:
        if not REGISTRY.holds(self):
            message = f"A dtype must be registered to be pickled, but {self!r} is not"
            raise UnregisteredDTypeError(message)
        return resolve, (self._name, self._structure)

    @owned_method
    def __reduce_ex__(self, protocol: object) -> Reducer:
        return self.__reduce__()


class DTypeCategory(DType, abstract=False, framework=FRAMEWORK):
    """A set of dtypes, ordered by inclusion.

    Args:
        name: A non-empty string that no descriptor has yet.
        supertype: The enclosing category, or None for a root.
        opaque_storage: Whether a carrier may hold values known only to be of this category.

    Raises:
        IRValueError: If the name is empty, no string, or taken.
        IRTypeError: If the supertype is neither None nor a registered category.
    """

    __slots__ = ("_opaque_storage",)
    _opaque_storage: bool

    def __init__(
        self, name: str, *, supertype: DTypeCategory | None = None, opaque_storage: bool = False
    ) -> None:
        name = checked_name(name)
        checked_supertype(supertype, optional=True)
        if type(opaque_storage) is not bool:
            message = f"opaque_storage must be True or False, not {describe(opaque_storage)}"
            raise IRTypeError(message)
        super().__init__(name, supertype=supertype)
        store(self, "_opaque_storage", opaque_storage)

    @owned_method
    def is_category(self) -> bool:
        """Return True."""
        return True

    @owned_method
    def is_opaque_storage(self) -> bool:
        """Return whether a carrier may hold values known only to be of this category."""
        return self._opaque_storage


class SimpleDType(DType, abstract=False, framework=FRAMEWORK):
    """A dtype with one fixed-width encoding.

    Args:
        name: A non-empty string that no descriptor has yet.
        bits: The width of one code.
        supertype: The enclosing category.

    Raises:
        IRValueError: If the name is empty, no string, or taken, or `bits` is no positive integer.
        IRTypeError: If the supertype is no registered category.
    """

    __slots__ = ("_bits",)
    _bits: int

    def __init__(self, name: str, *, bits: int, supertype: DTypeCategory) -> None:
        name = checked_name(name)
        checked_supertype(supertype, optional=False)
        width = exact_int(bits)
        if width is None or width <= 0:
            message = f"The bits of a simple dtype must be a positive integer, not {describe(bits)}"
            raise IRValueError(message)
        super().__init__(name, supertype=supertype)
        store(self, "_bits", width)

    @property
    def bits(self) -> int:
        """The width of one code in bits."""
        return self._bits

    @owned_method
    def is_simple(self) -> bool:
        """Return True."""
        return True


def reference(dtype: DType) -> Structure:
    """Return how a structure refers to a registered descriptor: by name and full structure."""
    return (f"ref:{dtype.name}", *dtype.structure())


def _root_layer(dtype: DType) -> Structure:
    supertype = dtype.supertype
    return ("DType", "none" if supertype is None else reference(supertype))


def _category_layer(dtype: DTypeCategory) -> Structure:
    return ("DTypeCategory", f"bool:{dtype.is_opaque_storage()}")


def _simple_layer(dtype: SimpleDType) -> Structure:
    width = encode_leaf(dtype.bits)
    assert width is not None
    return ("SimpleDType", width)


CONTRACTS[DType] = Contract(_root_layer)
CONTRACTS[DTypeCategory] = Contract(_category_layer, is_kind=True)
CONTRACTS[SimpleDType] = Contract(_simple_layer, is_kind=True)


def is_kind(value: object, kind: type) -> bool:
    """Return whether the class of `value` lies below `kind`, whatever its `__class__` says."""
    return kind in type(value).__mro__


def spell(value: object) -> str:
    """Return `value` for an error message: a descriptor by kind and name, else its type."""
    return repr(value) if is_kind(value, DType) else describe(value)


def checked_simple(value: object, what: str) -> SimpleDType:
    """Return `value` if it is a registered simple dtype.

    Raises:
        IRTypeError: If it is of another kind.
        UnregisteredDTypeError: If it is a simple dtype that is not registered.
    """
    if not is_kind(value, SimpleDType):
        message = f"{what} must be a SimpleDType, not {spell(value)}"
        raise IRTypeError(message)
    assert isinstance(value, SimpleDType)
    return checked_registered(value, what)


def checked_name(name: object) -> str:
    """Return a non-empty string as an exact str.

    Raises:
        IRValueError: If it is something else.
    """
    exact = str.__str__(name) if isinstance(name, str) else ""
    if not exact:
        message = f"A dtype's name must be a non-empty string, not {describe(name)}"
        raise IRValueError(message)
    return exact


def checked_supertype(supertype: object, *, optional: bool) -> DTypeCategory | None:
    """Return `supertype` if it is a registered category or, where `optional`, None.

    Raises:
        IRTypeError: If it is something else.
        UnregisteredDTypeError: If it is a category that is not registered.
    """
    if supertype is None and optional:
        return None
    if not is_kind(supertype, DTypeCategory):
        alternatives = "None or a DTypeCategory" if optional else "a DTypeCategory"
        message = f"The supertype of a dtype must be {alternatives}, not {spell(supertype)}"
        raise IRTypeError(message)
    assert isinstance(supertype, DTypeCategory)
    return checked_registered(supertype, "The supertype of a dtype")


def checked_registered(dtype: D, what: str) -> D:
    """Return `dtype` if it is registered.

    Raises:
        UnregisteredDTypeError: If it is not.
    """
    if not REGISTRY.holds(dtype):
        message = f"{what} must be a registered dtype, but {dtype!r} is not"
        raise UnregisteredDTypeError(message)
    return dtype
