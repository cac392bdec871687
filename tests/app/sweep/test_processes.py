"""What the processes of a sweep share, and what becomes of it when they end."""

import csv
import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.sweep import workshop
from scalebox.app.worker_pool import can_fork
from scalebox.ir.errors import InputError
from scalebox.ir.numerics import pack_scales_a, pack_scales_b

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are copied on Linux only")


@pytest.mark.parametrize("functional", [False, True])
def test_the_number_of_processes_changes_nothing(sized: str, functional: bool) -> None:
    grid: dict[str, Any] = {
        "params": {"M": "8,16,32", "K": "64,128"},
        "machines": "a5,a5-vendor-sim",
        "settings": {"l1_bytes": "4096,524288"},
        "functional": functional,
    }
    one, two, five = (scalebox.sweep(sized, jobs=jobs, **grid) for jobs in (1, 2, 5))
    assert one == two == five
    assert len(one) == 24
    assert {row.status.value for row in one} == {"ok", "refused"}


def test_golden_that_proves_little_warns_whoever_makes_it(sized: str) -> None:
    inputs = {
        "a": np.ones((32, 128), ml_dtypes.float8_e4m3fn),
        "sa": pack_scales_a(np.full((32, 4), 127, np.uint8)),
        "b": np.ones((128, 64), ml_dtypes.float8_e4m3fn),
        "sb": pack_scales_b(np.full((4, 64), 127, np.uint8)),
    }
    grid: dict[str, Any] = {"settings": {"l2_hit_cycles": [100, 300]}, "functional": True}
    one, two = (scalebox.sweep(sized, inputs=inputs, jobs=jobs, **grid) for jobs in (1, 2))
    assert one == two
    for row in one:
        assert row.warnings == ("golden 'c' is one value everywhere, 128.0, which proves little",)


def test_golden_is_computed_once_for_the_runs_of_the_same_sizes(
    sized: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interpret = workshop.interpret

    def counted(*args: Any, **options: Any) -> Any:
        (tmp_path / f"golden-{os.getpid()}-{time.monotonic_ns()}").touch()
        return interpret(*args, **options)

    monkeypatch.setattr(workshop, "interpret", counted)
    for jobs in (1, 2):
        rows = scalebox.sweep(
            sized,
            params={"K": "64,128,256"},
            settings={"l2_hit_cycles": "100..104:1"},
            functional=True,
            jobs=jobs,
        )
        assert all(row.ok for row in rows)
        made = list(tmp_path.glob("golden-*"))
        assert len(made) == 3
        for each in made:
            each.unlink()


@pytest.mark.parametrize("fields", [{"l2_hit_cycles": "100,200,300"}, {"l1_bytes": "4096,524288"}])
def test_golden_that_is_refused_refuses_the_same_rows_whoever_makes_them(
    sized: str, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    def refused(*args: Any, **options: Any) -> Any:
        time.sleep(0.5)  # so that runs are made before it is known
        raise InputError("No golden today")

    monkeypatch.setattr(workshop, "interpret", refused)
    one, two = (
        scalebox.sweep(sized, settings=fields, functional=True, jobs=jobs) for jobs in (1, 2)
    )
    assert one == two
    assert "No golden today" in {row.problem for row in one}
    assert not any(row.ok for row in one)


def test_the_end_of_the_process_that_makes_golden_is_a_problem_of_its_rows(
    sized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(workshop, "interpret", killed)
    rows = scalebox.sweep(sized, settings={"l2_hit_cycles": "1..9"}, functional=True, jobs=2)
    assert all("ended by signal 9" in str(row.problem) for row in rows)


def test_data_that_cannot_be_shared_refuses_their_rows(
    sized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(workshop, "write_shared", full)
    fields = {"l2_hit_cycles": "100,300"}
    rows = scalebox.sweep(sized, params={"K": [128, 256]}, settings=fields, functional=True, jobs=2)
    assert [row.ok for row in rows] == [True, True, False, False]
    assert "No space left on device; one job needs no such file" in str(rows[2].problem)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_the_rows_that_are_done_and_no_process(examples: Path, jobs: str) -> None:
    args = ["sweep", "examples/mx_matmul.py", "--param", "K=1024,8192", "--csv", "--jobs", jobs]
    child = subprocess.Popen(
        [sys.executable, "-m", "scalebox", *args, "--set", "l2_hit_cycles=1..2000"],
        cwd=examples,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(8)
    assert child.poll() is None
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert "Interrupted: " in err
    assert "Traceback" not in err
    states = [line["status"] for line in csv.DictReader(io.StringIO(out))]
    assert len(states) == 4000
    assert states.count("not run") + states.count("ok") == 4000
    assert f"Interrupted: {states.count('ok'):,} of 4,000 runs" in err
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_sweep_that_is_killed_leaves_no_file_and_no_process(
    sized: str, tmp_path: Path, end: signal.Signals
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    args = ["sweep", sized, "--functional", "--jobs", "2", "--param", "K=64..6400:64"]
    with subprocess.Popen(
        [sys.executable, "-m", "scalebox", *args, "--set", "l2_hit_cycles=1..9"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        forked = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        while len(forked.read_text().split()) < 2:
            time.sleep(0.1)
        time.sleep(1)
        child.send_signal(end)
        assert child.stdout.read() == ""  # which its processes have open, too
        assert child.wait() == -end
    assert list(temporary.iterdir()) == []


def test_where_no_file_can_be_made_each_process_makes_the_data_itself(
    sized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("scalebox.app.sweep.tasks.NamelessFile", none)
    fields = {"l2_hit_cycles": "100,300"}
    rows = scalebox.sweep(sized, params={"K": [128, 256]}, settings=fields, functional=True, jobs=2)
    assert [row.golden for row in rows] == ["equal"] * 4
