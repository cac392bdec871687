import pytest

from scalebox.codegen.isa.program import Instruction, Label, ProgramBuilder, make
from scalebox.codegen.isa.table import BY_MNEMONIC
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.errors import IRValueError


def test_an_instruction_shows_its_fields_by_name():
    instruction = make("movi", xd=3, imm=-5)
    assert instruction.fields == {"xd": 3, "imm": -5}
    assert instruction["imm"] == -5
    assert instruction.mnemonic == "movi"
    assert instruction.pipe is Pipe.S
    assert str(instruction) == "movi xd=3, imm=-5"


def test_equal_instructions_are_equal_and_hash_alike():
    assert make("movi", xd=3, imm=-5) == make("movi", imm=-5, xd=3)
    assert hash(make("nop")) == hash(make("nop"))
    assert make("movi", xd=3, imm=-5) != make("movi", xd=4, imm=-5)


def test_an_unknown_mnemonic_lists_near_ones():
    with pytest.raises(IRValueError) as caught:
        make("gm_to_l1")
    assert caught.value.message == (
        "A mnemonic must be one of the instruction table's, not 'gm_to_l1'."
    )
    assert caught.value.hint is not None
    assert "gm_to_l1_nz" in caught.value.hint


@pytest.mark.parametrize("fields", [{"xd": 1}, {"xd": 1, "imm": 2, "xa": 3}, {}])
def test_every_field_must_be_given_and_no_other(fields: dict[str, int]):
    given = ", ".join(fields) or "no fields"
    with pytest.raises(IRValueError) as caught:
        make("movi", **fields)
    assert caught.value.message == f"movi must have the fields xd, imm, not {given}."


def test_an_illegal_instruction_cannot_be_made_by_hand():
    with pytest.raises(IRValueError, match="In movi, xd must be 0 to 31, not 32"):
        Instruction(BY_MNEMONIC["movi"], (32, 0))


def test_the_builder_resolves_labels_backward_and_forward():
    builder = ProgramBuilder[str]()
    top, end = Label("top"), Label("end")
    builder.emit("movi", "start", xd=1, imm=0)
    builder.place(top)
    builder.emit("beqz", "leave", label=end, xa=2)
    builder.emit("addi", "count", xd=1, xa=1, imm=1)
    builder.emit("jump", "again", label=top)
    builder.place(end)
    builder.emit("halt", "done")
    program, tags = builder.build()
    assert len(builder) == 5
    assert tags == ["start", "leave", "count", "again", "done"]
    assert [each.mnemonic for each in program] == ["movi", "beqz", "addi", "jump", "halt"]
    assert program[1]["target"] == 3
    assert program[3]["target"] == -2


def test_the_builder_refuses_at_once_what_is_illegal():
    builder = ProgramBuilder[None]()
    with pytest.raises(IRValueError, match="nop must not be given a label: it has no target"):
        builder.emit("nop", None, label=Label("x"))
    with pytest.raises(IRValueError, match="xd must be 0 to 31, not 99"):
        builder.emit("movi", None, xd=99, imm=0)


def test_a_label_is_placed_exactly_once():
    builder = ProgramBuilder[None]()
    label = Label("x")
    builder.emit("jump", None, label=label)
    with pytest.raises(AssertionError, match="label x is never placed"):
        builder.build()
    builder.place(label)
    with pytest.raises(AssertionError, match="label x is placed twice"):
        builder.place(label)
