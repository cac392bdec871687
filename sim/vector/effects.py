"""What the instructions of the vector core do to the tiles of UB.

Numbers come from the routines of `ir.numerics` that the interpreter uses too, so bits agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vector_rules import FLOAT_TYPES
from ...codegen.isa.vocabulary import (
    Axis,
    ElementType,
    QuantRule,
    Rounding,
    VectorBinary,
    VectorComparison,
    VectorReduction,
    VectorType,
    VectorUnary,
)
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ...ir.errors import IRValueError
from ...ir.numerics.block_format import InfinityPolicy, block_format_of
from ...ir.numerics.cast import CastMode, cast_codes
from ...ir.numerics.fast_quantize import quantize_groups
from ...ir.numerics.functions import Binary, Comparison, Unary, binary, compare, numbers, unary
from ...ir.numerics.reductions import Reduction, reduce
from ..datapaths.kernels import REPORT, TRACK
from ..faultcodes import NO_RESULT
from . import compute as vector_compute
from .cast import forms, recast
from .layout import lay_out
from .plan import DTYPES, MEANING, MX, RULES, TYPE, Meaning, recipes
from .quantise import quantise
from .tiles import WRITTEN, Tile, read, tiles_of, view_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ...codegen.isa.program import Instruction
    from ...ir.dtypes import SimpleDType
    from ..datapaths.kernels import Memory

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Line = npt.NDArray[np.int64]
    Entry = Callable[[Memory, Line, int, int], bool]

_PYTHON, _QUANTISE, _RECAST = (
    int(meaning) for meaning in (Meaning.PYTHON, Meaning.QUANTISE, Meaning.RECAST)
)
_PAIRS = vector_compute.float_pairs, vector_compute.integer_pairs
_COMPUTED: Final[dict[int, tuple[Entry, Entry]]] = {
    Meaning.UNARY: (vector_compute.float_unary, vector_compute.integer_unary),
    Meaning.BINARY: _PAIRS,
    Meaning.NUMBER: _PAIRS,
    Meaning.EXPAND: _PAIRS,
    Meaning.COMPARE: _PAIRS,
    Meaning.COMPARE_NUMBER: _PAIRS,
    Meaning.REDUCE: (vector_compute.float_reduce, vector_compute.integer_reduce),
    Meaning.CAST: (vector_compute.cast, vector_compute.cast),
}
"""What computes with floats, and what with integers."""


def execute_compiled(memory: Memory, line: Line, registers: Sequence[int], mode: int) -> bool:
    """Execute a vector instruction, whose bounds have been checked, in compiled code.

    Args:
        memory: The memories of its core.
        line: The instruction, as `plan` has it.
        registers: Values of its register operands, in order.
        mode: As for a kernel of `kernels`.

    Returns:
        Whether it was done; if not, it is for :func:`execute` to do it, or to tell what is wrong.
    """
    meaning = int(line[MEANING])
    if meaning == _PYTHON:
        return False
    if meaning == _QUANTISE:
        return quantise(memory, line, recipes(), mode)
    if meaning == _RECAST:
        return recast(memory, line, forms(), mode)
    first, second = registers
    if meaning in _COMPUTED:
        of_floats, of_integers = _COMPUTED[meaning]
        entry = of_floats if int(line[TYPE]) in FLOAT_TYPES else of_integers
        return entry(memory, line, first, mode)
    return lay_out(memory, line, first, second, mode)


def execute(
    memory: Memory, each: Instruction, registers: Sequence[int], fault: Line, mode: int
) -> bool:
    """Execute one vector instruction whose bounds have been checked.

    Args:
        memory: The memories of its core.
        each: The instruction.
        registers: Values of its register operands, in order.
        fault: Says where a never-written element stands, or that there is no result.
        mode: As for a kernel of `kernels`.

    Returns:
        Whether it was done; if not, nothing has changed.
    """
    tiles = tiles_of(each.mnemonic, each.fields)
    if each.mnemonic in ("v_move", "v_move_at"):
        _move(memory, tiles[0], tiles[1], registers, mode)
        return True
    outputs = 2 if each.mnemonic == "v_quant_mx" else 1
    operands: list[Codes] = []
    for tile in _read_by(each, tiles[outputs:]):
        codes = read(memory, tile, fault, report=mode >= REPORT)
        if codes is None:
            return False
        operands.append(codes)
    if each.mnemonic == "v_select":
        _select(memory, tiles[0], operands, invert=bool(each["invert"]), track=mode >= TRACK)
        return True
    try:
        results = _results(each, operands, registers)
    except IRValueError:
        # An integer's remainder of a division by zero, or a NaN for a type that has none.
        fault[0] = NO_RESULT
        return False
    for tile, codes in zip(tiles, results, strict=False):
        write(memory, tile, codes, track=mode >= TRACK)
    return True


def _read_by(each: Instruction, operands: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """Return what is read of the operands; those of an expansion begin with the column or row."""
    second = each.mnemonic == "v_expand" and each["op"] == VectorBinary.SECOND
    return operands[:1] if second else operands


def _results(each: Instruction, operands: Sequence[Codes], registers: Sequence[int]) -> list[Codes]:
    kind = VectorType(each["type"]) if each.row.has("type") else VectorType.UINT8
    dtype = DTYPES[kind]
    match each.mnemonic:
        case "v_unary":
            return [unary(Unary[VectorUnary(each["op"]).name], operands[0], dtype)]
        case "v_binary":
            return [binary(Binary[VectorBinary(each["op"]).name], *_two(operands), dtype)]
        case "v_scalar":
            left, right = operands[0], _code(registers[0], kind)
            if each["swap"]:
                left, right = right, left
            return [binary(Binary[VectorBinary(each["op"]).name], left, right, dtype)]
        case "v_compare":
            name = VectorComparison(each["op"]).name.lower()
            return [compare(Comparison[name], *_two(operands), dtype)]
        case "v_compare_scalar":
            name = VectorComparison(each["op"]).name.lower()
            return [compare(Comparison[name], operands[0], _code(registers[0], kind), dtype)]
        case "v_reduce":
            axis = 1 if each["axis"] == Axis.ROW else 0
            return [reduce(Reduction[VectorReduction(each["op"]).name], operands[0], dtype, axis)]
        case "v_expand":
            return [_expand(each, operands, dtype)]
        case "v_cast":
            source = np.ascontiguousarray(operands[0])
            mode = CastMode[Rounding(each["mode"]).name.lower()]
            return [cast_codes(source, dtype, DTYPES[VectorType(each["to"])], mode)]
        case "v_fill":
            code = _code(registers[0], kind)
            return [np.broadcast_to(code, (each["rows"], each["cols"]))]
        case "v_transpose":
            return [operands[0].T.copy()]
        case "v_quant_mx":
            return _quantise(each, operands[0], dtype)
        case _:
            return [_boxes(operands[0])]


def _two(operands: Sequence[Codes]) -> tuple[Codes, Codes]:
    left, right = operands
    return left, right


def _code(register: int, kind: VectorType) -> Codes:
    """Return the code that the low bits of a register hold, as an array of one element."""
    width = max(1, kind.bits // 8)
    return np.array([[register & ((1 << kind.bits) - 1)]], np.dtype(f"u{width}"))


def _expand(each: Instruction, operands: Sequence[Codes], dtype: SimpleDType) -> Codes:
    op = VectorBinary(each["op"])
    if op is VectorBinary.SECOND:
        return np.broadcast_to(operands[0], (each["rows"], each["cols"]))
    return binary(Binary[op.name], operands[1], operands[0], dtype)


def _quantise(each: Instruction, source: Codes, dtype: SimpleDType) -> list[Codes]:
    x = np.ascontiguousarray(numbers(source, dtype), np.float32)
    rows, cols = x.shape
    form = block_format_of(MX[ElementType(each["element"])])
    codes = np.empty((rows, cols, 1), np.uint8)
    scales = np.empty((rows, cols // form.block, 1), np.uint8)
    quantize_groups(
        x.reshape(rows, cols, 1),
        codes,
        scales,
        form,
        rule=RULES[QuantRule(each["rule"])],
        infinity=InfinityPolicy.NAN,
    )
    return [codes[:, :, 0], scales[:, :, 0]]


def _boxes(scales: Codes) -> Codes:
    """Return uint8 [rows, groups] as boxes of 16 rows x 2 groups, one box a line."""
    rows, groups = scales.shape
    tall, pairs = -(-rows // BOX_ROWS), -(-groups // BOX_GROUPS)
    whole = np.zeros((tall * BOX_ROWS, pairs * BOX_GROUPS), np.uint8)
    whole[:rows, :groups] = scales
    boxes = whole.reshape(tall, BOX_ROWS, pairs, BOX_GROUPS).transpose(0, 2, 1, 3)
    return boxes.reshape(tall * pairs, BOX_BYTES)


def _select(
    memory: Memory, dst: Tile, operands: Sequence[Codes], *, invert: bool, track: bool
) -> None:
    taken, mask = operands
    chosen = mask == 0 if invert else mask != 0
    view_of(memory, dst)[chosen] = taken[chosen]
    if track:
        masks = view_of(memory, dst, masks=True)
        masks[chosen] = WRITTEN[masks.dtype.itemsize]


def _move(memory: Memory, dst: Tile, src: Tile, registers: Sequence[int], mode: int) -> None:
    """Copy a tile and, from `TRACK` on, its written masks."""
    source, target = (
        tile._replace(address=tile.address + register)
        for tile, register in zip((src, dst), registers, strict=True)
    )
    for masks in (False, True) if mode >= TRACK else (False,):
        view_of(memory, target, masks=masks)[:] = view_of(memory, source, masks=masks).copy()
