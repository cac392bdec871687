"""The timeline of a run, ready to be written for Perfetto."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...sim.account.records import records_of
from ...sim.account.slices import Slices
from ...traces.timeline import Timeline
from .core_places import labels, places
from .pipe_work import PIPE_WORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...ir.target import Target
    from ...sim.account.records import Records
    from ...sim.report import SimResult
    from ...traces.timeline import Sample

MOST_SLICES = 30_000
"""A timeline shows as many clusters as have so many slices together, but at least one. A file of as
many has some 12 MB, written in about a second."""

SHOWN = "clusters_shown"
"""The note of a timeline that says how many clusters it shows of how many, if not of all."""


def timeline_of(result: SimResult, target: Target, records: Records | None = None) -> Timeline:
    """Return the timeline of a run.

    It shows all clusters, or, where they have too many slices for a viewer, the first ones; its notes
    say which.

    Args:
        result: The run.
        target: The machine on which it ran.
        records: What its pipes did, if that has been found out already.
    """
    records = records_of(result, target) if records is None else records
    slices = Slices(records, cycles=result.cycles)
    clusters = [cluster for cluster, _ in places(result.cores)]
    shown = shown_clusters(
        clusters, np.bincount(slices.table["core"], minlength=len(clusters)).tolist()
    )
    cores = [number for number, cluster in enumerate(clusters) if cluster in shown]
    notes: dict[str, Any] = {"cycles": result.cycles, "machine": target.name}
    if len(cores) < len(clusters):
        notes[SHOWN] = f"{len(shown)} of {len(set(clusters))}"
    return Timeline(
        slices=partial(slices.slices, cores),
        samples=partial(_samples, slices, target, clusters, shown),
        clock_hz=target.clock_hz,
        pipes=[pipe.name for pipe in PIPE_WORK],
        cores=labels(result.cores),
        notes=notes,
    )


def _samples(
    slices: Slices, target: Target, clusters: Sequence[int], shown: set[int]
) -> Iterator[Sample]:
    """Yield all counters of the clusters that are shown."""
    yield from slices.samples([n for n, each in enumerate(clusters) if each in shown])
    for cluster in sorted(shown):
        cores = [number for number, each in enumerate(clusters) if each == cluster]
        yield from slices.fillings(cores, target)


def shown_clusters(clusters: Sequence[int], counts: Sequence[int]) -> set[int]:
    """Return the clusters that are shown.

    Args:
        clusters: The cluster of each core.
        counts: How many slices each core has.
    """
    shown: set[int] = set()
    left = MOST_SLICES
    for cluster in sorted(set(clusters)):
        left -= sum(count for of, count in zip(clusters, counts, strict=True) if of == cluster)
        if shown and left < 0:
            break
        shown.add(cluster)
    return shown
