import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.asm import format_program, parse_program
from scalebox.codegen.isa.encoding import (
    decode,
    decode_columns,
    decode_program,
    encode,
    encode_program,
)
from scalebox.codegen.isa.program import Instruction, make
from scalebox.codegen.isa.row import Field, Row
from scalebox.codegen.isa.table import BY_MNEMONIC, MAX_FIELDS, ROWS
from scalebox.codegen.isa.vocabulary import ElementType, FieldKind, MadInit, Pipe
from scalebox.ir.errors import ExecutableError


def values_of(each: Field) -> st.SearchStrategy[int]:
    if each.enum is not None:
        return st.sampled_from([int(member) for member in each.enum])
    low, high = -(-each.minimum // each.multiple), each.maximum // each.multiple
    steps = st.one_of(st.just(low), st.just(high), st.integers(low, high))
    return steps.map(lambda step: step * each.multiple)


def instructions_of(row: Row) -> st.SearchStrategy[Instruction]:
    values = st.tuples(*map(values_of, row.fields))
    return values.filter(lambda each: row.complaint(each) is None).map(
        lambda each: Instruction(row, each)
    )


any_instruction = st.sampled_from(ROWS).flatmap(instructions_of)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.mnemonic)
def test_decoding_inverts_encoding_for_every_row(row: Row):
    @settings(max_examples=40, deadline=None)
    @given(instructions_of(row))
    def inverse(instruction: Instruction):
        assert decode(*encode(instruction)) == instruction

    inverse()


@settings(max_examples=60, deadline=None)
@given(st.lists(any_instruction, max_size=12))
def test_columns_hold_what_decoding_says(program: list[Instruction]):
    columns = decode_columns(encode_program(program))
    assert columns.values.shape == (len(program), MAX_FIELDS)
    for index, instruction in enumerate(program):
        values = (*instruction.values, *(0,) * MAX_FIELDS)[:MAX_FIELDS]
        assert tuple(columns.values[index].tolist()) == values
        assert columns.opcodes[index] == instruction.row.opcode
        assert columns.pipes[index] == instruction.pipe


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.sampled_from(ROWS))
def test_any_word_is_either_refused_or_encodes_back_to_itself(low: int, high: int, row: Row):
    low = low & ~0xFF | row.opcode
    try:
        instruction = decode(low, high)
    except ExecutableError:
        return
    assert encode(instruction) == (low, high)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_instruction, max_size=12))
def test_assembler_text_reads_back_as_the_same_program(program: list[Instruction]):
    landing: list[Instruction] = []
    for index, instruction in enumerate(program):
        values = [
            -index if each.kind is FieldKind.TARGET else value
            for each, value in zip(instruction.row.fields, instruction.values, strict=True)
        ]
        landing.append(Instruction(instruction.row, tuple(values)))
    assert parse_program(format_program(landing)) == landing


def test_movi_spreads_over_both_halves():
    assert encode(make("movi", xd=3, imm=-5)) == (0x03 | 3 << 8, 2**64 - 5)


def test_mad_mx_stands_in_its_documented_bits():
    instruction = make(
        "mad_mx",
        c=1024,
        a=512,
        b=1536,
        bias=32,
        m=64,
        k=128,
        n=96,
        a_type=ElementType.E5M2,
        b_type=ElementType.E4M3,
        init=MadInit.BIAS,
    )
    word = 0x80 | 1024 << 8 | 512 << 28 | 1536 << 46 | 32 << 64 | 64 << 78 | 128 << 90 | 96 << 102
    word |= 1 << 114 | 0 << 118 | 2 << 122
    assert encode(instruction) == (word & (2**64 - 1), word >> 64)


def test_an_empty_program_has_no_words():
    assert encode_program([]).shape == (0, 2)
    assert decode_program(encode_program([])) == []
    assert decode_columns(encode_program([])).values.shape == (0, MAX_FIELDS)


@pytest.mark.parametrize("opcode", sorted(set(range(256)) - {row.opcode for row in ROWS}))
def test_an_opcode_of_no_row_is_refused(opcode: int):
    message = f"The opcode must be one of the instruction table's, not {opcode:#04x}."
    with pytest.raises(ExecutableError) as caught:
        decode(opcode, 0)
    assert caught.value.message == message
    with pytest.raises(ExecutableError, match="Instruction 1 cannot be read"):
        decode_columns(np.array([[1, 0], [opcode, 0]], dtype=np.uint64))


def test_every_bit_that_no_field_covers_must_be_zero():
    for row in ROWS:
        covered = 0xFF
        for each in row.fields:
            covered |= ((1 << each.width) - 1) << each.low
        for bit in range(128):
            if covered >> bit & 1:
                continue
            word = row.opcode | 1 << bit
            with pytest.raises(ExecutableError, match=f"not set as bit {bit} is"):
                decode(word & (2**64 - 1), word >> 64)


def test_an_illegal_field_is_refused_with_the_instructions_index():
    words = encode_program([make("nop"), make("set_flag", src=Pipe.M, dst=Pipe.FIX, id=0)])
    words[1, 0] = 0x10 | 2 << 8 | 9 << 12
    with pytest.raises(ExecutableError) as caught:
        decode_program(words)
    assert caught.value.message == (
        "Instruction 1 cannot be read. In set_flag, dst must be one of s (0), v (1), m (2), "
        "mte1 (3), mte2 (4), mte3 (5), fix (6), all (7), not 9."
    )


@pytest.mark.parametrize("words", [np.zeros((3, 2), np.int64), np.zeros((4,), np.uint64)])
def test_words_of_another_shape_or_type_are_refused(words: np.ndarray):
    with pytest.raises(ExecutableError, match=r"Words must be uint64 \[n, 2\], not"):
        decode_program(words)


def test_sign_extension_reaches_the_columns():
    program = [make("movi", xd=0, imm=-(2**63)), make("jump", target=-1)]
    columns = decode_columns(encode_program(program))
    assert columns.values[0, BY_MNEMONIC["movi"].column("imm")] == -(2**63)
    assert columns.values[1, BY_MNEMONIC["jump"].column("target")] == -1
