"""How many cycles a second the Verilated cube does, and how many its processing elements alone.

Seconds are those of the processor, so that other work beside it does not count.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...codegen.isa.vocabulary import ElementType, MadInit
from ...ir.dtypes.boxes import BOX_ROWS, GROUP
from ..cube.bare import BareArray, BareRow
from ..cube.verilog import part_modules
from ..dot.formats import ELEMENTS
from ..dot.shapes import GROUPS, LANES, OPERAND, SHIFTED_LANES
from ..emit import to_verilog
from .cube import RtlCube
from .library import shared_library

__all__ = ["bare_array_rate", "cube_rate"]

_TOP: Final = "bare_array"
_SETS: Final = 16
_SHAPE: Final = (64, 1024, 64)

_HARNESS: Final = f"""\
#include <cstdint>
#include <cstring>
#include "V{_TOP}.h"
#include "verilated.h"

extern "C" uint32_t run(const uint8_t* operands, int64_t sets, int64_t cycles) {{
  VerilatedContext context;
  V{_TOP} model{{&context}};
  const int64_t bytes = sizeof(model.a);
  for (int64_t cycle = 0; cycle < cycles; ++cycle) {{
    std::memcpy(&model.a, operands + cycle % sets * bytes, bytes);
    std::memcpy(&model.b, operands + (cycle + 1) % sets * bytes, bytes);
    model.clk = 0;
    model.eval();
    model.clk = 1;
    model.eval();
  }}
  const uint32_t sum = model.o;
  model.final();
  return sum;
}}
"""


@dataclass(frozen=True)
class _Tile:
    a: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    a_scales: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    b: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    b_scales: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    a_type: ElementType
    b_type: ElementType
    start: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    init: MadInit
    addresses: tuple[int, int, int, int] = (0, 0, 0, 0)


def cube_rate(*, seconds: float = 1.0) -> float:
    """Return cycles a second of the Verilated cube, on 8-bit mads with random codes.

    Packing and unpacking of the operands is part of the time, as in a run.

    Args:
        seconds: How long to measure, at least; a build comes on top, once.

    Raises:
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    rng, (m, k, n) = np.random.default_rng(0), _SHAPE

    def codes(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        return rng.integers(0, 0x78, shape).astype(np.uint8)

    tile = _Tile(
        codes(m, k),
        codes(m, k // GROUP),
        codes(k, n),
        codes(k // GROUP, n),
        ElementType.E4M3,
        ElementType.E4M3,
        np.zeros((m, n), np.float32),
        MadInit.ACC,
    )
    cube = RtlCube()
    cube.multiply(tile)
    done, began = len(cube.mads), time.process_time()
    while time.process_time() - began < seconds:
        cube.multiply(tile)
    taken = time.process_time() - began
    return sum(mad.cycles for mad in cube.mads[done:]) / taken


def _operands(rng: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """Return 16 operands such as a decoder makes of finite E4M3 codes, one behind another."""
    element, value = ELEMENTS[ElementType.E4M3], 0
    for row in range(BOX_ROWS):
        significands = rng.integers(element.largest_significand + 1, size=SHIFTED_LANES)
        shifts = rng.integers(element.largest_shift + 1, size=SHIFTED_LANES)
        operand = {
            "sign": int(rng.integers(1 << SHIFTED_LANES)),
            "significand": [*significands.tolist(), *[0] * (LANES - SHIFTED_LANES)],
            "shift": shifts.tolist(),
            "exponent": [element.unit_exponent] * GROUPS,
        }
        value |= OPERAND.const(operand).as_value().value << (OPERAND.size * row)
    words = -(-OPERAND.size * BOX_ROWS // 32)
    return np.frombuffer(value.to_bytes(words * 4, "little"), np.uint32)


def bare_array_rate(*, seconds: float = 1.0) -> float:
    """Return cycles a second of 16 x 16 Verilated processing elements with random operands.

    They are of 8 bits and finite, as those of :func:`cube_rate`.

    Args:
        seconds: How long to measure, at least; a build comes on top, once.

    Raises:
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    modules = {
        _TOP: to_verilog(BareArray(), name=_TOP),
        "bare_row": to_verilog(BareRow(), name="bare_row"),
        "dot_core": part_modules()["dot_core"],
    }
    files = {f"{name}.v": text for name, text in modules.items()}
    library = shared_library(_TOP, files, _HARNESS, blocks=("bare_row", "dot_core"))
    library.run.restype = ctypes.c_uint32
    rng = np.random.default_rng(0)
    operands = np.array([_operands(rng) for _ in range(_SETS)])
    cycles, taken = 256, 0.0
    while taken < seconds:
        cycles *= 2
        began = time.process_time()
        library.run(
            ctypes.c_void_p(operands.ctypes.data), ctypes.c_int64(_SETS), ctypes.c_int64(cycles)
        )
        taken = time.process_time() - began
    return cycles / taken
