"""How long an instruction keeps pipe V.

It starts up, takes a step for every `vector_step_bytes` of its widest tile, and lets its last result
come out: cycles = start-up + steps * step + latency + drain. A step takes as long as the busiest of
what it needs: the load ports, the store ports, or the issue of its operations.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ...codegen.isa.vocabulary import VectorBinary, VectorReduction, VectorUnary
from .tiles import tiles_of

if TYPE_CHECKING:
    from ...codegen.isa.program import Instruction
    from ...codegen.isa.row import Step
    from ...ir.target import Target


def vector_cycles(target: Target, each: Instruction) -> int:
    """Return the cycles of an instruction of the vector core."""
    around = target.vector_startup_cycles + target.vector_drain_cycles
    return around + all_steps_cycles(target, each) + latency(target, each)


def all_steps_cycles(target: Target, each: Instruction) -> int:
    """Return the cycles of all steps of a vector instruction."""
    assert each.row.step is not None, "every vector instruction has steps"
    bits = max(tile.bits for tile in tiles_of(each.mnemonic, each.fields))
    steps = ceil(each["rows"] * each["cols"] * bits / 8 / target.vector_step_bytes)
    return steps * step_cycles(target, each.row.step)


def step_cycles(target: Target, step: Step) -> int:
    """Return the cycles from one step of a vector instruction to the next."""
    return max(
        ceil(step.loads / target.vector_load_ports),
        ceil(step.operations / target.vector_issue_width),
        ceil(step.stores / target.vector_store_ports),
    )


def latency(target: Target, each: Instruction) -> int:
    """Return the cycles from a step of a vector instruction to its result."""
    match each.mnemonic:
        case "v_unary":
            return _unary(target, VectorUnary(each["op"]))
        case "v_binary" | "v_scalar" | "v_expand":
            return _binary(target, VectorBinary(each["op"]))
        case "v_reduce" if each["op"] == VectorReduction.PROD:
            return target.vector_mul_cycles
        case "v_fill" | "v_move" | "v_move_at" | "v_transpose" | "v_scale_boxes":
            return target.vector_move_cycles
        case _:
            return target.vector_add_cycles


def _unary(target: Target, op: VectorUnary) -> int:
    match op:
        case VectorUnary.RECIP:
            return target.vector_div_cycles
        case VectorUnary.NEG | VectorUnary.ABS | VectorUnary.RELU:
            return target.vector_add_cycles
        case _:
            return target.vector_exp_cycles


def _binary(target: Target, op: VectorBinary) -> int:
    match op:
        case VectorBinary.MUL:
            return target.vector_mul_cycles
        case VectorBinary.DIV | VectorBinary.REM:
            return target.vector_div_cycles
        case VectorBinary.EXPDIF:
            return target.vector_exp_cycles
        case VectorBinary.SECOND:
            return target.vector_move_cycles
        case _:
            return target.vector_add_cycles
