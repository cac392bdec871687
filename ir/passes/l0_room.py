"""What of the cube's buffers the tiles around a statement need while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tile_bytes import ALIGNMENT, round_up, tile_bytes
from ..types import MemorySpace, constant_dims
from .liveness import Live, walk_backwards
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from ..core import Stmt
    from ..expr import Var

#: The memories of the cube's operands and sums, in the order of `Problem.taken`.
L0_SPACES: tuple[MemorySpace, ...] = (
    MemorySpace.Left,
    MemorySpace.Right,
    MemorySpace.Acc,
    MemorySpace.Bias,
)
#: Bytes of each of them.
Bytes = tuple[int, int, int, int]


class Neighbours:
    """The tiles in the cube's buffers that are needed after each assignment and store of a body."""

    def __init__(self, body: Stmt) -> None:
        self._needed: dict[Stmt, tuple[Var, ...]] = {}
        walk_backwards(body, _NearTheCube(), self._note)

    def taken(self, stmt: Stmt, but: Container[Var]) -> Bytes:
        """Return the bytes of :data:`L0_SPACES` that are needed after `stmt`, some tiles left out."""
        sizes = dict.fromkeys(L0_SPACES, 0)
        for var in self._needed.get(stmt, ()):
            tile = tile_of(var)
            if var in but or tile is None or constant_dims(tile.shape) is None:
                continue
            assert tile.memory_space is not None, "it lies near the cube"
            sizes[tile.memory_space] += round_up(tile_bytes(tile), ALIGNMENT[tile.memory_space])
        left, right, acc, bias = sizes.values()
        return left, right, acc, bias

    def _note(self, stmt: Stmt, live: Live) -> None:
        self._needed[stmt] = tuple(live)


class _NearTheCube(Live):
    """The tiles in the cube's buffers that are needed at a place."""

    def add(self, variables: Iterable[Var]) -> None:
        super().add(var for var in variables if _is_near_the_cube(var))

    def copy(self) -> Live:
        return _NearTheCube(self)


def _is_near_the_cube(var: Var) -> bool:
    tile = tile_of(var)
    return tile is not None and tile.memory_space in L0_SPACES
