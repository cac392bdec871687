"""Numbers, bit for bit: codes to float32 and back, block-scaled arrays, their product, packing.

The plain numpy of `codec`, `reference`, `reference_quantize` and `two_level` says what every number
means; the `fast_` files are the same in numba and are loaded when the first large array comes.
"""

from __future__ import annotations

from .block_format import InfinityPolicy, ScaleRule
from .codec import encode
from .elements import Summation
from .mxarray import MXArray
from .nz import pack_nz, unpack_nz
from .packing import pack, unpack
from .quantization import decode, dequantize, matmul, quantize
from .scales import pack_scales_a, pack_scales_b, unpack_scales_a, unpack_scales_b

__all__ = [
    "InfinityPolicy",
    "MXArray",
    "ScaleRule",
    "Summation",
    "decode",
    "dequantize",
    "encode",
    "matmul",
    "pack",
    "pack_nz",
    "pack_scales_a",
    "pack_scales_b",
    "quantize",
    "unpack",
    "unpack_nz",
    "unpack_scales_a",
    "unpack_scales_b",
]
