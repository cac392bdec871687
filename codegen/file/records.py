"""Frozen dataclasses to JSON values and back, driven by their annotations.

The fields of a record are its file format: a new field appears in the file without more code.
Understood are `int` (64 bits), `str`, `bool`, enums, `tuple[X, ...]`, fixed tuples, records, `X | None`
and unions of records, which carry their class's name under `node`. What is read is checked in full.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from ...ir.errors import ExecutableError

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = "int | str | bool | list[Json] | dict[str, Json] | None"
R = TypeVar("R")

MAX_DEPTH = 140
_SHORT = Repr()
_SHORT.maxlevel = 2
_SHORT.maxstring = 60
_SHORT.maxother = 60
TAG = "node"
_SIGN = 1 << 63


def to_json(value: object, kind: object) -> Json:
    """Return `value`, of the annotation `kind`, as what `json` can write."""
    match value:
        case bool() | str() | None:
            return value
        case Enum():
            return cast("Json", value.value)
        case int():
            return value
        case tuple():
            items = cast("tuple[object, ...]", value)
            return [
                to_json(item, each)
                for item, each in zip(items, _kinds(kind, len(items)), strict=True)
            ]
        case _:
            assert is_dataclass(value), f"{value!r} has no form in a file"
            cls = type(value)
            plain = {name: to_json(getattr(value, name), each) for name, each in hints(cls).items()}
            many = isinstance(kind, UnionType) and _unless_none(kind) is None
            return {TAG: cls.__name__, **plain} if many else plain


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads records out of parsed JSON.

    Args:
        lenient: Whether unknown keys are passed over, as in a file of a newer minor version.
    """

    lenient: bool = False

    def record(self, value: object, cls: type[R], where: str) -> R:
        """Return a record of class `cls`.

        Args:
            value: What `json` parsed.
            cls: A dataclass.
            where: Path of the value in the file, for messages.

        Raises:
            ExecutableError: If a key is missing or unknown or a value is of the wrong kind.
            IRValueError: If the record itself refuses its fields.
        """
        return cast("R", self.value(value, cls, where))

    def value(self, value: object, kind: object, where: str, depth: int = 0) -> object:
        """Return `value` as something of the annotation `kind`; errors as in `record`."""
        if depth > MAX_DEPTH:
            _refuse(where, f"nested at most {MAX_DEPTH} deep", "more")
        if kind is int:
            return _integer(value, where)
        if kind is str:
            return _text(value, where)
        if kind is bool:
            if type(value) is not bool:
                _refuse(where, "true or false", value)
            return value
        if isinstance(kind, UnionType):
            some = _unless_none(kind)
            if some is not None:
                return None if value is None else self.value(value, some, where, depth)
            return self._union(value, kind, where, depth)
        if get_origin(kind) is tuple:
            return self._tuple(value, kind, where, depth)
        assert isinstance(kind, type), f"{kind!r} has no form in a file"
        if issubclass(kind, Enum):
            return _member(value, kind, where)
        return self._fields(value, cast("type[object]", kind), where, depth)

    def object(self, value: object, keys: Mapping[str, object], where: str) -> dict[str, object]:
        """Return the object `value` after a check that it has exactly `keys`.

        Raises:
            ExecutableError: If it is no object, or lacks a key, or has another.
        """
        if not isinstance(value, dict):
            _refuse(where, "an object", value)
        plain = cast("dict[str, object]", value)
        for key in keys:
            if key not in plain:
                message = f"In the executable, {where} must have the key {key!r}, which is missing."
                raise ExecutableError(message)
        for key in plain:
            if key not in keys and not self.lenient:
                _refuse(f"a key of {where}", f"one of {', '.join(keys)}", key)
        return plain

    def _fields(self, value: object, cls: type[object], where: str, depth: int) -> object:
        kinds = hints(cls)
        plain = self.object(value, kinds, where)
        return cls(
            **{
                name: self.value(plain[name], kind, f"{where}.{name}", depth + 1)
                for name, kind in kinds.items()
            }
        )

    def _union(self, value: object, kind: UnionType, where: str, depth: int) -> object:
        choices = {cast("type", each).__name__: cast("type", each) for each in get_args(kind)}
        plain = dict(cast("dict[str, object]", value)) if isinstance(value, dict) else {}
        tag = plain.pop(TAG, None)
        if not isinstance(tag, str) or tag not in choices:
            _refuse(f"{where}.{TAG}", f"one of {', '.join(choices)}", tag)
        return self._fields(plain, choices[tag], where, depth)

    def _tuple(self, value: object, kind: object, where: str, depth: int) -> object:
        if not isinstance(value, list):
            _refuse(where, "a list", value)
        items = cast("list[object]", value)
        if Ellipsis not in get_args(kind) and len(items) != len(get_args(kind)):
            _refuse(where, f"a list of {len(get_args(kind))}", items)
        kinds = _kinds(kind, len(items))
        return tuple(
            self.value(item, each, f"{where}[{index}]", depth + 1)
            for index, (item, each) in enumerate(zip(items, kinds, strict=True))
        )


@cache
def hints(cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass with their annotations, in order."""
    resolved = get_type_hints(cls)
    return {each.name: resolved[each.name] for each in fields(cls)}


def _kinds(kind: object, count: int) -> tuple[object, ...]:
    arguments = get_args(kind)
    return (arguments[0],) * count if Ellipsis in arguments else arguments


def _unless_none(kind: UnionType) -> object | None:
    """Return `X` of `X | None`; None for a union of records."""
    arguments = get_args(kind)
    return arguments[0] if arguments[1:] == (NoneType,) else None


def _integer(value: object, where: str) -> int:
    if type(value) is not int:
        _refuse(where, "an integer", value)
    if not -_SIGN <= value < _SIGN:
        _refuse(where, "a signed 64-bit integer", value)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        _refuse(where, "a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(where, "a string without lone surrogates", value)
    return value


def _member(value: object, kind: type[Enum], where: str) -> Enum:
    members = {member.value: member for member in kind}
    if not isinstance(value, str) or value not in members:
        _refuse(where, f"one of {', '.join(members)}", value)
    return members[value]


def _refuse(where: str, wanted: str, found: object) -> NoReturn:
    message = f"In the executable, {where} must be {wanted}, not {_SHORT.repr(found)}."
    raise ExecutableError(message)
