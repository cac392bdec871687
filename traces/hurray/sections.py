"""The shard, statistics and composite member sections."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .errors import FieldTypeError, InvalidDescriptorError
from .shapes import Shape, checked_shape, spell
from .sizes import U64_MAX, checked_uint, checked_uints

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS_BYTES: Final = 72
COMPOSITE_BYTES: Final = 16


class CompositeRole(Enum):
    """What a member of an overlay is, by its wire value."""

    CORRECTION = 0
    BASE = 1


@dataclass(frozen=True, slots=True, init=False)
class Shard:
    """Where a tensor stands in a larger one.

    Args:
        parent_shape: The shape of the larger tensor.
        shard_offset: The index of the larger tensor at which this one begins.

    Raises:
        InvalidDescriptorError: The two are of different lengths, or an entry is negative.
        FieldTypeError: An entry is no integer.
    """

    parent_shape: Shape
    shard_offset: tuple[int, ...]

    def __init__(self, parent_shape: Sequence[int | None], shard_offset: Sequence[int]) -> None:
        parent = checked_shape(parent_shape, "The parent's shape")
        offset = checked_uints(shard_offset, U64_MAX, "the entries of shard_offset")
        if len(parent) != len(offset):
            sentence = (
                f"The shard_offset must have {len(parent)} entries, as the parent's shape has, "
                f"not {len(offset)}"
            )
            raise InvalidDescriptorError(sentence, found=len(offset))
        object.__setattr__(self, "parent_shape", parent)
        object.__setattr__(self, "shard_offset", offset)

    def check(self, shape: Shape) -> None:
        """Refuse a tensor that reaches beyond the larger one.

        Raises:
            InvalidDescriptorError: It does, or is of another rank; offsets count from the section's
                first byte.
        """
        rank = len(self.parent_shape)
        if rank != len(shape):
            sentence = f"The rank of a shard's parent must be {len(shape)}, not {rank}"
            raise InvalidDescriptorError(sentence, offset=0, found=rank)
        for axis, (parent, begin, extent) in enumerate(
            zip(self.parent_shape, self.shard_offset, shape, strict=True)
        ):
            if parent is not None and (extent is None or begin + extent > parent):
                sentence = (
                    f"Along axis {axis}, a shard must end within its parent's {parent}, not begin "
                    f"at {begin} with an extent of {spell((extent,))[1:-1]}"
                )
                raise InvalidDescriptorError(sentence, offset=8 * (rank + axis), found=begin)


@dataclass(frozen=True, slots=True)
class _Statistic:
    """One value: where it stands, how it is packed, and which bit says that it is there."""

    name: str
    at: int
    form: Struct
    bit: int


_U64, _F64, _U8 = Struct("<Q"), Struct("<d"), Struct("<B")
_AT_MASK, _AT_RESERVED, _AT_RESERVED_END = 0, 4, 68
_AT_FLAGS = (66, 67)
_NOTHING = bytes(4)
_MASK = Struct("<II")
_KNOWN_BITS = 0x3F

# fmt: off
_VALUES: Final = (
    #          name              at  form  bit
    _Statistic("nnz",             8, _U64, 0),
    _Statistic("sparsity_ratio", 16, _F64, 1),
    _Statistic("value_min",      24, _F64, 2),
    _Statistic("value_max",      32, _F64, 2),
    _Statistic("value_abs_max",  40, _F64, 2),
    _Statistic("value_mean",     48, _F64, 3),
    _Statistic("value_stddev",   56, _F64, 3),
    _Statistic("nm_n",           64, _U8,  4),
    _Statistic("nm_m",           65, _U8,  4),
    _Statistic("has_nan",        66, _U8,  5),
    _Statistic("has_inf",        67, _U8,  5),
)
# fmt: on
_VALUE_OF = {value.name: value for value in _VALUES}


class Statistics:
    """What was computed of a tensor's values; advice, which nobody checks.

    Values that share a bit on the wire, such as `value_min`, `value_max` and `value_abs_max`, are
    given together or not at all. What is not given reads as None.

    Args:
        given: `nnz`, `sparsity_ratio`, `value_min`, `value_max`, `value_abs_max`, `value_mean`,
            `value_stddev`, `nm_n`, `nm_m`, `has_nan`, `has_inf`.

    Raises:
        InvalidDescriptorError: A value lacks its partner or does not fit its field.
        FieldTypeError: A value is of the wrong type, or there is no such value.
    """

    __slots__ = ("_section",)
    _section: bytes
    names: ClassVar[tuple[str, ...]] = tuple(_VALUE_OF)

    def __init__(self, **given: float | None) -> None:
        present = {name: value for name, value in given.items() if value is not None}
        unknown = sorted(given.keys() - _VALUE_OF.keys())
        if unknown:
            sentence = f"A statistic must be one of {', '.join(_VALUE_OF)}, not {unknown[0]!r}"
            raise FieldTypeError(sentence)
        bits = {_VALUE_OF[name].bit for name in present}
        for value in _VALUES:
            if value.bit in bits and value.name not in present:
                partners = [v.name for v in _VALUES if v.bit == value.bit and v is not value]
                sentence = (
                    f"{value.name} must be given where {' or '.join(partners)} is: they share a bit"
                )
                raise InvalidDescriptorError(sentence, found=None)
        section = bytearray(STATISTICS_BYTES)
        _MASK.pack_into(section, _AT_MASK, sum(1 << bit for bit in bits), 0)
        for name, value in present.items():
            field = _VALUE_OF[name]
            field.form.pack_into(section, field.at, _packable(field, value))
        self._section = bytes(section)

    @classmethod
    def from_section(cls, section: bytes) -> Statistics:
        """Return what the 72 bytes of a section say.

        Raises:
            InvalidDescriptorError: They break a rule; offsets count from the section's first byte.
        """
        mask, reserved = _MASK.unpack_from(section)
        if mask > _KNOWN_BITS:
            sentence = f"The mask of the statistics must have no bits above 5, not be 0x{mask:08X}"
            raise InvalidDescriptorError(sentence, offset=_AT_MASK, found=mask)
        if reserved or section[_AT_RESERVED_END:] != _NOTHING:
            at = _AT_RESERVED if reserved else _AT_RESERVED_END
            found = section[at : at + len(_NOTHING)]
            sentence = f"Reserved bytes of the statistics must be 0, not 0x{found.hex().upper()}"
            raise InvalidDescriptorError(sentence, offset=at, found=found)
        for at in _AT_FLAGS:
            if section[at] > 1:
                sentence = f"A flag of the statistics must be 0 or 1, not {section[at]}"
                raise InvalidDescriptorError(sentence, offset=at, found=section[at])
        made = cls.__new__(cls)
        object.__setattr__(made, "_section", section)
        return made

    def encode(self) -> bytes:
        """Return the 72 bytes of the section."""
        return self._section

    @property
    def computed_mask(self) -> int:
        """Which groups of values are there, a bit each."""
        return _MASK.unpack_from(self._section)[0]

    def get(self, name: str) -> float | bool | None:
        """Return a value by name, or None where it was not computed.

        Raises:
            FieldTypeError: There is no such value.
        """
        if name not in _VALUE_OF:
            sentence = f"A statistic must be one of {', '.join(_VALUE_OF)}, not {name!r}"
            raise FieldTypeError(sentence)
        field = _VALUE_OF[name]
        if not self.computed_mask >> field.bit & 1:
            return None
        (value,) = field.form.unpack_from(self._section, field.at)
        return bool(value) if field.at in _AT_FLAGS else value

    def __getattr__(self, name: str) -> float | bool | None:
        if name not in _VALUE_OF:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        return self.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statistics) and self._section == other._section

    def __hash__(self) -> int:
        return hash(self._section)

    def __repr__(self) -> str:
        given = {name: self.get(name) for name in _VALUE_OF}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Statistics({shown})"


def _packable(field: _Statistic, value: Any) -> Any:
    what = f"The statistic {field.name}"
    if field.form is _F64:
        if not isinstance(value, int | float):
            sentence = f"{what} must be a number, not {value!r}"
            raise FieldTypeError(sentence)
        return float(value)
    largest = 1 if field.at in _AT_FLAGS else (1 << 8 * field.form.size) - 1
    return checked_uint(value, largest, what)


def shard_bytes(shard: Shard) -> bytes:
    """Return the bytes of a shard section."""
    rank = len(shard.shard_offset)
    parent = (U64_MAX if extent is None else extent for extent in shard.parent_shape)
    return _words(rank).pack(*parent, *shard.shard_offset)


@lru_cache(maxsize=1024)
def decode_shard(section: bytes, rank: int) -> Shard:
    """Return what a shard section of `16 * rank` bytes says."""
    words = _words(rank).unpack(section)
    parent = tuple(None if word == U64_MAX else word for word in words[:rank])
    return Shard(parent, words[rank:])


def role_bytes(role: CompositeRole) -> bytes:
    """Return the 16 bytes of a composite member section."""
    return bytes((role.value,)).ljust(COMPOSITE_BYTES, b"\0")


def decode_role(section: bytes) -> CompositeRole:
    """Return what the 16 bytes of a composite member section say.

    Raises:
        InvalidDescriptorError: They break a rule; offsets count from the section's first byte.
    """
    if section[0] >= len(CompositeRole):
        sentence = f"The role of a composite's member must be 0 or 1, not {section[0]}"
        raise InvalidDescriptorError(sentence, offset=0, found=section[0])
    if any(section[1:]):
        found = section[1:].hex().upper()
        sentence = f"Reserved bytes of a composite's member must be 0, not 0x{found}"
        raise InvalidDescriptorError(sentence, offset=1, found=section[1:])
    return CompositeRole(section[0])


@lru_cache(maxsize=128)
def _words(rank: int) -> Struct:
    return Struct(f"<{2 * rank}Q")
