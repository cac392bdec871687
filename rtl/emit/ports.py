"""What stands at the ports of a unit, read off the unit itself.

A **stream** has the wires `<name>__payload`, `<name>__valid` and `<name>__ready`; a **memory port**
has `<name>__enable`, `<name>__address` and the like; any other port is a plain **wire**. A word on
them consists of fields, each a number or a grid of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Field", "Kind", "Port", "ports"]


class Kind(Enum):
    """How a port passes words on."""

    STREAM = "stream"
    """A word passes in a cycle in which both valid and ready are 1."""
    MEMORY = "memory"
    """Words are read or written in cycles in which enable is 1."""
    WIRE = "wire"
    """It carries a word all the time."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a word.

    Attributes:
        name: Its name; empty where the word has no other.
        bits: Width of an entry.
        signed: Whether an entry is in two's complement.
        offset: Lowest bit of the first entry.
        shape: Entries along each axis; empty for a plain number.
        strides: Bits from an entry to the next, along each axis.
    """

    name: str
    bits: int
    signed: bool
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a unit.

    Attributes:
        name: Its name.
        kind: How it passes words on.
        is_input: Whether words flow into the unit. A memory port that is read counts as one.
        fields: What a word consists of; for a memory port, what each of its wires carries.
    """

    name: str
    kind: Kind
    is_input: bool
    fields: tuple[Field, ...]


def ports(component: Any) -> tuple[Port, ...]:
    """Return the ports of a component in the order of its signature, clock and reset left out."""
    members: dict[str, wiring.Member] = dict(component.signature.members)
    return tuple(_port(name, member) for name, member in members.items())


def _port(name: str, member: wiring.Member) -> Port:
    is_input = member.flow is wiring.In
    if member.is_port:
        return Port(name, Kind.WIRE, is_input, tuple(_fields(member.shape)))
    wires: dict[str, wiring.Member] = dict(member.signature.members)
    if {"payload", "valid", "ready"} == wires.keys():
        return Port(name, Kind.STREAM, is_input, tuple(_fields(wires["payload"].shape)))
    fields = tuple(field for wire, each in wires.items() for field in _fields(each.shape, wire))
    return Port(name, Kind.MEMORY, wires["data"].flow is wiring.In, fields)


def _fields(
    shape: Any,
    name: str = "",
    offset: int = 0,
    counts: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Iterator[Field]:
    match shape:
        case data.StructLayout():
            for key, field in shape:
                inner = f"{name}.{key}" if name else str(key)
                yield from _fields(field.shape, inner, offset + field.offset, counts, strides)
        case data.ArrayLayout():
            stride = Shape.cast(shape.elem_shape).width
            counts, strides = (*counts, shape.length), (*strides, stride)
            yield from _fields(shape.elem_shape, name, offset, counts, strides)
        case _:
            plain = Shape.cast(shape)
            yield Field(name, plain.width, plain.signed, offset, counts, strides)
