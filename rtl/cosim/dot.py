"""Sums of block-scaled products through the generated Verilog of the dot unit.

Operands become steps, one word each, and a loop in C++ feeds them to the Verilated unit as fast as
it takes them, or with random pauses on both sides.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes.boxes import GROUP
from ...ir.errors import IRTypeError, IRValueError
from ..dot.formats import WIDE_BITS, is_legal_pair
from ..dot.shapes import GROUPS, LINE_BITS, STEP
from ..dot.unit import DotUnit
from ..emit import to_verilog
from ..shapes import BIAS, NAN_CODE
from .library import shared_library

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DotRun", "evaluate_dots", "pack_steps", "run_steps"]

_TOP: Final = "dot"
_WORD_BITS: Final = 32
_WORDS: Final = -(-STEP.size // _WORD_BITS)
_SEEDS: Final = range(1, 1 << 63)
"""Seeds that start neither coin of the harness at zero, where it would stay."""

_SOURCE: Final = f"""\
#include <cstddef>
#include <cstdint>
#include <cstring>
#include "V{_TOP}.h"
#include "verilated.h"

namespace {{

// A coin that falls on its head `share` times of 256.
struct Coin {{
  uint64_t state;
  uint32_t share;

  bool toss() {{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 20 & 255) < share;
  }}
}};

}}  // namespace

// Return the cycles until the last sum was taken, or -1 if they exceed `limit`.
extern "C" int64_t run(const uint32_t* steps, int64_t step_count, uint32_t* sums, int64_t sum_count,
                       uint32_t idle, uint32_t stall, uint64_t seed, int64_t limit) {{
  VerilatedContext context;
  V{_TOP} model{{&context}};
  Coin idles{{seed, idle}}, stalls{{~seed, stall}};
  model.rst = 1;
  for (int cycle = 0; cycle < 2; ++cycle) {{
    model.clk = 0;
    model.eval();
    model.clk = 1;
    model.eval();
  }}
  model.rst = 0;
  int64_t step = 0, sum = 0, cycle = 0;
  bool offers = false;
  for (; sum < sum_count; ++cycle) {{
    if (cycle == limit) return -1;
    if (!offers && step < step_count && !idles.toss()) {{
      static_assert(sizeof(model.i___05Fpayload) == {_WORDS} * sizeof(uint32_t));
      std::memcpy(&model.i___05Fpayload, steps + step * {_WORDS}, sizeof(model.i___05Fpayload));
      offers = true;
    }}
    model.i___05Fvalid = offers;
    model.o___05Fready = !stalls.toss();
    model.clk = 0;
    model.eval();
    if (model.i___05Fvalid && model.i___05Fready) {{
      offers = false;
      ++step;
    }}
    if (model.o___05Fvalid && model.o___05Fready) sums[sum++] = model.o___05Fpayload;
    model.clk = 1;
    model.eval();
  }}
  model.final();
  return cycle;
}}
"""


class DotRun(NamedTuple):
    """What came out of the unit.

    Attributes:
        sums: float32, one for each step that is marked last.
        cycles: Clock cycles from the first that offered a step to the one that took the last sum.
    """

    sums: npt.NDArray[np.float32]
    cycles: int


def evaluate_dots(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    *,
    a_type: ElementType,
    b_type: ElementType,
    start: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.float32]:
    """Multiply rows of block-scaled elements pair by pair, on the Verilated dot unit.

    The first call of a version compiles the Verilog, which takes seconds; later ones use that build.

    Args:
        a: Element codes uint8 `[N, K]`, one element a byte; K need not be whole groups.
        a_scales: E8M0 codes uint8 `[N, G]`, a scale for each 32 elements that K begins.
        b: Element codes uint8 `[N, K]`.
        b_scales: E8M0 codes uint8 `[N, G]`.
        a_type: Format of `a`.
        b_type: Format of `b`, of the same width.
        start: float32 `[N]`, what the sums start from; +0 without.

    Returns:
        float32 `[N]`; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: If an array or a format is of another type.
        IRValueError: If shapes do not fit, a code is too large, or the unit does not multiply the
            two formats.
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    steps = pack_steps(a, a_scales, b, b_scales, a_type=a_type, b_type=b_type, start=start)
    return run_steps(steps.reshape(-1, _WORDS)).sums


