"""Launch inputs: what is accepted, what is refused, and how tensors lie in memory."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.binding import (
    BoundTensor,
    bind_inputs,
    bind_scalar,
    bind_tensor,
    buffer_items,
    image_bytes,
    logical_shape,
    natural_type,
    pack_image,
    result_name,
    source_name,
    to_array,
    unpack_image,
)
from scalebox.ir.core import Function, ParamDirection, SeqStmts
from scalebox.ir.dtypes import E1M2, BFloat16, DType, Float16, Index, SimpleDType
from scalebox.ir.errors import InputError, UserError
from scalebox.ir.expr import ScalarType, Var, index
from scalebox.ir.numerics.natural import NATURAL
from scalebox.ir.types import TensorLayout, TensorType, TensorView

ZZ, NN, DN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN, TensorLayout.DN
A = TensorType([2, 4], DType.E4M3)
SCALES = TensorType([32, 4], DType.E8M0, None, ZZ)
BLOCKED = TensorType([1, 2, 2, 16, 2], DType.E8M0, None, ZZ)


def refusal(action: Any, *args: Any) -> UserError:
    with pytest.raises(InputError) as caught:
        action(*args)
    return caught.value


class TestTensors:
    @pytest.mark.parametrize(
        "given",
        [
            np.arange(8, dtype=np.uint8).reshape(2, 4),
            np.arange(8, dtype=np.uint8).reshape(2, 4).view(ml_dtypes.float8_e4m3fn),
            np.arange(8, dtype=np.uint8).reshape(2, 4).view("V1"),
            np.asfortranarray(np.arange(8, dtype=np.uint8).reshape(2, 4)),
        ],
        ids=["codes", "ml_dtypes", "reloaded", "other strides"],
    )
    def test_values_and_raw_codes_are_the_same(self, given: Any) -> None:
        assert bind_tensor("a", A, given).codes.tolist() == list(range(8))

    def test_the_callers_array_is_copied(self) -> None:
        given = np.zeros((2, 4), np.uint8)
        bind_tensor("a", A, given).codes[:] = 7
        assert not given.any()

    @pytest.mark.parametrize("dtype", [DType.E2M1, E1M2])
    def test_nibbles_stand_one_in_a_byte(self, dtype: SimpleDType) -> None:
        type_ = TensorType([2, 4], dtype)
        codes = np.arange(8, 16, dtype=np.uint8).reshape(2, 4)
        assert bind_tensor("a", type_, codes).codes.tolist() == list(range(8, 16))
        error = refusal(bind_tensor, "a", type_, codes + 1)
        assert error.message == f"a must hold {dtype.name} codes 0..15, one a byte, not 16"

    def test_column_major_tensors_are_given_in_logical_order(self) -> None:
        type_ = TensorType([2, 3], DType.Float32, None, TensorView([1, 2], DN))
        given = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
        bound = bind_tensor("b", type_, given)
        assert bound.codes.view(np.float32).tolist() == [0, 3, 1, 4, 2, 5]
        assert (to_array(bound) == given).all()

    def test_strides_may_leave_gaps(self) -> None:
        type_ = TensorType([2, 2], DType.Int8, None, TensorView([4, 1], TensorLayout.ND))
        bound = bind_tensor("b", type_, np.array([[1, 2], [3, 4]], np.int8))
        assert bound.codes.tolist() == [1, 2, 0, 0, 3, 4]
        assert (buffer_items(type_), image_bytes(type_)) == (6, 6)
        assert to_array(bound).tolist() == [[1, 2], [3, 4]]

    @pytest.mark.parametrize("type_", [SCALES, BLOCKED])
    @pytest.mark.parametrize("shape", [(32, 4), (1, 2, 2, 16, 2), (2, 2, 16, 2), (128,)])
    def test_scales_are_bytes_in_box_order_under_any_of_their_shapes(
        self, type_: TensorType, shape: tuple[int, ...]
    ) -> None:
        given = np.arange(128, dtype=np.uint8).reshape(shape)
        bound = bind_tensor("s", type_, given)
        assert bound.codes.tolist() == list(range(128))
        back = to_array(bound)
        assert back.shape == (32, 4)
        assert back.dtype == ml_dtypes.float8_e8m0fnu
        assert back.view(np.uint8).ravel().tolist() == list(range(128))

    def test_boxes_of_the_right_operand_have_their_own_shape(self) -> None:
        type_ = TensorType([4, 32], DType.E8M0, None, NN)
        assert bind_tensor("s", type_, np.zeros((1, 2, 2, 16, 2), np.uint8)).codes.size == 128
        error = refusal(bind_tensor, "s", type_, np.zeros((32, 4), np.uint8))
        assert error.message == "s must be an E8M0 array of shape [4, 32], not of shape [32, 4]"
        assert error.hint == (
            "valid are arrays of float8_e8m0fnu or uint8 codes, of shape [4, 32], [1, 2, 2, 16, 2], "
            "[2, 2, 16, 2], [128], in box order (numerics.pack_scales_b makes it)"
        )

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            (None, ", but it was not given"),
            (np.zeros((4, 2), np.uint8), ", not of shape [4, 2]"),
            (np.zeros(8, np.uint8), ", not of shape [8]"),
            (np.zeros((2, 4), np.float32), ", not an array of float32"),
            (np.zeros((2, 4), np.int8), ", not an array of int8"),
            (np.zeros((2, 4), ml_dtypes.float8_e5m2), ", not an array of float8_e5m2"),
            (np.zeros((2, 4), ml_dtypes.float8_e4m3), ", not an array of float8_e4m3"),
            (np.zeros((2, 4), ml_dtypes.float8_e8m0fnu), ", not an array of float8_e8m0fnu"),
            (np.zeros((2, 4), np.int64), ", not an array of int64"),
            (np.zeros((2, 4), "V2"), ", not an array of |V2"),
            ([[0] * 4] * 2, ", not a list"),
            ("zeros", ", not 'zeros'"),
        ],
    )
    def test_a_wrong_array_is_refused_by_name(self, given: Any, found: str) -> None:
        error = refusal(bind_tensor, "a", A, given)
        assert error.message == f"a must be an E4M3 array of shape [2, 4]{found}"
        if given is not None:
            assert error.hint == "valid are arrays of float8_e4m3fn or uint8 codes"

    def test_a_tensor_of_unknown_size_is_refused(self) -> None:
        type_ = TensorType([Var("n", ScalarType(Index)), 4], DType.E4M3)
        error = refusal(bind_tensor, "a", type_, np.zeros((2, 4), np.uint8))
        assert error.message == "a must have constant dimensions to be run, not symbolic ones"


class TestNz:
    LOGICAL = TensorType([2, 32, 64], DType.E4M3, None, TensorLayout.NZ)
    BOXES = TensorType([2, 2, 2, 16, 32], DType.E4M3, None, TensorLayout.NZ)

    def test_elements_come_and_go_in_the_order_of_memory(self) -> None:
        codes = np.arange(4096).astype(np.uint8)
        for type_ in (self.LOGICAL, self.BOXES):
            for shape in ((2, 32, 64), (2, 2, 2, 16, 32), (4096,)):
                bound = bind_tensor("x", type_, codes.reshape(shape))
                assert (bound.codes == codes).all()
                assert to_array(bound).shape == (2, 32, 64)
                assert (to_array(bound).view(np.uint8).reshape(-1) == codes).all()
                assert (pack_image(bound) == codes).all()

    def test_folded_axes_can_be_given_apart(self) -> None:
        boxes = TensorType([6, 1, 1, 16, 32], DType.E4M3, None, TensorLayout.NZ)
        assert logical_shape(boxes) == (6, 16, 32)
        bind_tensor("x", boxes, np.zeros((2, 3, 16, 32), np.uint8))
        assert refusal(bind_tensor, "x", boxes, np.zeros((2, 2, 16, 32), np.uint8)).message == (
            "x must be an E4M3 array of shape [6, 16, 32], not of shape [2, 2, 16, 32]"
        )

    def test_a_shape_of_broken_boxes_is_told(self) -> None:
        broken = TensorType([24, 64], DType.E4M3, None, TensorLayout.NZ)
        assert refusal(bind_tensor, "x", broken, np.zeros((24, 64), np.uint8)).message == (
            "A tensor in NZ that is run must have a positive multiple of 16 rows, not 24"
        )


class TestScalars:
    @pytest.mark.parametrize(
        ("dtype", "given", "kept"),
        [
            (Index, 7, 7),
            (DType.Int32, np.int64(-5), -5),
            (DType.Bool, True, True),
            (DType.Bool, np.bool_(False), False),
            (DType.Float32, 1, 1.0),
            (DType.Float32, 0.1, float(np.float32(0.1))),
            (Float16, 1e9, float("inf")),
        ],
    )
    def test_numbers_of_the_right_kind(self, dtype: SimpleDType, given: Any, kept: float) -> None:
        assert bind_scalar("n", dtype, given) == kept
        assert type(bind_scalar("n", dtype, given)) is type(kept)

    @pytest.mark.parametrize(
        ("dtype", "given", "found"),
        [
            (Index, None, ", but it was not given"),
            (Index, 1.0, ", not 1.0"),
            (Index, True, ", not True"),
            (Index, "7", ", not '7'"),
            (DType.Bool, 1, ", not 1"),
            (DType.Float32, True, ", not True"),
            (DType.Int8, 128, ", within -128..127, not 128"),
            (
                Index,
                2**63,
                ", within -9223372036854775808..9223372036854775807, not 9223372036854775808",
            ),
            (Index, np.zeros(2), ", not an array of float64 of shape [2]"),
        ],
    )
    def test_others_are_refused_by_name(self, dtype: SimpleDType, given: Any, found: str) -> None:
        message = refusal(bind_scalar, "n", dtype, given).message
        assert message == f"n must be a scalar of {dtype.name}{found}"


class TestFunctions:
    @pytest.fixture
    def function(self) -> Function:
        return Function(
            "gemm",
            [
                Var("a", A),
                Var("n", ScalarType(Index)),
                (Var("c__ssa_v0", TensorType([2], DType.Float32)), ParamDirection.Out),
                (Var("d", TensorType([2], DType.Float32)), ParamDirection.InOut),
            ],
            [],
            SeqStmts(()),
        )

    @pytest.fixture
    def inputs(self) -> dict[str, Any]:
        return {"a": np.ones((2, 4), np.uint8), "n": 3, "d": np.ones(2, np.float32)}

    def test_outputs_may_be_omitted_and_start_as_zeros(
        self, function: Function, inputs: dict[str, Any]
    ) -> None:
        bound = bind_inputs(function, inputs)
        assert list(bound) == ["a", "n", "c", "d"]
        out = bound["c"]
        assert isinstance(out, BoundTensor)
        assert out.codes.tolist() == [0, 0]
        assert bound["n"] == 3

    def test_outputs_may_be_given(self, function: Function, inputs: dict[str, Any]) -> None:
        out = bind_inputs(function, inputs | {"c": np.ones(2, np.float32)})["c"]
        assert isinstance(out, BoundTensor)
        assert out.codes.view(np.float32).tolist() == [1, 1]

    def test_an_input_that_is_also_output_must_be_given(
        self, function: Function, inputs: dict[str, Any]
    ) -> None:
        del inputs["d"]
        error = refusal(bind_inputs, function, inputs)
        assert error.message == "d must be a Float32 array of shape [2], but it was not given"

    def test_an_unknown_name_is_refused(self, function: Function, inputs: dict[str, Any]) -> None:
        error = refusal(bind_inputs, function, inputs | {"aa": 1})
        assert error.message == "gemm has no parameter 'aa'"
        assert error.hint == "valid here: a"

    def test_inputs_must_be_a_mapping(self, function: Function) -> None:
        error = refusal(bind_inputs, function, 3)
        assert error.message == "inputs must map parameter names to arrays, not be 3"

    def test_names_lose_what_ssa_conversion_added(self) -> None:
        def named(name: str) -> Var:
            return Var(name, ScalarType(Index))

        given = ["x", "x__ssa_v0", "x__iter_v1", "x__rv_v12", "x__phi_v3", "x__idx_v0", "x__v0"]
        assert [source_name(named(n)) for n in given] == ["x"] * 6 + ["x__v0"]
        assert result_name(named("x__rv_v1")) == "x"
        assert result_name(named("_t3")) is None
        assert result_name(index(3)) is None


class TestImages:
    def test_nibbles_are_packed_low_first(self) -> None:
        type_ = TensorType([1, 4], DType.E2M1)
        bound = BoundTensor(np.array([1, 2, 15, 0], np.uint8), type_)
        assert pack_image(bound).tolist() == [0x21, 0x0F]
        assert image_bytes(type_) == 2

    def test_six_bits_are_packed_without_gaps(self) -> None:
        type_ = TensorType([1, 4], DType.E3M2)
        bound = BoundTensor(np.array([0b111111, 0, 0b000001, 0b100000], np.uint8), type_)
        assert pack_image(bound).tolist() == [0b00111111, 0b00010000, 0b10000000]
        assert image_bytes(type_) == 3

    def test_wide_codes_are_little_endian(self) -> None:
        bound = BoundTensor(np.array([0x3F80], np.uint16), TensorType([1], BFloat16))
        assert pack_image(bound).tolist() == [0x80, 0x3F]

    @pytest.mark.parametrize("dtype", [*NATURAL, E1M2], ids=lambda dtype: dtype.name)
    def test_an_image_reads_back_as_the_array(self, dtype: SimpleDType) -> None:
        type_ = TensorType([3, 4], dtype)
        kind = natural_type(dtype)
        codes = np.arange(12, dtype=np.uint8).reshape(3, 4)
        if dtype is DType.Bool:
            codes = codes % 2
        given = codes.view(kind) if kind.itemsize == 1 else codes.astype(kind)
        image = pack_image(bind_tensor("x", type_, given))
        assert image.dtype == np.uint8
        assert image.size == image_bytes(type_)
        for form in (image, image.tobytes()):
            back = unpack_image(form, type_)
            assert back.dtype == kind
            assert (back.view(np.uint8) == given.view(np.uint8)).all()

    def test_the_logical_shape_of_boxes_is_that_before_the_cut(self) -> None:
        assert logical_shape(BLOCKED) == (32, 4)
        assert logical_shape(TensorType([1, 2, 3, 16, 2], DType.E8M0, None, NN)) == (6, 32)
        assert logical_shape(A) == (2, 4)
