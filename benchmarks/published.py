"""The performance kernels, timing only, beside the times that were published for a device.

    python benchmarks/published.py                           a table, and what the pipes of a core alone do
    python benchmarks/published.py --row mxfp8:5120,5120,5120 our figure for a size, published or not
    python benchmarks/published.py --json                    the table for a program

An error is ours over theirs, less one. MXFP8 must be within 5 % of the published time, and the busy shares
of its pipes within five points; MXFP4 within 10 %, and its shares are shown only, since its document tells
them in two orders. At 2048 x 2048 x 2048, where start-up is a large part, the times may be off by 10 % and
25 %. A busy share is of the time between the launch and the end. The geometric mean is of the larger over
the smaller of the two times.
"""

import json
import math
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rows import json_parser, machine

import scalebox
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.app.result import Result
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.language.text import load_file
from scalebox.sim.pipes.tables import BUSY, MEMORY

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GRID = (4, 8)  # cores along M and along N
PIPES = {"cube": Pipe.M, "textract": Pipe.MTE1, "tload": Pipe.MTE2, "tstore": Pipe.FIX}
HELD = (BUSY, MEMORY)
"""Columns of the accounts that a device's busy share counts: all that an instruction holds its pipe for."""


@dataclass(frozen=True)
class Demand:
    """How near a kernel's figures must come.

    Attributes:
        time: How far the time may be off, as a share.
        small_time: The same at 2048 x 2048 x 2048.
        share_points: How far a busy share may be off, points; None where shares are shown only.
    """

    time: float
    small_time: float
    share_points: float | None


DEMANDS = {
    "mxfp8": Demand(time=0.05, small_time=0.10, share_points=5.0),
    "mxfp4": Demand(time=0.10, small_time=0.25, share_points=None),
}
SMALL = (2048, 2048, 2048)


@dataclass(frozen=True)
class Work:
    """A kernel and the sizes that it is run with.

    Attributes:
        kernel: `mxfp8` or `mxfp4`.
        m, k, n: The sizes.
    """

    kernel: str
    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """What the row is called."""
        return f"{self.kernel} {self.m} x {self.k} x {self.n}"

    @property
    def file(self) -> Path:
        """The example that it times."""
        return EXAMPLES / f"{self.kernel}_performance.py"


@dataclass(frozen=True)
class Published(Work):
    """One published measurement.

    Attributes:
        ms: Milliseconds.
        cube, textract, tload, tstore: How long the pipes were busy, per cent of the time.
    """

    ms: float
    cube: float
    textract: float
    tload: float
    tstore: float

    @property
    def within(self) -> float:
        """How far our time may be off, as a share."""
        demand = DEMANDS[self.kernel]
        return demand.small_time if (self.m, self.k, self.n) == SMALL else demand.time

    @property
    def shares(self) -> dict[str, float]:
        """The busy shares by name, per cent."""
        return {name: getattr(self, name) for name in PIPES}


# Device times from the documents of the manual kernels matmul_mxfp8_performance (E5M2 in, BF16 out, base
# tile 128 x 256 x 128, four steps a panel) and matmul_mxfp4_performance (E2M1, 256 x 256 x 256, two steps
# a panel) of the public PTO instruction set library, both on 32 cores as 4 x 8. The English and the
# Chinese document of the second one have the columns of TEXTRACT and TLOAD in different orders; here they
# stand in the Chinese order, in which both kernels move as many bytes a cycle.
ROWS = (
    Published("mxfp8", 4096, 4096, 4096, 0.1879, 87.7, 54.2, 96.3, 5.3),
    Published("mxfp8", 6144, 6144, 6144, 0.6020, 91.6, 57.3, 98.2, 3.5),
    Published("mxfp4", 4096, 1024, 8192, 0.1226, 64.9, 29.3, 58.4, 25.7),
    Published("mxfp4", 2048, 8192, 8192, 0.3489, 90.7, 45.8, 88.1, 4.6),
)


@dataclass(frozen=True)
class Timed:
    """What we say about a kernel and sizes.

    Attributes:
        work: What was run.
        ms: Our milliseconds.
        shares: Our busy shares by name, per cent.
    """

    work: Work
    ms: float
    shares: dict[str, float]

    def as_json(self) -> dict[str, object]:
        """Return the row as plain values; what needs a published time is null."""
        work = self.work
        return {
            "name": work.name,
            "unit": "of the published time",
            "target": None,
            "figure": None,
            "ratio": None,
            "met": None,
            "kernel": work.kernel,
            "m": work.m,
            "k": work.k,
            "n": work.n,
            "published_ms": None,
            "ours_ms": self.ms,
            "error": None,
            **{f"published_{name}": None for name in PIPES},
            **{f"ours_{name}": share for name, share in self.shares.items()},
        }

    def as_text(self) -> str:
        """Return the row as a line of a table."""
        shares = "".join(f"{'-':>9} {share:>5.1f}" for share in self.shares.values())
        return f"{self.work.name:<27}{'-':>9}{self.ms:>9.4f}{'-':>8}{shares}"


