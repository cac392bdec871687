"""The scale-decode unit as Verilator compiles it, run on whole arrays by one call.

The C++ around the model is written from the table of wires: each cycle it puts the entries of the
input arrays on the wires, reads every output wire, and then either keeps what it read or holds it
against what was expected.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from ..emit import verilog
from .library import shared_library
from .wires import RESET, checked, flows, inputs, outputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from .wires import Flow, Wire

__all__ = ["TOP", "VerilatedUnit"]

TOP: Final = "scale_decode"
"""Name of the unit and of its top module."""

_SEPARATOR: Final = "___05F"
"""How Verilator spells the two underscores of a port."""

_C_TYPES: Final = {"bool": "uint8_t", "uint8": "uint8_t", "uint16": "uint16_t", "int16": "int16_t"}

_FRAME: Final = """\
#include <cstddef>
#include <cstdint>
#include <cstring>
#include "V{top}.h"
#include "verilated.h"

namespace {{

struct Unit {{
  VerilatedContext context;
  V{top} model{{&context}};
}};

// A word on the wires as 32-bit pieces, with one piece more so that any field can be read at once.
template <size_t kPieces, typename Port>
void copy_from(uint32_t (&pieces)[kPieces], const Port& port) {{
  static_assert(sizeof(port) < sizeof(pieces), "a piece must stay free");
  std::memcpy(pieces, &port, sizeof(port));
}}

template <int kBits, bool kSigned>
int32_t field(const uint32_t* pieces, int offset) {{
  uint64_t two;
  std::memcpy(&two, pieces + (offset >> 5), sizeof(two));
  const auto raised = static_cast<uint32_t>(two >> (offset & 31)) << (32 - kBits);
  return kSigned ? static_cast<int32_t>(raised) >> (32 - kBits)
                 : static_cast<int32_t>(raised >> (32 - kBits));
}}

}}  // namespace

extern "C" void* create() {{
  return new Unit;
}}

extern "C" void destroy(void* handle) {{
  auto* unit = static_cast<Unit*>(handle);
  unit->model.final();
  delete unit;
}}

// Return the first cycle that differs, or `count`. Without `expected`, keep every cycle in `found`;
// with it, `found` has room for one cycle.
extern "C" size_t run(void* handle, size_t count, const void* const* in,
                      const void* const* expected, void* const* found) {{
  V{top}& model = static_cast<Unit*>(handle)->model;
  for (size_t cycle = 0; cycle < count; ++cycle) {{
    const size_t kept = expected ? 0 : cycle;
{drive}
    model.clk = 0;
    model.eval();
    bool same = true;
{observe}
    if (!same) return cycle;
    model.clk = 1;
    model.eval();
  }}
  return count;
}}
"""


class VerilatedUnit:
    """A unit in the state that its past cycles left it in, freshly reset at first.

    Args:
        beat_bytes: Bytes of a beat.
        combined: Whether the records carry combined exponents.

    Raises:
        IRValueError: If a beat cannot have so many bytes.
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """

    def __init__(self, *, beat_bytes: int, combined: bool = False) -> None:
        text = verilog(TOP, beat_bytes=beat_bytes, combined=combined)
        streams = flows(beat_bytes, combined=combined)
        self._inputs, self._outputs = inputs(streams), outputs(streams)
        self._library = shared_library(TOP, {f"{TOP}.v": text}, _source(streams))
        self._library.create.restype = ctypes.c_void_p
        self._library.run.restype = ctypes.c_size_t
        self._library.destroy.restype = None
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p(self._library.create())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the model's memory back; nothing can be run afterwards."""
        if self._handle is not None:
            self._library.destroy(self._handle)
            self._handle = None

    def record(self, trace: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray[Any]]:
        """Run some cycles, and return what stood on every output wire.

        Args:
            trace: An array for each input wire, an entry a cycle.

        Returns:
            An array for each output wire; entries of a word that was not on offer are zero.

        Raises:
            IRTypeError: If an array is not of integers.
            IRValueError: If an array is absent, has another shape, or does not fit its wire.
        """
        given = checked(trace, self._inputs)
        cycles = len(next(iter(given.values())))
        found = {
            wire.name: np.zeros((cycles, *wire.shape), dtype=wire.dtype) for wire in self._outputs
        }
        self._run(given, None, found)
        return found

    def compare(
        self, trace: Mapping[str, npt.ArrayLike]
    ) -> tuple[int, dict[str, npt.NDArray[Any]]] | None:
        """Run some cycles, and hold every output wire against what the trace says of it.

        The words of streams are compared in the cycles in which they are on offer.

        Args:
            trace: An array for each input and each output wire, an entry a cycle.

        Returns:
            None if nothing differs. Else the first cycle that does, counted from the first of this
            trace, and the entries of every output wire in it; the unit stops there.

        Raises:
            IRTypeError: If an array is not of integers.
            IRValueError: If an array is absent, has another shape, or does not fit its wire.
        """
        given = checked(trace, self._inputs)
        cycles = len(next(iter(given.values())))
        expected = checked(trace, self._outputs, cycles=cycles)
        found = {wire.name: np.zeros((1, *wire.shape), dtype=wire.dtype) for wire in self._outputs}
        at = self._run(given, expected, found)
        return None if at == cycles else (at, {name: array[0] for name, array in found.items()})

    def _run(
        self,
        given: Mapping[str, npt.NDArray[Any]],
        expected: Mapping[str, npt.NDArray[Any]] | None,
        found: Mapping[str, npt.NDArray[Any]],
    ) -> int:
        assert self._handle is not None, "a closed unit cannot run"
        names = [wire.name for wire in self._outputs]
        return self._library.run(
            self._handle,
            ctypes.c_size_t(len(given[RESET])),
            _pointers(given[name] for name in (*(wire.name for wire in self._inputs), RESET)),
            None if expected is None else _pointers(expected[name] for name in names),
            _pointers(found[name] for name in names),
        )


