"""What a representation rule is told."""

from __future__ import annotations

from typing import Protocol

from ..layout import Layout, Shape  # noqa: TC001 - readers resolve these hints at run time
from .descriptors import DType  # noqa: TC001 - the same


class RepresentationValidationContext(Protocol):
    """Facts of a representation that universal validation has accepted, read-only.

    Level i is plane i of the storage schema; `adjacent_layouts[i]` maps the coordinates of level
    i to ordinals of `level_shapes[i + 1]`, first mode fastest.
    """

    @property
    def logical_dtype(self) -> DType:
        """The dtype of the logical value."""
        ...

    @property
    def storage_dtypes(self) -> tuple[DType, ...]:
        """The storage schema: the dtype of each plane."""
        ...

    @property
    def placement_layouts(self) -> tuple[Layout, ...]:
        """Where each plane's coordinates lie in its carrier, in elements."""
        ...

    @property
    def adjacent_layouts(self) -> tuple[Layout, ...]:
        """The logical grouping between consecutive levels; one fewer than planes."""
        ...

    @property
    def level_shapes(self) -> tuple[Shape, ...]:
        """The shape of each level, which is that of its placement layout."""
        ...
