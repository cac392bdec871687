"""numpy and ml_dtypes arrays become tensors and come back bit for bit."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.traces import hurray

TYPES: dict[str, Any] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "float64": np.float64, "int8": np.int8, "uint8": np.uint8, "int16": np.int16,
    "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32, "int64": np.int64,
    "uint64": np.uint64, "bool": np.bool_, "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e8m0": ml_dtypes.float8_e8m0fnu,
    "float4_e2m1": ml_dtypes.float4_e2m1fn, "float6_e2m3": ml_dtypes.float6_e2m3fn,
    "float6_e3m2": ml_dtypes.float6_e3m2fn, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2, "complex64": np.complex64,
    "complex128": np.complex128,
}  # fmt: skip


def every_code(name: str) -> np.ndarray[Any, Any]:
    """Return an array with every code of a narrow type, or random bits of a wide one."""
    item = np.dtype(TYPES[name])
    bits = getattr(hurray, name).bit_width
    if bits <= 8:
        codes = np.arange(1 << bits, dtype=np.uint8)
        if name.startswith("int") and bits < 8:  # ml_dtypes keeps narrow integers sign-extended
            codes = np.where(codes >> (bits - 1), codes | (0xFF << bits) & 0xFF, codes).astype("u1")
        return codes.view(item)
    rng = np.random.default_rng(bits)
    return rng.integers(0, 256, 60 * item.itemsize, np.uint8).view(item).reshape(3, 4, 5)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back(name: str) -> None:
    array = every_code(name)
    tensor = hurray.from_numpy(array)
    assert tensor.dtype.name == name
    assert tensor.shape == array.shape
    assert tensor.buffer(0).nbytes == hurray.buffer_size_bytes(tensor.dtype, array.size)
    back = tensor.numpy()
    assert back.dtype == array.dtype
    if tensor.dtype.is_sub_byte:  # how a byte keeps its upper bits is numpy's own affair
        np.testing.assert_array_equal(back.astype(np.float32), array.astype(np.float32))
    else:
        assert back.tobytes() == array.tobytes()


def test_all_types_but_float128_have_a_numpy_type() -> None:
    named = vars(hurray.dtype).items()
    public = {name for name, value in named if isinstance(value, hurray.Dtype)}
    assert set(TYPES) == public - {"float128"}


def test_an_array_of_gaps_or_of_foreign_byte_order_is_copied_into_order() -> None:
    base = np.arange(24, dtype=np.int16).reshape(4, 6)
    for array in (base.T, base[::2, ::-1], base.astype(">i2"), np.asfortranarray(base)):
        tensor = hurray.from_numpy(array)
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert bytes(tensor.buffer(0)) == np.ascontiguousarray(array).astype("<i2").tobytes()


def test_a_contiguous_array_is_not_copied() -> None:
    array = np.arange(6, dtype=np.float32)
    assert np.shares_memory(hurray.from_numpy(array).numpy(), array)


def test_scalars_and_empty_arrays_keep_their_shape() -> None:
    for shape in ((), (0,), (3, 0, 2)):
        for item in (np.float32, ml_dtypes.int4):
            array = np.zeros(shape, item)
            tensor = hurray.from_numpy(array)
            assert tensor.shape == tensor.numpy().shape == shape


def test_booleans_are_a_bit_each() -> None:
    tensor = hurray.from_numpy(np.array([1, 0, 1, 1, 0, 0, 0, 0, 1], np.bool_))
    assert bytes(tensor.buffer(0)) == b"\x0d\x01"


def test_numpy_takes_a_tensor_for_an_array() -> None:
    tensor = hurray.from_numpy(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(tensor), [0, 1, 2, 3])
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert np.array(tensor).flags.writeable
    assert hurray.asarray(tensor) is tensor


def test_types_that_the_format_has_not_are_refused() -> None:
    for item in ("U3", "O", "M8[s]", [("a", "u1")], ml_dtypes.float8_e4m3):
        with pytest.raises(hurray.UnsupportedError, match="must be one that the format has"):
            hurray.from_numpy(np.zeros(2, item))


def test_a_buffer_is_any_contiguous_bytes() -> None:
    array = np.arange(4, dtype=np.float32)
    data = array.tobytes()
    for buffer in (data, bytearray(data), memoryview(data).cast("I"), array, array.reshape(2, 2)):
        tensor = hurray.Tensor(buffer, hurray.float32, [4])
        assert tensor.buffer(0) == array.tobytes()
        assert tensor.buffer(0).readonly
    for buffer in (array[::2], "text", 16, np.zeros(4, ml_dtypes.bfloat16)):
        with pytest.raises(hurray.BufferError, match="must be contiguous bytes, not"):
            hurray.Tensor(buffer, hurray.uint8, [4])
    with pytest.raises(hurray.BufferError, match=r"must be in 0\.\.0, not 1"):
        hurray.Tensor(bytes(4), hurray.float32, [1]).buffer(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": "float32"}, "dtype must be a Dtype, not 'float32'"),
        ({"layout": "row_major"}, "layout must be a layout such as .*, not 'row_major'"),
        ({"quantization": b"x"}, "quantization must be MXFP or VerbatimScheme, not"),
        ({"shape": [1.5]}, "must be an integer, not 1.5"),
        ({"shape": 4}, "A shape must be a sequence of integers and None, not 4"),
        ({"shard": ([4], [0])}, "shard must be a Shard"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused(given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"buffer": bytes(16), "dtype": hurray.float32, "shape": [4]}
    with pytest.raises(hurray.FieldTypeError, match=message):
        hurray.Tensor(**(arguments | given))


def test_extents_that_no_field_holds_are_refused() -> None:
    with pytest.raises(
        hurray.InvalidDescriptorError, match=r"must be 0 or more, or None .* not -1"
    ):
        hurray.Tensor(bytes(4), hurray.float32, [-1])
    with pytest.raises(OverflowError, match="must be in"):
        hurray.Tensor(bytes(4), hurray.float32, [1 << 64])
    with pytest.raises(hurray.InvalidDescriptorError, match="rank must be at most 64, not 65"):
        hurray.Tensor(bytes(4), hurray.float32, [1] * 65)
