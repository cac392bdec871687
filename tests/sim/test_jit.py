"""Compiled code is kept between processes, and dropped when any file of the room has changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from scalebox.sim import jit
jit.source_stamp.cache_clear()
jit._SOURCES = (Path({folder!r}),)
import outer
assert outer.twice(3) == {result}, outer.twice(3)
print(sum(outer.twice.stats.cache_hits.values()))
"""
OUTER = """
from scalebox.sim.jit import compiled
from part import factor

@compiled
def twice(value: int) -> int:
    return factor(value)
"""
PART = """
from scalebox.sim.jit import inner

@inner
def factor(value: int) -> int:
    return value * {factor}
"""


def run(folder: Path, result: int) -> int:
    """Call `twice(3)` in a fresh process; return how often compiled code was found."""
    program = PROGRAM.format(folder=str(folder), result=result)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.slow
def test_a_change_of_a_file_that_was_compiled_in_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "part.py").write_text(PART.format(factor=2))
    assert run(tmp_path, 6) == 0
    assert run(tmp_path, 6) == 1
    (tmp_path / "part.py").write_text(PART.format(factor=20))
    assert run(tmp_path, 60) == 0
    assert run(tmp_path, 60) == 1
