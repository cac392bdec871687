"""Compiled kernels, one compilation a source text."""

from collections.abc import Callable
from functools import cache

import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.lower import lower
from scalebox.ir.target import load_target

from .gemm_text import parsed


@cache
def _compiled(text: str) -> Executable:
    return lower(parsed(text), load_target("a5")).executable


@pytest.fixture(scope="session")
def compiled() -> Callable[[str], Executable]:
    """Compile kernel source for the default machine."""
    return _compiled
