"""The cube's memories as bytes, filled as the table of the instruction set says of `mad_mx`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scalebox.codegen.isa.vocabulary import MadInit

if TYPE_CHECKING:
    import numpy.typing as npt

    from .mads import Mad

    Bytes = npt.NDArray[np.uint8]

A, B, C, BIAS = 2, 5, 3, 7
"""Where operands begin: boxes of 512 bytes, of 1 KiB, and lines of 64 bytes."""

JUNK = 0xFF
"""What stands in every byte that a mad must not use: NaN in most formats."""


class Memories:
    """All memories around a cube.

    Attributes:
        l0a: Elements of A, uint8 [bytes].
        l0b: Elements of B.
        scale_a: Scales of A.
        scale_b: Scales of B.
        bias: Bias table.
        l0c: Accumulators, uint32 [words].
    """

    def __init__(self, mad: Mad) -> None:
        (m, k), n = mad.a.shape, mad.b.shape[1]
        bits = mad.a_type.bits
        rows, columns = -(-m // 16), -(-n // 16)
        steps, pairs = -(-k * bits // 256), -(-k // 64)
        self.shape = (m, k, n)
        self.l0a = np.full((A + rows * steps) * 512, JUNK, np.uint8)
        self.l0b = np.full((B + columns * steps) * 512, JUNK, np.uint8)
        self.scale_a = np.full((A + rows * pairs) * 32, JUNK, np.uint8)
        self.scale_b = np.full((B + columns * pairs) * 32, JUNK, np.uint8)
        self.bias = np.full((BIAS + columns) * 64, JUNK, np.uint8)
        self.l0c = np.full((C + rows * columns) * 256, JUNK * 0x01010101, np.uint32)
        for line, codes in enumerate(mad.a):
            _place_line(self.l0a, A, rows, line, codes, bits)
        for line, codes in enumerate(mad.b.T):
            _place_line(self.l0b, B, columns, line, codes, bits)
        for i, groups in enumerate(mad.a_scales):
            for g, code in enumerate(groups):
                self.scale_a[A * 32 + (i // 16 * pairs + g // 2) * 32 + i % 16 * 2 + g % 2] = code
        for j, groups in enumerate(mad.b_scales.T):
            for g, code in enumerate(groups):
                self.scale_b[B * 32 + (j // 16 * pairs + g // 2) * 32 + j % 16 * 2 + g % 2] = code
        start = np.ascontiguousarray(mad.start).view(np.uint32)
        if mad.init is MadInit.ACC:
            for i in range(m):
                for j in range(n):
                    self.l0c[self.c_word(i, j)] = start[i, j]
        if mad.init is MadInit.BIAS:
            self.bias.view(np.uint32)[BIAS * 16 : BIAS * 16 + n] = start[0]

    def c_word(self, i: int, j: int) -> int:
        """Return the word of the accumulator that holds element (i, j)."""
        rows = -(-self.shape[0] // 16)
        return C * 256 + (j // 16 * rows + i // 16) * 256 + i % 16 * 16 + j % 16

    def result(self) -> npt.NDArray[np.uint32]:
        """Return what the accumulator holds, uint32 [m, n]."""
        m, _, n = self.shape
        return np.array([[self.l0c[self.c_word(i, j)] for j in range(n)] for i in range(m)])


def _place_line(memory: Bytes, base: int, tiles: int, line: int, codes: Bytes, bits: int) -> None:
    for index, code in enumerate(codes.tolist()):
        at = index * bits // 8
        byte = base * 512 + (at // 32 * tiles * 16 + line) * 32 + at % 32
        if bits == 8:
            memory[byte] = code
        else:
            shift = index % 2 * 4
            memory[byte] = int(memory[byte]) & (0xF0 >> shift) | code << shift
