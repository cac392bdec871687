import ast
import importlib.util
from pathlib import Path

import pytest

from scalebox.codegen.isa.program import make
from scalebox.codegen.isa.table import BY_MNEMONIC, BY_OPCODE, LEGAL_PAIRS, MAX_FIELDS, ROWS
from scalebox.codegen.isa.vocabulary import (
    ADDRESS_BITS,
    ADDRESS_MULTIPLE,
    ElementType,
    FieldKind,
    MadInit,
    Pipe,
    Space,
)
from scalebox.ir.errors import IRValueError
from scalebox.ir.target import load_target, specs
from scalebox.ir.target_spec import MX_FAMILIES


@pytest.mark.parametrize("module", ["row", "program", "encoding", "asm", "docs"])
def test_what_derives_from_the_table_names_no_instruction(module: str):
    spec = importlib.util.find_spec(f"scalebox.codegen.isa.{module}")
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not literals & (set(BY_MNEMONIC) - {"and", "or", "min", "max"})


def test_the_table_has_the_instructions_of_every_pipe_that_a_cluster_needs():
    from_l1 = {"l1_to_l0a", "l1_to_l0b", "l1_to_scale_a", "l1_to_scale_b", "l1_to_bias"}
    from_l1 |= {"l1_to_l0a_row", "l1_to_scale_a_row", "l1_to_l0a_turned", "l1_to_l0b_boxes"}
    by_pipe = {
        Pipe.MTE2: {"gm_to_l1_nz", "gm_to_l1_row", "gm_to_l1_boxes", "gm_to_l1_nz_boxes"}
        | {"gm_to_l1_scales", "gm_to_ub", "l1_fill"},
        Pipe.MTE1: from_l1 | {f"{name}_at" for name in from_l1},
        Pipe.M: {"mad_mx", "mad", "mad_if"},
        Pipe.FIX: {"l0c_to_gm", "l0c_to_gm_fix", "l0c_to_gm_quant", "l0c_to_gm_columns"}
        | {
            "l0c_to_gm_nz",
            "l0c_to_ub",
            "l0c_to_ub_quant",
            "l0c_to_l1",
            "l0c_to_l1_quant",
            "l1_to_fixp",
        },
        Pipe.MTE3: {"ub_to_gm", "ub_to_gm_boxes", "ub_to_l1", "ub_to_l1_nz"},
    }
    for pipe, mnemonics in by_pipe.items():
        assert {row.mnemonic for row in ROWS if row.pipe is pipe} == mnemonics


def test_a_transfer_from_l1_comes_with_a_constant_source_and_with_one_from_a_register():
    for row in ROWS:
        if row.pipe is Pipe.MTE1 and not row.has("xo"):
            other = BY_MNEMONIC[f"{row.mnemonic}_at"]
            assert other.fields[:-1] == row.fields
            assert (other.fields[-1].name, other.fields[-1].kind) == ("xo", FieldKind.REG)
            assert (other.reads, other.writes, other.timing) == (row.reads, row.writes, row.timing)
            assert other.rules == row.rules


def test_every_two_operand_instruction_has_an_immediate_form():
    arithmetic = {"add", "sub", "mul", "floordiv", "floormod", "min", "max"}
    bitwise = {"and", "or", "xor", "shl", "shr"}
    compare = {"cmpeq", "cmpne", "cmplt", "cmple", "cmpgt", "cmpge"}
    for name in arithmetic | bitwise | compare:
        assert [each.name for each in BY_MNEMONIC[name].fields] == ["xd", "xa", "xb"]
        assert [each.name for each in BY_MNEMONIC[f"{name}i"].fields] == ["xd", "xa", "imm"]


def test_opcodes_and_mnemonics_are_unique_and_zero_is_no_opcode():
    assert len(BY_OPCODE) == len(BY_MNEMONIC) == len(ROWS)
    assert 0 not in BY_OPCODE
    assert max(len(row.fields) for row in ROWS) == MAX_FIELDS


def test_addresses_reach_every_byte_of_the_largest_machine_that_a_file_may_describe():
    for space, bits in ADDRESS_BITS.items():
        rule = specs()[f"{space.name.lower()}_bytes"]
        assert rule.most == 1 << bits
        assert getattr(load_target(), f"{space.name.lower()}_bytes") % ADDRESS_MULTIPLE[space] == 0


