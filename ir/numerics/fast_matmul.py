"""The block-scaled matmuls of `reference` and `two_level`, compiled: the same bits, far sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from .arguments import MatmulOperands, accumulator_start, matmul_operands
from .elements import Summation
from .parts import widened
from .tables import decode_table, integers, significands
from .tiled_product import TensorScaling, TiledProduct

if TYPE_CHECKING:
    import numpy.typing as npt

_FLOAT64_BITS, _FLOAT32_BITS = 53, 24
_BEYOND_FLOAT32 = np.int64(-1 << (_FLOAT64_BITS - _FLOAT32_BITS))


def matmul_mx(
    a: npt.ArrayLike,
    a_scales: npt.ArrayLike,
    b: npt.ArrayLike,
    b_scales: npt.ArrayLike,
    *,
    a_dtype: DType,
    b_dtype: DType,
    acc: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    valid_k: int | None = None,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
    threads: int | None = None,
) -> npt.NDArray[np.float32]:
    """Multiply two block-scaled matrices; the arguments and the bits of `reference.matmul_mx`.

    Args:
        a: Element codes uint8 `[M, K]`, one element a byte.
        a_scales: E8M0 codes uint8 `[M, G]` in logical order.
        b: Element codes uint8 `[K, N]`.
        b_scales: E8M0 codes uint8 `[G, N]`.
        a_dtype: Element format of `a`, at most 8 bits wide.
        b_dtype: Element format of `b`.
        acc: float32 `[M, N]` to start from; +0 without.
        bias: float32 `[1, N]` to start every row from.
        valid_k: Elements along K that take part, 1..K; all by default.
        sum: `"group"` or `"sequential"`.
        threads: How many threads work at most; by default as many as numba may use
            (`numba.set_num_threads`, `NUMBA_NUM_THREADS`).

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: Codes, scales, accumulator or bias of the wrong type.
        IRValueError: Shapes that do not fit together, a valid K outside 1..K, or an unknown `sum`.
    """
    order = Summation.of(sum)
    operands = matmul_operands(
        a,
        a_scales,
        b,
        b_scales,
        a_dtype=a_dtype,
        b_dtype=b_dtype,
        acc=acc,
        bias=bias,
        valid_k=valid_k,
    )
    in_order = order is Summation.SEQUENTIAL
    TiledProduct(operands, a_dtype, b_dtype, in_order=in_order).compute(threads)
    return operands.start


def has_exact_groups(element: DType, block: int) -> bool:
    """Return whether :func:`matmul_groups` can multiply a format of two levels of scales.

    A group's sum, with its E4M3 scales, must have room beside a float32 significand in 53 bits.

    Args:
        element: The element's dtype.
        block: Elements that share one scale.
    """
    largest = int(np.abs(integers(element)).max()) * int(np.abs(significands(DType.E4M3)[0]).max())
    return block <= GROUP and largest**2 * block <= 1 << (_FLOAT64_BITS - _FLOAT32_BITS)


def matmul_groups(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    *,
    element: DType,
    block: int,
    tensor_scale: tuple[np.float32, np.float32],
    acc: npt.NDArray[np.float32] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.float32]:
    """Multiply two matrices of a format with two levels of scales; see `two_level.matmul_groups`.

    Args:
        a: Element codes uint8 `[M, K]`.
        a_scales: E4M3 codes uint8 `[M, G]`.
        b: Element codes uint8 `[K, N]`.
        b_scales: E4M3 codes uint8 `[G, N]`.
        element: The element's dtype, with neither NaN nor infinity.
        block: Elements that share one scale; `has_exact_groups` is true of both.
        tensor_scale: The tensor scales of `a` and of `b`, finite.
        acc: What the accumulator starts from, float32 `[M, N]`; by default +0.
        threads: How many threads work at most; by default as many as numba may use.

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.
    """
    assert has_exact_groups(element, block), (element, block)
    left, right = widened(np.array(tensor_scale, np.float32))
    both = left * right
    # Two float32 significands are 48 bits, of which this keeps 24.
    upper = (both.view(np.int64) & _BEYOND_FLOAT32).view(np.float64)
    scaling = TensorScaling(
        block=block,
        factors=decode_table(DType.E4M3).view(np.float32).astype(np.float64),
        upper=float(upper),
        lower=float(both - upper),
    )
    start = accumulator_start(acc, None, rows=a.shape[0], columns=b.shape[1])
    operands = MatmulOperands(a=a, a_scales=a_scales, b=b, b_scales=b_scales, start=start)
    TiledProduct(operands, element, element, scaling=scaling).compute(threads)
    return start
