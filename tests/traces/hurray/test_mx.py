"""Block-scaled arrays in files: which tensors they become, and that they come back."""

from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import dtypes as ir_dtypes
from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, BlockScaledDType, DType, Level, SimpleDType
from scalebox.ir.numerics import MXArray
from scalebox.traces import hurray

peer: Any = import_module("hurray")


def quantized(dtype: BlockScaledDType, shape: tuple[int, ...], axis: int) -> MXArray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-20, 20, shape))
    return numerics.quantize(x.astype(np.float32), dtype, axis=axis)


def same(one: MXArray, other: MXArray) -> None:
    np.testing.assert_array_equal(one.elements, other.elements)
    np.testing.assert_array_equal(one.scales, other.scales)
    assert (one.dtype, one.axis, one.tensor_scale) == (other.dtype, other.axis, other.tensor_scale)


MX_FLOATS = [
    (DType.MXFP8_E4M3, "float8_e4m3"),
    (DType.MXFP8_E5M2, "float8_e5m2"),
    (DType.MXFP6_E3M2, "float6_e3m2"),
    (DType.MXFP6_E2M3, "float6_e2m3"),
    (DType.MXFP4, "float4_e2m1"),
]


@pytest.mark.parametrize(("dtype", "stored"), MX_FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 64), 1), ((64, 3), 0), ((2, 32, 5), 1), ((96,), 0)]
)
def test_an_mx_float_array_is_one_tensor_of_the_mxfp_scheme(
    tmp_path: Path, dtype: BlockScaledDType, stored: str, shape: tuple[int, ...], axis: int
) -> None:
    array = quantized(dtype, shape, axis)
    tensors = hurray.mx_tensors("x", array)
    assert list(tensors) == ["x"]
    tensor = tensors["x"]
    assert (tensor.dtype.name, tensor.shape) == (stored, shape)
    assert tensor.quantization == hurray.MXFP(axis, 32, 1)
    hurray.save(tmp_path / "x.hrry", tensors)
    same(hurray.mx_array("x", hurray.load(tmp_path / "x.hrry")), array)
    assert peer.load(str(tmp_path / "x.hrry"))["x"].quantization == peer.MXFP(axis, 32, 1)


def test_scales_stand_by_outer_index_and_then_by_block() -> None:
    array = quantized(DType.MXFP8_E4M3, (64, 3), 0)
    scales = hurray.mx_tensors("x", array)["x"].buffer(1)
    for block in range(2):
        for outer in range(3):
            assert scales[outer * 2 + block] == array.scales[block, outer]


def test_scale_bytes_0x00_and_0xff_are_stored_and_mean_what_ocp_says(tmp_path: Path) -> None:
    elements = np.full((1, 64), 0x38, np.uint8)  # 1.0
    array = MXArray(elements, np.array([[0x00, 0xFF]], np.uint8), DType.MXFP8_E4M3, 1)
    hurray.save(tmp_path / "x.hrry", hurray.mx_tensors("x", array))
    loaded = hurray.load(tmp_path / "x.hrry")
    assert loaded["x"].buffer(1) == b"\x00\xff"
    values = numerics.dequantize(hurray.mx_array("x", loaded))
    assert np.all(values[0, :32] == 2.0**-127)
    assert np.all(np.isnan(values[0, 32:]))


def test_the_elements_are_the_codes_packed_from_the_low_bits_up() -> None:
    array = quantized(DType.MXFP4, (2, 32), 1)
    data = bytes(hurray.mx_tensors("x", array)["x"].buffer(0))
    flat = array.elements.reshape(-1)
    assert data == bytes(int(flat[n]) | int(flat[n + 1]) << 4 for n in range(0, 64, 2))


SEVERAL = [
    (DType.MXINT8, (4, 64), 1),
    (DType.MXINT8, (64, 4), 0),
    (DType.MXFP8_E4M3, (3, 50), 1),
    (DType.MXFP4, (33, 2), 0),
    (DType.NVFP4, (4, 64), 1),
    (DType.NVFP4, (3, 50), 1),
]


