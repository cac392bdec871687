"""The rule of `tensor.matmul`, and what every other op says to a tensor of a compound dtype."""

from typing import Any

import pytest

from scalebox.ir.dtypes import BFloat16, BlockScaledDType, DType, Index
from scalebox.ir.errors import IRTypeError, IRValueError, Span, UserError
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.ops import ROWS, OperandKind, create_op_call, deduce_type
from scalebox.ir.types import TensorType, constant_dims

MX_FORMATS = (
    DType.MXFP8_E4M3,
    DType.MXFP8_E5M2,
    DType.MXFP6_E3M2,
    DType.MXFP6_E2M3,
    DType.MXFP4,
    DType.MXINT8,
)
SPAN = Span("k.py", 7, 9)


def tensor(*shape: Any, dtype: DType = DType.MXFP8_E4M3) -> Var:
    return Var("a", TensorType(shape, dtype))


def refusal(kind: type[UserError], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as caught:
        create_op_call("tensor.matmul", list(args), kwargs, SPAN)
    assert caught.value.span == SPAN
    assert caught.value.message.startswith("tensor.matmul: ")
    return caught.value.message.removeprefix("tensor.matmul: ")


@pytest.mark.parametrize("left", MX_FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize("right", MX_FORMATS, ids=lambda d: d.name)
def test_two_formats_of_32(left: BlockScaledDType, right: BlockScaledDType) -> None:
    call = create_op_call(
        "tensor.matmul", [tensor(3, 64, dtype=left), tensor(64, 6, dtype=right)], {}, SPAN
    )
    assert isinstance(call.type, TensorType)
    assert constant_dims(call.type.shape) == (3, 6)
    assert call.type.dtype is DType.Float32
    assert deduce_type(call) == call.type


def test_nvfp4_has_blocks_of_16() -> None:
    operands = [tensor(3, 48, dtype=DType.NVFP4), tensor(48, 2, dtype=DType.NVFP4)]
    assert isinstance(create_op_call("tensor.matmul", operands, {}, SPAN).type, TensorType)
    wrong = tensor(3, 40, dtype=DType.NVFP4), tensor(40, 2, dtype=DType.NVFP4)
    assert refusal(IRValueError, *wrong) == (
        "K must be a multiple of 16, the elements of a block of NVFP4, not 40"
    )
    assert refusal(IRTypeError, operands[0], tensor(48, 2, dtype=DType.MXFP4)) == (
        "The operands must both have E8M0 scales over groups of one size, or be of one format, "
        "not NVFP4 and MXFP4"
    )


def test_defaults_are_not_stored() -> None:
    given = {"out_dtype": None, "a_trans": False, "c_matrix_nz": None}
    call = create_op_call("tensor.matmul", [tensor(3, 64), tensor(64, 2)], given, SPAN)
    assert dict(call.kwargs) == {}


@pytest.mark.parametrize(
    ("lhs", "rhs", "kwargs", "kind", "sentence"),
    [
        (
            tensor(3, 48), tensor(48, 2), {}, IRValueError,
            "K must be a multiple of 32, the elements of a block of MXFP8_E4M3, not 48",
        ),
        (
            tensor(3, 64), tensor(96, 2), {}, IRValueError,
            "K must be the same on both sides, but lhs has 64 and rhs has 96",
        ),
        (tensor(1, 3, 64), tensor(64, 2), {}, IRValueError, "lhs must have rank 2, not 3"),
        (tensor(3, 64), tensor(64), {}, IRValueError, "rhs must have rank 2, not 1"),
        (
            tensor(3, 64), tensor(64, 2, dtype=DType.E4M3), {}, IRTypeError,
            "rhs must be of a block-scaled dtype such as MXFP8_E4M3, not of E4M3",
        ),
        (
            tensor(3, 64, dtype=DType.Float32), tensor(64, 2), {}, IRTypeError,
            "lhs must be of a block-scaled dtype such as MXFP8_E4M3, not of Float32",
        ),
        (
            tensor(3, 64), tensor(64, 2), {"out_dtype": BFloat16}, IRTypeError,
            "out_dtype must be Float32, not BFloat16",
        ),
        (
            tensor(3, 64), tensor(64, 2), {"a_trans": True}, IRValueError,
            "a_trans must be False: the left operand is [M, K] and grouped along its last axis",
        ),
        (
            tensor(3, 64), tensor(64, 2), {"b_trans": True}, IRValueError,
            "b_trans must be False: the right operand is [K, N] and grouped along its first axis",
        ),
        (
            tensor(3, 64), tensor(64, 2), {"c_matrix_nz": True}, IRValueError,
            "c_matrix_nz must be False: the result is row-major",
        ),
        (
            tensor(3, 64), tensor(64, 0), {}, IRValueError,
            "rhs must have planes as its dtype has them: An extent of a shape must be 1 or more, "
            "not 0",
        ),
    ],
)  # fmt: skip
def test_what_does_not_multiply(
    lhs: Var, rhs: Var, kwargs: dict[str, Any], kind: type[UserError], sentence: str
) -> None:
    assert refusal(kind, lhs, rhs, **kwargs) == sentence


def test_a_symbolic_extent_is_left_to_the_run() -> None:
    m = Var("m", ScalarType(Index))
    call = create_op_call("tensor.matmul", [tensor(m, 64), tensor(64, 2)], {}, SPAN)
    assert isinstance(call.type, TensorType)
    assert call.type.shape[0] is m
    sentence = "K must be a multiple of 32, the elements of a block of MXFP8_E4M3, not 40"
    assert refusal(IRValueError, tensor(m, 40), tensor(40, 2)) == sentence


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        (
            DType.MXFP8_E4M3,
            "ops on tiles take two tensors, elements of E4M3 and scales of E8M0 in MX_A_ZZ or "
            "MX_B_NN",
        ),
        (DType.MXFP6_E3M2, "pl.matmul(a, b) works"),
        (DType.NVFP4, "pl.matmul(a, b) works"),
    ],
)
@pytest.mark.parametrize("name", [n for n in ROWS if n not in ("tensor.matmul", "tensor.slice")])
def test_no_other_op_takes_one(name: str, dtype: BlockScaledDType, hint: str) -> None:
    row = ROWS[name]
    args: list[Any] = [
        {
            OperandKind.TENSOR: tensor(64, 64, dtype=DType.E4M3),
            OperandKind.TUPLE: [0, 0],
            OperandKind.SCALAR: 1,
        }.get(operand.kind)
        for operand in row.operands
    ]
    examples: dict[type, Any] = {int: 0, DType: DType.Int8}
    required = {a.name: examples.get(a.kind) for a in row.attributes if a.required}
    places = [i for i, o in enumerate(row.operands) if o.kind is OperandKind.TENSOR]
    if not places or any(o.kind is OperandKind.TILE for o in row.operands):
        return  # an op on tiles, which are never of a compound dtype
    args[places[0]] = tensor(64, 64, dtype=dtype)
    with pytest.raises(IRTypeError) as caught:
        create_op_call(name, args, required, SPAN)
    operand = row.operands[places[0]].name
    assert caught.value.message == (
        f"{name}: {operand} must be of a simple dtype, not of {dtype.name}, of which only "
        "pl.matmul and pl.slice take tensors"
    )
    assert caught.value.hint == hint


