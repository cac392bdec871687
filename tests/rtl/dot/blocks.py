"""Blocks without a clock, compiled by Verilator and run over arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from scalebox.rtl.cosim.library import shared_library
from scalebox.rtl.dot.decode import LineDecode
from scalebox.rtl.dot.multiply import Multiply, Specials
from scalebox.rtl.dot.shapes import LANES, SHIFTED_LANES
from scalebox.rtl.emit import to_verilog

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from scalebox.rtl.emit.convert import Circuit


class VerilatedBlock:
    """A component whose ports have at most 64 bits each.

    Args:
        name: Name of its module.
        component: The block.
    """

    def __init__(self, name: str, component: Circuit) -> None:
        members = component.signature.members
        self._inputs = [port for port, member in members.items() if member.flow is In]
        self._outputs = [port for port, member in members.items() if member.flow is Out]
        drive = "\n".join(
            f"    model.{port} = in[{place}][n];" for place, port in enumerate(self._inputs)
        )
        keep = "\n".join(
            f"    out[{place}][n] = model.{port};" for place, port in enumerate(self._outputs)
        )
        source = f"""\
#include <cstddef>
#include <cstdint>
#include "V{name}.h"
#include "verilated.h"

extern "C" void run(size_t count, const uint64_t* const* in, uint64_t* const* out) {{
  VerilatedContext context;
  V{name} model{{&context}};
  for (size_t n = 0; n < count; ++n) {{
{drive}
    model.eval();
{keep}
  }}
  model.final();
}}
"""
        text = to_verilog(component, name=name)
        self._run = shared_library(name, {f"{name}.v": text}, source).run
        self._run.restype = None

    def __call__(self, **inputs: npt.ArrayLike) -> Mapping[str, npt.NDArray[np.uint64]]:
        """Return what every output is for every entry of the inputs, which broadcast."""
        arrays = np.broadcast_arrays(*(np.asarray(inputs[port]) for port in self._inputs))
        given = [np.ascontiguousarray(array).reshape(-1).astype(np.uint64) for array in arrays]
        found = [np.empty_like(given[0]) for _ in self._outputs]
        self._run(ctypes.c_size_t(given[0].size), _pointers(given), _pointers(found))
        shape = arrays[0].shape
        return {port: each.reshape(shape) for port, each in zip(self._outputs, found, strict=True)}


def _pointers(arrays: list[npt.NDArray[np.uint64]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


class PairInEveryLane(wiring.Component):
    """Multiply lines that hold one pair of elements everywhere.

    Attributes:
        a: Code of the left element, in every place of its line; of 4 bits twice in a byte.
        b: The same of the right one.
        a_type: Its `ElementType`.
        b_type: The same.
        sign: What lane 0 answers, and so on.
        same: Whether every lane that the format uses answers the same.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(8),
                "b": In(8),
                "a_type": In(2),
                "b_type": In(2),
                "sign": Out(1),
                "product": Out(8),
                "shift": Out(6),
                "exponent": Out(16),
                "is_nan": Out(1),
                "is_infinity": Out(1),
                "infinity_sign": Out(1),
                "same": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.multiply = multiply = Multiply()
        m.submodules.specials = specials = Specials()
        for code, kind, side in ((self.a, self.a_type, "a"), (self.b, self.b_type, "b")):
            m.submodules[f"decode_{side}"] = decode = LineDecode()
            m.d.comb += decode.line.eq(code.replicate(32))
            m.d.comb += decode.element_type.eq(kind)
            for part in (multiply, specials):
                m.d.comb += getattr(part, side).eq(decode.operand)
        m.d.comb += self.sign.eq(multiply.sign[0])
        m.d.comb += self.product.eq(multiply.product[0])
        m.d.comb += self.shift.eq(multiply.shift[0])
        m.d.comb += self.exponent.eq(multiply.exponent[0])
        m.d.comb += self.is_nan.eq(specials.is_nan[0])
        m.d.comb += self.is_infinity.eq(specials.is_infinity)
        m.d.comb += self.infinity_sign.eq(specials.infinity_sign)
        same = multiply.exponent[0] == multiply.exponent[1]
        for lane in range(LANES):
            equal = multiply.product[lane] == multiply.product[0]
            equal &= multiply.sign[lane] == multiply.sign[0]
            if lane < SHIFTED_LANES:
                same &= equal & (multiply.shift[lane] == multiply.shift[0])
            else:
                # 8-bit elements leave these lanes zero.
                same &= equal | (~self.a_type[1] & ~multiply.product[lane].any())
        m.d.comb += self.same.eq(same)
        return m
