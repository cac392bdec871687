import pytest

from scalebox.codegen.isa.asm import format_instruction, format_program, parse_program
from scalebox.codegen.isa.program import make
from scalebox.ir.errors import ExecutableError

LOOP = """\
    movi           x1, 0
L0:
    cmplti         x2, x1, 4
    beqz           x2, L1
    addi           x1, x1, 1
    jump           L0
L1:
    halt
"""


def test_an_instruction_is_one_line_with_named_numbers_and_addresses_in_their_space():
    load = make("gm_to_l1_nz", view=0, xr=3, xc=4, l1=0x1000, rows=64, cols=256, l1_rows=64)
    assert format_instruction(load) == (
        "gm_to_l1_nz    v0, x3, x4, l1[0x1000], rows=64, cols=256, l1_rows=64"
    )
    flag = make("set_flag", src=4, dst=3, id=2)
    assert format_instruction(flag) == "set_flag       src=mte2, dst=mte1, id=2"
    assert format_instruction(make("jump", target=-3)) == "jump           -3"


def test_branches_go_to_labels():
    program = [
        make("movi", xd=1, imm=0),
        make("cmplti", xd=2, xa=1, imm=4),
        make("beqz", xa=2, target=3),
        make("addi", xd=1, xa=1, imm=1),
        make("jump", target=-3),
        make("halt"),
    ]
    assert format_program(program) == LOOP
    assert parse_program(LOOP) == program


def test_comments_stand_behind_and_cannot_break_a_line():
    text = format_program([make("nop"), make("halt")], ["k.py:1:2", "a\nhalt\u2028halt"])
    assert [line.split(";")[1] for line in text.splitlines()] == [" k.py:1:2", " a halt halt"]
    assert parse_program(text) == [make("nop"), make("halt")]


def test_labels_may_have_any_name_and_share_a_line():
    assert parse_program("a: b: nop ; here\n\n ;\njump a\n jump b\nc:") == [
        make("nop"),
        make("jump", target=-1),
        make("jump", target=-2),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "nop\nnopp",
            "In line 2, a mnemonic must be one of the instruction table's, not 'nopp'.",
        ),
        ("movi x1", "In line 1, the operands of movi (xd, imm) must be given, not 1 operands."),
        ("movi x1, y", "In line 1, imm of movi must be written as 0, not 'y'."),
        ("movi 1, 1", "In line 1, xd of movi must be written as x0, not '1'."),
        ("movi x32, 1", "In line 1, in movi, xd must be 0 to 31, not 32."),
        ("jump nowhere", "In line 1, target of jump must be written as a label of the program, "
         "not 'nowhere'."),
        ("a: nop\na: nop", "In line 2, a label must stand once, not again as 'a' does."),
        (
            "l1_to_bias l0a[0x0], bias[0x0], bytes=4",
            "In line 1, src of l1_to_bias must be written as l1[0x0], not 'l0a[0x0]'.",
        ),
        (
            "pipe_barrier pipe=x",
            "In line 1, pipe of pipe_barrier must be written as pipe= one of s, v, m, mte1, mte2, "
            "mte3, fix, all, not 'pipe=x'.",
        ),
        ("l1_to_bias l1[0x0], bias[0x0], size=4", "In line 1, bytes of l1_to_bias must be written "
         "as bytes=0, not 'size=4'."),
        ("movi x1, " + "9" * 5000, None),
    ],
)  # fmt: skip
def test_text_that_is_no_program_is_refused_by_line(text: str, message: str | None):
    with pytest.raises(ExecutableError) as caught:
        parse_program(text)
    if message is not None:
        assert caught.value.message == message
