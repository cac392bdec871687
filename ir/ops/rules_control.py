"""Type rules of the ops without tensors and tiles: which block runs, and names of launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import Index, TaskId
from ..node import ScalarType

if TYPE_CHECKING:
    from .row import CallSite


def infer_block(site: CallSite) -> ScalarType:
    """Return the type of a block's number, and of how many there are."""
    del site
    return ScalarType(Index)


def infer_task(site: CallSite) -> ScalarType:
    """Return the type of the name of a launch."""
    del site
    return ScalarType(TaskId)
