# amaranth: UnusedElaboratable=no
"""Random sums through the Verilated dot unit, in bulk, against the reference, and their cycles."""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.ir.dtypes import DType
from scalebox.ir.dtypes.hardware import E1M2
from scalebox.ir.numerics.fast_matmul import matmul_mx
from scalebox.rtl.cosim.dot import evaluate_dots, pack_steps, run_steps
from scalebox.rtl.dot.unit import DotUnit

from .exact import INFINITY, MIXES, NAN, code_of, dot_bits, fp32_bits

DTYPES = {
    ElementType.E4M3: DType.E4M3,
    ElementType.E5M2: DType.E5M2,
    ElementType.E2M1: DType.E2M1,
    ElementType.E1M2: E1M2,
}
E4M3, E5M2, E2M1, _ = ElementType
ALL_MIXES = pytest.mark.parametrize(("a_type", "b_type"), MIXES, ids=lambda kind: kind.name)


class Tile(NamedTuple):
    """Operands of a matmul of 16 x 16: codes, scales, and what the sums start from."""

    a: npt.NDArray[np.uint8]
    a_scales: npt.NDArray[np.uint8]
    b: npt.NDArray[np.uint8]
    b_scales: npt.NDArray[np.uint8]
    start: npt.NDArray[np.float32]


