"""Kernels that AutoTileMatmulL0 cut: their flags are sound, wherever the tiles come from."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.lower import lower
from scalebox.ir.errors import UserError
from scalebox.ir.passes import l0_loops
from scalebox.ir.target import load_target

from ..ir.passes.tiled_kernels import SMALL_MACHINES, Kernel, random_matmuls
from .emit.scalar_machine import run_scalar_unit
from .sync.flag_checker import gets_through, judge

A5 = load_target("a5")


@settings(max_examples=15, deadline=None)
@given(random_matmuls(), SMALL_MACHINES, st.sampled_from((1, 4, 32)))
def test_flags_are_sound_for_every_tiling(
    kernel: Kernel, sizes: dict[str, int], straight: int
) -> None:
    with mock.patch.object(l0_loops, "STRAIGHT", straight):
        try:
            executable = lower(kernel.program(), A5.with_settings(sizes)).executable
        except UserError:
            return
    for each in executable.kernels:
        assert judge(each.program, each.views, [0] * len(each.scalars)).sound


@pytest.mark.parametrize("straight", [1, 32])
def test_the_default_machine_gets_through_a_large_product(straight: int) -> None:
    with mock.patch.object(l0_loops, "STRAIGHT", straight):
        executable = lower(Kernel(256, 768, 256).program(), A5).executable
    (kernel,) = executable.kernels
    assert judge(kernel.program, kernel.views, [0]).sound
    issued = run_scalar_unit(kernel.program, [0])
    assert all(gets_through(issued, depth) for depth in (1, 2, 32))
    assert all(each.mnemonic != "pipe_barrier" for each in kernel.program)
