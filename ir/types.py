"""Tensors off chip, tiles on chip, and how each lies in memory.

Shapes are logical: elements, never bytes, and FP4 counts its elements one by one. The views say
where an element lies; the implicit view of a memory space is what its hardware expects
(:func:`implicit_tile_view`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from .errors import IRTypeError, IRValueError
from .expr import ConstInt, Expr, Type, as_dim, set_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .dtypes import DType

Dims = tuple[Expr, ...]


class TensorLayout(Enum):
    """Order of a tensor's elements in global memory."""

    ND = "ND"
    DN = "DN"
    NZ = "NZ"
    MX_A_ZZ = "MX_A_ZZ"
    MX_B_NN = "MX_B_NN"

    @property
    def is_mx(self) -> bool:
        """Whether the layout is one of the two boxed MX scale layouts."""
        return self in (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)


class MemorySpace(IntEnum):
    """Where a tile lies."""

    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9


class TileLayout(Enum):
    """Order of boxes in a tile (`blayout`) or of elements in a box (`slayout`)."""

    none_box = "none_box"
    row_major = "row_major"
    col_major = "col_major"


class PadValue(Enum):
    """What stands in a tile beyond its valid shape."""

    null = "null"
    zero = "zero"
    max = "max"
    min = "min"


class CompactMode(Enum):
    """Whether a tile's row pitch follows its valid rows (`normal`) or its physical rows."""

    null = "null"
    normal = "normal"


class AccPhase(Enum):
    """Which part of a long sum a product of a row is; the numbers do not depend on it."""

    unspecified = "unspecified"
    partial = "partial"
    final = "final"


@dataclass(frozen=True)
class MemRef:
    """A stretch of an on-chip memory: allocation name, byte offset (-1 = not yet), size in bytes.

    `slots` > 1 asks for that many buffers; `buf[i % 2]` in a tile's annotation says which one it takes.
    """

    name: str = ""
    byte_offset: int = -1
    size: int = 0
    slots: int = 1


