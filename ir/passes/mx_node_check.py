"""Whether a program is made of nodes: raw IR can hold anything in any field.

What a field must hold is read from its annotation, so that the classes of nodes and types stay the one
place that says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from operator import attrgetter
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from ..core import Function
from ..dtypes import DType, SimpleDType
from ..errors import IRValueError, Span
from ..expr import Call, ConstInt, GlobalVar, Node, Op, Submit, Type, Var

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names that annotations use and that their modules import for type checkers only.
_NAMES: dict[str, Any] = {
    "Callable": Callable,
    "DType": DType,
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "SimpleDType": SimpleDType,
}
#: A field: its name, what it may hold, whether it holds a tuple of these, whether they have fields.
_Field = tuple[str, tuple[type, ...], bool, bool]


def checked_parts(node: Node | Type, function: Function) -> list[Node | Type]:
    """Return the nodes and types directly inside a node or a type, in the order of its fields.

    Args:
        node: What is looked into, not deeper than its fields.
        function: The function that it stands in.

    Raises:
        IRValueError: For a field that does not hold what its class says.
    """
    if type(node) is ConstInt and type(node.value) is int and type(node.span) is Span:
        return []
    plan = _plan(type(node))
    found: list[Node | Type] = []
    for (name, kinds, many, is_part), value in zip(plan.fields, plan.values(node), strict=True):
        if not many:
            if not isinstance(value, kinds):
                raise _refusal(node, name, kinds, value, function)
            if is_part and value is not None:
                found.append(value)
            continue
        for position, each in enumerate(value):
            if not isinstance(each, kinds):
                raise _refusal(node, f"{name}[{position}]", kinds, each, function)
        found += value
    return found


@dataclass(frozen=True)
class _Plan:
    fields: tuple[_Field, ...]
    values: Callable[[Node | Type], tuple[Any, ...]]


@cache
def _plan(kind: type) -> _Plan:
    """Return what is looked at in a class: its fields for nodes, types, places and integers."""
    fields = tuple(_fields(get_type_hints(kind, localns=_NAMES)))
    names = [name for name, *_ in fields]
    if len(names) > 1:
        return _Plan(fields, attrgetter(*names))
    return _Plan(fields, lambda node: tuple(getattr(node, name) for name in names))


def _fields(hints: dict[str, Any]) -> Iterator[_Field]:
    for name, hint in hints.items():
        many = get_origin(hint) is tuple
        inner = get_args(hint)[0] if many else hint
        kinds = get_args(inner) if get_origin(inner) in (Union, UnionType) else (inner,)
        named = tuple(kind for kind in kinds if isinstance(kind, type))
        if name == "op":
            # A submit of an op is no launch of the program's, and none of our business.
            yield name, (Op, GlobalVar), False, False
        elif named == (int,) and name != "unique_id":
            yield name, (int, Integral), False, False
        elif named and issubclass(named[0], Node | Type | Span):
            yield name, named, many, named[0] is not Span


def _refusal(
    node: Node | Type, place: str, kinds: tuple[type, ...], found: Any, function: Function
) -> IRValueError:
    names = {kind.__name__: None for kind in kinds if kind is not NoneType}
    wanted = "an integer" if int in kinds else " or ".join(names)
    held = "None" if found is None else type(found).__name__
    message = f"{place} of {_title(node)} must be {wanted}, not {held}"
    if node is not function:
        message += f" (in function {function.name!s})"
    places = [getattr(each, "span", None) for each in (node, function)]
    known = [each for each in places if isinstance(each, Span) and each.is_known]
    return IRValueError(message, known[0] if known else None)


def _title(node: Node | Type) -> str:
    match node:
        case Call() | Submit():
            return f"the {type(node).__name__} of {getattr(node.op, 'name', 'nothing')!s}"
        case Function():
            return f"function {node.name!s}"
        case Var():
            return f"the {type(node).__name__} {node.name_hint!s}"
        case _:
            return f"a {type(node).__name__}"
