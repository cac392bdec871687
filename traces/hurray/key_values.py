"""The key-value section of a file: text keys, and values that say their own type."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from .errors import FieldRangeError, InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .reader import Reader

Scalar: TypeAlias = "str | int | float | bool | bytes"
Value: TypeAlias = "Scalar | Sequence[Scalar]"

_ARRAY: Final = 7
_MOST_KEY_BYTES: Final = 0xFFFF
_MOST_COUNT: Final = 0xFFFFFFFF
_LEAST_ENTRY: Final = 4  # a key of one byte behind its length, and a tag; no value is empty
_I64: Final = range(-(1 << 63), 1 << 63)
_U64: Final = range(1 << 64)
_COUNT, _KEY_LENGTH = Struct("<I"), Struct("<H")


@dataclass(frozen=True, slots=True)
class _Type:
    """How values of one tag are stored: numbers by a form, text and bytes behind their length."""

    tag: int
    name: str
    form: str | None


# fmt: off
_TYPES: Final = (
    _Type(1, "string",       None),
    _Type(2, "i64",          "q"),
    _Type(3, "u64",          "Q"),
    _Type(4, "f64",          "d"),
    _Type(5, "bool",         "B"),
    _Type(6, "bytes",        None),
)
# fmt: on
_BY_TAG: Final = {kind.tag: kind for kind in _TYPES}
_STRING, _SIGNED, _UNSIGNED, _FLOAT, _BOOL, _BYTES = _TYPES


def encode_key_values(values: Mapping[str, Value]) -> bytes:
    """Return the bytes of the section.

    Args:
        values: Texts, integers, floats, truth values, bytes, or sequences of one of these.

    Raises:
        InvalidFileError: A key is empty, no text or too long, or a value of another type; a
            `FieldRangeError` where an integer does not fit 64 bits.
    """
    parts = [_COUNT.pack(len(values))]
    for key, value in values.items():
        name = encoded_name(key, "A key")
        parts += (_KEY_LENGTH.pack(len(name)), name, _encode(key, value))
    return b"".join(parts)


def decode_key_values(reader: Reader) -> dict[str, Value]:
    """Return what the section says.

    Raises:
        InvalidFileError: It breaks a rule of the format, or does not end where it should.
    """
    begin = reader.offset
    count = reader.number("I", "The number of key-values")
    if count * _LEAST_ENTRY > reader.left:
        sentence = (
            f"The number of key-values must be at most {reader.left // _LEAST_ENTRY}, which fit "
            f"the section, not {count}"
        )
        raise InvalidFileError(sentence, offset=begin, found=count)
    found: dict[str, Value] = {}
    for _ in range(count):
        at = reader.offset
        key = reader.text(reader.number("H", "The length of a key"), "A key")
        if not key or key in found:
            why = "used twice" if key else "empty"
            sentence = f"A key must be of its own and not empty, not {key!r}, which is {why}"
            raise InvalidFileError(sentence, offset=at, found=key)
        found[key] = _decode(reader)
    reader.finish()
    return found


def encoded_name(name: Any, what: str) -> bytes:
    """Return a key or a tensor's name as the bytes that a file holds.

    Raises:
        InvalidFileError: It is no text, empty, no Unicode, or more than 65535 bytes.
    """
    try:
        data = name.encode("utf-8") if isinstance(name, str) else b""
    except UnicodeEncodeError:
        data = b""
    if not 1 <= len(data) <= _MOST_KEY_BYTES:
        sentence = f"{what} must be a text of 1 to {_MOST_KEY_BYTES} bytes, not {name!r:.80}"
        raise InvalidFileError(sentence, found=name)
    return data


def _encode(key: str, value: Value) -> bytes:
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        kind = _common(key, items)
        head = bytes((_ARRAY, kind.tag)) + _COUNT.pack(len(items))
        return head + b"".join(_payload(kind, item) for item in items)
    kind = _type_of(key, value)
    return bytes((kind.tag,)) + _payload(kind, value)


def _common(key: str, items: Sequence[Any]) -> _Type:
    if not items or len(items) > _MOST_COUNT:
        sentence = f"The sequence of key {key!r} must not be empty"
        raise InvalidFileError(sentence, found=items)
    kinds = {_type_of(key, item).tag for item in items}
    if kinds == {_SIGNED.tag, _UNSIGNED.tag} and all(item in _U64 for item in items):
        return _UNSIGNED
    if len(kinds) != 1:
        names = " and ".join(_BY_TAG[tag].name for tag in sorted(kinds))
        sentence = f"The sequence of key {key!r} must be of one type, not of {names}"
        raise InvalidFileError(sentence, found=items)
    return _BY_TAG[kinds.pop()]


def _type_of(key: str, value: Any) -> _Type:
    match value:
        case bool():
            return _BOOL
        case int():
            if value in _I64:
                return _SIGNED
            if value in _U64:
                return _UNSIGNED
            sentence = f"The integer of key {key!r} must fit 64 bits, not be {value}"
            raise FieldRangeError(sentence, found=value)
        case float():
            return _FLOAT
        case str():
            return _STRING
        case bytes():
            return _BYTES
        case _:
            sentence = (
                f"The value of key {key!r} must be a str, int, float, bool, bytes or a list of one "
                f"of these, not {value!r:.80}"
            )
            raise InvalidFileError(sentence, found=value)


def _payload(kind: _Type, value: Any) -> bytes:
    if kind.form is not None:
        return Struct(f"<{kind.form}").pack(value)
    data = encoded_text(value) if isinstance(value, str) else bytes(value)
    return _COUNT.pack(len(data)) + data


def encoded_text(value: str) -> bytes:
    """Return a text as UTF-8.

    Raises:
        InvalidFileError: It is no Unicode.
    """
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        sentence = f"A text must be Unicode, not {value!r:.80}"
        raise InvalidFileError(sentence, found=value) from error


def _decode(reader: Reader) -> Value:
    at = reader.offset
    tag = reader.number("B", "The type of a value")
    if tag != _ARRAY:
        return _read(reader, _known(tag, at))
    kind = _known(reader.number("B", "The type of a sequence"), at + 1)
    count = reader.number("I", "The length of a sequence")
    least = 4 if kind.form is None else Struct(f"<{kind.form}").size
    if count * least > reader.left:
        reader.refuse(
            f"A sequence must have at most {reader.left // least} entries, which fit the section, "
            f"not {count}",
            count,
        )
    return [_read(reader, kind) for _ in range(count)]


def _known(tag: int, at: int) -> _Type:
    kind = _BY_TAG.get(tag)
    if kind is None:
        sentence = f"The type of a value must be in 1..6, or 7 for a sequence, not {tag}"
        raise InvalidFileError(sentence, offset=at, found=tag)
    return kind


def _read(reader: Reader, kind: _Type) -> Scalar:
    what = f"A value of type {kind.name}"
    at = reader.offset
    if kind.form is not None:
        value = reader.number(kind.form, what)
        if kind is not _BOOL:
            return value
        if value > 1:
            sentence = f"{what} must be 0 or 1, not {value}"
            raise InvalidFileError(sentence, offset=at, found=value)
        return bool(value)
    length = reader.number("I", what)
    return reader.text(length, what) if kind is _STRING else reader.take(length, what)
