"""How times grow with the work: a matmul's with its MACs, a timed launch's with its instructions.

If a time is a constant part and a part in proportion to the work, then what a size takes more than
the smallest one is in proportion to the work that it has more. So the smallest size is taken off
all others, times and work alike, and a straight line is laid through the logarithms of what
remains: its slope is 1 where the time is linear, whatever the constant part is. Sizes that take less
than twice as long as the smallest are left out: nearly all that remains of them is noise.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rows import Row
from speed_machine import compiled
from speed_matmul import normal_operands

import scalebox
from scalebox.ir import numerics
from scalebox.ir.dtypes import DType

SIZES = (512, 1024, 2048, 4096, 8192)
TARGET = 1.1
# A size is tried again until this many seconds have gone into it, or it was tried often enough.
ENOUGH_SECONDS, MOST_TRIES = 1.0, 10


@dataclass(frozen=True)
class Growth:
    """Times of one kind of work at growing sizes.

    Attributes:
        name: What was done.
        unit: What the work is counted in.
        counts: How much of it, ascending.
        seconds: The shortest time of each.
    """

    name: str
    unit: str
    counts: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The power of the work that the time grows with, beyond the constant part."""
        return slope(*self._grown())

    def row(self) -> Row:
        """Return the row of the exponent, with the time of every size beside it."""
        times = {
            f"s_at_{size}": seconds for size, seconds in zip(SIZES, self.seconds, strict=False)
        }
        return Row(
            name=f"growth of {self.name}",
            unit="power",
            target=TARGET,
            figure=self.exponent,
            less_is_better=True,
            beside=times,
        )

    def _grown(self) -> tuple[list[float], list[float]]:
        least, constant = self.counts[0], self.seconds[0]
        pairs = zip(self.counts, self.seconds, strict=True)
        grown = [
            (math.log(count - least), math.log(seconds - constant))
            for count, seconds in pairs
            if seconds >= 2 * constant
        ]
        assert len(grown) > 1, f"two sizes must take twice as long as the smallest: {self}"
        return [x for x, _ in grown], [y for _, y in grown]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the line through points that leaves the least squares."""
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    off = [each - middle_x for each in x]
    together = sum(dx * (each - middle_y) for dx, each in zip(off, y, strict=True))
    return together / sum(dx * dx for dx in off)


def matmul_growth(sizes: Sequence[int] = SIZES) -> Growth:
    """Measure the matmul of E4M3 at each size."""
    seconds: list[float] = []
    numerics.matmul(*normal_operands(DType.MXFP8_E4M3, sizes[0]))  # compiles what is not yet
    for size in sizes:
        a, b = normal_operands(DType.MXFP8_E4M3, size)
        seconds.append(shortest(lambda a=a, b=b: numerics.matmul(a, b)))
    return Growth("matmul", "MACs", tuple(size**3 for size in sizes), tuple(seconds))


def timing_growth(sizes: Sequence[int] = SIZES) -> Growth:
    """Measure launches on 32 cores without data at each size."""
    counts: list[int] = []
    seconds: list[float] = []
    for size in sizes:
        executable = compiled(size)
        run = scalebox.run(executable, {}, functional=False)
        counts.append(run.simulation.instructions)
        seconds.append(shortest(lambda made=executable: scalebox.run(made, {}, functional=False)))
    return Growth("timing", "instructions", tuple(counts), tuple(seconds))


def shortest(work: Callable[[], object]) -> float:
    """Return the shortest of a number of tries, few where one takes long."""
    times: list[float] = []
    while sum(times) < ENOUGH_SECONDS and len(times) < MOST_TRIES:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def growths() -> list[Growth]:
    """Measure both kinds of work."""
    return [matmul_growth(), timing_growth()]
