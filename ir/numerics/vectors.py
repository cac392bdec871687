"""Vectors in numba's compiled functions: what the kernels of the panels need of LLVM.

numba leaves it to LLVM to find vectors in loops, which it does or does not. The few loops where
nearly all the time goes are written in vectors themselves, as numba intrinsics that put LLVM's
instructions into the function that calls them. LLVM cuts vectors to what the processor has, so the
code is the same everywhere and so are its bits; only the size of the block that is held in
registers follows the processor.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numba.core import cgutils as numba_cgutils
from numba.core import codegen as numba_codegen
from numba.core import config as numba_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

cgutils: Any = numba_cgutils
_codegen: Any = numba_codegen
_config: Any = numba_config
# llvmlite, as numba has it.
ir: Any = cgutils.ir
_binding: Any = _codegen.ll

I8, I32, I64 = (ir.IntType(bits) for bits in (8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()


@cache
def host_features() -> frozenset[str]:
    """Return the features of the processor that numba compiles for, by LLVM's names."""
    if _config.CPU_FEATURES is not None:
        return frozenset(
            name[1:] for name in _config.CPU_FEATURES.split(",") if name.startswith("+")
        )
    if _config.CPU_NAME not in (None, _binding.get_host_cpu_name()):
        return frozenset()
    return frozenset(name for name, there in _binding.get_host_cpu_features().items() if there)


def register_bits() -> int:
    """Return the width of the processor's vector registers, 128 where nothing better is known."""
    features = host_features()
    if "avx512f" in features:
        return 512
    return 256 if "avx" in features else 128


def has_fma() -> bool:
    """Return whether the processor multiplies and adds in one instruction."""
    return not {"fma", "neon"}.isdisjoint(host_features())


def of(element: Any, count: int) -> Any:
    """Return the vector type of `count` elements."""
    return ir.VectorType(element, count)


def constant(value: float | None, element: Any, count: int) -> Any:
    """Return a vector that has one value throughout."""
    return ir.Constant(of(element, count), [value] * count)


class Emitter:
    """Puts instructions on vectors into the function that calls an intrinsic.

    Args:
        context: numba's target context.
        builder: The builder of the calling function.
        signature: numba's signature of the intrinsic.
        args: What it was called with.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> None:
        self.context = context
        self.builder = builder
        self.signature = signature
        self.args = args

    def pointer(self, array: int, offset: int) -> Any:
        """Return the address of the element that argument `offset` counts in argument `array`."""
        make = self.context.make_array(self.signature.args[array])
        data = make(self.context, self.builder, self.args[array]).data
        return self.builder.gep(data, [self.args[offset]])

    def at(self, pointer: Any, offset: Any) -> Any:
        """Return the address `offset` elements further on."""
        return self.builder.gep(pointer, [offset if hasattr(offset, "type") else I64(offset)])

    def times(self, value: Any, factor: int) -> Any:
        """Return a 64-bit integer times a number."""
        return self.builder.mul(value, I64(factor))

    def load(self, pointer: Any, element: Any, count: int) -> Any:
        """Return the vector of `count` elements at an address of any alignment."""
        typed = self.builder.bitcast(pointer, of(element, count).as_pointer())
        loaded = self.builder.load(typed)
        loaded.align = 1
        return loaded

    def store(self, vector: Any, pointer: Any) -> None:
        """Write a vector to an address of any alignment."""
        typed = self.builder.bitcast(pointer, vector.type.as_pointer())
        self.builder.store(vector, typed).align = 1

    def splat(self, scalar: Any, count: int) -> Any:
        """Return a vector that has one number throughout."""
        kind = of(scalar.type, count)
        first = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, I32(0))
        return self.shuffle(first, first, [0] * count)

    def shuffle(self, left: Any, right: Any, order: Sequence[int]) -> Any:
        """Return elements of two vectors, counted through, in an order of one's own."""
        mask = ir.Constant(of(I32, len(order)), list(order))
        return self.builder.shuffle_vector(left, right, mask)

    def call(self, name: str, *operands: Any) -> Any:
        """Return what one of LLVM's own functions gives for float vectors of one type."""
        kind = operands[0].type
        bits = {F32: 32, F64: 64}[kind.element]
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * len(operands)),
            f"llvm.{name}.v{kind.count}f{bits}",
        )
        return self.builder.call(function, operands)

    def multiply_add(self, left: Any, right: Any, total: Any) -> Any:
        """Return left * right + total; where a product is exact, fused or not is all one."""
        if has_fma():
            return self.call("fma", left, right, total)
        return self.builder.fadd(total, self.builder.fmul(left, right))

    def variable(self, kind: Any, start: Any) -> Any:
        """Return the place of a variable that starts anew here."""
        place = cgutils.alloca_once(self.builder, kind)
        self.builder.store(start, place)
        return place

    def loop(self, count: Any) -> AbstractContextManager[Any]:
        """Return a loop, whose `index` runs from 0 to below `count`."""
        return cgutils.for_range(self.builder, count if hasattr(count, "type") else I64(count))


def pairs(rows: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Return each of the first half with its partner in the second."""
    half = len(rows) // 2
    return zip(rows[:half], rows[half:], strict=True)
