"""The table of operations, and how calls are made from its rows."""

import pytest

from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import IRTypeError, IRValueError, Span
from scalebox.ir.expr import Call, MakeTuple, ScalarType, Var
from scalebox.ir.ops import ROWS, create_op_call, deduce_type, get_op, get_op_memory_spec
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TileType, constant_dims

Mem = MemorySpace
SPAN = Span("k.py", 7, 9)


def tensor(*shape: int, dtype: DType = DType.E4M3, layout: TensorLayout | None = None) -> Var:
    return Var("a", TensorType(shape, dtype, None, layout))


class TestRows:
    def test_only_what_passes_write_is_internal(self) -> None:
        internal = {name for name, row in ROWS.items() if not row.public}
        steps = {"tile.quant_scales", "tile.quant_elements", "tile.scale_boxes"}
        assert internal == {"tile.tget_scale_addr", "tensor.slice_scales", *steps}

    def test_what_gives_a_tile_another_name_is_told_from_what_changes_it(self) -> None:
        names = {name for name, row in ROWS.items() if row.renames}
        assert names == {"tile.tget_scale_addr", "tile.set_validshape"}

    @pytest.mark.parametrize("name", ROWS)
    def test_a_row_is_complete(self, name: str) -> None:
        row = ROWS[name]
        assert row.name == name
        assert row.doc[0].isupper()
        assert row.doc.endswith(".")
        assert callable(row.meaning)
        assert callable(row.infer)
        assert row.scalar_form is None or row.scalar_form in ROWS
        assert list(row.by_name) == [p.name for p in (*row.operands, *row.attributes)]

    @pytest.mark.parametrize(
        ("name", "signature"),
        [
            (
                "tile.load",
                "tile.load(tensor, offsets, shapes, valid_shape=…, target_memory=None, clamp=False)",
            ),
            (
                "tile.move",
                "tile.move(tile, target_memory, blayout=None, slayout=None, dtype=None, "
                "pre_quant=None, pre_relu=False)",
            ),
            (
                "tile.store",
                "tile.store(tile, offsets, output_tensor, shapes=…, pre_quant=None, pre_relu=False)",
            ),
            ("tile.extract", "tile.extract(src, index_row, index_col, shape, target_memory)"),
            (
                "tile.matmul_mx_acc",
                "tile.matmul_mx_acc(acc, lhs, lhs_scale, rhs, rhs_scale)",
            ),
            (
                "tile.matmul_mx_bias",
                "tile.matmul_mx_bias(lhs, lhs_scale, rhs, rhs_scale, bias)",
            ),
            (
                "tensor.matmul_mx_bias",
                "tensor.matmul_mx_bias(lhs, lhs_scale, rhs, rhs_scale, bias)",
            ),
            (
                "tile.quant_mx",
                "tile.quant_mx(src, group_axis=None, dtype=E4M3, layout=None, rule=floor)",
            ),
            (
                "tensor.slice",
                "tensor.slice(tensor, shape, offset, valid_shape=…, drop_dims=(), pad_value=PadValue.null, "
                "clamp=False)",
            ),
            ("tensor.assemble", "tensor.assemble(target, source, offset)"),
            ("tensor.view", "tensor.view(tensor, shape=…, valid_shape=…, layout=None)"),
            (
                "tensor.matmul",
                "tensor.matmul(lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, "
                "c_matrix_nz=False)",
            ),
        ],
    )
    def test_the_order_of_arguments_is_that_of_the_language(
        self, name: str, signature: str
    ) -> None:
        assert get_op(name).signature == signature

    def test_the_scale_operands_have_their_buffers(self) -> None:
        spec = get_op_memory_spec("tile.matmul_mx_acc")
        assert spec["output_memory"] is Mem.Acc
        assert spec["input_constraints"] == [
            [Mem.Acc], [Mem.Left], [Mem.LeftScale], [Mem.Right], [Mem.RightScale],
        ]  # fmt: skip
        assert get_op_memory_spec("tile.matmul_mx_bias")["input_constraints"][4] == [Mem.Bias]
        assert get_op_memory_spec("tile.tget_scale_addr") == {
            "output_memory": None,
            "input_constraints": [[], []],
        }

    def test_an_unknown_name_is_refused_with_those_that_resemble_it(self) -> None:
        with pytest.raises(IRValueError) as caught:
            get_op("tile.matmul_mxx")
        assert caught.value.message == (
            "'tile.matmul_mxx' must name an operation, but there is none of that name"
        )
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("valid here: tile.matmul_mx, tile.matmul_mx_acc")


