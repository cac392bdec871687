"""The Verilated cube as an engine that multiplies: whole mads, operands in and sums out.

Around the cube stand memories of ours, one set a mad: the part that the mad must use, at the
addresses at which the mad has it. All bytes in it that a mad must not use are 0xFF, which is a NaN
as a scale, as a sum and as an element of 8 bits: a cube that used one would show it.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from functools import cache
from operator import floordiv
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from ...codegen.isa.scale_unit import BEATS_BYTES
from ...codegen.isa.vocabulary import ElementType, MadInit
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ...ir.errors import IRValueError
from ..cube.array import MODULES
from ..cube.shapes import LINE_BYTES, MAD
from .cube_harness import HARNESS, OUTSIDE, STUCK
from .kept_verilog import kept_cube_verilog
from .library import shared_library
from .run import CosimError
from .toolchain import Simulator, require

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float32]

__all__ = ["CubeMad", "RtlCube", "Tile", "steps_of"]

_UNUSED: Final = 0xFF
_WORD_BYTES: Final = {
    "c": BOX_ROWS * BOX_ROWS * 4,
    "a": BOX_ROWS * LINE_BYTES,
    "b": BOX_ROWS * LINE_BYTES,
    "bias": BOX_ROWS * 4,
}
"""Bytes of a word of the cube's memories, by the field of a mad that names its first."""

_SPARE_CYCLES: Final = 64
_SLOWEST_CYCLES: Final = 8
"""Cycles of a step when the narrowest beat starves the cube: two boxes' worth."""


class Tile(Protocol):
    """One mad as dense matrices; G = ceil(k / 32)."""

    @property
    def a(self) -> Codes:
        """Codes, one a byte, uint8 [m, k]."""
        ...

    @property
    def a_scales(self) -> Codes:
        """E8M0 codes, uint8 [m, G]."""
        ...

    @property
    def b(self) -> Codes:
        """Codes, one a byte, uint8 [k, n]."""
        ...

    @property
    def b_scales(self) -> Codes:
        """E8M0 codes, uint8 [G, n]."""
        ...

    @property
    def a_type(self) -> ElementType:
        """Element type of `a`."""
        ...

    @property
    def b_type(self) -> ElementType:
        """Element type of `b`."""
        ...

    @property
    def start(self) -> Floats:
        """What the accumulator begins from, float32 [m, n]."""
        ...

    @property
    def init(self) -> MadInit:
        """Where `start` is from."""
        ...

    @property
    def addresses(self) -> tuple[int, int, int, int]:
        """Where the mad has c, a, b and the bias, bytes in L0C, L0A, L0B and the bias table."""
        ...


@dataclass(frozen=True, slots=True)
class CubeMad:
    """A mad that the cube has done.

    Attributes:
        m: Rows of the result.
        k: Elements of each sum.
        n: Columns of the result.
        bits: Width of an element.
        cycles: From the one in which the mad was taken to that of its last write, both counted.
        places: The words of the cube's memories at which c, a, b and the bias began.
    """

    m: int
    k: int
    n: int
    bits: int
    cycles: int
    places: tuple[int, ...] = (0, 0, 0, 0)

    @property
    def steps(self) -> int:
        """Steps of the cube: 16 rows by 16 columns by 32 bytes along K each."""
        return steps_of(self.m, self.k, self.n, self.bits)


