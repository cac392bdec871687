"""A kernel's instructions as the flat tables that the jitted loops read.

Three readers, three tables: the scalar unit (`scalar`), the pipes (`role`, `flags`, `transfers`)
and the datapaths (`action`, `operands`). What an instruction does is told by its row of the
instruction table and by one line of `actions.ACTIONS` or of `ScalarOp` here, by name; no loop depends
on the order of the fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.cluster import CORE_FLAG_IDS
from ..codegen.isa.encoding import decode_columns
from ..codegen.isa.table import BY_OPCODE, FLAG_IDS
from ..codegen.isa.vocabulary import ClusterCore, FieldKind, Pipe
from ..ir.errors import ExecutableError
from .datapaths.actions import ACTIONS, IMPLIED, WRITES
from .datapaths.kernels import BASE, BITS, DIMS, OFFSET, RANK, STRIDES, VIEW_WORDS
from .view_rules import view_complaint
from .windows import window_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Kernel
    from ..codegen.isa.row import Row

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


class ScalarOp(IntEnum):
    """What the scalar unit does with an instruction; arithmetic from `ADD` on."""

    ISSUE = 0
    NOP = 1
    HALT = 2
    MOVI = 3
    LDPARAM = 4
    JUMP = 5
    BEQZ = 6
    BNEZ = 7
    BLT = 8
    ADD = 16
    SUB = 17
    MUL = 18
    FLOORDIV = 19
    FLOORMOD = 20
    MIN = 21
    MAX = 22
    AND = 23
    OR = 24
    XOR = 25
    SHL = 26
    SHR = 27
    CMPEQ = 28
    CMPNE = 29
    CMPLT = 30
    CMPLE = 31
    CMPGT = 32
    CMPGE = 33


class Role(IntEnum):
    """What a pipe does with an instruction that reaches the head of its queue."""

    EXECUTE = 0
    SET = 1
    WAIT = 2
    BARRIER = 3
    BARRIER_ALL = 4


IDENTITIES: Final = {"block_idx": 0, "block_num": 1}
"""What a block reads of its place in the grid, as a number behind the kernel's scalar arguments."""

ROLES: Final = {
    "set_flag": Role.SET,
    "wait_flag": Role.WAIT,
    "pipe_barrier": Role.BARRIER,
    "set_core_flag": Role.SET,
    "wait_core_flag": Role.WAIT,
}

OPERANDS: Final = max(len(fields) for _, fields in ACTIONS.values())
SCALAR_WORDS: Final = 5
"""Columns of the scalar table: operation, destination, left, right (-1: immediate), immediate."""

PIPES: Final = len(Pipe) - 1
"""Queues, S among them; `Pipe.ALL`, the last of them, is none."""

FLAG_PIPES: Final = len(Pipe)
PIPE_FLAG_SLOTS: Final = FLAG_PIPES * FLAG_PIPES * FLAG_IDS
FLAGS_OF_CORE: Final = len(ClusterCore) * CORE_FLAG_IDS
"""Behind the flags between pipes stand those to another core of the cluster, then those of one."""

TRANSFER_WORDS: Final = 7
"""Columns of the transfer table: does it touch GM, bit address where both registers are zero, bits
per step of either register, rows, bytes from row to row, bytes of a row."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A kernel in flat tables; n instructions.

    Attributes:
        kernel: Where it came from.
        pipe: The queue of each instruction, int64 [n], as `Pipe`.
        scalar: int64 [n, SCALAR_WORDS].
        role: int64 [n], as `Role`.
        flags: Slot of the flag counter as the core sees it, (src * pipes + dst) * 8 + id for a flag
            between its pipes, int64 [n]; 0 if none.
        action: int64 [n], as `Action`.
        operands: int64 [n, OPERANDS], the fields that the line of `ACTIONS` names.
    """

    kernel: Kernel
    pipe: Line
    scalar: Table
    role: Line
    flags: Line
    action: Line
    operands: Table

    def __len__(self) -> int:
        return len(self.pipe)


