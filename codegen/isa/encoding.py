"""Instructions to words and back, derived from the rows.

A word is 128 bits, held as two little-endian `uint64`: column 0 is bits 0 to 63, column 1 bits
64 to 127. Decoding refuses what encoding cannot have made, so the two are inverse of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...ir.errors import ExecutableError
from .program import Instruction
from .row import HALF_BITS, OPCODE_BITS, Field, Row
from .table import BY_OPCODE, MAX_FIELDS, ROWS
from .vocabulary import Pipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_OPCODE_MASK = (1 << OPCODE_BITS) - 1
_HALF_MASK = (1 << HALF_BITS) - 1


class Columns(NamedTuple):
    """A program as typed arrays, for code that cannot hold objects.

    Args:
        opcodes: int64 [n].
        values: int64 [n, MAX_FIELDS]; row i holds the field values of instruction i in the order
            of its table row, sign-extended, then zeros.
        pipes: int64 [n]; the queue that each instruction goes to, as `Pipe`.
    """

    opcodes: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    pipes: npt.NDArray[np.int64]


def encode(instruction: Instruction) -> tuple[int, int]:
    """Return the low and the high 64 bits of an instruction."""
    word = instruction.row.opcode
    for each, value in zip(instruction.row.fields, instruction.values, strict=True):
        word |= (value // each.unit & ((1 << each.width) - 1)) << each.low
    return word & _HALF_MASK, word >> HALF_BITS


def encode_program(program: Sequence[Instruction]) -> npt.NDArray[np.uint64]:
    """Return the words of a program, uint64 [n, 2]."""
    halves = [encode(instruction) for instruction in program]
    return np.array(halves, dtype=np.uint64).reshape(len(halves), 2)


def decode(low: int, high: int) -> Instruction:
    """Return the instruction of a word.

    Args:
        low: Bits 0 to 63.
        high: Bits 64 to 127.

    Raises:
        ExecutableError: If the opcode is in no row, a bit is set that no field covers, or a field
            value is not legal.
    """
    row = BY_OPCODE.get(low & _OPCODE_MASK)
    if row is None:
        message = (
            f"The opcode must be one of the instruction table's, not {low & _OPCODE_MASK:#04x}."
        )
        raise ExecutableError(message)
    word = low | high << HALF_BITS
    stray = word & ~_covered(row)
    if stray:
        bits = ", ".join(str(bit) for bit in range(stray.bit_length()) if stray >> bit & 1)
        message = (
            f"In {row.mnemonic}, bits that no field uses must be zero, not set as bit {bits} is."
        )
        raise ExecutableError(message)
    values = tuple(_extract(word, each) for each in row.fields)
    why = row.complaint(values)
    if why is not None:
        raise ExecutableError(why)
    return Instruction(row, values)


def decode_program(words: npt.NDArray[np.uint64]) -> list[Instruction]:
    """Return the instructions of words uint64 [n, 2].

    Raises:
        ExecutableError: As in :func:`decode`, naming the instruction's index.
    """
    _check_words(words)
    program: list[Instruction] = []
    for index, (low, high) in enumerate(words.tolist()):
        try:
            program.append(decode(low, high))
        except ExecutableError as error:
            message = f"Instruction {index} cannot be read. {error.message}"
            raise ExecutableError(message) from error
    return program


def decode_columns(words: npt.NDArray[np.uint64]) -> Columns:
    """Return words uint64 [n, 2] as typed arrays, without the checks of :func:`decode_program`.

    Raises:
        ExecutableError: If an opcode is in no row.
    """
    _check_words(words)
    opcodes = (words[:, 0] & np.uint64(_OPCODE_MASK)).astype(np.int64)
    unknown = ~np.isin(opcodes, [row.opcode for row in ROWS])
    if unknown.any():
        index = int(np.argmax(unknown))
        message = (
            f"Instruction {index} cannot be read. The opcode must be one of the instruction "
            f"table's, not {int(opcodes[index]):#04x}."
        )
        raise ExecutableError(message)
    values = np.zeros((len(words), MAX_FIELDS), dtype=np.int64)
    pipes = np.zeros(len(words), dtype=np.int64)
    for row in ROWS:
        chosen = np.flatnonzero(opcodes == row.opcode)
        if not len(chosen):
            continue
        for column, each in enumerate(row.fields):
            values[chosen, column] = _extract_column(words[chosen, each.low // HALF_BITS], each)
        if row.pipe_field is None:
            pipes[chosen] = row.pipe
        else:
            named = values[chosen, row.column(row.pipe_field)]
            pipes[chosen] = np.where(named == Pipe.ALL, Pipe.S, named)
    return Columns(opcodes, values, pipes)


def _covered(row: Row) -> int:
    covered = _OPCODE_MASK
    for each in row.fields:
        covered |= ((1 << each.width) - 1) << each.low
    return covered


def _extract(word: int, each: Field) -> int:
    value = word >> each.low & ((1 << each.width) - 1)
    if each.signed and value >> (each.width - 1):
        value -= 1 << each.width
    return value * each.unit


def _extract_column(half: npt.NDArray[np.uint64], each: Field) -> npt.NDArray[np.int64]:
    above = HALF_BITS - each.width - each.low % HALF_BITS
    top = half << np.uint64(above)
    shift = HALF_BITS - each.width
    if each.signed:
        return (top.view(np.int64) >> np.int64(shift)) * each.unit
    return (top >> np.uint64(shift)).view(np.int64) * each.unit


def _check_words(words: npt.NDArray[np.uint64]) -> None:
    if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != 2:
        message = f"Words must be uint64 [n, 2], not {words.dtype} {list(words.shape)}."
        raise ExecutableError(message)
