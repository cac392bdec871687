"""Where the cores of a run are on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...codegen.isa.vocabulary import ClusterCore
    from ...sim.report import CoreName


def places(cores: Sequence[CoreName]) -> tuple[tuple[int, ClusterCore], ...]:
    """Return the cluster of each core, and which core of it it is."""
    return tuple((core.cluster, core.core) for core in cores)


def labels(cores: Sequence[CoreName]) -> tuple[str, ...]:
    """Return what each core is called: its cluster and its name there, as "0.AIC"."""
    return tuple(str(core) for core in cores)
