"""Raw IR around tensors in NZ: what the tests of their pass build programs from."""

from collections.abc import Sequence
from typing import Any

from scalebox.ir.dtypes import DType, SimpleDType
from scalebox.ir.errors import Span
from scalebox.ir.expr import Call, Op, Var
from scalebox.ir.passes.nz_blocked_types import is_nz
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TensorView, TileType

from .parts import Dim, at, tuple_of

NZ = TensorLayout.NZ


def nz_type(shape: Sequence[Dim] = (64, 128), dtype: SimpleDType = DType.Int8) -> TensorType:
    return TensorType(shape, dtype, None, TensorView(layout=NZ))


def nz(shape: Sequence[Dim] = (64, 128), dtype: SimpleDType = DType.Int8, line: int = 0) -> Var:
    return Var("x", nz_type(shape, dtype), at(line) if line else Span.unknown())


def nz_load(
    tensor: Var,
    offsets: Sequence[Dim],
    window: Sequence[Dim] = (16, 32),
    valid: Sequence[Dim] | None = None,
    *,
    target: MemorySpace | None = MemorySpace.Mat,
    line: int = 0,
    **kwargs: Any,
) -> Call:
    """A load of whole boxes into a flat tile, as the pass finds it."""
    assert is_nz(tensor.type)
    assert isinstance(tensor.type, TensorType)
    rows = 1
    for each in window[:-1]:
        rows *= each if isinstance(each, int) else 1
    tile = TileType((rows, window[-1]), tensor.type.dtype, None, None, MemorySpace.Mat)
    args = [tensor, tuple_of(*offsets), tuple_of(*window), tuple_of(*(valid or window))]
    named = {} if target is None else {"target_memory": target}
    return Call(
        Op("tile.load"), args, {**named, **kwargs}, tile, at(line) if line else Span.unknown()
    )
