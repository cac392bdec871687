"""The part of the instruction table that the scalar unit runs itself: arithmetic and branches."""

from __future__ import annotations

from .row import Field, Row, param, reg, simm, target
from .vocabulary import Flow, Pipe, TimingClass

_BINARY = (
    ("add", "xa + xb"),
    ("sub", "xa - xb"),
    ("mul", "xa * xb"),
    ("floordiv", "xa / xb, rounded down; a zero divisor is a machine fault"),
    ("floormod", "xa - xb * floor(xa / xb); a zero divisor is a machine fault"),
    ("min", "the smaller of xa and xb, signed"),
    ("max", "the larger of xa and xb, signed"),
    ("and", "the bits set in both xa and xb"),
    ("or", "the bits set in xa or xb"),
    ("xor", "the bits set in one of xa and xb"),
    ("shl", "xa shifted left by the low six bits of xb"),
    ("shr", "xa shifted right arithmetically by the low six bits of xb"),
    ("cmpeq", "1 if xa == xb, else 0"),
    ("cmpne", "1 if xa != xb, else 0"),
    ("cmplt", "1 if xa < xb, signed, else 0"),
    ("cmple", "1 if xa <= xb, signed, else 0"),
    ("cmpgt", "1 if xa > xb, signed, else 0"),
    ("cmpge", "1 if xa >= xb, signed, else 0"),
)
_SHIFTS = frozenset({"shl", "shr"})
_FIRST_BINARY_OPCODE = 0x20
_FIRST_IMMEDIATE_OPCODE = 0x40


def _binary_rows() -> list[Row]:
    xd = reg("xd", 8, "Result.", written=True)
    xa, xb = reg("xa", 13, "Left operand."), reg("xb", 18, "Right operand.")
    rows: list[Row] = []
    for index, (name, meaning) in enumerate(_BINARY):
        number = _right_number(name)
        with_number = meaning.replace("the low six bits of xb", "imm").replace("xb", "imm")
        rows += [
            Row(
                name,
                _FIRST_BINARY_OPCODE + index,
                Pipe.S,
                TimingClass.SCALAR,
                f"xd becomes {meaning}. Arithmetic is 64-bit two's complement and wraps.",
                (xd, xa, xb),
            ),
            Row(
                f"{name}i",
                _FIRST_IMMEDIATE_OPCODE + index,
                Pipe.S,
                TimingClass.SCALAR,
                f"xd becomes {with_number}. Arithmetic is 64-bit two's complement and wraps.",
                (xd, xa, number),
            ),
        ]
    return rows


def _right_number(name: str) -> Field:
    if name in _SHIFTS:
        return simm("imm", 64, 32, "Shift distance in bits.", least=0, most=63)
    return simm("imm", 64, 32, "Right operand.")


SCALAR: tuple[Row, ...] = (
    Row("nop", 0x01, Pipe.S, TimingClass.SCALAR, "Nothing happens."),
    Row(
        "halt",
        0x02,
        Pipe.S,
        TimingClass.SCALAR,
        "The scalar unit issues nothing more; the kernel ends when every queue is empty and idle.",
        flow=Flow.HALT,
    ),
    Row(
        "movi",
        0x03,
        Pipe.S,
        TimingClass.SCALAR,
        "xd becomes imm.",
        (reg("xd", 8, "Result.", written=True), simm("imm", 64, 64, "The number.")),
    ),
    Row(
        "ldparam",
        0x04,
        Pipe.S,
        TimingClass.SCALAR,
        "xd becomes a scalar argument of the launch, as a signed 64-bit integer.",
        (
            reg("xd", 8, "Result.", written=True),
            param("index", 64, "Which of the kernel's scalar parameters, counted from 0."),
        ),
    ),
    Row(
        "jump",
        0x05,
        Pipe.S,
        TimingClass.BRANCH,
        "The next instruction is the target.",
        (target("target", 64, "Distance to the target."),),
        flow=Flow.JUMP,
    ),
    Row(
        "beqz",
        0x06,
        Pipe.S,
        TimingClass.BRANCH,
        "If xa is 0, the next instruction is the target.",
        (reg("xa", 8, "Condition."), target("target", 64, "Distance to the target.")),
        flow=Flow.BRANCH,
    ),
    Row(
        "bnez",
        0x07,
        Pipe.S,
        TimingClass.BRANCH,
        "If xa is not 0, the next instruction is the target.",
        (reg("xa", 8, "Condition."), target("target", 64, "Distance to the target.")),
        flow=Flow.BRANCH,
    ),
    Row(
        "blt",
        0x08,
        Pipe.S,
        TimingClass.BRANCH,
        "If xa < xb, signed, the next instruction is the target.",
        (
            reg("xa", 8, "Left operand."),
            reg("xb", 13, "Right operand."),
            target("target", 64, "Distance to the target."),
        ),
        flow=Flow.BRANCH,
    ),
    Row(
        "block_idx",
        0x09,
        Pipe.S,
        TimingClass.SCALAR,
        "xd becomes the number of the block that runs, counted from 0; 0 outside of a grid.",
        (reg("xd", 8, "Result.", written=True),),
    ),
    Row(
        "block_num",
        0x0A,
        Pipe.S,
        TimingClass.SCALAR,
        "xd becomes the number of blocks of the grid that the kernel runs in; 1 outside of a grid.",
        (reg("xd", 8, "Result.", written=True),),
    ),
    *_binary_rows(),
)
"""Rows of the scalar unit, control flow first."""
