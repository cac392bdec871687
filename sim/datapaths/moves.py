"""Runs of bytes, copied and filled by the routines that the compiler has for that.

A loop over bytes, of which nobody knows how many they are and whether the two runs overlap, costs more
than it moves. Of a size that is a constant, this is a move or two of whole vector registers.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final, cast

from numba import types as numba_types
from numba.extending import intrinsic

from ...ir.numerics.vectors import I32, I64, Emitter, cgutils, constant, of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

types: Any = numba_types

RUN: Final = 256
"""Bytes that are looked at in one step."""
_LANES: Final = 8


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, index: Any) -> Any:
    """Return the address of an item of an array."""
    data = context.make_array(kind)(context, builder, array).data
    offset = context.cast(builder, at, index, types.intp)
    return builder.gep(data, [offset])


def _copy(_typing: Any, into: Any, there: Any, of: Any, here: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        target = _place(context, builder, kinds[0], given[0], given[1], kinds[1])
        source = _place(context, builder, kinds[2], given[2], given[3], kinds[3])
        count = context.cast(builder, given[4], kinds[4], types.intp)
        cgutils.raw_memmove(builder, target, source, count, 1)
        return context.get_dummy_value()

    return types.void(into, there, of, here, size), generate


def _fill(_typing: Any, into: Any, there: Any, size: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        target = _place(context, builder, kinds[0], given[0], given[1], kinds[1])
        count = context.cast(builder, given[2], kinds[2], types.intp)
        byte = context.cast(builder, given[3], kinds[3], types.uint8)
        cgutils.memset(builder, target, count, byte)
        return context.get_dummy_value()

    return types.void(into, there, size, value), generate


def _meet(_typing: Any, array: Any, at: Any, runs: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        emit = Emitter(context, builder, signature, given)
        begin = _place(context, builder, signature.args[0], given[0], given[1], signature.args[1])
        count = context.cast(builder, given[2], signature.args[2], types.intp)
        kept = emit.variable(of(I64, _LANES), constant(-1, I64, _LANES))
        with emit.loop(count) as loop:
            place = emit.at(begin, emit.times(loop.index, RUN))
            met = builder.load(kept)
            for part in range(0, RUN, _LANES * 8):
                met = builder.and_(met, emit.load(emit.at(place, part), I64, _LANES))
            builder.store(met, kept)
        met = builder.load(kept)
        lanes = [builder.extract_element(met, I32(lane)) for lane in range(_LANES)]
        return reduce(builder.and_, lanes)

    return types.int64(array, at, runs), generate


meet_runs = cast("Callable[[Bytes, int, int], int]", intrinsic(_meet))
"""Return the bits that all of some runs of `RUN` bytes have, eight bytes a number: -1 for all bits."""

copy_bytes = cast("Callable[[Bytes, int, Bytes, int, int], None]", intrinsic(_copy))
"""Copy `size` bytes from place `here` of `of` to place `there` of `into`; called by compiled code."""

fill_bytes = cast("Callable[[Bytes, int, int, int], None]", intrinsic(_fill))
"""Set `size` bytes from place `there` of `into` on to a value; called by compiled code."""