def _pointers(arrays: Iterator[npt.NDArray[Any]]) -> ctypes.Array[ctypes.c_void_p]:
    addresses = [array.ctypes.data for array in arrays]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _source(streams: Sequence[Flow]) -> str:
    """Return the C++ around the model, from the same tables as the arrays."""
    places = {wire.name: place for place, wire in enumerate(inputs(streams))}
    drive = [f"model.rst = static_cast<const uint8_t*>(in[{len(places)}])[cycle];"]
    observe: list[str] = []
    places |= {wire.name: place for place, wire in enumerate(outputs(streams))}
    for flow in streams:
        given, answered = (flow.valid, flow.ready) if flow.is_input else (flow.ready, flow.valid)
        drive.append(f"{_port(given)} = {_entry('in', places[given.name], given)};")
        if flow.is_input:
            drive += _word_onto_wires(flow, places)
        observe += _observed(answered, places[answered.name], _port(answered))
        if not flow.is_input:
            observe += _word_from_wires(flow, places)
    return _FRAME.format(
        top=TOP,
        drive="\n".join(f"    {line}" for line in drive),
        observe="\n".join(f"    {line}" for line in observe),
    )


def _port(wire: Wire) -> str:
    """Return the C++ name of a handshake's wire."""
    stream, _, role = wire.name.rpartition("_")
    return f"model.{stream}{_SEPARATOR}{role}"


def _entry(arrays: str, place: int, wire: Wire) -> str:
    """Return the C++ of a plain wire's entry of this cycle."""
    return f"static_cast<const {_C_TYPES[wire.dtype.name]}*>({arrays}[{place}])[cycle]"


def _word_onto_wires(flow: Flow, places: Mapping[str, int]) -> list[str]:
    payload = f"model.{flow.name}{_SEPARATOR}payload"
    first = flow.fields[0]
    if first.shape:
        assert len(flow.fields) == 1, "an array of bytes is the whole word"
        size = flow.bits // 8
        source = f"static_cast<const uint8_t*>(in[{places[first.name]}]) + cycle * {size}"
        return [f"std::memcpy(&{payload}, {source}, {size});"]
    parts = [
        f"static_cast<uint32_t>({_entry('in', places[wire.name], wire)}) << {wire.offset}"
        for wire in flow.fields
    ]
    return [f"{payload} = {' | '.join(parts)};"]


def _observed(wire: Wire, place: int, port: str) -> list[str]:
    return [
        f"static_cast<uint8_t*>(found[{place}])[kept] = {port};",
        f"if (expected) same &= {port} == {_entry('expected', place, wire)};",
    ]


def _word_from_wires(flow: Flow, places: Mapping[str, int]) -> list[str]:
    lines = [
        f"if ({_port(flow.valid)}) {{",
        f"  uint32_t pieces[{-(-flow.bits // 32) + 1}] = {{}};",
        f"  copy_from(pieces, model.{flow.name}{_SEPARATOR}payload);",
    ]
    for wire in flow.fields:
        place, kind, entries = places[wire.name], _C_TYPES[wire.dtype.name], prod(wire.shape)
        indices = [f"i{axis}" for axis in range(len(wire.shape))]
        loops = [
            f"for (int {index} = 0; {index} < {count}; ++{index})"
            for index, count in zip(indices, wire.shape, strict=True)
        ]
        steps = [f"{index} * {stride}" for index, stride in zip(indices, wire.strides, strict=True)]
        offset = " + ".join((str(wire.offset), *steps))
        signed = str(wire.signed).lower()
        lines += [
            "  {",
            f"    auto* to = static_cast<{kind}*>(found[{place}]) + kept * {entries};",
            "    auto* next = to;",
            f"    {' '.join(loops)} *next++ = field<{wire.bits}, {signed}>(pieces, {offset});",
            "    if (expected) {",
            f"      auto* right = static_cast<const {kind}*>(expected[{place}]) + cycle * {entries};",
            f"      same &= std::memcmp(to, right, {entries} * sizeof({kind})) == 0;",
            "    }",
            "  }",
        ]
    return [*lines, "}"]
