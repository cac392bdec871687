"""The part of the instruction table that joins the cores of a cluster, and the cube without scales.

A cluster is a cube core (AIC) and two vector cores (AIV0, AIV1). Each has pipes and flags of its
own; what passes between them is ordered by core flags only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .row import Field, Row, Rule, addr, at_most, enum, imm, reg
from .vocabulary import (
    ClusterCore,
    ElementBits,
    MadInit,
    Pipe,
    PlainType,
    Space,
    TimingClass,
)

if TYPE_CHECKING:
    from .row import Values

CORE_FLAG_IDS = 16
MAD_LIMIT = 4095
BOX_ROWS = 16
FP8 = frozenset({PlainType.E4M3, PlainType.E5M2})

PLAIN_PAIRS = frozenset(
    (a, b) for a in PlainType for b in PlainType if a is b or (a in FP8 and b in FP8)
)
"""Operand types that `mad` multiplies."""


def _plain_pair(values: Values) -> str | None:
    a, b = PlainType(values["a_type"]), PlainType(values["b_type"])
    if (a, b) in PLAIN_PAIRS:
        return None
    return (
        "a_type and b_type must be the same or both of e4m3 and e5m2, not "
        f"{a.name.lower()} and {b.name.lower()}"
    )


def _bias_only_with_bias(values: Values) -> str | None:
    if values["bias"] == 0 or values["init"] == MadInit.BIAS:
        return None
    return f"bias must be 0 where init is not bias, not {values['bias']}"


def _single_pipe(values: Values) -> str | None:
    return None if values["pipe"] != Pipe.ALL else "pipe must be a single pipe, not all"


def _flag(name: str, what: str) -> tuple[Field, ...]:
    return (
        enum("pipe", 8, 4, Pipe, "Pipe of this core."),
        enum(name, 12, 2, ClusterCore, what),
        imm("id", 16, 4, "Which of the sixteen flags of the two cores.", most=CORE_FLAG_IDS - 1),
    )


_PAIR_RULE = Rule("a_type and b_type are the same or both FP8", _plain_pair)
BIAS_RULE = Rule("bias is 0 unless init is bias", _bias_only_with_bias)
_PIPE = Rule("pipe is a single pipe", _single_pipe)

CORE_FLAGS: tuple[Row, ...] = (
    Row(
        "set_core_flag",
        0x13,
        Pipe.S,
        TimingClass.FLAG,
        "Queued on the pipe. When it is reached there, and all that the pipe began is done, the "
        "counter of (this core, to, id) goes up by 1.",
        _flag("to", "Core of the cluster that waits for it."),
        rules=(_PIPE,),
        pipe_field="pipe",
    ),
    Row(
        "wait_core_flag",
        0x14,
        Pipe.S,
        TimingClass.FLAG,
        "Queued on the pipe, which stops there until the counter of (of, this core, id) is "
        "positive, then takes 1 from it.",
        _flag("of", "Core of the cluster that sets it."),
        rules=(_PIPE,),
        pipe_field="pipe",
    ),
)
"""Flags between the cores of a cluster."""

MAD: tuple[Row, ...] = (
    Row(
        "mad",
        0x81,
        Pipe.M,
        TimingClass.PLAIN_MAD,
        "Multiplies an m x k tile in L0A by a k x n tile in L0B, without scales, and adds the "
        "products to +0, to the accumulator or to the bias row: those of one step along k (16 "
        "elements of 16 bits, 8 of FP32, 32 of 8 bits) exactly, rounded once to FP32, then the "
        "sums of the steps in ascending order, each rounded to FP32. INT8 operands give INT32, "
        "which wraps. Boxes stand as mad_mx has them, with c0 = 256 / element bits; the bias row "
        "has n numbers of the accumulator's type. Elements beyond k are never used.",
        (
            addr("c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
            addr("a", 28, Space.L0A, "Element (0, 0) of the left operand."),
            addr("b", 46, Space.L0B, "Element (0, 0) of the right operand."),
            addr("bias", 64, Space.BIAS, "First of n numbers; 0 unless init is bias."),
            imm("m", 78, 12, "Rows of the result.", least=1, most=MAD_LIMIT),
            imm("k", 90, 12, "Elements of each sum.", least=1, most=MAD_LIMIT),
            imm("n", 102, 12, "Columns of the result.", least=1, most=MAD_LIMIT),
            enum("a_type", 114, 4, PlainType, "Element type in L0A."),
            enum("b_type", 118, 4, PlainType, "Element type in L0B."),
            enum("init", 122, 2, MadInit, "What the sums start from."),
        ),
        reads=(Space.L0A, Space.L0B, Space.BIAS, Space.L0C),
        writes=(Space.L0C,),
        rules=(_PAIR_RULE, BIAS_RULE),
    ),
    Row(
        "mad_if",
        0x82,
        Pipe.M,
        TimingClass.PLAIN_MAD,
        "Does what mad does, its sums started by a register: from +0 where xz is not 0, from the "
        "accumulator where it is.",
        (
            addr("c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
            addr("a", 28, Space.L0A, "Element (0, 0) of the left operand."),
            addr("b", 46, Space.L0B, "Element (0, 0) of the right operand."),
            reg("xz", 64, "Whether the accumulator begins anew."),
            imm("m", 78, 12, "Rows of the result.", least=1, most=MAD_LIMIT),
            imm("k", 90, 12, "Elements of each sum.", least=1, most=MAD_LIMIT),
            imm("n", 102, 12, "Columns of the result.", least=1, most=MAD_LIMIT),
            enum("a_type", 114, 4, PlainType, "Element type in L0A."),
            enum("b_type", 118, 4, PlainType, "Element type in L0B."),
        ),
        reads=(Space.L0A, Space.L0B, Space.L0C),
        writes=(Space.L0C,),
        rules=(_PAIR_RULE,),
    ),
)
"""The cube without scales."""

UB_TO_L1: tuple[Row, ...] = (
    Row(
        "ub_to_l1",
        0xA4,
        Pipe.MTE3,
        TimingClass.UB_TO_L1,
        "Copies lines of units * 32 bytes from UB to L1 of the cluster's cube core: line i goes "
        "from byte ub + i * ub_pitch * 32 to byte l1 + i * l1_pitch * 32.",
        (
            addr("ub", 8, Space.UB, "First line in UB."),
            addr("l1", 23, Space.L1, "First line in L1."),
            imm("lines", 64, 16, "Number of lines.", least=1),
            imm("units", 80, 16, "Units of 32 bytes of a line.", least=1),
            imm("ub_pitch", 96, 16, "Units of 32 bytes from line to line in UB.", least=1),
            imm("l1_pitch", 112, 16, "The same in L1.", least=1),
        ),
        reads=(Space.UB,),
        writes=(Space.L1,),
        rules=(at_most("units", "l1_pitch"),),
    ),
    Row(
        "ub_to_l1_nz",
        0xA5,
        Pipe.MTE3,
        TimingClass.UB_TO_L1,
        "Copies a tile of rows x cols elements from UB into boxes of 16 rows x 32 bytes in L1 of "
        "the cluster's cube core. With c0 = 256 / element bits, element (r, c) goes from byte "
        "ub + r * pitch * 32 + c * bits / 8 to byte l1 + ((c // c0) * (l1_rows / 16) + r // 16) "
        "* 512 + (r % 16) * 32 + (c % c0) * bits / 8. Bytes of a 32-byte row segment beyond cols "
        "become zero, other bytes stay.",
        (
            addr("ub", 8, Space.UB, "Element (0, 0) in UB."),
            addr("l1", 23, Space.L1, "Element (0, 0) in L1."),
            enum("bits", 47, 6, ElementBits, "Width of an element."),
            imm("rows", 64, 16, "Rows of the tile.", least=1),
            imm("cols", 80, 16, "Columns of the tile.", least=1),
            imm("l1_rows", 96, 16, "Rows of the tile in L1.", least=16, multiple=BOX_ROWS),
            imm("pitch", 112, 11, "Units of 32 bytes from row to row in UB.", least=1),
        ),
        reads=(Space.UB,),
        writes=(Space.L1,),
        rules=(
            at_most("rows", "l1_rows"),
            Rule(
                "a row has whole bytes",
                lambda values: (
                    None
                    if values["bits"] * values["cols"] % 8 == 0
                    else f"cols must be even for 4-bit elements, not {values['cols']}"
                ),
            ),
        ),
    ),
)
"""From a vector core into the cube core's L1."""
