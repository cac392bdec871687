"""The scalar unit in plain Python, written from the instruction set's manual and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalebox.codegen.isa.program import Instruction

BUDGET = 200_000


class ScalarFaultError(Exception):
    """A division by zero, or a program that does not end."""


@dataclass(frozen=True)
class Issued:
    """An instruction as the scalar unit hands it to a pipe."""

    index: int
    instruction: Instruction
    registers: dict[str, int]
    """Values of its register fields, by field name."""


def wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def run_scalar_unit(
    program: Sequence[Instruction], params: Sequence[int] = (), *, block: int = 0, blocks: int = 1
) -> list[Issued]:
    """Run a program's scalar instructions and return those that went to a pipe, in order."""
    registers: dict[int, int] = {}
    issued: list[Issued] = []
    place = 0
    for _ in range(BUDGET):
        instruction = program[place]
        name, fields = instruction.mnemonic, instruction.fields
        if name == "halt":
            return issued
        place += 1
        match name:
            case "nop":
                pass
            case "movi":
                registers[fields["xd"]] = fields["imm"]
            case "ldparam":
                registers[fields["xd"]] = params[fields["index"]]
            case "block_idx":
                registers[fields["xd"]] = block
            case "block_num":
                registers[fields["xd"]] = blocks
            case "jump":
                place += fields["target"] - 1
            case "beqz":
                place += fields["target"] - 1 if registers[fields["xa"]] == 0 else 0
            case "bnez":
                place += fields["target"] - 1 if registers[fields["xa"]] != 0 else 0
            case "blt":
                taken = registers[fields["xa"]] < registers[fields["xb"]]
                place += fields["target"] - 1 if taken else 0
            case _ if "xd" in fields:
                right = fields["imm"] if "imm" in fields else registers[fields["xb"]]
                operator = name.removesuffix("i") if "imm" in fields else name
                left = registers[fields["xa"]]
                registers[fields["xd"]] = wrap(_compute(operator, left, right))
            case _:
                values = {
                    each.name: registers[value]
                    for each, value in zip(instruction.row.fields, instruction.values, strict=True)
                    if each.kind.value == "reg"
                }
                issued.append(Issued(place - 1, instruction, values))
    message = f"more than {BUDGET} instructions"
    raise ScalarFaultError(message)


def _compute(operator: str, a: int, b: int) -> int:
    if operator in ("floordiv", "floormod") and b == 0:
        message = "a division by zero"
        raise ScalarFaultError(message)
    match operator:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return a // b
        case "floormod":
            return a - b * (a // b)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return a << (b & 63)
        case "shr":
            return a >> (b & 63)
        case "cmpeq":
            return int(a == b)
        case "cmpne":
            return int(a != b)
        case "cmplt":
            return int(a < b)
        case "cmple":
            return int(a <= b)
        case "cmpgt":
            return int(a > b)
        case "cmpge":
            return int(a >= b)
        case _:
            message = f"{operator} is no scalar operator"
            raise AssertionError(message)