@dataclass(frozen=True, eq=False, init=False)
class TensorView(Type):
    """Strides in elements (empty: not yet known), layout, and valid shape of a tensor."""

    stride: Dims
    layout: TensorLayout
    valid_shape: Dims
    pad: PadValue

    def __init__(
        self,
        stride: Iterable[Expr | int] | None = None,
        layout: TensorLayout | None = None,
        valid_shape: Iterable[Expr | int] | None = None,
        pad: PadValue = PadValue.null,
    ) -> None:
        if layout is None and (stride is not None or valid_shape is not None):
            message = "A TensorView with a stride or a valid_shape must name its layout"
            raise IRValueError(message)
        set_fields(
            self,
            stride=tuple(as_dim(s) for s in stride or ()),
            layout=layout or TensorLayout.ND,
            valid_shape=tuple(as_dim(s) for s in valid_shape or ()),
            pad=pad,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the view says nothing beyond "row-major, packed, all of it"."""
        return (
            not self.stride
            and not self.valid_shape
            and self.layout is TensorLayout.ND
            and self.pad is PadValue.null
        )


@dataclass(frozen=True, eq=False, init=False)
class TensorType(Type):
    """A tensor in global memory; a plain view is stored as None."""

    shape: Dims
    dtype: DType
    memref: MemRef | None
    tensor_view: TensorView | None

    def __init__(
        self,
        shape: Iterable[Expr | int],
        dtype: DType,
        memref: MemRef | None = None,
        tensor_view: TensorView | TensorLayout | None = None,
    ) -> None:
        view = (
            TensorView(layout=tensor_view) if isinstance(tensor_view, TensorLayout) else tensor_view
        )
        set_fields(
            self,
            shape=tuple(as_dim(s) for s in shape),
            dtype=dtype,
            memref=memref,
            tensor_view=None if view is None or view.is_plain else view,
        )

    @property
    def layout(self) -> TensorLayout:
        """The view's layout; ND without a view."""
        return self.tensor_view.layout if self.tensor_view else TensorLayout.ND

    @property
    def stride(self) -> Dims:
        """The view's strides in elements; empty where they are not yet known."""
        return self.tensor_view.stride if self.tensor_view else ()

    @property
    def valid_shape(self) -> Dims:
        """The view's valid shape; empty where all of the shape is valid."""
        return self.tensor_view.valid_shape if self.tensor_view else ()


class DistributedTensorType(TensorType):
    """A tensor of another rank's memory, seen through a communication window."""


@dataclass(frozen=True, eq=False)
class CommCtxType(Type):
    """A communication context, passed as a trailing parameter."""


@dataclass(frozen=True, eq=False, init=False)
class TileView(Type):
    """How a tile lies in its memory; `fractal` is the byte size of a box."""

    valid_shape: Dims
    stride: Dims
    start_offset: Expr | None
    blayout: TileLayout
    slayout: TileLayout
    fractal: int
    pad: PadValue
    compact: CompactMode

    def __init__(
        self,
        valid_shape: Iterable[Expr | int] | None = None,
        stride: Iterable[Expr | int] | None = None,
        start_offset: Expr | int | None = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        compact: CompactMode = CompactMode.null,
    ) -> None:
        set_fields(
            self,
            valid_shape=tuple(as_dim(s) for s in valid_shape or ()),
            stride=tuple(as_dim(s) for s in stride or ()),
            start_offset=None if start_offset is None else as_dim(start_offset),
            blayout=blayout,
            slayout=slayout,
            fractal=fractal,
            pad=pad,
            compact=compact,
        )

    @property
    def arrangement(self) -> tuple[TileLayout, TileLayout, int]:
        """Order of boxes, order within a box, bytes a box."""
        return self.blayout, self.slayout, self.fractal


_ROW, _COL, _NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box

#: What each memory's hardware expects: order of boxes, order within a box, bytes a box.
_ARRANGEMENT: dict[MemorySpace | None, tuple[TileLayout, TileLayout, int]] = {
    None: (_ROW, _NONE, 512),
    MemorySpace.DDR: (_ROW, _NONE, 512),
    MemorySpace.Vec: (_ROW, _NONE, 512),
    MemorySpace.Mat: (_COL, _ROW, 512),
    MemorySpace.Left: (_COL, _ROW, 512),
    MemorySpace.Right: (_ROW, _COL, 512),
    MemorySpace.Acc: (_COL, _ROW, 1024),
    MemorySpace.Bias: (_ROW, _NONE, 512),
    MemorySpace.ScalarLocal: (_ROW, _NONE, 512),
    MemorySpace.LeftScale: (_ROW, _ROW, 32),
    MemorySpace.RightScale: (_COL, _COL, 32),
}

#: The arrangement of a scale tile, on its way through Mat as well as in its scale buffer.
SCALE_ARRANGEMENT = {
    TensorLayout.MX_A_ZZ: _ARRANGEMENT[MemorySpace.LeftScale],
    TensorLayout.MX_B_NN: _ARRANGEMENT[MemorySpace.RightScale],
}


def implicit_tile_view(shape: Dims, space: MemorySpace | None) -> TileView:
    """Return the view that `space` gives a tile of `shape` when nothing else is said.

    A rank-2 Mat tile of a single row is a plain row vector (a bias, or a GEMV operand); a rank-2 Vec tile
    of a single column has its elements one behind the other.
    """
    blayout, slayout, fractal = _ARRANGEMENT[space]
    if space is MemorySpace.Vec and is_column(shape):
        blayout = _COL
    if space is MemorySpace.Mat and len(shape) == 2 and constant_dim(shape[0]) == 1:
        blayout, slayout, fractal = _ARRANGEMENT[MemorySpace.Bias]
    return TileView(blayout=blayout, slayout=slayout, fractal=fractal)


def is_column(shape: Dims) -> bool:
    """Return whether a shape is that of a matrix with one column and several rows."""
    return len(shape) == 2 and constant_dim(shape[1]) == 1 and constant_dim(shape[0]) != 1


@dataclass(frozen=True, eq=False, init=False)
class TileType(Type):
    """A tile in on-chip memory; a view equal to the implicit one is stored as None."""

    shape: Dims
    dtype: DType
    memref: MemRef | None
    tile_view: TileView | None
    memory_space: MemorySpace | None

    def __init__(
        self,
        shape: Iterable[Expr | int],
        dtype: DType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> None:
        dims = tuple(as_dim(s) for s in shape)
        view = tile_view
        if view is not None:
            if view.valid_shape and _same_dims(view.valid_shape, dims):
                view = _with_valid(view, ())
            if view == implicit_tile_view(dims, memory_space):
                view = None
        set_fields(
            self, shape=dims, dtype=dtype, memref=memref, tile_view=view, memory_space=memory_space
        )

    def get_effective_tile_view(self) -> TileView:
        """Return the stored view, or the implicit one, with the valid shape filled in."""
        view = self.tile_view or implicit_tile_view(self.shape, self.memory_space)
        return view if view.valid_shape else _with_valid(view, self.shape)

    @property
    def valid_shape(self) -> Dims:
        """The valid extents; the shape itself where all of it is valid."""
        stored = self.tile_view.valid_shape if self.tile_view else ()
        return stored or self.shape


@dataclass(frozen=True, eq=False, init=False)
class TupleType(Type):
    """Several values in one."""

    types: tuple[Type, ...]

    def __init__(self, types: Iterable[Type]) -> None:
        set_fields(self, types=tuple(types))


def _with_valid(view: TileView, valid_shape: Dims) -> TileView:
    return TileView(
        valid_shape,
        view.stride,
        view.start_offset,
        view.blayout,
        view.slayout,
        view.fractal,
        view.pad,
        view.compact,
    )


def one_place(one: Type, other: Type) -> bool:
    """Return whether two tiles can go by one name: alike, but for one that has no memory yet.

    InferTileMemorySpace decides the memory of the name then.
    """
    if not isinstance(one, TileType) or not isinstance(other, TileType):
        return False
    one_is_placed, other_is_placed = one.memory_space is not None, other.memory_space is not None
    return (
        one_is_placed is not other_is_placed
        and one.dtype is other.dtype
        and _same_dims(one.shape, other.shape)
        and _same_dims(one.valid_shape, other.valid_shape)
    )


def constant_dim(dim: Expr) -> int | None:
    """Return a dimension, offset or extent as an integer, or None when it is not a constant."""
    return dim.value if isinstance(dim, ConstInt) else None


def _same_dims(left: Dims, right: Dims) -> bool:
    from .structural import structural_equal

    return len(left) == len(right) and all(
        a is b or structural_equal(a, b) for a, b in zip(left, right, strict=True)
    )


def constant_dims(dims: Dims) -> tuple[int, ...] | None:
    """Return the dimensions as integers, or None when one is not a constant."""
    values = [constant_dim(d) for d in dims]
    return None if None in values else tuple(v for v in values if v is not None)


def static_dims(dims: Dims, what: str) -> tuple[int, ...]:
    """Return the dimensions as integers; `what` names the owner in the error."""
    values = constant_dims(dims)
    if values is None:
        message = f"{what} must have constant dimensions, not symbolic ones"
        raise IRTypeError(message)
    return values
