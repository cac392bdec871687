"""Rules on tiles and tensors that hold once the passes have placed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import Call, Op, Type
from ..ops import ROWS
from ..ops.checks import MX_BLOCKED_RANK, show_dims
from ..ops.rules_memory import is_packed, stored_dtypes
from ..types import MemorySpace, TensorType, TileType, TupleType
from .structure import CORE_TYPES
from .walk import all_calls, all_vars, tiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core import Function, Program
    from .diagnostics import Findings

NOT_2D = 301
NO_SPACE = 302
WRONG_SPACE = 303
WRONG_STORE = 304
NO_STRIDE = 305
NO_MEMREF = 306
NO_ADDRESS = 307

_TILE_RANK = 2
_STORED_FROM = (MemorySpace.Acc, MemorySpace.Vec)


def check_tiles_2d(function: Function, program: Program, findings: Findings) -> None:
    """Tiles on a core have at most two dimensions."""
    del program
    if function.func_type not in CORE_TYPES:
        return
    for var, tile in tiles(function):
        if len(tile.shape) > _TILE_RANK:
            message = f"{var.name_hint!r} must have rank 2, not the shape {show_dims(tile.shape)}"
            findings.error(NOT_2D, message, var.span)


def check_memory_inferred(function: Function, program: Program, findings: Findings) -> None:
    """Every tile has a memory space, and ops find their operands where they want them."""
    del program
    if function.func_type not in CORE_TYPES:
        return
    for var, tile in tiles(function):
        if tile.memory_space is None:
            message = f"{var.name_hint!r} must have a memory space"
            findings.error(NO_SPACE, message, var.span)
    for call in _op_calls(function):
        for operand, arg in zip(ROWS[call.name].operands, call.args, strict=False):
            space = arg.type.memory_space if isinstance(arg.type, TileType) else None
            if operand.spaces and space is not None and space not in operand.spaces:
                names = " or ".join(s.name for s in operand.spaces)
                message = f"{operand.name} of {call.name} must lie in {names}, not in {space.name}"
                findings.error(WRONG_SPACE, message, call.span)


def check_stores(function: Function, program: Program, findings: Findings) -> None:
    """What is stored comes from Acc, in a dtype that the fixpipe writes, or from Vec."""
    del program
    for call in _op_calls(function):
        if call.name != "tile.store":
            continue
        tile, tensor = call.args[0].type, call.args[2].type
        assert isinstance(tile, TileType), tile
        assert isinstance(tensor, TensorType), tensor
        space = tile.memory_space
        if space not in _STORED_FROM and not tensor.layout.is_mx:
            found = "a memory that is not known yet" if space is None else space.name
            message = f"A tile must be stored from Acc or Vec, not from {found}"
            findings.error(WRONG_STORE, message, call.span)
        allowed = stored_dtypes(tile, call.kwargs)
        if space is MemorySpace.Acc and tensor.dtype not in allowed:
            names = ", ".join(dtype.name for dtype in allowed)
            message = (
                f"A tile of {tile.dtype.name} in Acc must be stored as {names}, "
                f"not as {tensor.dtype.name}"
            )
            findings.error(WRONG_STORE, message, call.span)


def check_tensor_views(function: Function, program: Program, findings: Findings) -> None:
    """Every tensor has a stride for each dimension; scale tensors are boxed and packed."""
    del program
    for var in all_vars(function):
        for tensor in _tensor_types(var.type):
            if len(tensor.stride) != len(tensor.shape):
                message = (
                    f"{var.name_hint!r} must have a stride for each of its {len(tensor.shape)} "
                    f"dimensions, not {len(tensor.stride)}"
                )
                findings.error(NO_STRIDE, message, var.span)
            elif tensor.layout.is_mx and (
                len(tensor.shape) != MX_BLOCKED_RANK or not is_packed(tensor)
            ):
                message = (
                    f"{var.name_hint!r} must be packed scale boxes of rank {MX_BLOCKED_RANK}, not "
                    f"{show_dims(tensor.shape)} of stride {show_dims(tensor.stride)}"
                )
                findings.error(NO_STRIDE, message, var.span)


def check_memrefs(function: Function, program: Program, findings: Findings) -> None:
    """Every tile on a core has a memory reference; those of a tuple have it under their own names."""
    del program
    if function.func_type not in CORE_TYPES:
        return
    for var, tile in tiles(function):
        if tile.memref is None and isinstance(var.type, TileType):
            message = f"{var.name_hint!r} must have a memory reference"
            findings.error(NO_MEMREF, message, var.span)


def check_addresses(function: Function, program: Program, findings: Findings) -> None:
    """Every memory reference has an address."""
    del program
    for var, tile in tiles(function):
        if tile.memref is not None and tile.memref.byte_offset < 0:
            message = f"{var.name_hint!r} must have an address in {tile.memref.name}"
            findings.error(NO_ADDRESS, message, var.span)


def _op_calls(function: Function) -> Iterator[Call]:
    for call in all_calls(function):
        if isinstance(call, Call) and isinstance(call.op, Op) and call.name in ROWS:
            yield call


def _tensor_types(type_: Type) -> tuple[TensorType, ...]:
    match type_:
        case TensorType():
            return (type_,)
        case TupleType():
            return tuple(t for inner in type_.types for t in _tensor_types(inner))
        case _:
            return ()
