"""Random tensors, made alike by any module with the names of the published implementation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

PUBLIC = {
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "int8": 8, "uint8": 8,
    "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "bool": 1,
    "float8_e4m3": 8, "float8_e5m2": 8, "float8_e8m0": 8, "float4_e2m1": 4, "float6_e2m3": 6,
    "float6_e3m2": 6, "float128": 128, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2,
    "complex64": 64, "complex128": 128,
}  # fmt: skip
MX_STORAGE = ("float8_e4m3", "float8_e5m2", "float4_e2m1", "float6_e2m3", "float6_e3m2", "int8")


def size_in_bytes(bits: int, count: int) -> int:
    """Return what the format's table of packings says."""
    if bits == 6:
        return math.ceil(count / 4) * 3
    return math.ceil(count * bits / 8)


def tensor(module: Any, rng: Random) -> Any:
    """Return a tensor of `module`; the same state of `rng` gives the same tensor."""
    if rng.random() < 0.25:
        return _scaled(module, rng)
    given: dict[str, Any] = {}
    if rng.random() < 0.3:
        dtype, bits = (
            module.Dtype.from_tag(rng.randint(0xF0, 0xFE)),
            rng.choice([1, 2, 4, 8, 24, 40]),
        )
        given["extension_type"] = _extension(module, rng, bits)
    else:
        name = rng.choice(sorted(PUBLIC))
        dtype, bits = getattr(module.dtype, name), PUBLIC[name]
    shape = [rng.choice([0, 1, 2, 3, 5, 8]) for _ in range(rng.randint(0, 4))]
    count = math.prod(shape)
    match rng.choice(["row", "col", "strided", "tiled", "private"]) if shape else "row":
        case "col":
            given["layout"] = module.ColMajorLayout()
        case "strided":
            strides = [rng.randint(0, 9) for _ in shape]
            given["layout"] = module.StridedLayout(strides)
            ends = sum(s * (extent - 1) for s, extent in zip(strides, shape, strict=True))
            count = max(count, 1 + ends) if count else 0  # the peer asks for every element
        case "tiled":
            tile = [rng.randint(1, 4) for _ in shape]
            given["layout"] = _tiled(module, rng, tile, depth=0)
            count = math.prod(-(-e // t) * t for e, t in zip(shape, tile, strict=True))
        case "private":
            data = rng.randbytes(rng.randint(0, 5))
            given["layout"] = module.PrivateExtensionLayout(
                rng.randint(0xF0, 0xFE), rng.getrandbits(64), data
            )
        case _:
            pass
    if rng.random() < 0.3:
        before = [rng.randint(0, 3) for _ in shape]
        parent = [b + e + rng.randint(0, 2) for b, e in zip(before, shape, strict=True)]
        given["shard"] = module.Shard(parent, before)
    if rng.random() < 0.3:
        given["statistics"] = _statistics(module, rng)
    data = rng.randbytes(size_in_bytes(bits, count) + rng.choice([0, 0, 3]))
    return module.Tensor(data, dtype, shape, **given)


def _scaled(module: Any, rng: Random) -> Any:
    name, block = rng.choice(MX_STORAGE), rng.choice([16, 32, 64])
    shape = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    axis = rng.randrange(len(shape))
    shape[axis] = block * rng.randint(1, 3)
    count = math.prod(shape)
    extra = [rng.randbytes(3)] if rng.random() < 0.2 else []
    return module.Tensor(
        rng.randbytes(size_in_bytes(PUBLIC[name], count)),
        getattr(module.dtype, name),
        shape,
        aux_buffers=[*extra, rng.randbytes(count // block)],
        quantization=module.MXFP(axis, block, 1 + len(extra)),
    )


def _tiled(module: Any, rng: Random, tile: list[int], *, depth: int) -> Any:
    orders = ["row_major", "col_major"]
    outer = rng.choice(orders)
    if depth < 2 and rng.random() < 0.3:
        # A tile that the inner tile divides, so that padding stands at the outermost level only.
        inner = [rng.choice([n for n in range(1, size + 1) if size % n == 0]) for size in tile]
        nested = _tiled(module, rng, inner, depth=depth + 1)
        return module.TiledLayout(tile, outer, "tiled", inner_tiled=nested)
    return module.TiledLayout(tile, outer, rng.choice(orders))


def _extension(module: Any, rng: Random, bits: int) -> Any:
    if rng.random() < 0.5:
        return module.ExtensionType(bits, is_signed=rng.random() < 0.5)
    return module.ExtensionType(
        bits,
        is_float=True,
        sign_bits=rng.randint(0, 1),
        exponent_bits=rng.randint(0, 11),
        mantissa_bits=rng.randint(0, 52),
        exponent_bias=rng.randint(0, 1023),
        has_nan=rng.random() < 0.5,
        has_inf=rng.random() < 0.5,
    )


def _statistics(module: Any, rng: Random) -> Any:
    given: dict[str, Any] = {}
    if rng.random() < 0.5:
        given["nnz"] = rng.getrandbits(40)
    if rng.random() < 0.5:
        given |= {"value_min": -1.5, "value_max": rng.random(), "value_abs_max": 1.5}
    if rng.random() < 0.5:
        given |= {"value_mean": rng.random(), "value_stddev": 0.25}
    if rng.random() < 0.5:
        given |= {"nm_n": 2, "nm_m": 4}
    if rng.random() < 0.5:
        given |= {"has_nan": rng.random() < 0.5, "has_inf": False, "sparsity_ratio": 0.125}
    return module.Statistics(**given)
