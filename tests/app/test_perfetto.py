"""The timeline in Perfetto's own trace processor: it opens, and its sums equal those of the report.

The processor is a program of its own: that which the environment variable `TRACE_PROCESSOR` names, or
one on the path, or the one that the package `perfetto` has kept or can download.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.api import Result
from scalebox.app.core_places import labels
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.sim.account.records import COLUMNS

pytestmark = pytest.mark.filterwarnings("default")  # those of the package are not ours

_PREBUILT = """
from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST
from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt
print(get_perfetto_prebuilt(TRACE_PROCESSOR_SHELL_MANIFEST))
"""
_SECONDS = 60
_NONE = "Perfetto's trace processor must be on the path, or there must be a way to download it"

Query = Callable[[str], list[dict[str, Any]]]


def processor() -> str:
    """Return the path of the program, or skip the test."""
    named = os.environ.get("TRACE_PROCESSOR")
    found = named or shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if found:
        return found
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    try:
        child = subprocess.run(
            [sys.executable, "-c", _PREBUILT],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{_NONE}; that took more than {_SECONDS} seconds")
    if child.returncode:
        reason = (child.stderr.strip().splitlines() or ["no reason is given"])[-1]
        pytest.skip(f"{_NONE}: {reason}")
    return child.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def result(root: Path) -> Result:
    """A run of a kernel on the cube core and a vector core."""
    program = pl.loads(str(root / "examples" / "mx_epilogue.py"))
    assert isinstance(program, Program)
    return scalebox.run(program, functional=False)


@pytest.fixture(scope="module")
def query(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Asks the processor, which has read the timeline of the run."""
    path = processor()
    api: Any = pytest.importorskip("perfetto.trace_processor", reason="perfetto is not installed")
    folder = tmp_path_factory.mktemp("run") / "bundle"
    result.save(folder)
    config = api.TraceProcessorConfig(bin_path=path)
    with api.TraceProcessor(trace=str(folder / "timeline.json"), config=config) as opened:

        def ask(sql: str) -> list[dict[str, Any]]:
            rows: Any = opened.query(sql)
            return [dict(row.__dict__) for row in rows]

        yield ask


_SUMS = """
    select process.name as core, thread.name as pipe, slice.category as cause,
           sum(extract_arg(slice.arg_set_id, 'args.cycles')) as cycles
    from slice
    join thread_track on slice.track_id = thread_track.id
    join thread using (utid)
    join process using (upid)
    group by 1, 2, 3
"""


def test_it_opens_without_an_error(query: Query) -> None:
    found = query("select name, value from stats where severity != 'info' and value > 0")
    assert found == []


def test_the_sums_are_those_of_the_report(query: Query, result: Result) -> None:
    sums = {(row["core"], row["pipe"], row["cause"]): row["cycles"] for row in query(_SUMS)}
    assert sums
    for core, account in zip(
        labels(result.simulation.cores), result.simulation.accounts, strict=True
    ):
        for pipe in set(Pipe) - {Pipe.ALL}:
            for cause, column in COLUMNS.items():
                told = sums.get((core, pipe.name, cause.value), 0)
                assert told == account[pipe, column], (core, pipe, cause)


def test_every_wait_has_an_arrow_from_its_set(query: Query) -> None:
    rows = query(
        """
        select source.name as tail, target.name as head
        from flow
        join slice source on flow.slice_out = source.id
        join slice target on flow.slice_in = target.id
        """
    )
    waits = query("select count(1) as waits from slice where name glob 'wait_*flag'")
    assert len(rows) == waits[0]["waits"] > 0
    for row in rows:
        assert row["tail"] == row["head"].replace("wait", "set")


def test_slices_of_a_thread_do_not_cross(query: Query) -> None:
    found = query("select count(1) as nested from slice where depth > 0")
    assert found[0]["nested"] == 0


def test_the_bandwidth_is_a_counter(query: Query) -> None:
    rows = query(
        """
        select track.name as name, max(counter.value) as most
        from counter join track on counter.track_id = track.id
        where track.name glob 'GM bandwidth*'
        group by 1
        """
    )
    assert {row["name"].split()[-1] for row in rows} == {"read", "write"}
    assert all(row["most"] > 0 for row in rows)