def test_a_scale_address_of_any_aligned_operand_is_a_box():
    for data, scale in ((Space.L0A, Space.SCALE_A), (Space.L0B, Space.SCALE_B)):
        assert ADDRESS_MULTIPLE[data] >> 4 == ADDRESS_MULTIPLE[scale]
        assert ADDRESS_BITS[data] - 4 == ADDRESS_BITS[scale]


def test_the_machine_file_may_allow_just_the_pairs_that_mad_mx_can_have():
    families = {(a, b) for family in MX_FAMILIES for a in family for b in family}
    assert {(a.name, b.name) for a, b in LEGAL_PAIRS} == families


def mad_mx(**changed: int):
    fields = {
        "c": 0,
        "a": 0,
        "b": 0,
        "bias": 0,
        "m": 64,
        "k": 128,
        "n": 128,
        "a_type": ElementType.E4M3,
        "b_type": ElementType.E4M3,
        "init": MadInit.ZERO,
    }
    return make("mad_mx", **{**fields, **changed})


@pytest.mark.parametrize("a", list(ElementType))
@pytest.mark.parametrize("b", list(ElementType))
def test_mad_mx_takes_8_bit_with_8_bit_and_4_bit_with_4_bit_only(a: ElementType, b: ElementType):
    if a.bits == b.bits:
        assert mad_mx(a_type=a, b_type=b)["b_type"] == b
        return
    message = (
        "In mad_mx, a_type and b_type must both be one of e4m3 and e5m2 or both one of e2m1 and "
        f"e1m2, not {a.name.lower()} and {b.name.lower()}."
    )
    with pytest.raises(IRValueError) as caught:
        mad_mx(a_type=a, b_type=b)
    assert caught.value.message == message


@pytest.mark.parametrize("dimension", ["m", "k", "n"])
@pytest.mark.parametrize("value", [0, 4096])
def test_mad_dimensions_are_1_to_4095(dimension: str, value: int):
    with pytest.raises(IRValueError, match=f"{dimension} must be 1 to 4095, not {value}"):
        mad_mx(**{dimension: value})
    assert mad_mx(**{dimension: 1})[dimension] == 1
    assert mad_mx(**{dimension: 4095})[dimension] == 4095


def test_a_bias_address_needs_bias_as_the_start():
    assert mad_mx(bias=64, init=MadInit.BIAS)["bias"] == 64
    with pytest.raises(IRValueError, match="bias must be 0 where init is not bias, not 64"):
        mad_mx(bias=64, init=MadInit.ACC)


@pytest.mark.parametrize("mnemonic", ["set_flag", "wait_flag"])
def test_flags_join_two_different_pipes(mnemonic: str):
    legal = make(mnemonic, src=Pipe.MTE2, dst=Pipe.MTE1, id=7)
    assert legal.pipe is (Pipe.MTE2 if mnemonic == "set_flag" else Pipe.MTE1)
    with pytest.raises(IRValueError, match="src and dst must differ, not both be m"):
        make(mnemonic, src=Pipe.M, dst=Pipe.M, id=0)
    with pytest.raises(IRValueError, match="must each be a single pipe, not all"):
        make(mnemonic, src=Pipe.M, dst=Pipe.ALL, id=0)
    with pytest.raises(IRValueError, match="id must be 0 to 7, not 8"):
        make(mnemonic, src=Pipe.M, dst=Pipe.V, id=8)


def test_an_l1_tile_has_whole_boxes_and_holds_the_window():
    fields = {"view": 0, "xr": 0, "xc": 0, "l1": 0, "rows": 64, "cols": 256}
    with pytest.raises(IRValueError, match="l1_rows must be a multiple of 16, not 72"):
        make("gm_to_l1_nz", **fields, l1_rows=72)
    with pytest.raises(IRValueError, match=r"rows must be at most l1_rows \(48\), not 64"):
        make("gm_to_l1_nz", **fields, l1_rows=48)


def test_registers_say_whether_they_are_results():
    for row in ROWS:
        for each in row.fields:
            if each.kind is FieldKind.REG:
                assert each.written == (each.name == "xd"), row.mnemonic
