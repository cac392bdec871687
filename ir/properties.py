"""Properties that a program can have, and sets of them.

Passes declare which they require, produce and invalidate; the verifier has a rule for each.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class IRProperty(Enum):
    """What may be true of a program.

    The order is that of reports: form first, then what the passes produce along the way.
    """

    SSAForm = "SSAForm"
    UseAfterDef = "UseAfterDef"
    TypeChecked = "TypeChecked"
    NormalizedStmtStructure = "NormalizedStmtStructure"
    NoRedundantBlocks = "NoRedundantBlocks"
    NoNestedCalls = "NoNestedCalls"
    BreakContinueValid = "BreakContinueValid"
    PipelineLoopValid = "PipelineLoopValid"
    InOutUseValid = "InOutUseValid"
    NoNestedInCore = "NoNestedInCore"
    SplitIncoreOrch = "SplitIncoreOrch"
    IncoreTileOps = "IncoreTileOps"
    TileOps2D = "TileOps2D"
    TileMemoryInferred = "TileMemoryInferred"
    AccToGmStoreValid = "AccToGmStoreValid"
    TensorViewCanonical = "TensorViewCanonical"
    HasMemRefs = "HasMemRefs"
    AllocatedMemoryAddr = "AllocatedMemoryAddr"


class IRPropertySet:
    """A set of properties; it is changed by `insert` and `remove` only."""

    def __init__(self, properties: Iterable[IRProperty] = ()) -> None:
        self._members = set(properties)

    def insert(self, member: IRProperty) -> None:
        """Add `member`."""
        self._members.add(member)

    def remove(self, member: IRProperty) -> None:
        """Take `member` out, if it is there."""
        self._members.discard(member)

    def contains(self, member: IRProperty) -> bool:
        """Whether `member` is in the set."""
        return member in self._members

    def union_with(self, other: Iterable[IRProperty]) -> IRPropertySet:
        """Return the set of what is in either."""
        return IRPropertySet([*self, *other])

    def to_list(self) -> list[IRProperty]:
        """Return the members in the order in which :class:`IRProperty` lists them."""
        return [member for member in IRProperty if member in self._members]

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def __iter__(self) -> Iterator[IRProperty]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IRPropertySet) and other.to_list() == self.to_list()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"IRPropertySet({{{', '.join(member.name for member in self)}}})"


#: What must hold before and after every pass, whatever it declares.
STRUCTURAL = frozenset(
    {
        IRProperty.TypeChecked,
        IRProperty.UseAfterDef,
        IRProperty.NoRedundantBlocks,
        IRProperty.BreakContinueValid,
        IRProperty.PipelineLoopValid,
        IRProperty.InOutUseValid,
        IRProperty.NoNestedInCore,
    }
)
