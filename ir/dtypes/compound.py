"""Compound dtypes: logical values that are assembled from planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..errors import IRTypeError, IRValueError
from .descriptors import (
    CONTRACTS,
    Contract,
    DType,
    DTypeCategory,
    SimpleDType,
    checked_name,
    checked_simple,
    checked_supertype,
    is_kind,
    reference,
    spell,
)
from .ownership import FRAMEWORK, owned_method
from .rules import RepresentationRule, rule_structure
from .sealed import store
from .structure import Structure, describe

if TYPE_CHECKING:
    from collections.abc import Iterable

E = TypeVar("E")


class CompoundDType(DType, framework=FRAMEWORK):
    """A logical value that is assembled from one carrier per plane.

    Args:
        name: A non-empty string that no descriptor has yet.
        supertype: The enclosing category, or None.
        simple_types: The storage dtype of each plane, in order.
        representation_rules: Logical constraints, evaluated in order after universal validation.

    Raises:
        IRValueError: If the name is empty, no string, or taken, or there is no plane.
        IRTypeError: If another argument or an element of one is of the wrong type.
    """

    __slots__ = ("_representation_rules", "_simple_types")
    _simple_types: tuple[SimpleDType, ...]
    _representation_rules: tuple[RepresentationRule, ...]

    def __init__(
        self,
        name: str,
        *,
        supertype: DTypeCategory | None = None,
        simple_types: Iterable[SimpleDType],
        representation_rules: Iterable[RepresentationRule] = (),
    ) -> None:
        name = checked_name(name)
        checked_supertype(supertype, optional=True)
        planes = _checked_planes(simple_types)
        rules = _checked_rules(representation_rules)
        super().__init__(name, supertype=supertype)
        store(self, "_simple_types", planes)
        store(self, "_representation_rules", rules)

    @property
    def simple_types(self) -> tuple[SimpleDType, ...]:
        """The storage schema: the dtype of each plane, in order."""
        return self._simple_types

    @property
    def num_carriers(self) -> int:
        """The number of planes, and so of carriers."""
        return len(self._simple_types)

    @property
    def representation_rules(self) -> tuple[RepresentationRule, ...]:
        """The logical constraints, in the order in which they are evaluated."""
        return self._representation_rules

    @owned_method
    def is_compound(self) -> bool:
        """Return True."""
        return True


def elements_of(values: Iterable[E], what: str) -> tuple[E, ...]:
    """Return an iterable's elements as a tuple.

    Raises:
        IRTypeError: If it is not iterable.
    """
    try:
        iterator = iter(values)
    except TypeError as error:
        message = f"{what} must be iterable, not {spell(values)}"
        raise IRTypeError(message) from error
    return tuple(iterator)


def _checked_planes(simple_types: Iterable[object]) -> tuple[SimpleDType, ...]:
    planes = tuple(
        checked_simple(value, f"simple_types[{position}]")
        for position, value in enumerate(elements_of(simple_types, "simple_types"))
    )
    if not planes:
        message = "simple_types must hold at least one plane, not none"
        raise IRValueError(message)
    return planes


def _checked_rules(rules: Iterable[object]) -> tuple[RepresentationRule, ...]:
    checked: list[RepresentationRule] = []
    for position, rule in enumerate(elements_of(rules, "representation_rules")):
        if not is_kind(rule, RepresentationRule):
            message = (
                f"representation_rules[{position}] must be a RepresentationRule, "
                f"not {describe(rule)}"
            )
            raise IRTypeError(message)
        assert isinstance(rule, RepresentationRule)
        rule_structure(rule)
        checked.append(rule)
    return tuple(checked)


def _compound_layer(dtype: CompoundDType) -> Structure:
    planes = tuple(reference(plane) for plane in dtype.simple_types)
    rules = tuple(rule_structure(rule) for rule in dtype.representation_rules)
    return ("CompoundDType", planes, rules)


CONTRACTS[CompoundDType] = Contract(_compound_layer, is_kind=True)
