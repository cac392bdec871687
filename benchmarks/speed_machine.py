"""The machine model with the kernel whose times are published: data, cycles, checks, memory.

All rows are of `examples/mxfp8_performance.py` on operands of E4M3. A bare matmul is
`numerics.matmul` of the same operands; the run's rate is held to it, so that these rows say what
the machine around a matmul costs, whatever a matmul itself takes.
"""

import json
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rows import Row, Times, interleaved
from speed_matmul import mac_rate, normal_operands
from speed_start import python

import scalebox
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.codegen.executable import Executable
from scalebox.ir import numerics
from scalebox.ir.dtypes import BFloat16, DType
from scalebox.ir.language.text import load_file

KERNEL = Path(__file__).resolve().parents[1] / "examples" / "mxfp8_performance.py"
SIZE, LARGE = 4096, 8192
TRIES = 3

SHARE_TARGET = 0.8
CHECKS_TARGET = 0.15
COMPILE_SECONDS = 0.5
INSTRUCTION_TARGET = 5.0
TIMING_SECONDS = {SIZE: 0.3, LARGE: 1.0}
MEMORY_SHARE, MEMORY_REST = 1.3, 200.0  # of inputs and outputs, and MiB
MIB = 1 << 20


def compiled(size: int, **params: int) -> Executable:
    """Return the kernel, read and compiled for matrices of `size` squared."""
    sizes = {"M": size, "K": size, "N": size, "E4M3": 1}
    kernel = load_file(KERNEL, params=sizes | params)
    return scalebox.compile(kernel.program, machine=machine_of_kernel(kernel))


def launch_inputs(a: numerics.MXArray, b: numerics.MXArray) -> dict[str, Any]:
    """Return two operands as the kernel takes them: elements, and scales in boxes."""
    return {
        "a": a.elements,
        "a_scale": numerics.pack_scales_a(a.scales),
        "b": b.elements,
        "b_scale": numerics.pack_scales_b(b.scales),
    }


def simulate_rows(*, size: int = SIZE, tries: int = TRIES) -> list[Row]:
    """Measure a run with data, cycles and checks beside one without checks and a bare matmul.

    `by_cpu` is the figure by the processor's time, all threads together.
    """
    a, b = normal_operands(DType.MXFP8_E4M3, size)
    executable, inputs = compiled(size), launch_inputs(a, b)
    outputs = scalebox.run(executable, inputs).outputs
    golden = numerics.encode(numerics.matmul(a, b), BFloat16)
    equal = np.array_equal(np.asarray(outputs["c"]).view(np.uint16), golden.view(np.uint16))
    whole, unchecked, bare = interleaved(
        lambda: scalebox.run(executable, inputs),
        lambda: scalebox.run(executable, inputs, checks="off"),
        lambda: numerics.matmul(a, b),
        tries=tries,
    )
    return [
        whole.against(
            bare,
            f"simulate {size}^3",
            unit="x bare",
            target=SHARE_TARGET,
            gmac_per_s=mac_rate(size, whole),
            bare=mac_rate(size, bare),
            by_cpu=bare.cpu / whole.cpu,
            equal=str(equal).lower(),
        ),
        Row(
            name=f"checks of {size}^3",
            unit="of run",
            target=CHECKS_TARGET,
            figure=max(whole.best - unchecked.best, 0.001 * whole.best) / whole.best,
            less_is_better=True,
            beside={
                "spread": max(whole.spread, unchecked.spread),
                "by_cpu": 1 - unchecked.cpu / whole.cpu,
                "seconds": whole.best,
            },
        ),
    ]


def compile_row(*, size: int = SIZE, tries: int = 5) -> Row:
    """Measure reading and compiling the kernel; the first time in a process stands beside it."""
    first = float(python(f"import speed_machine; print(speed_machine.first_compile({size}))"))
    taken = Times.of(lambda: compiled(size), tries=tries)
    return taken.within(f"compile {size}^3", seconds=COMPILE_SECONDS, first_in_process=first)


def first_compile(size: int) -> float:
    """Return the seconds of one reading and compiling, from now on."""
    begin = time.perf_counter()
    compiled(size)
    return time.perf_counter() - begin


def timing_work(size: int, **params: int) -> tuple[Times, int]:
    """Return the times of a run without data, and its instructions."""
    executable = compiled(size, **params)
    run = scalebox.run(executable, {}, functional=False)
    taken = Times.of(lambda: scalebox.run(executable, {}, functional=False), tries=5)
    return taken, run.simulation.instructions


def one_core_row(*, size: int = SIZE) -> Row:
    """Measure the rate of instructions of a launch on one cluster, which has all of C to make."""
    taken, instructions = timing_work(size, GRID_M=1, GRID_N=1)
    return taken.rate(
        f"timing {size}^3, one core",
        instructions,
        unit="M/s",
        target=INSTRUCTION_TARGET,
        instructions=instructions,
    )


def timing_rows() -> list[Row]:
    """Measure launches without data: on one core, then on all 32; the first run does not count."""
    rows = [one_core_row()]
    for size, seconds in TIMING_SECONDS.items():
        taken, instructions = timing_work(size)
        rows.append(
            taken.within(
                f"timing {size}^3, 32 cores",
                seconds=seconds,
                instructions=instructions,
                millions_per_s=instructions / taken.best / 1e6,
            )
        )
    return rows


def memory_row(*, size: int = SIZE) -> Row:
    """Measure the most memory that a process takes which runs the kernel once, with data.

    The inputs are files that somebody else has written: drawing them would take more.
    """
    inputs = launch_inputs(*normal_operands(DType.MXFP8_E4M3, size))
    with tempfile.TemporaryDirectory() as folder:
        for name, array in inputs.items():
            np.save(Path(folder, f"{name}.npy"), array)
        told = json.loads(
            python(f"import speed_machine; speed_machine.tell_peak({size}, {folder!r})")
        )
    return Row(
        name=f"memory of {size}^3",
        unit="MiB",
        target=MEMORY_SHARE * told["data"] + MEMORY_REST,
        figure=told["peak"],
        less_is_better=True,
        beside={"inputs_and_outputs": told["data"], "before_the_run": told["before"]},
    )


def tell_peak(size: int, folder: str) -> None:
    """Run the kernel on the arrays in a folder; print what memory that took, in MiB, as JSON."""
    executable = compiled(size)
    inputs = {file.stem: np.load(file) for file in Path(folder).glob("*.npy")}
    before = peak_bytes()
    outputs = scalebox.run(executable, inputs).outputs
    arrays = [*inputs.values(), *outputs.values()]
    sizes = {
        "before": before,
        "peak": peak_bytes(),
        "data": sum(np.asarray(array).nbytes for array in arrays),
    }
    print(json.dumps({name: count / MIB for name, count in sizes.items()}))


def peak_bytes() -> int:
    """Return the most memory that this process has had resident so far."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Not ru_maxrss, which on Linux also counts what the process was before it became this program.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