def steps_of(m: int, k: int, n: int, bits: int) -> int:
    """Return the steps of an m x k x n mad on elements of `bits` bits."""
    return -(-m // BOX_ROWS) * -(-n // BOX_ROWS) * -(-k * bits // (LINE_BYTES * 8))


class RtlCube:
    """The cube's Verilog, compiled by Verilator, behind a cube engine's one method.

    The first one of a version compiles it, which takes some 40 seconds; later ones use that build.

    Args:
        beat_bytes: Bytes that a side of the scale-decode unit reads a cycle.

    Attributes:
        mads: What it has multiplied, in order.
        latency_cycles: Cycles of a mad beside its steps, L, when its beat does not starve the cube.

    Raises:
        IRValueError: If there is no such beat.
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
        CosimError: If the Verilog does not compile.
        CacheError: If the cache folder cannot be written.
    """

    def __init__(self, *, beat_bytes: int = max(BEATS_BYTES)) -> None:
        if beat_bytes not in BEATS_BYTES:
            shown = ", ".join(map(str, BEATS_BYTES))
            message = f"The cube's scale_beat_bytes must be one of {shown}, not {beat_bytes}"
            raise IRValueError(message)
        require(Simulator.VERILATOR)
        self.mads: list[CubeMad] = []
        self.latency_cycles: int = kept_cube_verilog(beat_bytes=beat_bytes).latency_cycles
        self._widths = (*(BOX_ROWS * LINE_BYTES,) * 2, *(beat_bytes,) * 2, BOX_ROWS * 4)
        self._beats = BOX_BYTES // beat_bytes
        self._library = _library(beat_bytes)
        self._handle = ctypes.c_void_p(self._library.cube_open())
        self._close = weakref.finalize(self, self._library.cube_close, self._handle)

    def multiply(self, tile: Tile) -> Floats:
        """Return `tile.start` plus the block-scaled product, float32 [m, n].

        Raises:
            CosimError: If the cube does not finish, or leaves its memories; both are faults of it.
        """
        (m, k), n = tile.a.shape, tile.b.shape[1]
        bits = tile.a_type.bits
        l0c = np.full(
            (-(-m // BOX_ROWS), BOX_ROWS, -(-n // BOX_ROWS), BOX_ROWS),
            _UNUSED * 0x01010101,
            np.uint32,
        )
        sums = l0c.reshape(l0c.shape[0] * BOX_ROWS, -1)
        bias = np.full(sums.shape[1], _UNUSED * 0x01010101, np.uint32)
        start = np.ascontiguousarray(tile.start, np.float32).view(np.uint32)
        match tile.init:
            case MadInit.ACC:
                sums[:m, :n] = start
            case MadInit.BIAS:
                bias[:n] = start[0]
            case MadInit.ZERO:
                pass
        boxes = np.ascontiguousarray(l0c.transpose(2, 0, 1, 3))
        memories = (
            _lines(tile.a, bits),
            _lines(tile.b.T, bits),
            _scale_boxes(tile.a_scales),
            _scale_boxes(tile.b_scales.T),
            bias.view(np.uint8),
        )
        word = {"m": m, "k": k, "n": n, "a_type": tile.a_type, "b_type": tile.b_type}
        # A word of L0C or of the bias table is wider than what an address there is a multiple of.
        places = dict(
            zip(_WORD_BYTES, map(floordiv, tile.addresses, _WORD_BYTES.values()), strict=True)
        )
        cycles = self._mad({**word, "init": tile.init, **places}, memories, boxes)
        self.mads.append(CubeMad(m, k, n, bits, cycles, tuple(places.values())))
        found = boxes.transpose(1, 2, 0, 3).reshape(sums.shape)[:m, :n]
        return np.ascontiguousarray(found).view(np.float32)

    def _mad(
        self, fields: dict[str, int], memories: tuple[Codes, ...], boxes: npt.NDArray[np.uint32]
    ) -> int:
        """Run a mad on memories that begin at its first words; return its cycles."""
        value = sum(given << MAD[name].offset for name, given in fields.items())
        word = np.frombuffer(value.to_bytes(-(-MAD.size // 32) * 4, "little"), np.uint32)
        pointers = np.array([memory.ctypes.data for memory in memories], np.uintp)
        counts = [
            memory.size // width for memory, width in zip(memories, self._widths, strict=True)
        ]
        words = np.array([*counts, boxes.size // BOX_ROWS**2], np.int64)
        a, b, beats = fields["a"], fields["b"], self._beats
        firsts = np.array([a, b, a * beats, b * beats, fields["bias"], fields["c"]], np.int64)
        bits = ElementType(fields["a_type"]).bits
        steps = steps_of(fields["m"], fields["k"], fields["n"], bits)
        limit = steps * _SLOWEST_CYCLES + _SPARE_CYCLES
        arrays = (
            ctypes.c_void_p(each.ctypes.data) for each in (word, pointers, firsts, words, boxes)
        )
        cycles = int(self._library.cube_mad(self._handle, *arrays, ctypes.c_int64(limit)))
        if cycles in (STUCK, OUTSIDE):
            what = "end" if cycles == STUCK else "stay within its memories"
            shape = ", ".join(f"{name} = {fields[name]}" for name in "mkn")
            message = f"The Verilated cube must {what}; a mad of {shape} does not"
            raise CosimError(message)
        return cycles


def _lines(codes: Codes, bits: int) -> Codes:
    """Return uint8 [rows, k], one code a byte, as boxes of 16 lines of 32 bytes, tiles innermost."""
    rows, depth = codes.shape
    tiles, per_line = -(-rows // BOX_ROWS), LINE_BYTES * 8 // bits
    steps = -(-depth // per_line)
    padded = np.full((tiles * BOX_ROWS, steps * per_line), _UNUSED >> (8 - bits), np.uint8)
    padded[:rows, :depth] = codes
    each = 8 // bits
    split = padded.reshape(padded.shape[0], -1, each)
    packed = np.zeros(split.shape[:2], np.uint8)
    for index in range(each):
        packed |= split[:, :, index] << (bits * index)
    boxes = packed.reshape(tiles, BOX_ROWS, steps, LINE_BYTES).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(boxes).reshape(-1)


def _scale_boxes(scales: Codes) -> Codes:
    """Return uint8 [rows, G] as scale boxes, pairs of groups innermost."""
    rows, groups = scales.shape
    tiles, pairs = -(-rows // BOX_ROWS), -(-groups // BOX_GROUPS)
    padded = np.full((tiles * BOX_ROWS, pairs * BOX_GROUPS), _UNUSED, np.uint8)
    padded[:rows, :groups] = scales
    boxes = padded.reshape(tiles, BOX_ROWS, pairs, BOX_GROUPS).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(boxes).reshape(-1)


@cache
def _library(beat_bytes: int) -> ctypes.CDLL:
    modules = kept_cube_verilog(beat_bytes=beat_bytes).modules
    files = {f"{name}.v": text for name, text in modules.items()}
    library = shared_library("cube", files, HARNESS, blocks=tuple(MODULES))
    library.cube_open.restype = ctypes.c_void_p
    library.cube_close.restype = None
    library.cube_mad.restype = ctypes.c_int64
    return library
