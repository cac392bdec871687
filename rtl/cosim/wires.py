"""The wires of the scale-decode unit as arrays, an entry a cycle.

A trace of the unit is a mapping of names to arrays: of every stream its `valid` and `ready`, and an
array for each field of its word, `<stream>_<field>`. The streams and the fields come from
`codegen.isa.scale_unit`; what stands here is how each field lies in the word on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import HALF, RECORD, REQUEST, START
from ...ir.dtypes.boxes import BOX_GROUPS
from ...ir.errors import IRTypeError, IRValueError
from ..shapes import CODE, COMBINED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from ...codegen.isa.scale_unit import Field

__all__ = ["BEATS", "REQUESTS", "RESET", "Flow", "Wire", "checked", "flows", "inputs", "outputs"]

REQUESTS: Final = ("a_request", "b_request")
BEATS: Final = ("a", "b")

_PACKED_AT_ONCE: Final = 1 << 14

RESET: Final = "reset"
"""Name of the array that says in which cycles the unit is reset; a trace without it has no reset."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A field of a word, or a single wire of a handshake.

    Attributes:
        name: Of its array in a trace.
        bits: Width of an entry.
        signed: Whether an entry is in two's complement.
        offset: Lowest bit of the first entry in the word.
        shape: Entries a cycle; `()` for a plain number.
        strides: Bits from one entry to the next along each axis of `shape`.
    """

    name: str
    bits: int
    signed: bool = False
    offset: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its array."""
        if self.bits == 1:
            return np.dtype(np.bool_)
        kind, size = "i" if self.signed else "u", 1 if self.bits <= 8 else 2
        return np.dtype(f"{kind}{size}")

    def offsets(self) -> npt.NDArray[np.intp]:
        """Return the lowest bit of every entry, in the shape of the entries."""
        lowest = np.full(self.shape, self.offset, dtype=np.intp)
        for axis, (count, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            steps = np.arange(count) * stride
            lowest += steps.reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return lowest


@dataclass(frozen=True)
class Flow:
    """A stream of the unit and its word.

    Attributes:
        name: Of its port.
        is_input: Whether words flow into the unit; its `ready` flows the other way.
        fields: What its word consists of, in order.
    """

    name: str
    is_input: bool
    fields: tuple[Wire, ...]

    @cached_property
    def bits(self) -> int:
        """Width of its word."""
        return sum(wire.bits * prod(wire.shape) for wire in self.fields)

    @property
    def valid(self) -> Wire:
        """The wire that says that a word is on offer."""
        return Wire(f"{self.name}_valid", 1)

    @property
    def ready(self) -> Wire:
        """The wire that says that a word would be taken."""
        return Wire(f"{self.name}_ready", 1)

    def pack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> list[int]:
        """Return the words that arrays of its fields make, one an entry of the first axis."""
        counts = {len(arrays[wire.name]) for wire in self.fields}
        assert len(counts) == 1, (
            f"the fields of {self.name} must cover the same cycles, not {counts}"
        )
        words: list[int] = []
        for start in range(0, counts.pop(), _PACKED_AT_ONCE):
            part = slice(start, start + _PACKED_AT_ONCE)
            words += self._pack({wire.name: arrays[wire.name][part] for wire in self.fields})
        return words

    def _pack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> list[int]:
        count = len(arrays[self.fields[0].name])
        bits = np.zeros((count, self.bits), dtype=np.uint8)
        for wire in self.fields:
            entries = arrays[wire.name].reshape(count, -1).astype(np.int64)
            for column, lowest in enumerate(wire.offsets().reshape(-1)):
                for bit in range(wire.bits):
                    bits[:, lowest + bit] = (entries[:, column] >> bit) & 1
        packed = np.packbits(bits, axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]

    def unpack(self, word: int) -> dict[str, npt.NDArray[Any]]:
        """Return the entries of every field of a word, by the names of their arrays."""
        return {wire.name: _entries(wire, word) for wire in self.fields}


def _entries(wire: Wire, word: int) -> npt.NDArray[Any]:
    mask, sign = (1 << wire.bits) - 1, 1 << (wire.bits - 1) if wire.signed else 0
    offsets = wire.offsets()
    entries = [(((word >> int(lowest)) & mask) ^ sign) - sign for lowest in offsets.reshape(-1)]
    return np.array(entries, dtype=wire.dtype).reshape(wire.shape)


def flows(beat_bytes: int, *, combined: bool = False) -> tuple[Flow, ...]:
    """Return the streams of a unit, in the order in which a comparison looks at them.

    Args:
        beat_bytes: Bytes of a beat.
        combined: Whether the records carry combined exponents.
    """
    records = [*_fields("o", RECORD)]
    records += _fields("o", HALF, times=BOX_GROUPS, offset=_bits(RECORD))
    if combined:
        before = _bits(RECORD) + BOX_GROUPS * _bits(HALF)
        records += _fields("o_combined", COMBINED, times=BOX_GROUPS, offset=before)
    codes = [Wire(name, CODE.width, False, 0, (beat_bytes,), (CODE.width,)) for name in BEATS]
    return (
        Flow("start", is_input=True, fields=tuple(_fields("start", START))),
        *(Flow(name, is_input=False, fields=tuple(_fields(name, REQUEST))) for name in REQUESTS),
        *(Flow(wire.name, is_input=True, fields=(wire,)) for wire in codes),
        Flow("o", is_input=False, fields=tuple(records)),
    )


def _bits(fields: Iterable[Field]) -> int:
    return sum(field.bits * field.count for field in fields)


def _fields(
    prefix: str, fields: Iterable[Field], *, times: int | None = None, offset: int = 0
) -> Iterator[Wire]:
    """Yield the wires of a word, or of so many of its kind in a row."""
    fields = tuple(fields)
    for field in fields:
        shape, strides = ((), ()) if times is None else ((times,), (_bits(fields),))
        if field.count > 1:
            shape, strides = (*shape, field.count), (*strides, field.bits)
        yield Wire(f"{prefix}_{field.name}", field.bits, field.signed, offset, shape, strides)
        offset += field.bits * field.count


def inputs(streams: Iterable[Flow]) -> list[Wire]:
    """Return the wires that flow into the unit, without its reset."""
    found: list[Wire] = []
    for flow in streams:
        found += [flow.valid, *flow.fields] if flow.is_input else [flow.ready]
    return found


def outputs(streams: Iterable[Flow]) -> list[Wire]:
    """Return the wires that flow out of the unit, in the order of comparison."""
    found: list[Wire] = []
    for flow in streams:
        found += [flow.ready] if flow.is_input else [flow.valid, *flow.fields]
    return found


def checked(
    trace: Mapping[str, npt.ArrayLike], wires: Iterable[Wire], *, cycles: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of some wires, contiguous and of the types that the wires have.

    Args:
        trace: Arrays by name, an entry a cycle; what belongs to no wire is left out.
        wires: Which arrays must be there. That of :data:`RESET` may always be absent, or present.
        cycles: How many cycles the arrays must cover; as many as the first, if not given.

    Raises:
        IRTypeError: If an array is not of integers or truth values.
        IRValueError: If an array is absent, has another shape, or an entry that its wire cannot
            carry.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for wire in (*wires, Wire(RESET, 1)):
        if wire.name not in trace:
            if wire.name == RESET and cycles is not None:
                found[RESET] = np.zeros(cycles, dtype=np.bool_)
                continue
            message = (
                f"A trace of the unit must hold an array {wire.name!r}, not only {sorted(trace)}"
            )
            raise IRValueError(message)
        array = np.asarray(trace[wire.name])
        if cycles is None:
            cycles = len(array) if array.ndim else 0
        if array.shape != (cycles, *wire.shape):
            message = (
                f"The trace's array {wire.name!r} must have the shape {(cycles, *wire.shape)}, "
                f"not {array.shape}"
            )
            raise IRValueError(message)
        found[wire.name] = _fitted(array, wire)
    return found


def _fitted(array: npt.NDArray[Any], wire: Wire) -> npt.NDArray[Any]:
    if array.dtype.kind not in "biu":
        message = f"The trace's array {wire.name!r} must hold integers, not {array.dtype}"
        raise IRTypeError(message)
    least = -(1 << (wire.bits - 1)) if wire.signed else 0
    most = least + (1 << wire.bits) - 1
    whole = array.dtype == wire.dtype and wire.bits in (1, 8 * wire.dtype.itemsize)
    if not whole and array.size and (array.min() < least or array.max() > most):
        message = (
            f"The trace's array {wire.name!r} must lie within {least} to {most}, "
            f"not {array.min()} to {array.max()}"
        )
        raise IRValueError(message)
    return np.ascontiguousarray(array, dtype=wire.dtype)
