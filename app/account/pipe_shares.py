"""What the pipes did with the cycles of a run, cluster by cluster put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sim.account.records import COLUMNS, Cause
from .core_places import places
from .pipe_work import pipe_work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...codegen.isa.vocabulary import ClusterCore, Pipe
    from ...sim.report import SimResult

WAITS = tuple(cause for cause in COLUMNS if cause is not Cause.BUSY)
"""What a pipe can wait for, beside having nothing to do."""


@dataclass(frozen=True, slots=True)
class PipeShare:
    """What a pipe did, in all cores that are the same of their clusters.

    Attributes:
        core: Which core of its cluster.
        pipe: The pipe.
        work: What it does.
        clusters: How many clusters have such a core with work.
        busy_cycles: Cycles at work, the mean over these.
        busy: The same, as a part of the work cycles.
        waits: What it waited for, as parts of the work cycles, means.
        idle: Without anything to do, as a part of the work cycles, the mean.
        least: The least of the busy shares, and the cluster that has it.
        most: The largest of them, and the cluster that has it.
    """

    core: ClusterCore
    pipe: Pipe
    work: str
    clusters: int
    busy_cycles: int
    busy: float
    waits: Mapping[Cause, float]
    idle: float
    least: tuple[float, int]
    most: tuple[float, int]

    @property
    def name(self) -> str:
        """The name of the pipe."""
        return self.pipe.name

    @property
    def waiting(self) -> float:
        """What it waited for anything, as a part of the work cycles."""
        return sum(self.waits.values())

    def as_json(self) -> dict[str, Any]:
        """Return the shares as plain values."""
        return {
            "core": self.core.name,
            "pipe": self.name,
            "clusters": self.clusters,
            "busy_cycles": self.busy_cycles,
            "busy": self.busy,
            "waits": {cause.value: share for cause, share in self.waits.items()},
            "idle": self.idle,
            "least_busy": {"cluster": self.least[1], "busy": self.least[0]},
            "most_busy": {"cluster": self.most[1], "busy": self.most[0]},
        }


def pipe_shares(simulation: SimResult) -> tuple[PipeShare, ...]:
    """Return the pipes that had anything to do, core by core, in the order in which data flows."""
    whole = max(1, simulation.cycles - simulation.launch_cycles)
    at = places(simulation.cores)
    found: list[PipeShare] = []
    for core in sorted({core for _, core in at}):
        numbers = [number for number, (_, each) in enumerate(at) if each is core]
        for pipe, work in pipe_work(core.kind).items():
            accounts = simulation.accounts[numbers, pipe]
            busy = accounts[:, COLUMNS[Cause.BUSY]]
            if not busy.any():
                continue
            waits = {cause: float(accounts[:, COLUMNS[cause]].mean() / whole) for cause in WAITS}
            share = float(busy.mean() / whole)
            first, last = int(np.argmin(busy)), int(np.argmax(busy))
            found.append(
                PipeShare(
                    core,
                    pipe,
                    work,
                    len(numbers),
                    round(float(busy.mean())),
                    share,
                    waits,
                    max(0.0, 1 - share - sum(waits.values())),
                    (float(busy[first] / whole), at[numbers[first]][0]),
                    (float(busy[last] / whole), at[numbers[last]][0]),
                )
            )
    return tuple(found)