def test_none_is_made() -> None:
    with pytest.raises(IRTypeError) as caught:
        create_op_call("tensor.create", [[64, 64]], {"dtype": DType.MXFP4}, SPAN)
    assert caught.value.message == "tensor.create: dtype must be simple, not MXFP4"
    assert caught.value.hint == "a tensor of a compound dtype comes in by a parameter"


def test_a_sum_starts_from_an_fp32_tensor() -> None:
    operands = [tensor(64, 128), tensor(128, 32)]
    acc = tensor(64, 32, dtype=DType.Float32)
    made = create_op_call("tensor.matmul_acc", [acc, *operands], {}, SPAN)
    assert made.type == TensorType([64, 32], DType.Float32)
    for wrong, sentence in (
        (tensor(64, 64, dtype=DType.Float32), "acc must be [64, 32], not [64, 64]"),
        (tensor(64, 32, dtype=DType.Int32), "acc must hold Float32, not Int32"),
    ):
        with pytest.raises(UserError) as caught:
            create_op_call("tensor.matmul_acc", [wrong, *operands], {}, SPAN)
        assert caught.value.message == f"tensor.matmul_acc: {sentence}"
    with pytest.raises(IRValueError, match="a_trans must be False: the left operand is"):
        create_op_call("tensor.matmul_acc", [acc, *operands], {"a_trans": True}, SPAN)
