"""What callers hand in, brought to the arrays that the routines work on, or refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from ..errors import IRTypeError, IRValueError
from .elements import code_type, element_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import SimpleDType


def as_codes(
    codes: npt.ArrayLike, dtype: DType, *, what: str = "codes"
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return `codes` as unsigned integers of the width that holds a code of `dtype`.

    An array whose items are integers as wide as that container (uint8, int8), raw bytes of that
    width, or of the numpy or ml_dtypes type of `dtype` is reinterpreted bit for bit, in its own byte
    order, never converted; wider integers are taken by value.

    Raises:
        IRTypeError: The array's items cannot be codes.
        IRValueError: A code does not fit the width of `dtype`.
    """
    element = element_of(dtype)
    array = np.asarray(codes)
    wanted = code_type(element)
    same_width = array.dtype.itemsize == wanted.itemsize
    is_raw = same_width and array.dtype.type is np.void and array.dtype.names is None
    if not (array.dtype.kind in "iu" or is_raw or _is_natural(array, element.dtype)):
        message = (
            f"{what} of {element.name} must be an array of {wanted} codes or of the ml_dtypes "
            f"type, not of {array.dtype}"
        )
        raise IRTypeError(message)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    result = native.view(wanted) if same_width else native
    narrow = not same_width or element.bits < 8 * wanted.itemsize
    if narrow and result.size:
        low, high = int(result.min()), int(result.max())
        if low < 0 or high >> element.bits:
            message = (
                f"{what} of {element.name} must lie in 0..{(1 << element.bits) - 1}, "
                f"not in {low}..{high}"
            )
            raise IRValueError(message)
    return result.astype(wanted, copy=False)


def _is_natural(array: npt.NDArray[Any], dtype: SimpleDType) -> bool:
    if array.dtype.kind not in "fV":
        return False
    from .natural import NATURAL  # which needs ml_dtypes; who has plain codes does not

    return array.dtype.newbyteorder("=") == NATURAL.get(dtype)


@dataclass(frozen=True, slots=True)
class MatmulOperands:
    """The operands of one block-scaled matmul, checked and cut to the valid K.

    `a` uint8 `[M, K]`, `a_scales` uint8 `[M, G]`, `b` uint8 `[K, N]`, `b_scales` uint8 `[G, N]`,
    and `start` float32 `[M, N]`, a fresh array with what the accumulator begins from.
    """

    a: npt.NDArray[np.uint8]
    a_scales: npt.NDArray[np.uint8]
    b: npt.NDArray[np.uint8]
    b_scales: npt.NDArray[np.uint8]
    start: npt.NDArray[np.float32]


def matmul_operands(
    a: npt.ArrayLike,
    a_scales: npt.ArrayLike,
    b: npt.ArrayLike,
    b_scales: npt.ArrayLike,
    *,
    a_dtype: DType,
    b_dtype: DType,
    acc: npt.ArrayLike | None,
    bias: npt.ArrayLike | None,
    valid_k: int | None,
    group: int = GROUP,
) -> MatmulOperands:
    """Check the arguments of a block-scaled matmul and cut them to the valid K.

    `group` elements along K share one scale.

    Raises:
        IRTypeError: Codes, scales, accumulator or bias of the wrong type.
        IRValueError: Shapes that do not fit together, or a valid K outside 1..K.
    """
    a_codes = _matrix(_byte_codes(a, a_dtype, "A"), "A codes", "[M, K]")
    b_codes = _matrix(_byte_codes(b, b_dtype, "B"), "B codes", "[K, N]")
    rows, depth = a_codes.shape
    columns = b_codes.shape[1]
    if b_codes.shape[0] != depth:
        message = (
            f"B codes must have as many rows as A has columns ({depth}), not {b_codes.shape[0]}"
        )
        raise IRValueError(message)
    valid = depth if valid_k is None else valid_k
    if not 1 <= valid <= depth:
        message = f"The valid K must be in 1..{depth}, the physical K, not {valid}"
        raise IRValueError(message)
    groups = -(-valid // group)
    left = _matrix(as_scale_codes(a_scales, "A scales"), "A scales", "[M, G]")
    right = _matrix(as_scale_codes(b_scales, "B scales"), "B scales", "[G, N]")
    if left.shape[0] != rows or left.shape[1] < groups:
        message = f"A scales must be [{rows}, at least {groups}], not {list(left.shape)}"
        raise IRValueError(message)
    if right.shape[1] != columns or right.shape[0] < groups:
        message = f"B scales must be [at least {groups}, {columns}], not {list(right.shape)}"
        raise IRValueError(message)
    return MatmulOperands(
        a=a_codes[:, :valid],
        a_scales=left[:, :groups],
        b=b_codes[:valid],
        b_scales=right[:groups],
        start=accumulator_start(acc, bias, rows=rows, columns=columns),
    )


def accumulator_start(
    acc: npt.ArrayLike | None, bias: npt.ArrayLike | None, *, rows: int, columns: int
) -> npt.NDArray[np.float32]:
    """Return a fresh float32 `[rows, columns]`: +0, a copy of `acc`, or `bias` on every row.

    Raises:
        IRTypeError: `acc` or `bias` is not float32.
        IRValueError: Both are given, or one has the wrong shape.
    """
    start = np.zeros((rows, columns), np.float32)
    if acc is not None and bias is not None:
        message = "A matmul starts from an accumulator or from a bias, not from both"
        raise IRValueError(message)
    if acc is not None:
        given = _float32(acc, "The accumulator")
        if given.shape != (rows, columns):
            message = f"The accumulator must be [{rows}, {columns}], not {list(given.shape)}"
            raise IRValueError(message)
        start[...] = given
    if bias is not None:
        given = _float32(bias, "The bias")
        if given.shape not in ((1, columns), (columns,)):
            message = f"The bias must be [1, {columns}], not {list(given.shape)}"
            raise IRValueError(message)
        start[...] = given
    return start


def as_scale_codes(scales: npt.ArrayLike, what: str) -> npt.NDArray[np.uint8]:
    """Return one-byte scales as their uint8 codes; plain uint8 numbers are codes already.

    Raises:
        IRTypeError: The array does not hold one-byte codes.
    """
    array = np.asarray(scales)
    is_raw = array.dtype.itemsize == 1 and array.dtype.type in (np.uint8, np.void)
    if array.dtype.names is not None or not (is_raw or _is_natural(array, DType.E8M0)):
        message = f"{what} must be uint8 codes (E8M0: 2^(code - 127)), not {array.dtype}"
        raise IRTypeError(message)
    return array.view(np.uint8)


def _byte_codes(codes: npt.ArrayLike, dtype: DType, side: str) -> npt.NDArray[np.uint8]:
    element = element_of(dtype)
    if element.bits > 8:
        message = f"A block-scaled {side} must have elements of at most 8 bits, not {element.name}"
        raise IRTypeError(message)
    return as_codes(codes, dtype, what=f"{side} codes").astype(np.uint8, copy=False)


def _matrix(array: npt.NDArray[np.uint8], what: str, shape: str) -> npt.NDArray[np.uint8]:
    if array.ndim != 2:
        message = f"{what} must be a matrix {shape}, not of shape {list(array.shape)}"
        raise IRValueError(message)
    return array


def _float32(values: npt.ArrayLike, what: str) -> npt.NDArray[np.float32]:
    array = np.asarray(values)
    if array.dtype != np.float32:
        message = f"{what} must be float32, not {array.dtype}"
        raise IRTypeError(message)
    return array
