"""Type rules of the block-scaled ops on whole tensors: products, windows, and what is put together."""

from typing import Any

import pytest

from scalebox.ir.dtypes import E1M2, BFloat16, DType, Index, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.ops import create_op_call
from scalebox.ir.types import TensorLayout, TensorType, TensorView, constant_dims

E4M3, E5M2, E2M1, E8M0, FP32 = DType.E4M3, DType.E5M2, DType.E2M1, DType.E8M0, DType.Float32
A, B = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
Shape = tuple[int, ...]


def tensor(
    shape: Shape, dtype: DType, view: TensorLayout | TensorView | None = None, name: str = "t"
) -> Var:
    return Var(name, TensorType(shape, dtype, None, view))


def operands(extents: Shape = (64, 128, 32), **changed: Var) -> list[Var]:
    """The operands of a product that is right; each can be replaced."""
    m, k, n = extents
    usual = {
        "lhs": tensor((m, k), E4M3),
        "lhs_scale": tensor((m, k // 32), E8M0, A),
        "rhs": tensor((k, n), E4M3),
        "rhs_scale": tensor((k // 32, n), E8M0, B),
    }
    return list({**usual, **changed}.values())


def refusal(kind: type[UserError], name: str, args: list[Any]) -> UserError:
    with pytest.raises(kind) as caught:
        create_op_call(name, args)
    assert caught.value.message.startswith(f"{name}: ")
    return caught.value


class TestProducts:
    def test_the_result_is_a_fresh_fp32_tensor(self) -> None:
        acc, bias = tensor((64, 32), FP32), tensor((1, 32), FP32)
        for name, args in (
            ("tensor.matmul_mx", operands()),
            ("tensor.matmul_mx_acc", [acc, *operands()]),
            ("tensor.matmul_mx_bias", [*operands(), bias]),
        ):
            assert create_op_call(name, args).type == TensorType([64, 32], FP32)

    @pytest.mark.parametrize("pair", [(E4M3, E5M2), (E5M2, E5M2), (E2M1, E1M2)])
    def test_legal_pairs(self, pair: tuple[DType, DType]) -> None:
        a, b = pair
        args = operands(lhs=tensor((64, 128), a), rhs=tensor((128, 32), b))
        assert create_op_call("tensor.matmul_mx", args).type == TensorType([64, 32], FP32)

    def test_scales_may_be_bytes(self) -> None:
        args = operands(lhs_scale=tensor((64, 4), UInt8, A))
        assert create_op_call("tensor.matmul_mx", args).type == TensorType([64, 32], FP32)

    def test_fp8_by_fp4(self) -> None:
        error = refusal(IRTypeError, "tensor.matmul_mx", operands(rhs=tensor((128, 32), E2M1)))
        assert error.message.endswith(
            "lhs and rhs must be both from {E4M3, E5M2} or both from {E2M1, E1M2}, not E4M3 and E2M1"
        )

    @pytest.mark.parametrize(
        ("extents", "sentence"),
        [
            ((24, 128, 32), "M must be a multiple of 16, not 24"),
            ((64, 96, 32), "K must be a multiple of 64, not 96"),
            ((64, 128, 48), "N must be a multiple of 32, not 48"),
        ],
    )
    def test_extents(self, extents: Shape, sentence: str) -> None:
        error = refusal(IRValueError, "tensor.matmul_mx", operands(extents))
        assert error.message == f"tensor.matmul_mx: {sentence}"

    def test_k_of_both_sides(self) -> None:
        error = refusal(IRValueError, "tensor.matmul_mx", operands(rhs=tensor((64, 32), E4M3)))
        assert error.message.endswith(
            "K must be the same on both sides, but lhs has 128 and rhs has 64"
        )

    @pytest.mark.parametrize(
        ("changed", "kind", "sentence"),
        [
            (
                {"lhs_scale": tensor((64, 4), E8M0)},
                IRValueError,
                "lhs_scale must be in MX_A_ZZ, not in ND",
            ),
            (
                {"rhs_scale": tensor((4, 32), E8M0, A)},
                IRValueError,
                "rhs_scale must be in MX_B_NN, not in MX_A_ZZ",
            ),
            (
                {"lhs_scale": tensor((64, 8), E8M0, A)},
                IRValueError,
                "lhs_scale must be [64, 4], one scale for 32 elements along K, not [64, 8]",
            ),
            (
                {"rhs_scale": tensor((4, 32), E4M3, B)},
                IRTypeError,
                "rhs_scale must hold E8M0, not E4M3",
            ),
            (
                {"lhs": tensor((64, 4), E8M0, A)},
                IRValueError,
                "lhs must hold elements, not scales in MX_A_ZZ",
            ),
            ({"lhs": tensor((64,), E4M3)}, IRValueError, "lhs must have rank 2, not 1"),
            (
                {"lhs": tensor((64, 128), E4M3, TensorView(None, TensorLayout.ND, [64, 100]))},
                IRValueError,
                "lhs must be valid as a whole, not only [64, 100] of [64, 128]",
            ),
        ],
    )
    def test_operands(self, changed: dict[str, Var], kind: type[UserError], sentence: str) -> None:
        error = refusal(kind, "tensor.matmul_mx", operands((64, 128, 32), **changed))
        assert error.message == f"tensor.matmul_mx: {sentence}"

    @pytest.mark.parametrize(
        ("name", "addend", "kind", "sentence"),
        [
            ("acc", tensor((64, 32), BFloat16), IRTypeError, "must hold Float32, not BFloat16"),
            ("acc", tensor((64, 64), FP32), IRValueError, "must be [64, 32], not [64, 64]"),
            ("bias", tensor((1, 32), BFloat16), IRTypeError, "must hold Float32, not BFloat16"),
            ("bias", tensor((64, 32), FP32), IRValueError, "must be [1, 32], not [64, 32]"),
        ],
    )
    def test_what_is_added(
        self, name: str, addend: Var, kind: type[UserError], sentence: str
    ) -> None:
        args = [addend, *operands()] if name == "acc" else [*operands(), addend]
        error = refusal(kind, f"tensor.matmul_mx_{name}", args)
        assert error.message == f"tensor.matmul_mx_{name}: {name} {sentence}"


class TestWindows:
    def test_a_window_is_row_major_whatever_it_is_cut_from(self) -> None:
        columns = tensor((64, 128), FP32, TensorView([1, 64], TensorLayout.DN))
        call = create_op_call("tensor.slice", [columns, [16, 32], [0, 32]])
        assert call.type == TensorType([16, 32], FP32)

    def test_a_window_of_a_compound_tensor_is_one(self) -> None:
        call = create_op_call("tensor.slice", [tensor((64, 128), DType.MXFP4), [32, 64], [32, 64]])
        assert call.type == TensorType([32, 64], DType.MXFP4)

    def test_windows_of_scales_keep_their_layout(self) -> None:
        scales = tensor((64, 8), E8M0, A)
        call = create_op_call("tensor.slice_scales", [scales, [16, 2], [16, 4]])
        assert call.type == TensorType([16, 2], E8M0, None, A)
        error = refusal(IRValueError, "tensor.slice", [scales, [16, 2], [16, 4]])
        assert error.message == "tensor.slice: cannot cut a tensor in MX_A_ZZ"
        plain = [tensor((64, 8), E8M0), [16, 2], [16, 4]]
        error = refusal(IRValueError, "tensor.slice_scales", plain)
        assert error.message.endswith("cuts tensors in MX_A_ZZ or MX_B_NN, not in ND")

    @pytest.mark.parametrize(
        ("shape", "offset", "sentence"),
        [
            ([32], [0, 0], "shape must have 2 elements, one a dimension of the tensor, not 1"),
            ([32, 0], [0, 0], "every dimension must be positive, not 0 in [32, 0]"),
            ([32, 32], [-1, 0], "the offset on axis 0 must not be negative, but is -1"),
            (
                [32, 32],
                [48, 0],
                "the window must end within the tensor, but takes 32 elements from offset 48 on "
                "axis 0, which has 64",
            ),
            (
                [Var("n", ScalarType(Index)), 32],
                [0, 0],
                "shape must be constant, not [n, 32]",
            ),
        ],
    )
    def test_refusals(self, shape: list[Any], offset: list[int], sentence: str) -> None:
        error = refusal(IRValueError, "tensor.slice", [tensor((64, 128), FP32), shape, offset])
        assert error.message == f"tensor.slice: {sentence}"


class TestAssembly:
    def test_the_result_is_the_target(self) -> None:
        target = tensor((64, 128), BFloat16)
        call = create_op_call("tensor.assemble", [target, tensor((64, 32), FP32), [0, 96]])
        assert call.type is target.type

    @pytest.mark.parametrize(
        ("target", "source", "offset", "sentence"),
        [
            (
                tensor((64, 64), E4M3),
                tensor((64, 64), FP32),
                [0, 0],
                "a tensor of Float32 must go into one of Float32, BFloat16, Float16, not of E4M3",
            ),
            (
                tensor((64, 64), FP32),
                tensor((64, 32), FP32),
                [0, 48],
                "the source must end within the tensor, but takes 32 elements from offset 48 on "
                "axis 1, which has 64",
            ),
            (
                tensor((64, 4), E8M0, A),
                tensor((64, 4), E8M0),
                [0, 0],
                "target must not be in MX_A_ZZ, whose boxes lie apart",
            ),
        ],
    )
    def test_refusals(self, target: Var, source: Var, offset: list[int], sentence: str) -> None:
        error = refusal(UserError, "tensor.assemble", [target, source, offset])
        assert error.message == f"tensor.assemble: {sentence}"


def test_shapes_are_static_where_the_scales_need_them() -> None:
    made = create_op_call("tensor.matmul_mx", operands()).type
    assert isinstance(made, TensorType)
    assert constant_dims(made.shape) == (64, 32)
