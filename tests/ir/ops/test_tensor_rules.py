"""Type rules of tensor.create and tensor.view."""

from typing import Any

import pytest

from scalebox.ir.dtypes import DType, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError, UserError
from scalebox.ir.expr import Call, MakeTuple, Op, Type, Var, index
from scalebox.ir.ops import create_op_call, deduce_type
from scalebox.ir.types import TensorLayout, TensorType, TensorView

ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
ZZ, NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
E8M0, FP32 = DType.E8M0, DType.Float32


def tensor(
    shape: list[int], dtype: DType = E8M0, view: TensorLayout | TensorView | None = None
) -> Var:
    return Var("x", TensorType(shape, dtype, None, view))


def view(source: Var, shape: list[int] | None = None, layout: TensorLayout | None = None) -> Type:
    args: list[Any] = [source] if shape is None else [source, shape]
    return create_op_call("tensor.view", args, {"layout": layout}).type


class TestCreate:
    def test_a_fresh_tensor(self) -> None:
        made = create_op_call("tensor.create", [[64, 128]], {"dtype": FP32})
        assert made.type == TensorType([64, 128], FP32)

    def test_a_fresh_tensor_of_scales(self) -> None:
        made = create_op_call("tensor.create", [[64, 4]], {"dtype": E8M0, "layout": ZZ})
        assert made.type == TensorType([64, 4], E8M0, None, ZZ)

    def test_an_odd_row_of_nibbles_is_refused(self) -> None:
        with pytest.raises(IRValueError) as caught:
            create_op_call("tensor.create", [[4, 3]], {"dtype": DType.E2M1})
        assert caught.value.message == (
            "tensor.create: the last dimension of E2M1, which lies two in a byte, must be even, "
            "not 3 in [4, 3]"
        )


class TestView:
    @pytest.mark.parametrize("layout", [ZZ, NN])
    def test_plain_bytes_become_boxes_and_back(self, layout: TensorLayout) -> None:
        plain = tensor([1, 256])
        boxed = view(plain, [64, 4], layout)
        assert boxed == TensorType([64, 4], E8M0, None, layout)
        assert view(Var("y", boxed), [1, 256]) == plain.type
        assert view(Var("y", boxed), [1, 256], ND) == plain.type

    def test_a_plain_tensor_takes_another_shape(self) -> None:
        assert view(tensor([4, 6], FP32), [2, 12]) == TensorType([2, 12], FP32)

    def test_a_layout_alone_looks_at_the_transpose(self) -> None:
        assert view(tensor([4, 6], FP32), None, DN) == TensorType([6, 4], FP32, None, DN)
        assert view(tensor([6, 4], FP32, DN), None, ND) == TensorType([4, 6], FP32)

    @pytest.mark.parametrize(
        ("source", "shape", "layout", "kind", "message"),
        [
            (tensor([4, 6]), None, None, IRValueError, "must be given a shape or a layout"),
            (
                tensor([64, 4], E8M0, ZZ),
                [4, 64],
                NN,
                IRValueError,
                "an MX layout must be viewed from or as ND, not MX_A_ZZ as MX_B_NN",
            ),
            (
                tensor([64, 4], E8M0, ZZ),
                [32, 8],
                ZZ,
                IRValueError,
                "an MX layout must be viewed from or as ND, not MX_A_ZZ as MX_A_ZZ",
            ),
            (
                tensor([64, 4], E8M0, DN),
                [64, 4],
                ZZ,
                IRValueError,
                "an MX layout must be viewed from or as ND, not DN as MX_A_ZZ",
            ),
            (
                tensor([64, 4]),
                None,
                ZZ,
                IRValueError,
                "a view of ND as MX_A_ZZ must be given its shape",
            ),
            (
                tensor([64, 4], E8M0, NN),
                None,
                ND,
                IRValueError,
                "a view of MX_B_NN as ND must be given its shape",
            ),
            (
                tensor([1, 256], UInt8),
                [64, 4],
                ZZ,
                IRTypeError,
                "a view of ND as MX_A_ZZ must hold E8M0, not UInt8",
            ),
            (
                tensor([1, 256]),
                [64, 2],
                ZZ,
                IRValueError,
                "the view must have the 256 elements of [1, 256], not the 128 of [64, 2]",
            ),
            (
                tensor([16, 16], FP32, NZ),
                [256],
                ND,
                IRValueError,
                "cannot view a tensor in NZ, nor as NZ",
            ),
            (
                tensor([16, 16], FP32, TensorView([32, 1], ND)),
                [256],
                None,
                IRValueError,
                "the source must be packed, not of stride [32, 1]",
            ),
            (
                tensor([16, 16], FP32, TensorView([], ND, [15, 16])),
                [256],
                None,
                IRValueError,
                "the source must be valid as a whole, not only [15, 16] of [16, 16]",
            ),
            (
                tensor([16, 16], FP32),
                [0, 256],
                None,
                IRValueError,
                "every dimension must be positive, not 0 in [0, 256]",
            ),
        ],
    )
    def test_a_view_that_would_lie_is_refused(
        self,
        source: Var,
        shape: list[int] | None,
        layout: TensorLayout | None,
        kind: type[UserError],
        message: str,
    ) -> None:
        with pytest.raises(kind) as caught:
            view(source, shape, layout)
        assert caught.value.message == f"tensor.view: {message}"

    def test_boxes_of_rank_five_are_judged_by_their_own_rule(self) -> None:
        blocked = TensorType([1, 4, 2, 16, 2], E8M0, None, ZZ)
        shape = MakeTuple(tuple(index(d) for d in (1, 4, 2, 16, 2)))
        call = Call(Op("tensor.view"), [tensor([1, 256]), shape], {"layout": ZZ}, blocked)
        assert deduce_type(call) == blocked
        back = Call(
            Op("tensor.view"),
            [Var("y", blocked), MakeTuple((index(1), index(256)))],
            TensorType([1, 256], E8M0),
        )
        assert deduce_type(back) == TensorType([1, 256], E8M0)
        short = MakeTuple(tuple(index(d) for d in (1, 4, 1, 16, 2)))
        with pytest.raises(IRValueError, match="the view must have the 256 elements of"):
            deduce_type(Call(call.op, [call.args[0], short], {"layout": ZZ}, blocked))
