"""Compiled kernels, one compilation a source text."""

from collections.abc import Callable
from functools import cache

import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.lower import lower
from scalebox.ir.target import Target, load_target
from scalebox.sim.memory import LocalMemory

from .gemm_text import parsed
from .select.tails import POISON


@cache
def _compiled(text: str) -> Executable:
    return lower(parsed(text), load_target("a5")).executable


@pytest.fixture(scope="session")
def compiled() -> Callable[[str], Executable]:
    """Compile kernel source for the default machine."""
    return _compiled


@pytest.fixture
def dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory of a core begins full of NaN codes, as if other kernels had run before."""
    clean: Callable[[LocalMemory, Target], None] = LocalMemory.__init__

    def poisoned(memory: LocalMemory, target: Target) -> None:
        clean(memory, target)
        memory.data[:] = POISON

    monkeypatch.setattr(LocalMemory, "__init__", poisoned)