@pytest.mark.parametrize(("dtype", "shape", "axis"), SEVERAL)
def test_what_the_scheme_cannot_say_is_several_tensors(
    tmp_path: Path, dtype: BlockScaledDType, shape: tuple[int, ...], axis: int
) -> None:
    array = quantized(dtype, shape, axis)
    tensors = hurray.mx_tensors("x", array)
    names = ["x", "x.scales", "x.tensor_scale"][: 3 if dtype is DType.NVFP4 else 2]
    assert list(tensors) == names
    assert tensors["x"].shape == shape
    np.testing.assert_array_equal(tensors["x.scales"].codes(), array.scales)
    hurray.save(tmp_path / "x.hrry", tensors)
    same(hurray.mx_array("x", hurray.load(tmp_path / "x.hrry")), array)
    there = peer.load(str(tmp_path / "x.hrry"))
    assert [there[name].shape for name in names] == [tensors[name].shape for name in names]


def test_the_private_scheme_has_16_documented_bytes() -> None:
    def section(array: MXArray) -> bytes:
        scheme = hurray.mx_tensors("x", array)["x"].quantization
        assert isinstance(scheme, hurray.VerbatimScheme)
        return scheme.section

    mxint8 = section(quantized(DType.MXINT8, (4, 64), 1))
    assert mxint8 == bytes.fromhex("f0010000 01000000 20000000 42 00 fa 00")
    nvfp4 = section(quantized(DType.NVFP4, (64, 2), 0))
    assert nvfp4 == bytes.fromhex("f0010000 00000000 10000000 40 01 00 00")


def test_nvfp4_is_e2m1_elements_e4m3_scales_and_one_float32() -> None:
    array = quantized(DType.NVFP4, (4, 64), 1)
    tensors = hurray.mx_tensors("x", array)
    assert [tensor.dtype for tensor in tensors.values()] == [
        hurray.float4_e2m1,
        hurray.float8_e4m3,
        hurray.float32,
    ]
    assert tensors["x.tensor_scale"].shape == ()
    assert float(tensors["x.tensor_scale"].numpy()) == array.tensor_scale


def test_boxes_of_a_left_operand_hold_16_rows_by_2_groups() -> None:
    scales = np.arange(128, dtype=np.uint8).reshape(32, 4)
    tensor = hurray.boxed_scales_a(scales)
    assert tensor.dtype is hurray.float8_e8m0
    assert tensor.layout == hurray.TiledLayout([16, 2], "row_major", "row_major")
    assert bytes(tensor.buffer(0)) == numerics.pack_scales_a(scales).tobytes()
    assert tensor.buffer(0)[99] == scales[17, 3]
    np.testing.assert_array_equal(tensor.codes(), scales)


def test_boxes_of_a_right_operand_hold_16_columns_by_2_groups() -> None:
    scales = np.arange(128, dtype=np.uint8).reshape(4, 32)
    tensor = hurray.boxed_scales_b(scales)
    assert tensor.layout == hurray.TiledLayout([2, 16], "col_major", "col_major")
    assert bytes(tensor.buffer(0)) == numerics.pack_scales_b(scales).tobytes()
    assert tensor.buffer(0)[99] == scales[3, 17]
    np.testing.assert_array_equal(tensor.codes(), scales)


def test_the_edge_of_boxes_is_padded_with_scales_of_1() -> None:
    scales = np.full((17, 3), 0x85, np.uint8)
    tensor = hurray.boxed_scales_a(scales)
    data = bytes(tensor.buffer(0))
    assert len(data) == 32 * 4
    assert set(data) == {0x85, 0x7F}
    assert data.count(0x85) == scales.size
    np.testing.assert_array_equal(tensor.codes(), scales)
    assert hurray.boxed_scales_b(scales.T).shape == (3, 17)


