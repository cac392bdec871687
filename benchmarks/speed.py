"""How fast Scalebox is, each row beside what it must reach; seven minutes on two quiet cores.

    python benchmarks/speed.py                                 every row
    python benchmarks/speed.py --only matmul --only timing     some kinds of them
    python benchmarks/speed.py --json                          the same for a program
    python benchmarks/speed.py --table                         writes them into docs/performance.md too
    python benchmarks/speed.py --only waits --table            writes how long a run takes there, no other
    python benchmarks/speed.py --plot docs/speed-growth.svg    draws how times grow with the work too

Rows come as they are measured, the long ones last. What they compare takes turns in this one run,
the best try of each side counts, and `spread` is how much longer the middle one took; where it is
large, something else kept the machine busy, and the row is marked as disturbed. A row that cannot be measured ends the run.
"""

import json
import os
import re
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numerics
import speed_growth
import speed_machine
import speed_matmul
import speed_plot
import speed_start
import speed_sweep
import speed_waits
from rows import Row, json_parser, machine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
WAITS = "waits"
# These would force a kernel on OpenBLAS; it shall choose its own.
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
NUMERICS_TRIES = 9


def block(name: str) -> re.Pattern[str]:
    """Return what finds the part of the page that is written anew."""
    return re.compile(rf"(?<=<!-- {name} -->\n).*(?=<!-- end of {name} -->)", re.DOTALL)


Measure = Callable[[], Sequence[Row]]


class Session:
    """One run of the program: what can be measured, and what a picture and a table of their own need."""

    def __init__(self) -> None:
        """Begin with nothing measured."""
        self.growths: list[speed_growth.Growth] = []
        self.waits: list[speed_waits.Wait] = []

    def kinds(self) -> Mapping[str, Measure]:
        """Return what is measured, by name, in the order in which that happens."""
        return {
            "start": speed_start.start_rows,
            "compile": lambda: [speed_machine.compile_row()],
            "timing": speed_machine.timing_rows,
            "numerics": _numerics_rows,
            "memory": lambda: [speed_machine.memory_row()],
            "matmul": speed_matmul.matmul_rows,
            "naive": lambda: [speed_matmul.naive_row()],
            "simulate": speed_machine.simulate_rows,
            "sweep": speed_sweep.sweep_rows,
            "cold": lambda: [speed_start.cold_row()],
            "growth": self._growth_rows,
            WAITS: self._wait_rows,
        }

    def _growth_rows(self) -> list[Row]:
        self.growths = speed_growth.growths()
        return [growth.row() for growth in self.growths]

    def _wait_rows(self) -> list[Row]:
        self.waits = speed_waits.waits()
        return [wait.row() for wait in self.waits]


def _numerics_rows() -> list[Row]:
    return [
        *numerics.decode_rows(tries=NUMERICS_TRIES),
        *numerics.quantize_rows(tries=NUMERICS_TRIES),
        numerics.memory_row(),
    ]


def markdown(rows: Sequence[Row], where: str) -> str:
    """Return the rows as a table of a page, with the machine that they were measured on."""
    lines = [
        f"Measured on: {where}.",
        "",
        "| what | must be | is | unit | ratio | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        beside = ", ".join(f"{name} {_cell(value)}" for name, value in row.beside.items())
        cells = [row.name, _demand(row), f"{row.figure:.3g}", row.unit, _verdict(row), beside]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _demand(row: Row) -> str:
    sign = "≤" if row.less_is_better else "≥"
    return "" if row.target is None else f"{sign} {row.target:.4g}"


def _verdict(row: Row) -> str:
    """Return the ratio, in bold where the target is missed, and whether nobody should trust it."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    told = f"**{ratio}**" if row.met is False else ratio
    return f"{told} disturbed".strip() if row.disturbed else told


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def write_tables(rows: Sequence[Row], waits: Sequence[speed_waits.Wait], where: str) -> None:
    """Write the tables of the page anew: that of waits, and that of the other rows if there are any."""
    page = PAGE.read_text(encoding="utf-8")
    names = {wait.row().name for wait in waits}
    others = [row for row in rows if row.name not in names]
    if waits:
        page = block("waits").sub(lambda _: speed_waits.table(waits, where), page)
    if others:
        page = block("speed").sub(lambda _: markdown(others, where), page)
    PAGE.write_text(page, encoding="utf-8")


def options_parser() -> ArgumentParser:
    """Return the command line."""
    parser = json_parser("Measure how fast everything is, beside what it must reach.")
    parser.add_argument(
        "--only",
        metavar="KIND",
        action="append",
        choices=list(Session().kinds()),
        help="measure this kind of rows alone; may be given several times: %(choices)s",
    )
    parser.add_argument(
        "--table", action="store_true", help=f"write the rows into docs/{PAGE.name} too"
    )
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="draw the growth of times as SVG too"
    )
    return parser


def main() -> None:
    """Measure, print, and write what is asked for."""
    parser = options_parser()
    options = parser.parse_args()
    session = Session()
    chosen = options.only or list(session.kinds())
    if options.plot is not None and "growth" not in chosen:
        parser.error("--plot must go with the rows of growth: add --only growth")
    if options.table and options.only and set(options.only) != {WAITS}:
        parser.error(f"--table must go with all rows, or with --only {WAITS}, not with other kinds")
    forced = [name for name in FORCED if name in os.environ]
    if forced:
        parser.error(f"OpenBLAS must choose its own kernels: unset {', '.join(forced)}")
    where = machine()
    if not options.json:
        print(where, flush=True)
    rows: list[Row] = []
    for kind, measure in session.kinds().items():
        if kind not in chosen:
            continue
        for row in measure():
            rows.append(row)
            if not options.json:
                print(row.as_text(), flush=True)
    if options.json:
        document = {"machine": where, "rows": [row.as_json() for row in rows]}
        print(json.dumps(document, indent=2))
    if options.table:
        write_tables(rows, session.waits, where)
    if options.plot is not None:
        drawn = speed_plot.picture(session.growths, speed_growth.SIZES)
        options.plot.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
