"""Timelines in Perfetto's own trace processor: nothing is lost, and their sums equal the report's.

The processor is a program of its own: that which the environment variable `TRACE_PROCESSOR` names, or
one on the path, or the one that the package `perfetto` has kept or can download.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ...traces import importer
from ...traces.importer import Opened, Shown
from .timeline_promises import (
    assert_adds_up,
    assert_arrows,
    assert_counters,
    assert_kept,
    of_example,
)

pytestmark = pytest.mark.filterwarnings("default")  # those of the package are not ours

_PREBUILT = """
from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST
from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt
print(get_perfetto_prebuilt(TRACE_PROCESSOR_SHELL_MANIFEST))
"""
_SECONDS = 60
_NONE = "Perfetto's trace processor must be on the path, or there must be a way to download it"

EXAMPLES = ("mx_epilogue", "mx_matmul", "mx_spmd", "mxfp8_performance", "layer_norm", "softmax")
_SLICES = """
    select slice.id, process.name as process, thread.name as thread, slice.name, slice.category,
           slice.ts, slice.dur, slice.depth, slice.arg_set_id
    from slice
    join thread_track on slice.track_id = thread_track.id
    join thread using (utid)
    join process using (upid)
    order by slice.id
"""
_ARGS = (
    "select arg_set_id, key, int_value, real_value, string_value from args where key glob 'args.*'"
)

Open = Callable[[dict[str, Any]], Opened]


@cache
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


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens Chrome traces in the processor."""
    path = processor()
    api: Any = pytest.importorskip("perfetto.trace_processor", reason="perfetto is not installed")

    def open_trace(trace: dict[str, Any]) -> Opened:
        file = tmp_path / "timeline.json"
        file.write_text(json.dumps(trace))
        config = api.TraceProcessorConfig(bin_path=path)
        with api.TraceProcessor(trace=str(file), config=config) as processor:

            def ask(sql: str) -> list[dict[str, Any]]:
                rows: Any = processor.query(sql)
                return [dict(row.__dict__) for row in rows]

            return _opened(ask)

    return open_trace


def _opened(ask: Callable[[str], list[dict[str, Any]]]) -> Opened:
    args: dict[int, dict[str, Any]] = {}
    for row in ask(_ARGS):
        values = [row[f"{kind}_value"] for kind in ("int", "real", "string")]
        (value,) = [each for each in values if each is not None]
        args.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("args.")] = value
    slices: dict[int, Shown] = {}
    for row in ask(_SLICES):
        number, told = row.pop("id"), row.pop("arg_set_id")
        slices[number] = Shown(**row, args={} if told is None else args[told])
    errors = ask("select name, value from stats where severity != 'info' and value > 0")
    return Opened(
        list(slices.values()),
        [
            (slices[row["slice_out"]], slices[row["slice_in"]])
            for row in ask("select slice_out, slice_in from flow order by id")
        ],
        {row["name"] for row in ask("select name from counter_track")},
        Counter({row["name"]: row["value"] for row in errors}),
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_shown_whole_and_as_the_model_says(name: str, opened: Open) -> None:
    run = of_example(name)
    found = opened(run.trace)
    assert_kept(run, found)
    assert_adds_up(run, found)
    assert_arrows(run, found)
    assert_counters(found)
    assert found == importer.opened(run.trace)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_model_loses_in_true_time_what_the_processor_loses(name: str, opened: Open) -> None:
    trace = in_true_time(of_example(name).trace)
    found = opened(trace)
    assert found.errors[importer.DROPPED]
    assert found == importer.opened(trace)


def in_true_time(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a timeline whose ruler is the real one: a cycle is less than a nanosecond of it."""
    scale = 1e6 / trace["otherData"]["clock_hz"]
    records: list[dict[str, Any]] = []
    for record in trace["traceEvents"]:
        start, end = record.get("ts"), record.get("ts", 0) + record.get("dur", 0)
        times = {} if start is None else {"ts": int(start) * scale}
        if "dur" in record:
            times["dur"] = int(end) * scale - times["ts"]
        records.append({**record, **times})
    return {**trace, "traceEvents": records}
