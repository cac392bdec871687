"""How long a user waits for the first answer: the import, a warm run of an example, a cold one.

Each is measured in interpreters of their own. A run is warm when numba has kept what it compiled
earlier; a cold one gets an empty folder to keep it in, as on the first day.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import Row, Times

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "mx_matmul.py"
TRIES = 5

IMPORT_SECONDS = 0.15
WARM_SECONDS = 1.5
COLD_SECONDS = 25.0

_TIMED = """
import time
start, begun = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - start, time.process_time() - begun)
"""


def python(code: str, *, folder: Path = HERE) -> str:
    """Return what a fresh interpreter prints that runs `code` in a folder."""
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return child.stdout


def import_times(module: str, *, tries: int = TRIES) -> Times:
    """Return the times of an import in fresh interpreters that are already running."""
    code = _TIMED.format(module=module)
    with tempfile.TemporaryDirectory() as folder:
        told = [python(code, folder=Path(folder)).split() for _ in range(tries + 1)]
    walls, cpus = ([float(each[place]) for each in told[1:]] for place in (0, 1))
    return Times.from_tries(walls, cpus)


def run_example(folder: str, **environment: str) -> None:
    """Run the example as a command in a folder, with variables of the environment set."""
    command = [sys.executable, "-m", "scalebox", "run", str(EXAMPLE)]
    subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def warm_times(*, tries: int = TRIES) -> Times:
    """Return the times of `scalebox run` on the example, Python's start included."""
    with tempfile.TemporaryDirectory() as folder:
        return Times.of(lambda: run_example(folder), tries=tries)


def cold_seconds() -> float:
    """Return the time of the same with nothing compiled yet."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kept:
        start = time.perf_counter()
        run_example(folder, NUMBA_CACHE_DIR=kept)
        return time.perf_counter() - start


def start_rows() -> list[Row]:
    """Measure the import and the two runs."""
    return [
        import_times("scalebox").within("import scalebox", seconds=IMPORT_SECONDS),
        warm_times().within("scalebox run, warm", seconds=WARM_SECONDS),
    ]


def cold_row() -> Row:
    """Measure the first run ever."""
    return Row(
        name="scalebox run, cold",
        unit="s",
        target=COLD_SECONDS,
        figure=cold_seconds(),
        less_is_better=True,
        beside={"tries": 1},
    )