@pytest.mark.parametrize(("shape", "axis"), [((16, 64), 1), ((64, 16), 0), ((20, 70), 1)])
def test_an_array_with_boxed_scales_comes_back(
    tmp_path: Path, shape: tuple[int, int], axis: int
) -> None:
    array = quantized(DType.MXFP8_E4M3, shape, axis)
    tensors = hurray.mx_tensors("x", array, boxed=True)
    assert tensors["x.scales"].layout.name == "tiled"
    hurray.save(tmp_path / "x.hrry", tensors)
    same(hurray.mx_array("x", hurray.load(tmp_path / "x.hrry")), array)
    assert peer.load(str(tmp_path / "x.hrry"))["x.scales"].layout.name == "tiled"


def test_boxes_are_for_e8m0_scales_of_matrices() -> None:
    for array in (quantized(DType.NVFP4, (4, 64), 1), quantized(DType.MXFP4, (2, 2, 32), 2)):
        with pytest.raises(hurray.UnsupportedError, match="Boxes must hold the E8M0 scales of a"):
            hurray.mx_tensors("x", array, boxed=True)
    with pytest.raises(hurray.InvalidDescriptorError, match="must be a matrix with entries"):
        hurray.boxed_scales_a(np.zeros((0, 2), np.uint8))


def test_e1m2_is_a_private_type_that_describes_itself(tmp_path: Path) -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(2, 8)
    tensor = hurray.tensor_of_codes(codes, E1M2)
    assert tensor.dtype.tag == hurray.E1M2_TAG == 0xF1
    assert tensor.extension_type == hurray.ExtensionType(
        4, is_float=True, sign_bits=1, exponent_bits=1, mantissa_bits=2, exponent_bias=1
    )
    assert hurray.E1M2_TYPE.encode() == bytes.fromhex(
        "04000000 02 01 00 01 01 02 0000 01000000 00 00 0000"
    )
    hurray.save(tmp_path / "x.hrry", {"x": tensor})
    loaded = hurray.load(tmp_path / "x.hrry")["x"]
    np.testing.assert_array_equal(loaded.codes(), codes)
    assert hurray.to_ir(loaded.dtype, loaded.extension_type) is E1M2
    assert peer.load(str(tmp_path / "x.hrry"))["x"].extension_type.bit_width == 4
    with pytest.raises(hurray.UnsupportedError, match="must be 0xF1 with the section of E1M2"):
        hurray.to_ir(loaded.dtype, hurray.ExtensionType(4))


def test_a_block_scaled_array_of_e1m2_comes_back(tmp_path: Path) -> None:
    dtype = BlockScaledDType("E1M2 by 64", element=E1M2, levels=(Level(DType.E8M0, 64),))
    array = quantized(dtype, (3, 128), 1)
    tensors = hurray.mx_tensors("x", array)
    assert [tensor.dtype.tag for tensor in tensors.values()] == [0xF1, 0x42]
    hurray.save(tmp_path / "x.hrry", tensors)
    same(hurray.mx_array("x", hurray.load(tmp_path / "x.hrry")), array)


NAMES = {
    "bool": "Bool", "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32",
    "float64": "Float64", "int8": "Int8", "uint8": "UInt8", "int16": "Int16", "uint16": "UInt16",
    "int32": "Int32", "uint32": "UInt32", "int64": "Int64", "uint64": "UInt64",
    "float8_e4m3": "E4M3", "float8_e5m2": "E5M2", "float8_e8m0": "E8M0", "float4_e2m1": "E2M1",
    "float6_e2m3": "E2M3", "float6_e3m2": "E3M2", "int4": "Int4", "uint4": "UInt4",
}  # fmt: skip


def test_the_descriptors_map_both_ways() -> None:
    for name, ir_name in NAMES.items():
        dtype = hurray.Dtype.from_name(name)
        ir_dtype = SimpleDType.from_name(ir_name)
        assert hurray.to_ir(dtype) is ir_dtype
        assert hurray.from_ir(ir_dtype) == (dtype, None)
        assert dtype.bit_width == ir_dtype.bits or name == "bool"
    assert hurray.from_ir(E1M2) == (hurray.Dtype.from_tag(0xF1), hurray.E1M2_TYPE)