@dataclass(frozen=True)
class Compared(Timed):
    """A published row beside ours.

    Attributes:
        row: The published one.
    """

    row: Published

    @property
    def error(self) -> float:
        """How much longer ours takes, as a share."""
        return self.ms / self.row.ms - 1

    @property
    def worst_share(self) -> float:
        """How far the busy share is off that is off most, points."""
        return max(abs(self.shares[name] - share) for name, share in self.row.shares.items())

    @property
    def ratio(self) -> float:
        """What is allowed over what is off: of the time or, if that is less, of the shares."""
        time = self.row.within / max(abs(self.error), 1e-9)
        points = DEMANDS[self.row.kernel].share_points
        return time if points is None else min(time, points / max(self.worst_share, 1e-9))

    @property
    def met(self) -> bool:
        """Whether time and shares are as near as they must be."""
        return self.ratio >= 1

    def as_json(self) -> dict[str, object]:
        """Return the row as plain values."""
        return super().as_json() | {
            "target": self.row.within,
            "figure": abs(self.error),
            "ratio": self.ratio,
            "met": self.met,
            "published_ms": self.row.ms,
            "error": self.error,
            **{f"published_{name}": share for name, share in self.row.shares.items()},
        }

    def as_text(self) -> str:
        """Return the row as a line of a table."""
        shares = "".join(
            f"{share:>9.1f} {self.shares[name]:>5.1f}" for name, share in self.row.shares.items()
        )
        verdict = "met" if self.met else "MISSED"
        row = self.row
        return f"{row.name:<27}{row.ms:>9.4f}{self.ms:>9.4f}{self.error:>+8.1%}{shares}  {verdict}"


def ran(work: Work, **params: int) -> Result:
    """Return the run, timing only, of a kernel with its sizes, or with others."""
    sizes = {"M": work.m, "K": work.k, "N": work.n} | params
    kernel = load_file(work.file, params=sizes)
    return scalebox.run(kernel.program, {}, machine=machine_of_kernel(kernel), functional=False)


def timed(work: Work) -> Timed:
    """Run a row, and compare it where a time is published."""
    result = ran(work)
    sim = result.simulation
    cycles = sim.cycles - sim.launch_cycles
    held = sim.accounts[:, :, list(HELD)].sum(2).mean(0)
    shares = {name: float(100 * held[pipe] / cycles) for name, pipe in PIPES.items()}
    ms = 1e3 * sim.cycles / result.target.clock_hz
    if isinstance(work, Published):
        return Compared(work, ms, shares, work)
    return Timed(work, ms, shares)


def summary(rows: Sequence[Timed]) -> dict[str, object]:
    """Return the mean factor between the two times and the row that is off most, for those that have both."""
    both = [row for row in rows if isinstance(row, Compared)]
    if not both:
        return {}
    mean = math.exp(sum(abs(math.log(row.ms / row.row.ms)) for row in both) / len(both))
    worst = max(both, key=lambda row: abs(row.error))
    return {"geometric_mean": mean, "worst": worst.row.name, "worst_error": worst.error}


def table(rows: Sequence[Timed]) -> list[str]:
    """Return the rows and what they come to as lines."""
    heads = "".join(f"{name + ' %':>15}" for name in PIPES)
    lines = [
        f"{'':<27}{'ms':>9}{'ours':>9}{'error':>8}{heads}",
        *(row.as_text() for row in rows),
    ]
    match summary(rows):
        case {"geometric_mean": float(mean), "worst": worst, "worst_error": float(error)}:
            lines.append(
                f"geometric mean: a factor of {mean:.4f}; worst: {worst}, {error:+.1%}",
            )
        case _:
            pass
    return lines


def of_one_core(row: Published) -> list[str]:
    """Return what the pipes of a core that has a region for itself do, as lines."""
    down, across = GRID
    result = ran(row, M=row.m // down, N=row.n // across, GRID_M=1, GRID_N=1)
    sim = result.simulation
    cycles = row.ms * 1e-3 * result.target.clock_hz
    lines = [
        f"{row.name}: {sim.cycles:,} cycles of one core and the launch, {cycles:,.0f} published"
    ]
    for name, pipe in PIPES.items():
        busy, theirs = int(sim.accounts[0, pipe, list(HELD)].sum()), row.shares[name] * cycles / 100
        lines.append(f"  {name:<9}{busy:>12,} busy, {theirs:>12,.0f} published")
    return lines


def work_of(text: str) -> Work:
    """Return what `KERNEL:M,K,N` names, with the published figures if there are any.

    Raises:
        ArgumentTypeError: It names no kernel, or not three sizes.
    """
    found = re.fullmatch(rf"({'|'.join(DEMANDS)}):([1-9]\d*),([1-9]\d*),([1-9]\d*)", text)
    if found is None:
        message = (
            f"a row must be KERNEL:M,K,N with a KERNEL of {' or '.join(DEMANDS)} and three positive "
            f"sizes, as mxfp8:4096,4096,4096, not {text!r}"
        )
        raise ArgumentTypeError(message)
    work = Work(found[1], int(found[2]), int(found[3]), int(found[4]))
    return next((row for row in ROWS if row.name == work.name), work)


def main() -> None:
    """Print the comparison."""
    parser = json_parser("Compare the model with published times.")
    parser.add_argument(
        "--row",
        metavar="KERNEL:M,K,N",
        type=work_of,
        action="append",
        help="time this row in place of the published ones; may be given several times",
    )
    options = parser.parse_args()
    rows = [timed(work) for work in options.row or ROWS]
    if options.json:
        document = {"machine": machine(), "rows": [row.as_json() for row in rows], **summary(rows)}
        print(json.dumps(document, indent=2))
        return
    print(machine())
    print("\n".join(table(rows)))
    if not options.row:
        print("A core that has its region, and the memory, for itself:")
        print("\n".join(line for row in ROWS for line in of_one_core(row)))


if __name__ == "__main__":
    main()
