"""Representation rules: immutable, declarative constraints on how a logical value is laid out."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import IRTypeError, IRValueError
from .context import RepresentationValidationContext  # noqa: TC001 - resolved at run time
from .ownership import FRAMEWORK
from .sealed import Sealed, SealedMeta, finish, is_sealed, store
from .structure import Structure, Whole, WholeExtent, describe

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E")


class RuleMeta(SealedMeta, ABCMeta):
    """Records a rule's class and extension as its structure."""

    def __call__(cls: type[E], *args: Any, **keywords: Any) -> E:
        """Construct a rule, record its structure and seal it.

        Raises:
            IRTypeError: If the class leaves a method abstract.
        """
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            message = f"A rule class must define {', '.join(missing)}, but {cls.__name__} does not"
            raise IRTypeError(message)
        return SealedMeta.__call__(cls, *args, **keywords)

    def record(cls, made: RepresentationRule, extension: Structure) -> None:
        """Seal a constructed rule with its structure."""
        structure = (f"str:{cls.__module__}", f"str:{cls.__qualname__}", extension)
        object.__setattr__(made, "_structure", structure)


class RepresentationRule(Sealed, metaclass=RuleMeta, framework=FRAMEWORK):
    """A logical constraint that contributes to the identity of the compound dtypes using it.

    A subclass implements `validate` and, where it has parameters, `structure_extension`. Rules are
    equal by identity; compare `structure()` where equal meaning is wanted.
    """

    __slots__ = ()

    @abstractmethod
    def validate(self, context: RepresentationValidationContext) -> None:
        """Return None if the representation satisfies the rule, else raise.

        Args:
            context: The facts, which a rule inspects and never changes.
        """

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., RepresentationRule], Any]:
        return _rebuild, (type(self), _state_of(self), self.structure())


class LevelExtent(RepresentationRule, framework=FRAMEWORK):
    """Every coordinate of a level groups the same number of coordinates of the level below.

    Args:
        level: The adjacent layout that is meant, counted from 0.
        extent: How many source coordinates one target coordinate groups, or Whole for all.

    Raises:
        IRTypeError: If `level` is no exact int, or `extent` neither that nor Whole.
        IRValueError: If `level` is negative or `extent` below 1.
    """

    __slots__ = ("_extent", "_level")
    _level: int
    _extent: int | WholeExtent

    def __init__(self, level: int, extent: int | WholeExtent) -> None:
        if type(level) is not int:
            message = f"The level of a LevelExtent must be an exact int, not {describe(level)}"
            raise IRTypeError(message)
        if level < 0:
            message = f"The level of a LevelExtent must be 0 or more, not {level}"
            raise IRValueError(message)
        if extent is not Whole and type(extent) is not int:
            message = (
                f"The extent of a LevelExtent must be an exact int or Whole, not {describe(extent)}"
            )
            raise IRTypeError(message)
        if isinstance(extent, int) and extent < 1:
            message = f"The extent of a LevelExtent must be 1 or more, not {extent}"
            raise IRValueError(message)
        store(self, "_level", level)
        store(self, "_extent", extent)

    @property
    def level(self) -> int:
        """The adjacent layout that is meant, counted from 0."""
        return self._level

    @property
    def extent(self) -> int | WholeExtent:
        """How many source coordinates one target coordinate groups, or Whole."""
        return self._extent

    def structure_extension(self) -> tuple[object, ...]:
        """Return level and extent."""
        return (self._level, self._extent)

    def validate(self, context: RepresentationValidationContext) -> None:
        """Check the adjacent layout of this rule's level, without enumerating coordinates.

        Raises:
            IRValueError: If the level has no adjacent layout, or it does not group uniformly.
        """
        edges = context.adjacent_layouts
        where = f"{context.logical_dtype.name}, level {self._level}"
        if self._level >= len(edges):
            message = (
                f"{where}: the representation must have an adjacent layout {self._level}, "
                f"but it has only {len(edges)}"
            )
            raise IRValueError(message)
        source = context.level_shapes[self._level].size
        target_shape = context.level_shapes[self._level + 1]
        target = target_shape.size
        extent = source if isinstance(self._extent, WholeExtent) else self._extent
        if self._extent is Whole and target != 1:
            message = f"{where}: a Whole extent must have one target coordinate, not {target}"
            raise IRValueError(message)
        if source != extent * target:
            message = (
                f"{where}: {target} target coordinates of {extent} sources each must come from "
                f"{extent * target} source coordinates, not {source}"
            )
            raise IRValueError(message)
        found = edges[self._level].uniform_preimage_extent(target_shape)
        if found != extent:
            actual = "groups of unequal size" if found is None else f"groups of {found}"
            message = f"{where}: each target coordinate must group {extent} sources, not {actual}"
            raise IRValueError(message)

    def __repr__(self) -> str:
        if not is_sealed(self):
            return "LevelExtent(<unfinished>)"
        return f"{type(self).__name__}({self._level}, {self._extent})"


def rule_structure(rule: RepresentationRule) -> Structure:
    """Return the structure of a finished rule.

    Raises:
        IRTypeError: If the rule's constructor has not returned.
    """
    if not is_sealed(rule):
        message = f"A {type(rule).__name__} must be fully constructed before it is used"
        raise IRTypeError(message)
    return rule.structure()


def _state_of(rule: RepresentationRule) -> dict[str, object]:
    """Return a rule's dictionary and slots, without what is recorded for it."""
    state: dict[str, object] = dict(getattr(rule, "__dict__", {}))
    for cls in type(rule).__mro__:
        for name, member in vars(cls).items():
            if type(member) is MemberDescriptorType and name != "_structure":
                state.update({name: getattr(rule, name)} if hasattr(rule, name) else {})
    return state


def _rebuild(
    cls: type[RepresentationRule], state: dict[str, object], structure: Structure
) -> RepresentationRule:
    rule = cls.__new__(cls)
    for name, value in state.items():
        object.__setattr__(rule, name, value)
    finish(rule)
    if rule.structure() != structure:
        message = (
            f"A pickled {cls.__name__} must have the structure that its class gives it here, "
            "but it was made with another one"
        )
        raise IRValueError(message)
    return rule
