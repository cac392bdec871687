"""Hand-written kernels: assembler text in, a core's memories or a whole run out."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.executable import (
    Direction,
    Executable,
    HostProgram,
    Kernel,
    Layout,
    Param,
    ParamKind,
    View,
)
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import CoreKind, Space
from scalebox.ir.errors import Span
from scalebox.ir.target import Target, load_target
from scalebox.sim.core import Core, Problem
from scalebox.sim.decode import bind_views, decode
from scalebox.sim.device import simulate
from scalebox.sim.matmul import CubeEngine, NumericsCube
from scalebox.sim.memory import GlobalMemory
from scalebox.sim.report import SimResult
from scalebox.sim.scalar import resolve

Bytes = npt.NDArray[np.uint8]
SOURCE = "kernel.py"
MATE_SOURCE = "mate.py"
_BITS = {
    "E4M3": 8,
    "E5M2": 8,
    "E2M1": 4,
    "E1M2": 4,
    "E8M0": 8,
    "FP32": 32,
    "BF16": 16,
    "FP16": 16,
    "INT8": 8,
    "UINT8": 8,
    "INT32": 32,
}


class Bench:
    """Makes and runs kernels; every instruction comes from its own line of `kernel.py`."""

    def __init__(self) -> None:
        self.target = load_target("a5")

    def tensor(self, name: str, dtype: str, shape: Sequence[int], direction: str = "in") -> Param:
        return Param(
            name, ParamKind.TENSOR, dtype, _BITS[dtype], Direction(direction), tuple(shape)
        )

    def scalar(self, name: str) -> Param:
        return Param(name, ParamKind.SCALAR, "INDEX", 64)

    def plain(self, param: int, bits: int, rows: int, cols: int) -> View:
        return View(param, Layout.ND, bits, (rows, cols), (cols, 1))

    def boxes(self, param: int, rows: int, groups: int) -> View:
        dims = (1, rows // 16, groups // 2, 16, 2)
        return View(param, Layout.MX_A_ZZ, 8, dims, (rows * groups, 16 * groups, 32, 2, 1))

    def kernel(
        self,
        text: str,
        params: Sequence[Param] = (),
        views: Sequence[View] = (),
        name: str = "k",
        core: CoreKind = CoreKind.AIC,
        source: str = SOURCE,
    ) -> Kernel:
        program = parse_program(f"{text}\nhalt" if "halt" not in text else text)
        spans = [Span(source, 1 + index, 1) for index in range(len(program))]
        return Kernel.assemble(
            name, params=params, views=views, program=program, spans=spans, core=core
        )

    def mixed(
        self,
        text: str,
        mate: str,
        params: Sequence[Param] = (),
        views: Sequence[View] = (),
        name: str = "k",
    ) -> Kernel:
        """Return a kernel of `text` on the cube core and `mate`, from `mate.py`, on a vector core."""
        cube = self.kernel(text, params, views, name)
        vector = self.kernel(mate, params, views, name, CoreKind.AIV, MATE_SOURCE)
        return dataclasses.replace(cube, mate=vector)

    def executable(self, kernel: Kernel) -> Executable:
        host = HostProgram.of_kernel(0, kernel)
        return Executable("p", "a5", "", (kernel,), (host,), kernel.name)

    def run(
        self,
        kernel: Kernel,
        buffers: Mapping[str, Bytes] | None = None,
        *,
        target: Target | None = None,
        **options: Any,
    ) -> SimResult:
        return simulate(
            self.executable(kernel), buffers or {}, target=target or self.target, **options
        )

    def apply(
        self,
        text: str,
        params: Sequence[Param] = (),
        views: Sequence[View] = (),
        *,
        images: Mapping[str, Bytes] | None = None,
        preset: Mapping[Space, Bytes] | None = None,
        hole: tuple[Space, int] | None = None,
        track: bool = True,
        engine: CubeEngine | None = None,
        core: CoreKind = CoreKind.AIC,
    ) -> tuple[Core, GlobalMemory, list[Problem]]:
        """Execute `text` in program order on memories whose first bytes are `preset`.

        `hole` is a byte of them that counts as never written.
        """
        kernel = self.kernel(text, params, views, core=core)
        images = images or {}
        gm = GlobalMemory({param.name: param.size_bytes for param in kernel.tensors}, images)
        machine = Core(self.target, gm, engine or NumericsCube())
        for space, values in (preset or {}).items():
            machine.local.view(space)[: len(values)] = values
            machine.local.written_view(space)[: len(values)] = 0xFF
        if hole is not None:
            machine.local.written_view(hole[0])[hole[1]] = 0
        decoded = decode(kernel)
        stream = resolve(decoded, ())
        views_bound = bind_views(
            kernel, [gm.allocations[param.name].address for param in kernel.tensors]
        )
        found: list[Problem] = []
        bounds = machine.check_bounds(decoded, stream, views_bound)
        if bounds is not None:
            return machine, gm, [bounds]
        acting = np.flatnonzero(decoded.action[stream.static])
        machine.execute(decoded, stream, views_bound, acting, track=track, on_problem=found.append)
        return machine, gm, found


@pytest.fixture(scope="session")
def bench() -> Bench:
    """Makes and runs kernels."""
    return Bench()


@pytest.fixture
def rng() -> np.random.Generator:
    """Draws the same numbers in every run."""
    return np.random.default_rng(2024)
