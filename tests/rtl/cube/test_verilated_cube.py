"""The whole cube, Verilated: the bits of the reference, a cycle a step, whatever the tile."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import ADDRESS_BITS, ElementType, MadInit, Space
from scalebox.ir.errors import IRValueError
from scalebox.rtl.cosim.cube import RtlCube, steps_of
from scalebox.rtl.cosim.run import CosimError

from .mads import PAIRS, UNITS, Mad, random_mad

L_CYCLES = 9
RANDOM_MADS = 300
DIMENSIONS = (1, 15, 16, 17, 33)
DEPTHS = (1, 31, 32, 33, 63, 64, 65, 96, 97, 129)


@pytest.fixture(scope="module")
def cube() -> RtlCube:
    return RtlCube()


def check(cube: RtlCube, mad: Mad) -> None:
    expected = mad.expected()
    found = cube.multiply(mad).view(np.uint32)
    wrong = np.argwhere(found != expected)
    assert not len(wrong), (
        f"{mad}: {len(wrong)} differ, first {wrong[0]}: "
        f"{found[tuple(wrong[0])]:#x}, not {expected[tuple(wrong[0])]:#x}"
    )
    (m, k), n = mad.a.shape, mad.b.shape[1]
    places = tuple(at // unit for at, unit in zip(mad.addresses, UNITS.values(), strict=True))
    assert cube.mads[-1].places == places, str(mad)
    assert cube.mads[-1].cycles - L_CYCLES == steps_of(m, k, n, mad.a_type.bits), str(mad)


def test_the_constant_is_what_it_says(cube: RtlCube) -> None:
    assert cube.latency_cycles == L_CYCLES


@pytest.mark.parametrize(
    "pair", PAIRS, ids=lambda pair: "*".join(each.name.lower() for each in pair)
)
def test_every_tail_of_k_in_every_pair_and_form(
    cube: RtlCube, pair: tuple[ElementType, ElementType]
) -> None:
    rng = np.random.default_rng(11)
    for k, init in itertools.product(DEPTHS, MadInit):
        for special in (0, 1):
            check(cube, random_mad(rng, (17, k, 18), pair, init, special=special))


@pytest.mark.parametrize("m", DIMENSIONS)
def test_every_tail_of_m_and_n(cube: RtlCube, m: int) -> None:
    rng = np.random.default_rng(m)
    for n, pair in itertools.product(DIMENSIONS, (PAIRS[0], PAIRS[-1])):
        check(cube, random_mad(rng, (m, 70, n), pair, MadInit.ACC))


def test_random_mads(cube: RtlCube) -> None:
    rng = np.random.default_rng(13)
    for _ in range(RANDOM_MADS):
        shape = tuple(int(rng.integers(1, most)) for most in (60, 200, 60))
        assert len(shape) == 3
        pair = PAIRS[rng.integers(len(PAIRS))]
        init = MadInit(int(rng.integers(3)))
        check(cube, random_mad(rng, shape, pair, init, special=float(rng.integers(3))))


@pytest.mark.parametrize("init", MadInit)
def test_the_first_and_the_last_words_of_every_memory(cube: RtlCube, init: MadInit) -> None:
    rng = np.random.default_rng(19)
    low = random_mad(rng, (17, 97, 18), PAIRS[0], init)
    check(cube, replace(low, addresses=(0, 0, 0, 0)))
    taken = {Space.L0C: 2 * 2, Space.L0A: 2 * 4, Space.L0B: 2 * 4, Space.BIAS: 2}
    c, a, b, bias = ((1 << ADDRESS_BITS[each]) - n * UNITS[each] for each, n in taken.items())
    check(cube, replace(low, addresses=(c, a, b, bias)))
    outside = replace(low, addresses=(c, a + UNITS[Space.L0A], b, bias))
    with pytest.raises(CosimError, match="must stay within its memories"):
        RtlCube().multiply(outside)


@pytest.mark.slow
def test_the_largest_dimensions_of_a_mad(cube: RtlCube) -> None:
    rng = np.random.default_rng(17)
    for shape in ((4095, 1, 1), (1, 4095, 1), (1, 1, 4095), (16, 4095, 16)):
        for pair in (PAIRS[0], PAIRS[-1]):
            check(cube, random_mad(rng, shape, pair, MadInit.BIAS, special=1))


TWO = """\
import gc
from scalebox.rtl.cosim.cube import RtlCube
first, second, last = RtlCube(), RtlCube(), RtlCube()
del second
gc.collect()
del first
gc.collect()
"""


def test_cubes_that_are_there_at_once_go_in_any_order(cube: RtlCube) -> None:
    """In a process of its own, which would wait for ever on a lock that is gone."""
    assert cube.latency_cycles == L_CYCLES  # it has been compiled
    subprocess.run([sys.executable, "-c", TWO], check=True, timeout=120)


def test_a_beat_that_cannot_be_is_refused() -> None:
    with pytest.raises(IRValueError, match=r"scale_beat_bytes must be one of 8, 16, 32, not 64"):
        RtlCube(beat_bytes=64)
