"""A mad reads its operands where the published layouts say, and nothing beyond the valid sizes."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import ElementType, Space
from scalebox.ir.numerics import reference
from scalebox.ir.numerics.elements import Summation
from scalebox.sim.faultcodes import FaultCode
from scalebox.sim.matmul import DTYPES, MadTile, NumericsCube

POISON = 0xFF  # a NaN scale, a NaN element, a NaN bias


def put_operand(codes: np.ndarray, bits: int, size: int, address: int) -> np.ndarray:
    """Lay [rows, K] codes into boxes of 16 rows x 32 bytes, poison all around."""
    data = np.full(size, POISON, np.uint8)
    c0, boxes = 256 // bits, -(-codes.shape[0] // 16)
    for (r, k), code in np.ndenumerate(codes):
        byte = address + ((k // c0) * boxes + r // 16) * 512 + (r % 16) * 32 + (k % c0) * bits // 8
        if bits == 8:
            data[byte] = code
        else:
            kept = int(data[byte]) & (0x0F if k % 2 else 0xF0)
            data[byte] = kept | int(code) << k % 2 * 4
    return data


def put_scales(codes: np.ndarray, address: int) -> np.ndarray:
    """Lay [rows, G] codes into boxes of 16 rows x 2 groups, poison all around."""
    data = np.full(4096, POISON, np.uint8)
    pairs = -(-codes.shape[1] // 2)
    for (r, g), code in np.ndenumerate(codes):
        data[address + ((r // 16) * pairs + g // 2) * 32 + (r % 16) * 2 + g % 2] = code
    return data


def accumulator(l0c: np.ndarray, address: int, m: int, n: int) -> np.ndarray:
    """Read float32 [m, n] from boxes of 16 x 16."""
    values = np.zeros((m, n), np.float32)
    for r in range(m):
        for c in range(n):
            byte = address + ((c // 16) * -(-m // 16) + r // 16) * 1024
            byte += (r % 16) * 64 + (c % 16) * 4
            values[r, c] = l0c[byte : byte + 4].copy().view(np.float32)[0]
    return values


class Mad:
    """A mad with random operands at given addresses."""

    def __init__(
        self,
        rng: np.random.Generator,
        m: int,
        k: int,
        n: int,
        a_type: ElementType = ElementType.E4M3,
        b_type: ElementType = ElementType.E4M3,
        *,
        a_at: int = 0,
        b_at: int = 0,
        c_at: int = 0,
    ) -> None:
        self.m, self.k, self.n, self.a_type, self.b_type = m, k, n, a_type, b_type
        self.a_at, self.b_at, self.c_at = a_at, b_at, c_at
        groups = -(-k // 32)
        top = 0x77 if a_type.bits == 8 else 0xF  # finite in E4M3 and E5M2 alike
        self.a = rng.integers(0, top + 1, (m, k)).astype(np.uint8)
        self.b = rng.integers(0, top + 1, (k, n)).astype(np.uint8)
        self.a_scales = rng.integers(120, 135, (m, groups)).astype(np.uint8)
        self.b_scales = rng.integers(120, 135, (groups, n)).astype(np.uint8)

    def preset(self) -> dict[Space, np.ndarray]:
        return {
            Space.L0A: put_operand(self.a, self.a_type.bits, 65536, self.a_at),
            Space.L0B: put_operand(self.b.T, self.b_type.bits, 65536, self.b_at),
            Space.SCALE_A: put_scales(self.a_scales, self.a_at // 16),
            Space.SCALE_B: put_scales(self.b_scales.T, self.b_at // 16),
        }

    def text(self, init: str = "zero", bias: int = 0) -> str:
        return (
            f"mad_mx l0c[{self.c_at}], l0a[{self.a_at}], l0b[{self.b_at}], bias[{bias}], "
            f"m={self.m}, k={self.k}, n={self.n}, a_type={self.a_type.name.lower()}, "
            f"b_type={self.b_type.name.lower()}, init={init}"
        )

    def golden(self, **options: Any) -> np.ndarray:
        return reference.matmul_mx(
            self.a,
            self.a_scales,
            self.b,
            self.b_scales,
            a_dtype=DTYPES[self.a_type],
            b_dtype=DTYPES[self.b_type],
            **options,
        )

    def run(self, bench: Any, text: str | None = None, **options: Any) -> np.ndarray:
        preset = self.preset() | options.pop("preset", {})
        core, _, found = bench.apply(text or self.text(), preset=preset, **options)
        assert all(problem.padding for problem in found)
        return accumulator(core.local.view(Space.L0C), self.c_at, self.m, self.n)


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(16, 64, 32), (64, 128, 128), (1, 1, 1), (17, 33, 5), (30, 70, 40)]
)
@pytest.mark.parametrize(
    ("a_type", "b_type"),
    [
        (ElementType.E4M3, ElementType.E4M3),
        (ElementType.E5M2, ElementType.E4M3),
        (ElementType.E2M1, ElementType.E2M1),
        (ElementType.E1M2, ElementType.E2M1),
    ],
)
def test_mad_agrees_with_the_reference_and_never_reads_beyond_its_sizes(
    bench: Any, rng: Any, m: int, k: int, n: int, a_type: ElementType, b_type: ElementType
) -> None:
    mad = Mad(rng, m, k, n, a_type, b_type, c_at=4096)
    assert_same_bits(mad.run(bench), mad.golden())


def test_scales_stand_at_a_sixteenth_of_the_data_address(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 32, 64, 16, a_at=32768, b_at=16384)
    preset = mad.preset()
    assert preset[Space.SCALE_A][2048] == mad.a_scales[0, 0]
    assert preset[Space.SCALE_B][1024] == mad.b_scales[0, 0]
    assert_same_bits(mad.run(bench), mad.golden())


def test_a_nan_scale_makes_its_row_nan_even_over_ones(bench: Any, rng: Any) -> None:
    # All elements 1.0, A scales NaN, B scales 2^-127: an 8-bit decoder would give 128.
    mad = Mad(rng, 16, 64, 32)
    mad.a[:], mad.b[:] = 0x38, 0x38
    mad.a_scales[:] = 0xFF
    for b_scale in (0x00, 0x7F):
        mad.b_scales[:] = b_scale
        got = mad.run(bench)
        assert set(got.view(np.uint32).reshape(-1).tolist()) == {0x7FC00000}


@pytest.mark.parametrize("padding", [0x00, 0xFF])
def test_padding_of_an_odd_group_count_changes_nothing(bench: Any, rng: Any, padding: int) -> None:
    mad = Mad(rng, 16, 1504, 16)  # 47 groups, boxes hold 48
    preset = mad.preset()
    preset[Space.SCALE_A][(preset[Space.SCALE_A] == POISON)] = padding
    preset[Space.SCALE_B][(preset[Space.SCALE_B] == POISON)] = padding
    assert_same_bits(mad.run(bench, preset=preset), mad.golden())


def test_accumulating_adds_to_what_stands_in_the_accumulator(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 20, 96, 33)
    text = f"{mad.text()}\n{mad.text('acc')}"
    assert_same_bits(mad.run(bench, text), mad.golden(acc=mad.golden()))


def test_bias_starts_every_row(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 20, 96, 33)
    bias = rng.normal(size=33).astype(np.float32)
    table = np.full(4096, POISON, np.uint8)
    table[64 : 64 + 132] = bias.view(np.uint8)
    got = mad.run(bench, mad.text("bias", 64), preset={Space.BIAS: table})
    assert_same_bits(got, mad.golden(bias=bias[None]))


def test_sequential_summation_is_the_reference_of_that_name(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 16, 64, 16)
    got = mad.run(bench, engine=NumericsCube(Summation.SEQUENTIAL))
    assert_same_bits(got, mad.golden(sum="sequential"))
    assert (got != mad.golden()).any()


def test_an_engine_sees_dense_tiles_of_the_valid_sizes(bench: Any, rng: Any) -> None:
    seen: list[MadTile] = []

    class Spy:
        def multiply(self, tile: MadTile) -> np.ndarray:
            seen.append(tile)
            return np.full((17, 5), 2.5, np.float32)

    mad = Mad(rng, 17, 33, 5, ElementType.E2M1, ElementType.E1M2)
    got = mad.run(bench, engine=Spy())
    assert (got == 2.5).all()
    (tile,) = seen
    assert (tile.a_type, tile.b_type) == (ElementType.E2M1, ElementType.E1M2)
    for name in ("a", "b", "a_scales", "b_scales"):
        np.testing.assert_array_equal(getattr(tile, name), getattr(mad, name))
    assert not tile.start.any()


@pytest.mark.parametrize(
    ("space", "byte", "row", "column"),
    [
        (Space.L0A, 512 + 3 * 32 + 1, 19, 1),  # row 19 is row 3 of the second box
        (Space.L0B, 4 * 32 + 31, 4, 31),
        (Space.SCALE_A, 32 + 2 * 2 + 1, 2, 3),
        (Space.SCALE_B, 5 * 2, 5, 0),
        (Space.L0C, 1024 + 64, 17, 0),
    ],
)
def test_a_read_of_a_never_written_byte_names_memory_and_element(
    bench: Any, rng: Any, space: Space, byte: int, row: int, column: int
) -> None:
    mad = Mad(rng, 20, 128, 16)
    preset = mad.preset() | {Space.L0C: np.zeros(2048, np.uint8)}
    _, _, found = bench.apply(mad.text("acc"), preset=preset, hole=(space, byte))
    assert [problem.fault[:5] for problem in found] == [
        (FaultCode.UNWRITTEN, space, byte, row, column)
    ]


def test_never_written_padding_is_not_a_read(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 16, 40, 16, ElementType.E2M1, ElementType.E2M1)
    preset = mad.preset()
    # K 40 of 64: bytes 0..19 of every 32-byte row hold elements; the last row ends the tile.
    preset[Space.L0A] = preset[Space.L0A][: 15 * 32 + 20]
    preset[Space.L0B] = preset[Space.L0B][: 15 * 32 + 20]
    preset[Space.SCALE_A] = preset[Space.SCALE_A][:32]
    preset[Space.SCALE_B] = preset[Space.SCALE_B][:32]
    core, _, found = bench.apply(mad.text(), preset=preset)
    assert all(problem.padding for problem in found)
    assert_same_bits(accumulator(core.local.view(Space.L0C), 0, 16, 16), mad.golden())


def test_a_number_in_the_padding_of_k_is_a_warning_only(bench: Any, rng: Any) -> None:
    mad = Mad(rng, 16, 40, 16)
    preset = mad.preset()
    for space in (Space.L0A, Space.L0B):
        preset[space][preset[space] == POISON] = 0
    preset[Space.L0A][512 + 2 * 32 + 9] = 0x80  # minus zero is a zero
    _, _, found = bench.apply(mad.text(), preset=preset)
    assert not found
    preset[Space.L0A][512 + 2 * 32 + 9] = 0x38
    core, _, found = bench.apply(mad.text(), preset=preset)
    assert [(p.padding, p.fault[1:5]) for p in found] == [
        (True, (Space.L0A, 512 + 2 * 32 + 9, 2, 41))
    ]
    assert_same_bits(accumulator(core.local.view(Space.L0C), 0, 16, 16), mad.golden())
