"""Runs that are made while their golden is: they are told apart from it by digests afterwards.

Golden of a large kernel takes as long as several runs. What waits for it is small: a row, and the digest
of its outputs. Where that of golden is the same, nothing differs; where it is not, the run is made once
more by a process that has golden, to say where.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .rows import EQUAL, RowStatus, SweepRow, unfinished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .grid import Point


@dataclass(frozen=True)
class Early:
    """A run that was compared with nothing yet.

    Attributes:
        point: The run.
        row: What it found.
        digest: That of its outputs; None where it has none.
        wants_golden: Whether it came so far that golden matters; not where its machine was refused.
    """

    point: Point
    row: SweepRow
    digest: str | None = None
    wants_golden: bool = True


@dataclass(frozen=True)
class Golden:
    """What golden is, as far as others need to know it.

    Attributes:
        digest: That of all outputs; None where nothing is compared.
        problem: Why there is none.
        warnings: What is suspicious about it, as a comparison tells it.
    """

    digest: str | None = None
    problem: str | None = None
    warnings: tuple[str, ...] = ()

    def judged(self, early: Early) -> SweepRow | None:
        """Return the row of a run that was made early, or None if it must be made once more."""
        if self.problem is not None and early.wants_golden:
            row = unfinished(early.point, RowStatus.REFUSED, self.problem)
            return replace(row, machine=early.row.machine)
        if early.digest is None or self.digest is None:
            return early.row
        if early.digest != self.digest:
            return None
        return replace(early.row, golden=EQUAL, warnings=early.row.warnings + self.warnings)


def digest_of(outputs: Mapping[str, Any]) -> str:
    """Return the digest of names, dtypes, shapes and bits of outputs."""
    digest = hashlib.blake2b()
    for name in sorted(outputs):
        array = np.ascontiguousarray(outputs[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