def test_what_has_no_counterpart_is_refused_by_name() -> None:
    for dtype in (hurray.float128, hurray.int2, hurray.uint2, hurray.complex64):
        with pytest.raises(hurray.UnsupportedError, match=f"not {dtype.name}$"):
            hurray.to_ir(dtype)
    for ir_dtype in (ir_dtypes.Index, ir_dtypes.TaskId, DType.Floating, DType.MXFP4):
        with pytest.raises(hurray.UnsupportedError, match=f"not {ir_dtype.name}$"):
            hurray.from_ir(ir_dtype)


def test_arrays_of_ml_dtypes_are_codes_too() -> None:
    array = np.array([[1.0, -0.5]], ml_dtypes.float8_e4m3fn)
    tensor = hurray.tensor_of_codes(array, DType.E4M3)
    assert bytes(tensor.buffer(0)) == array.tobytes()
    np.testing.assert_array_equal(tensor.numpy(), array)


def broken() -> list[tuple[dict[str, hurray.Tensor], type[Exception], str]]:
    """Return tensors that are no block-scaled array, and what is said of them."""
    whole = hurray.mx_tensors("x", quantized(DType.MXFP8_E4M3, (2, 32), 1))
    several = hurray.mx_tensors("x", quantized(DType.MXINT8, (2, 32), 1))
    plain = hurray.from_numpy(np.zeros((2, 32), np.uint8))
    integers = hurray.Tensor(
        bytes(64), hurray.int8, [2, 32], aux_buffers=[bytes(2)], quantization=hurray.MXFP(1, 32, 1)
    )
    wide = hurray.Tensor(
        bytes(2048),
        hurray.float8_e4m3,
        [1, 2048],  # of a block size that no other test registers
        aux_buffers=[bytes(1)],
        quantization=hurray.MXFP(1, 2048, 1),
    )

    def scheme(section: str) -> hurray.Tensor:
        quantization = hurray.VerbatimScheme(bytes.fromhex(section))
        return hurray.Tensor(bytes(64), hurray.int8, [2, 32], quantization=quantization)

    return [
        ({}, hurray.InvalidDescriptorError, "must have the part 'x', but"),
        ({"x": plain}, hurray.UnsupportedError, "'x' must be block-scaled, not quantised by None"),
        ({"x": integers}, hurray.UnsupportedError, "must be floats to be an OCP array, not int8"),
        ({"x": wide}, hurray.UnsupportedError, "registered for E4M3 scaled by E8M0 over 2048"),
        ({"x": several["x"]}, hurray.InvalidDescriptorError, "must have the part 'x.scales'"),
        (
            several | {"x.scales": plain},
            hurray.InvalidDescriptorError,
            "'x.scales' must be of E8M0, not uint8",
        ),
        (
            several | {"x.scales": hurray.boxed_scales_a(np.zeros((2, 4), np.uint8))},
            hurray.InvalidDescriptorError,
            "Scales of MXINT8 elements .* must be",
        ),
        (
            several | {"x": scheme("f0010000 01000000 20000000 42 00 00 00")},
            hurray.InvalidDescriptorError,
            "Elements of MXINT8 must count in 2\\^-6, not in 2\\^0",
        ),
        (
            several | {"x": scheme("f0020000 01000000 20000000 42 00 fa 00")},
            hurray.InvalidDescriptorError,
            "must be of version 1 with no flags",
        ),
        (
            several | {"x": scheme("f0010000 01000000")},
            hurray.InvalidDescriptorError,
            "must have 16 bytes, not 8",
        ),
        (
            {"x": scheme("f3010000")} | whole | {"x": scheme("f3010000")},
            hurray.UnsupportedError,
            "must be block-scaled, not quantised by Verbatim",
        ),
    ]


@pytest.mark.parametrize("number", range(len(broken())))
def test_tensors_that_are_no_block_scaled_array_are_refused(number: int) -> None:
    tensors, error, message = broken()[number]
    with pytest.raises(error, match=message):
        hurray.mx_array("x", tensors)
