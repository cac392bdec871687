"""Kernels run by Python itself: a `pl` whose words work on numpy arrays, in a few lines each.

Nothing here knows of passes, memories or instructions. Products of a group are exact, in integers.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from .oracle import E1M2_VALUES, E2M1_VALUES, Array, rounded_once

BYTES = np.arange(256, dtype=np.uint8)
VALUES = {
    "FP8E4M3FN": BYTES.view(ml_dtypes.float8_e4m3fn).astype(np.float64),
    "FP8E5M2": BYTES.view(ml_dtypes.float8_e5m2).astype(np.float64),
    "FP4": E2M1_VALUES,
    "FP4E1M2": E1M2_VALUES,
}
#: 2^-UNIT divides every finite value of every format.
UNIT = 16


@dataclass
class Tensor:
    """An array in logical order; `name` is the dtype of codes."""

    data: Array
    name: str = ""


@dataclass
class Tile:
    """Codes, or the FP32 numbers of an accumulator, as far as they are valid."""

    data: Array
    name: str
    is_gone: bool = False


class Annotation:
    """Stands for `pl.Tensor` and its like, of which only the brackets are looked at."""

    def __class_getitem__(cls, item: object) -> None:
        del item


def load(
    tensor: Tensor, offsets: list[int], window: list[int], valid: list[int] | None = None, **_: Any
) -> Tile:
    cut = _window(tensor, offsets, valid or window)
    return Tile(tensor.data[cut].copy(), tensor.name)


def store(tile: Tile, offsets: list[int], tensor: Tensor) -> Tensor:
    _use(tile)
    cut = _window(tensor, offsets, list(tile.data.shape))
    with np.errstate(all="ignore"):
        tensor.data[cut] = tile.data.astype(tensor.data.dtype)
    return tensor


def move(tile: Tile, *_: Any, **__: Any) -> Tile:
    return tile


def view(tensor: Tensor, shape: list[int], layout: str) -> Tensor:
    rows, cols = shape
    flat = tensor.data.reshape(-1)
    if layout == "A":
        boxes = flat.reshape(rows // 16, cols // 2, 16, 2).transpose(0, 2, 1, 3)
    else:
        boxes = flat.reshape(cols // 16, rows // 2, 16, 2).transpose(1, 3, 0, 2)
    return Tensor(boxes.reshape(rows, cols))


def matmul_mx(*operands: Tile) -> Tile:
    return _product(operands, np.zeros((), np.float32))


def matmul_mx_acc(acc: Tile, *operands: Tile) -> Tile:
    _use(acc)
    acc.is_gone = True
    return _product(operands, acc.data)


def matmul_mx_bias(*operands: Tile) -> Tile:
    return _product(operands[:4], operands[4].data)


class UsedTwiceError(Exception):
    """An accumulator is used after a product was added to it in place."""


def _use(tile: Tile) -> None:
    if tile.is_gone:
        raise UsedTwiceError


def _window(tensor: Tensor, offsets: list[int], extents: list[int]) -> tuple[slice, ...]:
    places = list(zip(offsets, extents, tensor.data.shape, strict=True))
    if any(not 0 <= at <= dim - size for at, size, dim in places):
        raise IndexError(places)
    return tuple(slice(at, at + size) for at, size, _ in places)


def _product(operands: tuple[Tile, ...], start: Array) -> Tile:
    a, sa, b, sb = operands
    left, right = VALUES[a.name][a.data], VALUES[b.name][b.data]
    rows, depth = left.shape
    total = np.broadcast_to(start, (rows, right.shape[1])).astype(np.float32)
    with np.errstate(all="ignore"):
        for g in range(-(-depth // 32)):
            x, y = left[:, 32 * g : 32 * g + 32], right[32 * g : 32 * g + 32]
            scales = sa.data[:, g, None].astype(int), sb.data[None, g].astype(int)
            total = total + _group(x, y, scales[0] + scales[1] - 254, np.maximum(*scales) == 255)
    return Tile(total, "FP32")


def _group(x: Array, y: Array, exponents: Array, is_nan: Array) -> Array:
    """Return the dot products of one group, each rounded once to float32."""
    finite = np.isfinite(x).all(1, keepdims=True) & np.isfinite(y).all(0, keepdims=True)
    digits = _integers(x) @ _integers(y)
    pairs = zip(digits.flat, exponents.flat, strict=True)
    dots = [rounded_once(int(d), int(e) - 2 * UNIT) for d, e in pairs]
    dot = np.array(dots, np.float32).reshape(digits.shape)
    dot = np.where(finite, dot, (x @ y).astype(np.float32))
    return np.where(is_nan, np.float32(np.nan), dot)


def _integers(x: Array) -> Array:
    return (np.where(np.isfinite(x), x, 0) * 2.0**UNIT).astype(np.int64).astype(object)


WORDS = SimpleNamespace(
    program=lambda cls: cls,  # pyright: ignore[reportUnknownLambdaType]
    function=lambda **_: lambda function: function,  # pyright: ignore
    load=load,
    store=store,
    move=move,
    matmul_mx=matmul_mx,
    matmul_mx_acc=matmul_mx_acc,
    matmul_mx_bias=matmul_mx_bias,
    tensor=SimpleNamespace(view=view),
    range=range,
    pipeline=lambda *bounds, stage: range(*bounds),  # pyright: ignore
    Tensor=Annotation,
    Out=Annotation,
    Scalar=Annotation,
    MX_A_ZZ="A",
    MX_B_NN="B",
    FunctionType=SimpleNamespace(InCore=None, Orchestration=None),
    Mem=SimpleNamespace(
        Mat=None, Left=None, Right=None, LeftScale=None, RightScale=None, Bias=None
    ),
    INDEX=None,
    FP32=None,
    BF16=None,
    FP16=None,
    FP8E8M0=None,
    **dict.fromkeys(VALUES),
)


def run_by_python(text: str, entry: str, arguments: dict[str, Tensor | int]) -> None:
    """Call a function of the program that `text` holds; tensors are changed in place.

    Raises:
        IndexError: A window reaches beyond its tensor.
        UsedTwiceError: An accumulator is used after it was added to.
    """
    names: dict[str, Any] = {"pl": WORDS}
    exec(text.replace("from scalebox.ir import language as pl", ""), names)
    getattr(names["P"](), entry)(**arguments)