def decode(kernel: Kernel) -> Decoded:
    """Return the tables of `kernel`.

    Raises:
        ExecutableError: If a view does not suit the instruction that uses it.
    """
    opcodes, values, pipes = decode_columns(kernel.words)
    count = len(opcodes)
    decoded = Decoded(
        kernel,
        pipes,
        np.zeros((count, SCALAR_WORDS), np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros((count, OPERANDS), np.int64),
    )
    for index in range(count):
        row = BY_OPCODE[int(opcodes[index])]
        if row.core not in (None, kernel.core):
            raise _wrong_core(kernel, index, row)
        named = {f.name: int(v) for f, v in zip(row.fields, values[index], strict=False)}
        decoded.scalar[index] = _scalar_words(row, named, len(kernel.scalars))
        if row.mnemonic in ROLES:
            decoded.role[index] = _role(row, named)
            decoded.flags[index] = _flag_slot(named)
        elif row.mnemonic in ACTIONS:
            action, fields = ACTIONS[row.mnemonic]
            named = {**IMPLIED.get(row.mnemonic, {}), **named, WRITES: int(row.writes[0])}
            decoded.action[index] = action
            decoded.operands[index, : len(fields)] = [named[name] for name in fields]
            if "view" in named:
                _check_view(kernel, index, row, named)
    return decoded


def _wrong_core(kernel: Kernel, index: int, row: Row) -> ExecutableError:
    assert row.core is not None, "what both kinds have is on no wrong core"
    message = (
        f"Instruction {index} ({row.mnemonic}) of kernel {kernel.name!r} must be in a kernel of a "
        f"core that has it ({row.core.value}), not of {kernel.core.value}."
    )
    return ExecutableError(message, kernel.span(index))


def flag_of(slot: int) -> tuple[Pipe, Pipe, int]:
    """Return source pipe, destination pipe and id of a flag slot."""
    assert slot < PIPE_FLAG_SLOTS, "a flag between cores joins no two pipes"
    pair, number = divmod(slot, FLAG_IDS)
    return Pipe(pair // FLAG_PIPES), Pipe(pair % FLAG_PIPES), number


def core_flag_slot(other: ClusterCore, number: int) -> int:
    """Return the slot in which a core sets its flag `number` for another one of its cluster."""
    return PIPE_FLAG_SLOTS + other * CORE_FLAG_IDS + number


def core_flag_of(slot: int, core: ClusterCore) -> tuple[ClusterCore, ClusterCore, int]:
    """Return who sets, who waits, and the id of a flag between cores in a slot of `core`."""
    assert slot >= PIPE_FLAG_SLOTS, "a flag inside of a core joins no two cores"
    waits, place = divmod(slot - PIPE_FLAG_SLOTS, FLAGS_OF_CORE)
    other, number = divmod(place, CORE_FLAG_IDS)
    return (ClusterCore(other), core, number) if waits else (core, ClusterCore(other), number)


def flag_text(slot: int, core: ClusterCore) -> str:
    """Return source, destination and id of a flag slot of `core` as text, "MTE2->MTE1 0"."""
    if slot < PIPE_FLAG_SLOTS:
        source, destination, number = flag_of(slot)
    else:
        source, destination, number = core_flag_of(slot, core)
    return f"{source.name}->{destination.name} {number}"


def bind_views(kernel: Kernel, addresses: Sequence[int]) -> Table:
    """Return the kernel's views for one launch.

    Args:
        kernel: The kernel.
        addresses: GM byte address per tensor parameter, in order.

    Returns:
        int64 [views, VIEW_WORDS] in the columns of `kernels`.
    """
    of_param = dict(zip([id(param) for param in kernel.tensors], addresses, strict=True))
    table = np.zeros((max(1, len(kernel.views)), VIEW_WORDS), np.int64)
    for line, view in zip(table, kernel.views, strict=False):
        line[BASE] = of_param[id(kernel.params[view.param])]
        line[OFFSET], line[BITS], line[RANK] = view.offset, view.bits, view.rank
        line[DIMS : DIMS + view.rank] = view.dims
        line[STRIDES : STRIDES + view.rank] = view.strides
    return table


def transfers(decoded: Decoded) -> Table:
    """Return what each instruction touches of its buffer in GM, int64 [n, TRANSFER_WORDS].

    A window is told as rows of bytes, the axis of the larger stride outside; it serves to see
    which blocks of the L2 are touched.
    """
    table = np.zeros((len(decoded), TRANSFER_WORDS), np.int64)
    for index, instruction in enumerate(decoded.kernel.program):
        if instruction.row.has("view"):
            view = decoded.kernel.views[instruction["view"]]
            window = window_of(instruction, view)
            table[index] = 1, view.offset * view.bits, *window.step_bits, *window.by_rows
    return table


def transfer_starts(table: Table, decoded: Decoded, views: Table) -> Line:
    """Return the first column of `transfers(decoded)` as bit addresses in GM, int64 [n]."""
    starts = table[:, 1].copy()
    touching = np.flatnonzero(table[:, 0])
    starts[touching] += views[decoded.operands[touching, 0], BASE] * 8
    return starts


def _scalar_words(row: Row, named: Mapping[str, int], scalars: int) -> tuple[int, ...]:
    name = row.mnemonic
    if name in ROLES or name in ACTIONS:
        sources = [named[f.name] for f in row.fields if f.kind is FieldKind.REG]
        left, right = [*sources, -1, -1][:2]
        return ScalarOp.ISSUE, -1, left, right, 0
    is_immediate = name.endswith("i") and name != "movi"
    if name in IDENTITIES:
        return ScalarOp.LDPARAM, named["xd"], -1, -1, scalars + IDENTITIES[name]
    op = ScalarOp[(name[:-1] if is_immediate else name).upper()]
    number = named.get("imm", named.get("target", named.get("index", 0)))
    return op, named.get("xd", -1), named.get("xa", -1), named.get("xb", -1), number


def _role(row: Row, named: Mapping[str, int]) -> Role:
    if named.get("pipe") == Pipe.ALL:
        return Role.BARRIER_ALL
    return ROLES[row.mnemonic]


def _flag_slot(named: Mapping[str, int]) -> int:
    if "id" not in named:
        return 0
    if "to" in named:
        return core_flag_slot(ClusterCore(named["to"]), named["id"])
    if "of" in named:
        return core_flag_slot(ClusterCore(named["of"]), named["id"]) + FLAGS_OF_CORE
    return (named["src"] * FLAG_PIPES + named["dst"]) * FLAG_IDS + named["id"]


def _check_view(kernel: Kernel, index: int, row: Row, named: Mapping[str, int]) -> None:
    view = kernel.views[named["view"]]
    why = view_complaint(row.mnemonic, view, named)
    if why is not None:
        message = (
            f"Instruction {index} ({row.mnemonic}) of kernel {kernel.name!r} must use a view {why}."
        )
        raise ExecutableError(message, kernel.span(index))
