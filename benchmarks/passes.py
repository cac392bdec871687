"""How long the passes take: the block pass over many loads, and the whole pipeline of an example.

Run it as `python benchmarks/passes.py [--json]`. The block pass is linear, so twice the loads take
twice the time; its rows stand beside the time for half as many. Times are processor time, the best
of a few tries.
"""

import gc
import time
from collections.abc import Callable
from pathlib import Path

from rows import Row, report, wants_json

import scalebox
from scalebox.ir import passes
from scalebox.ir.core import Program
from scalebox.ir.language.text import load_file
from scalebox.ir.target import load_target

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TRIES = 3

LOADS_SECONDS = 1.0
PIPELINE_SECONDS = 1.0
COUNTS = (1_000, 10_000, 20_000)


def loads(count: int) -> Program:
    """Return a kernel of `count` loads of scales, each at an offset that has to be proved."""
    lines = [f"        t{n} = pl.load(s, [i * 16 + {16 * n}, 0], [16, 2])" for n in range(count)]
    text = "\n".join(
        [
            "from scalebox.ir import language as pl",
            "@pl.program",
            "class Loads:",
            "    @pl.function(type=pl.FunctionType.InCore)",
            f"    def k(self, s: pl.Tensor[[{16 * (count + 4)}, 2], pl.FP8E8M0, pl.MX_A_ZZ]):",
            "      for i in pl.range(4):",
            *lines,
        ]
    )
    made = scalebox.pl.parse(text)
    assert isinstance(made, Program)
    for each in (passes.convert_to_ssa, passes.normalize_stmt_structure, passes.flatten_call_expr):
        made = each()(made)
    return made


def seconds(work: Callable[[], object]) -> float:
    """Return the shortest processor time of `work`."""
    times: list[float] = []
    for _ in range(TRIES):
        gc.collect()
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def block_rows() -> list[Row]:
    """Return a row for each number of loads."""
    found: dict[int, float] = {}
    for count in COUNTS:
        program = loads(count)
        block = passes.block_mx_scale_tensor_views()
        found[count] = seconds(lambda block=block, program=program: block(program))
    return [
        Row(
            name=f"block pass, {count} loads",
            unit="s",
            target=LOADS_SECONDS * count / 10_000,
            figure=taken,
            less_is_better=True,
            beside={"microseconds_per_load": taken / count * 1e6},
        )
        for count, taken in found.items()
    ]


def pipeline_row() -> Row:
    """Return the row of the whole pipeline over 256 x 512 x 256."""
    program = load_file(
        EXAMPLES / "mx_tiled.py", params={"M": "256", "K": "512", "N": "256"}
    ).program
    assert isinstance(program, Program)
    with passes.PassContext([], load_target("a5")):
        taken = seconds(lambda: passes.default_pipeline()(program))
    return Row(
        name="pipeline, 256x512x256",
        unit="s",
        target=PIPELINE_SECONDS,
        figure=taken,
        less_is_better=True,
        beside={"passes": len(passes.default_pipeline().passes)},
    )


def main() -> None:
    """Measure and print."""
    as_json = wants_json("Measure the block pass and the whole pipeline of passes.")
    report([*block_rows(), pipeline_row()], as_json=as_json)


if __name__ == "__main__":
    main()
