"""The C++ around the Verilated cube: its memories, its clock, and one function a mad.

The memories belong to the caller, who gives of each the part from some word on that a mad uses. A
read takes what stands at the address when the clock rises and shows it from then on; a write lands
when the clock rises. An address outside of the part ends the mad, so that a wrong one cannot touch
what is not ours.
"""

from __future__ import annotations

from typing import Final

__all__ = ["HARNESS", "OUTSIDE", "STUCK"]

STUCK: Final = -1
"""What a mad returns that does not end within its limit."""

OUTSIDE: Final = -2
"""What a mad returns that asks for a word outside of what it must use."""

HARNESS: Final = f"""\
#include <cstdint>
#include <cstring>
#include "Vcube.h"
#include "verilated.h"

namespace {{

constexpr int kSide = 16;

// All cubes share a context that is never destroyed: their parts, compiled by themselves, belong to
// the context that was made last, whichever cube they are in.
VerilatedContext* shared_context() {{
  static VerilatedContext* const context = new VerilatedContext;
  return context;
}}

struct Cube {{
  Vcube model{{shared_context()}};
}};

void edge(Vcube& model) {{
  model.clk = 1;
  model.eval();
  model.clk = 0;
}}

// A part of a memory that is only read, in words of `Port`'s width.
struct Memory {{
  const uint8_t* bytes;
  uint64_t first, words;

  template <typename Port>
  bool read(Port& port, bool enable, uint64_t address) const {{
    if (!enable) return true;
    const uint64_t place = address - first;  // below `first`, beyond everything
    if (place >= words) return false;
    std::memcpy(&port, bytes + place * sizeof(Port), sizeof(Port));
    return true;
  }}
}};

}}  // namespace

extern "C" {{

void* cube_open() {{
  Cube* cube = new Cube;
  Vcube& model = cube->model;
  model.rst = 1;
  for (int cycle = 0; cycle < 2; ++cycle) {{
    model.eval();
    edge(model);
  }}
  model.rst = 0;
  return cube;
}}

void cube_close(void* handle) {{
  Cube* cube = static_cast<Cube*>(handle);
  cube->model.final();
  delete cube;
}}

// Runs one mad; returns its cycles, that in which it is taken and that of its last write included.
int64_t cube_mad(void* handle, const uint32_t* mad, const uint8_t* const* memories,
                 const uint64_t* firsts, const uint64_t* words, uint32_t* l0c, int64_t limit) {{
  Vcube& model = static_cast<Cube*>(handle)->model;
  const Memory l0a{{memories[0], firsts[0], words[0]}};
  const Memory l0b{{memories[1], firsts[1], words[1]}};
  const Memory scale_a{{memories[2], firsts[2], words[2]}};
  const Memory scale_b{{memories[3], firsts[3], words[3]}};
  const Memory bias{{memories[4], firsts[4], words[4]}};
  const Memory accumulator{{reinterpret_cast<const uint8_t*>(l0c), firsts[5], words[5]}};
  std::memcpy(&model.mad___05Fpayload, mad, sizeof(model.mad___05Fpayload));
  model.mad___05Fvalid = 1;
  for (int64_t cycle = 0; cycle < limit; ++cycle) {{
    model.eval();
    const bool taken = model.mad___05Fvalid && model.mad___05Fready;
    const bool done = model.done;
    const bool read_a = model.l0a___05Fenable, read_b = model.l0b___05Fenable;
    const bool read_scale_a = model.scale_a___05Fenable, read_scale_b = model.scale_b___05Fenable;
    const bool read_bias = model.bias___05Fenable, read_c = model.l0c_read___05Fenable;
    const uint64_t at_a = model.l0a___05Faddress, at_b = model.l0b___05Faddress;
    const uint64_t at_scale_a = model.scale_a___05Faddress, at_scale_b = model.scale_b___05Faddress;
    const uint64_t at_bias = model.bias___05Faddress, at_c = model.l0c_read___05Faddress;
    const bool write = model.l0c_write___05Fenable;
    const uint64_t at = model.l0c_write___05Faddress - firsts[5];
    if (write && at >= words[5]) return {OUTSIDE};
    uint32_t* box = l0c + (write ? at : 0) * kSide * kSide;
    for (int row = 0; write && row < kSide; ++row) {{
      if (!(model.l0c_write___05Frows >> row & 1)) continue;
      for (int column = 0; column < kSide; ++column) {{
        if (!(model.l0c_write___05Fcolumns >> column & 1)) continue;
        const int place = row * kSide + column;
        box[place] = model.l0c_write___05Fdata[place];
      }}
    }}
    edge(model);
    if (!(l0a.read(model.l0a___05Fdata, read_a, at_a) &&
          l0b.read(model.l0b___05Fdata, read_b, at_b) &&
          scale_a.read(model.scale_a___05Fdata, read_scale_a, at_scale_a) &&
          scale_b.read(model.scale_b___05Fdata, read_scale_b, at_scale_b) &&
          bias.read(model.bias___05Fdata, read_bias, at_bias) &&
          accumulator.read(model.l0c_read___05Fdata, read_c, at_c))) {{
      return {OUTSIDE};
    }}
    if (taken) model.mad___05Fvalid = 0;
    if (done) return cycle + 1;
  }}
  return {STUCK};
}}

}}  // extern "C"
"""