def tile(rng: np.random.Generator, kinds: tuple[ElementType, ElementType], depth: int) -> Tile:
    """Draw a tile, with a NaN or an infinity in few of its groups, and scales that nearly cancel."""
    groups = -(-depth // 32)
    sides: list[npt.NDArray[np.uint8]] = []
    for kind in kinds:
        codes = rng.integers(0, 1 << kind.bits, (16, depth), dtype=np.uint8)
        if kind.bits == 8:
            high = codes & 0x7F >= (0x7F if kind is E4M3 else 0x7C)
            codes[high & (rng.random(codes.shape) < 0.98)] &= 0x9F
        codes[rng.random(codes.shape) < rng.choice([0, 0.5, 0.9])] = 0
        sides.append(codes)
    a_scales = rng.integers(0, 255, (16, groups), dtype=np.uint8)
    near = 254 - a_scales[:1].astype(np.int64) + rng.integers(-30, 31, (16, groups))
    b_scales = np.clip(near, 0, 254).astype(np.uint8)
    # Rows whose scales let the terms meet; the others are far apart, subnormal or infinite.
    a_scales[4:] = a_scales[0]
    for scales in (a_scales, b_scales):
        scales[rng.random(scales.shape) < 0.3 / groups / 16] = 255
    start = rng.integers(0, 1 << 32, (16, 16), dtype=np.uint32).view(np.float32)
    start = np.where(rng.random(start.shape) < 0.5, np.float32(0), start)
    return Tile(sides[0], a_scales, sides[1], b_scales, start)


def run(drawn: Tile, a_type: ElementType, b_type: ElementType) -> npt.NDArray[np.uint32]:
    """Return the bits of all 256 sums of a tile."""
    rows, columns = np.repeat(np.arange(16), 16), np.tile(np.arange(16), 16)
    sums = evaluate_dots(
        drawn.a[rows],
        drawn.a_scales[rows],
        drawn.b[columns],
        drawn.b_scales[columns],
        a_type=a_type,
        b_type=b_type,
        start=drawn.start.reshape(-1),
    )
    return sums.view(np.uint32)


def by_numerics(drawn: Tile, a_type: ElementType, b_type: ElementType) -> npt.NDArray[np.uint32]:
    with np.errstate(all="ignore"):
        product = matmul_mx(
            drawn.a,
            drawn.a_scales,
            np.ascontiguousarray(drawn.b.T),
            np.ascontiguousarray(drawn.b_scales.T),
            a_dtype=DTYPES[a_type],
            b_dtype=DTYPES[b_type],
            acc=drawn.start,
        )
    return product.reshape(-1).view(np.uint32)


@ALL_MIXES
def test_random_groups_against_fractions(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([a_type, b_type])
    for depth in (32, 33, 95):
        drawn = tile(rng, (a_type, b_type), depth)
        found = run(drawn, a_type, b_type)
        for place in range(0, 256, 5):
            row, column = divmod(place, 16)
            expected = dot_bits(
                drawn.a[row].tolist(),
                drawn.b[column].tolist(),
                (a_type, b_type),
                drawn.a_scales[row].tolist(),
                drawn.b_scales[column].tolist(),
                int(drawn.start.view(np.uint32)[row, column]),
            )
            # A NaN to start from leaves as the one NaN.
            assert int(found[place]) == (NAN if expected & 0x7FFFFFFF > INFINITY else expected)


@ALL_MIXES
@pytest.mark.parametrize("depth", [1, 31, 64, 97, 512])
def test_random_sums_against_numerics(a_type: ElementType, b_type: ElementType, depth: int) -> None:
    rng = np.random.default_rng([a_type, b_type, depth])
    drawn = tile(rng, (a_type, b_type), depth)
    np.testing.assert_array_equal(run(drawn, a_type, b_type), by_numerics(drawn, a_type, b_type))


@ALL_MIXES
def test_every_pair_of_scales(a_type: ElementType, b_type: ElementType) -> None:
    a_scales, b_scales = (each.reshape(-1, 1) for each in np.mgrid[:256, :256].astype(np.uint8))
    elements = np.zeros((len(a_scales), 32), np.uint8)
    elements[:, 0] = code_of(a_type, -1.5)
    others = np.zeros_like(elements)
    others[:, 0] = code_of(b_type, 1.5)
    found = evaluate_dots(
        elements,
        a_scales,
        others,
        b_scales,
        a_type=a_type,
        b_type=b_type,
        start=np.full(len(elements), -0.0, np.float32),
    )
    # -2.25 as a whole number of quarters.
    terms = [fp32_bits(True, 9, exponent - 254 - 2) for exponent in range(509)]
    exponents = (a_scales.astype(int) + b_scales).reshape(-1)
    is_nan = ((a_scales == 255) | (b_scales == 255)).reshape(-1)
    expected = [NAN if nan else terms[at] for nan, at in zip(is_nan, exponents, strict=True)]
    np.testing.assert_array_equal(found.view(np.uint32), expected)


@ALL_MIXES
def test_a_long_chain_rounds_at_every_group(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([7, a_type, b_type])
    depth = 32 * 301
    drawn = tile(rng, (a_type, b_type), depth)
    drawn.a_scales[:], drawn.b_scales[:] = rng.integers(117, 138, (2, 16, depth // 32))
    plain = [np.where(side & 0x7C == 0x7C, 0, side) for side in (drawn.a, drawn.b)]
    drawn = drawn._replace(a=plain[0], b=plain[1], start=np.zeros_like(drawn.start))
    found = run(drawn, a_type, b_type)
    assert not np.isnan(found.view(np.float32)).any()
    np.testing.assert_array_equal(found, by_numerics(drawn, a_type, b_type))


def test_a_step_a_cycle_and_the_stated_latency() -> None:
    steps = pack_steps(
        np.zeros((40, 512), np.uint8),
        np.zeros((40, 16), np.uint8),
        np.zeros((40, 512), np.uint8),
        np.zeros((40, 16), np.uint8),
        a_type=E2M1,
        b_type=E2M1,
    )
    words = steps.reshape(-1, steps.shape[-1])
    assert len(words) == 40 * 8
    assert run_steps(words).cycles == len(words) + DotUnit().latency_cycles
    single = steps[:, -1]  # every step a last one
    assert run_steps(single).cycles == 40 + DotUnit().latency_cycles


@pytest.mark.parametrize(("idle", "stall"), list(itertools.product([0, 0.5, 0.95], repeat=2)))
def test_pauses_on_either_side_change_no_sum(idle: float, stall: float) -> None:
    rng = np.random.default_rng(11)
    for depth in (32, 300):
        drawn = tile(rng, (E4M3, E5M2), depth)
        steps = pack_steps(
            drawn.a, drawn.a_scales, drawn.b, drawn.b_scales, a_type=E4M3, b_type=E5M2
        )
        words = np.concatenate([steps.reshape(-1, steps.shape[-1])] * 8)
        expected = run_steps(words).sums
        found = run_steps(words, idle=idle, stall=stall, seed=depth)
        np.testing.assert_array_equal(found.sums.view(np.uint32), expected.view(np.uint32))


@pytest.mark.slow
@ALL_MIXES
def test_a_million_groups_against_numerics(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([9, a_type, b_type])
    groups = 0
    while groups < 1_000_000:
        depth = int(rng.integers(1, 65)) * 32 - int(rng.integers(0, 32))
        drawn = tile(rng, (a_type, b_type), depth)
        np.testing.assert_array_equal(
            run(drawn, a_type, b_type), by_numerics(drawn, a_type, b_type)
        )
        groups += 256 * -(-depth // 32)
