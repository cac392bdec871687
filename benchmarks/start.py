"""How long a user waits: the import, a warm run of the example, and the rate of the matmul.

Run it as `python benchmarks/start.py [--json]`. Times are the best of a few tries, since what
disturbs a run only ever makes it longer.
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

from scalebox.ir import numerics
from scalebox.ir.dtypes import BlockScaledDType

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "mx_matmul.py"
SIZE = 1024
TRIES = 5

IMPORT_SECONDS = 0.15
RUN_SECONDS = 3.0
# The public functional simulator of the same tile op reaches 0.1 to 0.18 GMAC/s.
MATMUL_GMAC_PER_SECOND = 0.18


def import_seconds() -> float:
    """Return the time of `import scalebox` in a fresh interpreter that is already running."""
    code = "import time; t = time.perf_counter(); import scalebox; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as folder:
        return min(
            float(
                subprocess.run(
                    [sys.executable, "-c", code],
                    cwd=folder,
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
            )
            for _ in range(TRIES)
        )


def run_seconds() -> float:
    """Return the wall time of `scalebox run` on the example, with numba's cache filled."""
    command = [sys.executable, "-m", "scalebox", "run", str(EXAMPLE)]
    with tempfile.TemporaryDirectory() as folder:

        def once() -> None:
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        return best_seconds(once, tries=3)


def matmul_rate(size: int) -> float:
    """Return GMAC/s of the MXFP8 matmul of `size` cubed."""
    draw = np.random.default_rng(0)
    left = draw.standard_normal((size, size)).astype(np.float32)
    right = draw.standard_normal((size, size)).astype(np.float32)
    element = BlockScaledDType.from_name("MXFP8_E4M3")
    a = numerics.quantize(left, element, axis=1)
    b = numerics.quantize(right, element, axis=0)
    return size**3 / best_seconds(lambda: numerics.matmul(a, b), tries=3) / 1e9


def numpy_rate(size: int) -> float:
    """Return GMAC/s of numpy's float64 matmul of `size` cubed.

    It runs in a child whose environment lets OpenBLAS choose its own kernel.
    """
    forced = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    environment = {name: value for name, value in os.environ.items() if name not in forced}
    code = f"import start; print(start.numpy_seconds({size}))"
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return size**3 / float(child.stdout) / 1e9


def numpy_seconds(size: int) -> float:
    """Return the time of numpy's float64 matmul of `size` cubed in this process."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size))
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


def main() -> None:
    """Measure and print."""
    as_json = wants_json("Measure the import, a warm run of the example and the matmul's rate.")
    ours, numpys = matmul_rate(SIZE), numpy_rate(SIZE)
    report(
        [
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
            Row(
                name=f"matmul E4M3 {SIZE} cubed",
                unit="GMAC/s",
                target=MATMUL_GMAC_PER_SECOND,
                figure=ours,
                beside={"numpy_float64": numpys, "share_of_numpy": ours / numpys},
            ),
        ],
        as_json=as_json,
    )


if __name__ == "__main__":
    main()