class TestCalls:
    def test_a_load_has_four_operands_and_only_the_attributes_that_were_given(self) -> None:
        call = create_op_call("tile.load", [tensor(64, 128), [0, 0], [16, 64]], {}, SPAN)
        assert (call.name, len(call.args), dict(call.kwargs)) == ("tile.load", 4, {})
        assert call.args[3] is call.args[2]
        assert call.span == SPAN
        assert isinstance(call.args[1], MakeTuple)

    def test_an_attribute_with_its_default_value_is_left_out(self) -> None:
        given = {"target_memory": Mem.Mat, "clamp": False}
        call = create_op_call("tile.load", [tensor(64, 128), [0, 0], [16, 64]], given)
        assert dict(call.kwargs) == {"target_memory": Mem.Mat}
        assert get_op("tile.load").attribute(call.kwargs, "clamp") is False
        assert get_op("tile.load").attribute(call.kwargs, "target_memory") is Mem.Mat

    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ([tensor(4, 4), [0, 0]], {}, "tile.load: takes 3 to 4 operands, not 2"),
            ([tensor(4, 4)] * 5, {}, "tile.load: takes 3 to 4 operands, not 5"),
            (
                [Var("t", TileType([16, 64], DType.E4M3)), [0, 0], [4, 4]],
                {},
                "tile.load: tensor must be a tensor, not a tile",
            ),
            (
                [tensor(4, 4), 0, [4, 4]],
                {},
                "tile.load: offsets must be a list of integers or scalars, not a scalar of Index",
            ),
            (
                [tensor(4, 4), [0, Var("f", ScalarType(DType.Float32))], [4, 4]],
                {},
                "tile.load: offsets must be a list of integers or scalars, not a list that holds a "
                "scalar of Float32",
            ),
            (
                [tensor(4, 4), [0, 0], [4, 4]],
                {"memory": Mem.Mat},
                "tile.load: has no attribute 'memory'",
            ),
            (
                [tensor(4, 4), [0, 0], [4, 4]],
                {"target_memory": "Mat"},
                "tile.load: target_memory must be a MemorySpace, not 'Mat'",
            ),
        ],
    )
    def test_wrong_arguments_are_refused(
        self, args: list[object], kwargs: dict[str, object], message: str
    ) -> None:
        with pytest.raises(IRTypeError) as caught:
            create_op_call("tile.load", args, kwargs, SPAN)
        assert caught.value.message == message
        assert caught.value.span == SPAN

    def test_a_required_attribute_must_be_there(self) -> None:
        tile = Var("t", TileType([16, 64], DType.E4M3, memory_space=Mem.Mat))
        with pytest.raises(IRTypeError) as caught:
            create_op_call("tile.move", [tile])
        assert caught.value.message == "tile.move: is missing the argument 'target_memory'"

    def test_a_call_as_it_stands_is_judged_by_the_same_rule(self) -> None:
        call = create_op_call("tile.load", [tensor(64, 128), [0, 0], [16, 64]])
        assert deduce_type(call) == call.type
        wrong = Call(call.op, call.args[:2], call.type)
        with pytest.raises(IRTypeError, match=r"^tile\.load: takes 3 to 4 operands, not 2$"):
            deduce_type(wrong)


class TestBinding:
    """What a kernel writes, sorted into operands and attributes."""

    def test_attributes_may_follow_the_operands_by_position(self) -> None:
        a, window = tensor(4, 4), [4, 4]
        row = get_op("tile.load")
        operands, attributes = row.bind([a, [0, 0], window, None, Mem.Mat], {}, SPAN)
        assert operands == (a, [0, 0], window)
        assert attributes == {"target_memory": Mem.Mat, "clamp": False}

    def test_operands_may_be_given_by_name(self) -> None:
        a = tensor(4, 4)
        given = {"shapes": [4, 4], "offsets": [0, 0], "clamp": True}
        operands, attributes = get_op("tile.load").bind([a], given, SPAN)
        assert operands == (a, [0, 0], [4, 4])
        assert attributes["clamp"] is True

    @pytest.mark.parametrize("layout", [TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN])
    def test_a_kernel_need_not_say_that_scales_go_to_mat(self, layout: TensorLayout) -> None:
        scales = tensor(64, 64, dtype=DType.E8M0, layout=layout)
        row = get_op("tile.load")
        assert row.bind([scales, [0, 0], [16, 2]], {}, SPAN)[1]["target_memory"] is Mem.Mat
        plain = tensor(64, 64, dtype=DType.E8M0)
        assert row.bind([plain, [0, 0], [16, 2]], {}, SPAN)[1]["target_memory"] is None

    @pytest.mark.parametrize(
        ("positional", "keywords", "message"),
        [
            ([1], {"offset": [0, 0]}, "tile.load: has no argument 'offset'"),
            ([1, 2], {"offsets": 3}, "tile.load: got the argument 'offsets' twice"),
            ([1, 2], {}, "tile.load: is missing the argument 'shapes'"),
            ([1, 2, 3, 4, 5, 6, 7], {}, "tile.load: takes at most 6 arguments, not 7"),
        ],
    )
    def test_wrong_ways_to_write_a_call(
        self, positional: list[object], keywords: dict[str, object], message: str
    ) -> None:
        with pytest.raises(IRTypeError) as caught:
            get_op("tile.load").bind(positional, keywords, SPAN)
        assert caught.value.message == message
        assert caught.value.hint is not None

    def test_a_hole_among_the_operands_is_refused(self) -> None:
        with pytest.raises(IRTypeError) as caught:
            get_op("tensor.view").bind([1], {"valid_shape": [1]}, SPAN)
        assert caught.value.message == (
            "tensor.view: needs the argument 'shape' before those that follow it"
        )

    def test_a_symbolic_offset_stays_an_expression(self) -> None:
        k = Var("k", ScalarType(Index))
        call = create_op_call("tile.load", [tensor(64, 128), [0, k], [16, 64]])
        assert isinstance(call.args[1], MakeTuple)
        assert call.args[1].elements[1] is k
        assert isinstance(call.type, TileType)
        assert constant_dims(call.type.shape) == (16, 64)
