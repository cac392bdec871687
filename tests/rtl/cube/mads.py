"""Random mads, and what the reference makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scalebox.codegen.isa.table import LEGAL_PAIRS
from scalebox.codegen.isa.vocabulary import ADDRESS_BITS, ElementType, MadInit, Space
from scalebox.ir.dtypes import E1M2, DType
from scalebox.ir.numerics.fast_matmul import matmul_mx

if TYPE_CHECKING:
    import numpy.typing as npt

DTYPES = {
    ElementType.E4M3: DType.E4M3,
    ElementType.E5M2: DType.E5M2,
    ElementType.E2M1: DType.E2M1,
    ElementType.E1M2: E1M2,
}
PAIRS = sorted(LEGAL_PAIRS)
UNITS = {Space.L0C: 1024, Space.L0A: 512, Space.L0B: 512, Space.BIAS: 64}
"""Bytes of a tile of 16 x 16 sums, of a box of 16 lines of 32 bytes, and of 16 sums."""


@dataclass(frozen=True)
class Mad:
    """What a cube engine is given."""

    a: npt.NDArray[np.uint8]
    a_scales: npt.NDArray[np.uint8]
    b: npt.NDArray[np.uint8]
    b_scales: npt.NDArray[np.uint8]
    a_type: ElementType
    b_type: ElementType
    start: npt.NDArray[np.float32]
    init: MadInit
    addresses: tuple[int, int, int, int]

    def __str__(self) -> str:
        (m, k), n = self.a.shape, self.b.shape[1]
        kinds = f"{self.a_type.name.lower()}*{self.b_type.name.lower()}"
        return f"{m}x{k}x{n} {kinds} {self.init.name.lower()}"

    def expected(self) -> npt.NDArray[np.uint32]:
        """Return the bits of the result by the reference, uint32 [m, n]."""
        result = matmul_mx(
            self.a,
            self.a_scales,
            self.b,
            self.b_scales,
            a_dtype=DTYPES[self.a_type],
            b_dtype=DTYPES[self.b_type],
            acc=self.start.copy(),
        )
        return result.view(np.uint32)


def random_mad(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    pair: tuple[ElementType, ElementType],
    init: MadInit,
    *,
    special: float = 0.0,
) -> Mad:
    """Draw a mad, with addresses anywhere in the largest memories that a machine may have.

    Args:
        rng: Where chance comes from.
        shape: m, k, n.
        pair: Element types.
        init: What the sums start from.
        special: Share of scales that are NaN, and of starts that are a NaN, an infinity or a zero.
            With it, scales span all codes and every element code may occur, specials included;
            without it, numbers stay finite and comparable, so that roundings meet.
    """
    (m, k, n), groups = shape, -(-shape[1] // 32)
    a_type, b_type = pair

    def codes(kind: ElementType, *dims: int) -> npt.NDArray[np.uint8]:
        drawn = rng.integers(0, 1 << kind.bits, dims).astype(np.uint8)
        if kind.bits == 4:
            return drawn
        magnitude = drawn & 0x7F
        first_special = 0x7F if kind is ElementType.E4M3 else 0x7C
        tame = np.where(magnitude >= first_special, drawn & 0x80, drawn)
        return np.where(rng.random(dims) < special * 0.02, drawn, tame).astype(np.uint8)

    def scales(*dims: int) -> npt.NDArray[np.uint8]:
        if not special:
            return rng.integers(120, 135, dims).astype(np.uint8)
        drawn = rng.integers(0, 255, dims)
        near = rng.integers(60, 190, dims)
        drawn = np.where(rng.random(dims) < 0.5, drawn, near)
        return np.where(rng.random(dims) < special * 0.05, 255, drawn).astype(np.uint8)

    start = np.zeros((m, n), np.float32)
    if init is not MadInit.ZERO:
        rows = m if init is MadInit.ACC else 1
        values: Any = (
            rng.standard_normal((rows, n)) * 2.0 ** rng.integers(-6, 14, (rows, n))
        ).astype(np.float32)
        if special:
            odd = np.array(
                [0x7FC00001, 0xFF800000, 0x7F800000, 0x80000000, 0x00000001, 0x7F7FFFFF], np.uint32
            ).view(np.float32)
            values = np.where(
                rng.random(values.shape) < special * 0.2, rng.choice(odd, values.shape), values
            )
        start = np.ascontiguousarray(np.broadcast_to(values, (m, n)).astype(np.float32))
    return Mad(
        codes(a_type, m, k),
        scales(m, groups),
        codes(b_type, k, n),
        scales(groups, n),
        a_type,
        b_type,
        start,
        init,
        addresses(rng, shape, a_type.bits),
    )


def addresses(
    rng: np.random.Generator, shape: tuple[int, int, int], bits: int
) -> tuple[int, int, int, int]:
    """Draw where c, a, b and the bias begin, so that all of them find room."""
    m, k, n = shape
    rows, columns, steps = -(-m // 16), -(-n // 16), -(-k * bits // 256)
    taken = (rows * columns, rows * steps, columns * steps, columns)
    c, a, b, bias = (
        int(rng.integers((1 << ADDRESS_BITS[space]) // unit - words, endpoint=True)) * unit
        for space, unit, words in zip(UNITS, UNITS.values(), taken, strict=True)
    )
    return c, a, b, bias
