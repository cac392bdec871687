"""How long a user waits: the import, a warm run of the example, and the rate of the matmul.

Run it as `python benchmarks/start.py [--json]`. Times are the best of a few tries, since what
disturbs a run only ever makes it longer. A matmul stands beside numpy's float64 matmul of the same
size, with one thread for both and with as many as each likes to take.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rows import Row, report, wants_json

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.signature import entry_function
from scalebox.ir import numerics
from scalebox.ir.dtypes import BlockScaledDType
from scalebox.ir.language.text import load_file

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SIZE = 1024
TRIES = 5

IMPORT_SECONDS = 0.15
RUN_SECONDS = 3.0
# The public functional simulator of the same tile op reaches 0.1 to 0.18 GMAC/s.
MATMUL_GMAC_PER_SECOND = 0.18

# What libraries read when they start, to know how many threads they may have.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# These would force a kernel on OpenBLAS; it shall choose its own.
_FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def import_seconds() -> float:
    """Return the time of `import scalebox` in a fresh interpreter that is already running."""
    code = "import time; t = time.perf_counter(); import scalebox; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as folder:
        return min(float(_python(code, cwd=Path(folder))) for _ in range(TRIES))


def run_seconds() -> float:
    """Return the wall time of `scalebox run` on the example, with numba's cache filled."""
    command = [sys.executable, "-m", "scalebox", "run", str(EXAMPLES / "mx_matmul.py")]
    with tempfile.TemporaryDirectory() as folder:

        def once() -> None:
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        return best_seconds(once, tries=3)


def rate(what: str, *, threads: int | None) -> float:
    """Return GMAC/s of a function of this file, measured in a process of its own.

    Args:
        what: Name of a function that returns seconds.
        threads: How many threads it may have; None for as many as it likes.
    """
    kept = {name: value for name, value in os.environ.items() if name not in (*_FORCED, *_THREADS)}
    limits = {} if threads is None else dict.fromkeys(_THREADS, str(threads))
    code = f"import start; print(start.{what}())"
    seconds = float(_python(code, cwd=Path(__file__).parent, environment={**kept, **limits}))
    return SIZE**3 / seconds / 1e9


def matmul_seconds() -> float:
    """Return the time of the MXFP8 matmul of SIZE cubed."""
    draw = np.random.default_rng(0)
    left, right = draw.standard_normal((2, SIZE, SIZE), dtype=np.float32)
    element = BlockScaledDType.from_name("MXFP8_E4M3")
    a = numerics.quantize(left, element, axis=1)
    b = numerics.quantize(right, element, axis=0)
    return best_seconds(lambda: numerics.matmul(a, b), tries=3)


def simulation_seconds() -> float:
    """Return the time in which the machine model runs a tiled matmul of SIZE cubed, with cycles."""
    sizes = dict.fromkeys("MKN", SIZE)
    executable = scalebox.compile(load_file(EXAMPLES / "mx_tiled.py", params=sizes).program)
    inputs = draw_inputs(entry_function(executable.entry()), 0)
    return best_seconds(lambda: scalebox.run(executable, inputs), tries=3)


def numpy_seconds() -> float:
    """Return the time of numpy's float64 matmul of SIZE cubed."""
    left, right = np.random.default_rng(0).standard_normal((2, SIZE, SIZE))
    return best_seconds(lambda: left @ right, tries=3)


def best_seconds(work: Callable[[], object], *, tries: int) -> float:
    """Return the shortest time of `work`, after one call that fills the caches."""
    work()
    times: list[float] = []
    for _ in range(tries):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def _python(code: str, *, cwd: Path, environment: dict[str, str] | None = None) -> str:
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return child.stdout


def _matmul_row(name: str, what: str, numpys: float, *, threads: int | None) -> Row:
    ours = rate(what, threads=threads)
    return Row(
        name=f"{name}, {'1 thread' if threads == 1 else 'all threads'}",
        unit="GMAC/s",
        target=MATMUL_GMAC_PER_SECOND,
        figure=ours,
        beside={"numpy_float64": numpys, "share_of_numpy": ours / numpys},
    )


def main() -> None:
    """Measure and print."""
    as_json = wants_json("Measure the import, a warm run of the example and the matmul's rate.")
    rows = [
        Row(
            name="import scalebox",
            unit="s",
            target=IMPORT_SECONDS,
            figure=import_seconds(),
            less_is_better=True,
        ),
        Row(
            name="scalebox run, warm",
            unit="s",
            target=RUN_SECONDS,
            figure=run_seconds(),
            less_is_better=True,
        ),
    ]
    for threads in (1, None):
        numpys = rate("numpy_seconds", threads=threads)
        rows += [
            _matmul_row(f"matmul {SIZE}^3", "matmul_seconds", numpys, threads=threads),
            _matmul_row(f"simulated {SIZE}^3", "simulation_seconds", numpys, threads=threads),
        ]
    report(rows, as_json=as_json)


if __name__ == "__main__":
    main()