def pack_steps(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    *,
    a_type: ElementType,
    b_type: ElementType,
    start: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.uint32]:
    """Return the words of the steps that make the sums of `evaluate_dots`, whose arguments these are.

    Returns:
        uint32 `[N, S, W]`: S steps a sum, a `STEP` as W words of 32 bits, the lowest first.

    Raises:
        IRTypeError: If an array or a format is of another type.
        IRValueError: If shapes do not fit, a code is too large, or the unit does not multiply the
            two formats.
    """
    for name, kind in (("a_type", a_type), ("b_type", b_type)):
        _check_kind(name, kind)
    if not is_legal_pair(a_type, b_type):
        message = (
            "a_type and b_type must both have elements of 8 bits, or both of 4, "
            f"not {a_type.name} and {b_type.name}"
        )
        raise IRValueError(message)
    _check("a", a, np.uint8, (None, None))
    count, depth = a.shape
    groups = -(-depth // GROUP)
    _check("b", b, np.uint8, (count, depth))
    _check("a_scales", a_scales, np.uint8, (count, groups))
    _check("b_scales", b_scales, np.uint8, (count, groups))
    begin = np.zeros(count, np.float32) if start is None else start
    _check("start", begin, np.float32, (count,))
    if depth == 0:
        message = "a must have at least one element a row, not 0"
        raise IRValueError(message)

    a_step = LINE_BITS // a_type.bits
    steps = -(-depth // a_step)
    words = np.zeros((count, steps, _WORDS), np.uint32)
    groups_a_step = a_step // GROUP
    for side, codes, scales, kind in (("a", a, a_scales, a_type), ("b", b, b_scales, b_type)):
        _put(words, side, _lines(side, codes, kind, steps))
        _put(words, f"{side}_type", np.uint64(kind))
        padded = np.full((count, steps * groups_a_step), BIAS, np.int64)
        padded[:, :groups] = scales
        for group in range(groups_a_step):
            code = padded[:, group::groups_a_step]
            offset = STEP[f"{side}_scales"].offset
            _put_scale(words, offset, group, code)
    has_second = np.arange(steps) * groups_a_step + 1 < groups
    _put(words, "second", (has_second & (groups_a_step == GROUPS)).astype(np.uint64))
    _put(words, "first", (np.arange(steps) == 0).astype(np.uint64))
    _put(words, "last", (np.arange(steps) == steps - 1).astype(np.uint64))
    _put(words, "start", begin.view(np.uint32).astype(np.uint64)[:, None])
    return words


def run_steps(
    steps: npt.NDArray[np.uint32],
    *,
    idle: float = 0.0,
    stall: float = 0.0,
    seed: int = 1,
) -> DotRun:
    """Feed steps to the Verilated dot unit.

    Args:
        steps: uint32 `[S, W]`, a `STEP` as words of 32 bits, as `pack_steps` makes them. The run ends
            with the sum of the last one that is marked last; those behind it belong to no sum.
        idle: Share of the cycles without a step on offer in which none comes, below 1.
        stall: Share of the cycles in which no sum is taken, below 1.
        seed: What the pauses are drawn from, from 1 to 2^63 - 1.

    Returns:
        The sums and how long they took.

    Raises:
        IRTypeError: If `steps` is of another type.
        IRValueError: If it is of another shape, a share is not from 0 to below 1, or the seed is not
            one of those.
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    _check("steps", steps, np.uint32, (None, _WORDS))
    for name, share in (("idle", idle), ("stall", stall)):
        if not 0.0 <= share < 1.0:
            message = f"{name} must be at least 0 and less than 1, not {share}"
            raise IRValueError(message)
    if seed not in _SEEDS:
        message = f"seed must be an integer from {_SEEDS[0]} to {_SEEDS[-1]}, not {seed}"
        raise IRValueError(message)
    given = np.ascontiguousarray(steps)
    place, bit = divmod(STEP["last"].offset, _WORD_BITS)
    found = np.empty(np.count_nonzero(given[:, place] >> np.uint32(bit) & 1), np.uint32)
    most = (len(given) + 64) * 1024
    cycles = _library().run(
        ctypes.c_void_p(given.ctypes.data),
        ctypes.c_int64(len(given)),
        ctypes.c_void_p(found.ctypes.data),
        ctypes.c_int64(len(found)),
        ctypes.c_uint32(int(idle * 256)),
        ctypes.c_uint32(int(stall * 256)),
        ctypes.c_uint64(seed),
        ctypes.c_int64(most),
    )
    assert cycles >= 0, "the dot unit has stopped without its sums"
    return DotRun(found.view(np.float32), cycles)


@cache
def _library() -> ctypes.CDLL:
    library = shared_library(_TOP, {f"{_TOP}.v": to_verilog(DotUnit(), name=_TOP)}, _SOURCE)
    library.run.restype = ctypes.c_int64
    return library


def _check_kind(name: str, kind: Any) -> None:
    if not isinstance(kind, ElementType):
        known = ", ".join(each.name for each in ElementType)
        message = f"{name} must be an ElementType ({known}), not {kind!r}"
        raise IRTypeError(message)


def _check(name: str, array: Any, dtype: Any, shape: tuple[int | None, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        is_array = isinstance(array, np.ndarray)
        found = f"of {array.dtype}" if is_array else f"an object of type {type(array).__name__}"
        message = f"{name} must be an array of {np.dtype(dtype).name}, not {found}"
        raise IRTypeError(message)
    fits = array.ndim == len(shape) and all(
        wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        message = f"{name} must be of shape [{wanted}], not {list(array.shape)}"
        raise IRValueError(message)


def _lines(
    name: str, codes: npt.NDArray[np.uint8], kind: ElementType, steps: int
) -> npt.NDArray[np.uint32]:
    """Return elements as lines, uint32 `[N, S, 8]`, zero beyond the last one."""
    if codes.size and int(codes.max()) >> kind.bits:
        message = f"{name} must be codes of {kind.bits} bits, not {int(codes.max())}"
        raise IRValueError(message)
    count, depth = codes.shape
    padded = np.zeros((count, steps * (LINE_BITS // kind.bits)), np.uint8)
    padded[:, :depth] = codes
    if kind.bits != WIDE_BITS:
        padded = padded[:, ::2] | padded[:, 1::2] << kind.bits
    return np.ascontiguousarray(padded).view("<u4").reshape(count, steps, LINE_BITS // _WORD_BITS)


def _put(words: npt.NDArray[np.uint32], name: str, value: Any) -> None:
    """Put a field into all words."""
    field = STEP[name]
    if field.width == LINE_BITS:
        first, rest = divmod(field.offset, _WORD_BITS)
        assert rest == 0, "lines begin with a word"
        words[..., first : first + LINE_BITS // _WORD_BITS] = value
    else:
        _put_bits(words, field.offset, value)


def _put_scale(
    words: npt.NDArray[np.uint32], offset: int, group: int, code: npt.NDArray[np.int64]
) -> None:
    """Put the scale of a group behind `offset`, as exponent and NaN flag."""
    scales = STEP["a_scales"].shape
    exponents = scales["exponent"]
    width = exponents.shape.elem_shape.width
    exponent = (code - BIAS) & ((1 << width) - 1)
    _put_bits(words, offset + exponents.offset + group * width, exponent.astype(np.uint64))
    is_nan = (code == NAN_CODE).astype(np.uint64)
    _put_bits(words, offset + scales["is_nan"].offset + group, is_nan)


def _put_bits(words: npt.NDArray[np.uint32], offset: int, value: npt.NDArray[np.uint64]) -> None:
    """Add a value of at most 32 bits to words in which its bits are zero."""
    place, shift = divmod(offset, _WORD_BITS)
    raised = value << np.uint64(shift)
    words[..., place] |= (raised & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    if place + 1 < words.shape[-1]:
        words[..., place + 1] |= (raised >> np.uint64(_WORD_BITS)).astype(np.uint32)
