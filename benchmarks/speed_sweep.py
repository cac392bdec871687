"""How much sooner a sweep is over that two processes share: 64 runs of one kernel.

The kernel is `examples/mxfp8_performance.py`, the runs are machines with different latencies. All
of it is one fresh interpreter, in which no library has started threads that a copy would lose.
"""

import json

from rows import Row, Times, interleaved
from speed_machine import KERNEL
from speed_start import python

import scalebox

TARGET = 1.8
JOBS = (1, 2)
SETTINGS = {"l2_hit_cycles": range(100, 260, 20), "flag_cycles": range(4, 20, 2)}
RUNS = 64
CYCLES_SIZE, DATA_SIZE = 4096, 1024
# A run with data takes all cores by itself if it may: what is measured here is what processes bring.
ALONE = "import os; os.environ['NUMBA_NUM_THREADS'] = '1'; "


def sweep_times(size: int, *, functional: bool, tries: int) -> list[Times]:
    """Return the times of the sweep by one process and by two, which take turns."""
    sizes = {"M": size, "K": size, "N": size, "E4M3": 1}

    def swept(jobs: int) -> None:
        settings = {name: list(values) for name, values in SETTINGS.items()}
        rows = scalebox.sweep(
            KERNEL, params=sizes, settings=settings, functional=functional, jobs=jobs
        )
        assert len(rows) == RUNS
        assert all(row.ok for row in rows)

    return interleaved(*(lambda jobs=jobs: swept(jobs) for jobs in JOBS), tries=tries)


def tell_times(size: int, functional: bool, tries: int) -> None:
    """Print the times as JSON, seconds."""
    times = sweep_times(size, functional=functional, tries=tries)
    print(json.dumps([[each.best, each.middle, each.cpu] for each in times]))


def sweep_row(size: int, *, functional: bool, tries: int = 2) -> Row:
    """Measure one sweep, of cycles alone or with outputs and golden ones."""
    code = ALONE + f"import speed_sweep; speed_sweep.tell_times({size}, {functional}, {tries})"
    alone, shared = (Times(*each) for each in json.loads(python(code)))
    return shared.against(
        alone,
        f"sweep of {RUNS}, {'with data' if functional else 'cycles'}",
        unit="x 1 job",
        target=TARGET,
        s_with_1_job=alone.best,
        s_with_2_jobs=shared.best,
    )


def sweep_rows() -> list[Row]:
    """Measure a sweep of cycles, and one with data."""
    return [
        sweep_row(CYCLES_SIZE, functional=False),
        sweep_row(DATA_SIZE, functional=True),
    ]
