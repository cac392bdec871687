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
from typing import TYPE_CHECKING, Any, Union, cast, get_args, get_origin, get_type_hints

from .core import Function, ScopeStmt
from .dtypes import DType, SimpleDType
from .errors import IRTypeError, IRValueError, Span
from .expr import Call, ConstInt, GlobalVar, Node, Op, Submit, Type, Var
from .launch_faults import launch_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .core import Program

#: Names that annotations use and that their modules import for type checkers only.
_NAMES: dict[str, Any] = {
    "Callable": Callable,
    "DType": DType,
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Sequence": Sequence,
    "SimpleDType": SimpleDType,
}
#: What plain values are called.
_WORDS: dict[type, str] = {
    int: "an integer",
    str: "a string",
    bool: "True or False",
    tuple: "a tuple",
    Mapping: "a mapping",
}
#: A field: its name, what it may hold, whether it holds a tuple of these, whether they have fields.
_Field = tuple[str, tuple[type, ...], bool, bool]


def check_nodes(program: Program, *, launches: bool = True) -> None:
    """Refuse a program that is not made of nodes, or whose launches are none.

    The walk does not recurse, so that deep programs pass, and sees every node once.

    Args:
        program: What is looked at.
        launches: Whether launches must wait for launches, and the like.

    Raises:
        IRValueError: For the first field that does not hold what its class says.
        IRTypeError: For a launch that waits for something else than launches, and the like.
    """
    for function in program.functions.values():
        checked_parts(function, function)
    seen: set[int] = set()
    for function in program.functions.values():
        left: list[Node | Type] = [function]
        while left:
            node = left.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            inner = checked_parts(node, function)
            if launches and isinstance(node, Submit | ScopeStmt):
                fault = next(launch_faults(node), None)
                if fault is not None:
                    raise IRTypeError(fault.message, _place(node, function))
            inner.reverse()
            left += inner


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
        if not isinstance(value, tuple):
            raise _refusal(node, name, (tuple,), value, function)
        parts = cast("tuple[Any, ...]", value)
        for position, each in enumerate(parts):
            if not isinstance(each, kinds):
                raise _refusal(node, f"{name}[{position}]", kinds, each, function)
        found += parts
    return found


@dataclass(frozen=True)
class _Plan:
    fields: tuple[_Field, ...]
    values: Callable[[Node | Type], tuple[Any, ...]]


@cache
def _plan(kind: type) -> _Plan:
    """Return what is looked at in a class: its fields for nodes, types, places and integers."""
    hints = get_type_hints(kind, localns=_NAMES)
    fields = (*_fields(hints), *_settings(kind, hints))
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


def _settings(kind: type, hints: dict[str, Any]) -> Iterator[_Field]:
    """Yield the texts, switches and attributes of a launch."""
    if issubclass(kind, Submit | ScopeStmt):
        for name, hint in hints.items():
            plain = get_origin(hint) or hint
            if plain in (str, bool, Mapping):
                yield name, (plain,), False, False


def _refusal(
    node: Node | Type, place: str, kinds: tuple[type, ...], found: Any, function: Function
) -> IRValueError:
    names = {kind.__name__: None for kind in kinds if kind is not NoneType}
    wanted = _WORDS.get(kinds[0]) or " or ".join(names)
    held = "None" if found is None else type(found).__name__
    message = f"{place} of {_title(node)} must be {wanted}, not {held}"
    if node is not function:
        message += f" (in function {function.name!s})"
    return IRValueError(message, _place(node, function))


def _place(node: Node | Type, function: Function) -> Span | None:
    places = [getattr(each, "span", None) for each in (node, function)]
    known = [each for each in places if isinstance(each, Span) and each.is_known]
    return known[0] if known else None


def _title(node: Node | Type) -> str:
    match node:
        case Call() | Submit():
            return f"the {type(node).__name__} of {getattr(node.op, 'name', 'nothing')!s}"
        case Function():
            return f"function {node.name!s}"
        case Var():
            return f"the {type(node).__name__} {node.name_hint!s}"
        case _:
            name = type(node).__name__
            return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
