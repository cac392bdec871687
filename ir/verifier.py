"""The verifier: whether a program has a property, and the report if it has not.

One table says which rule stands for which property. A pass that requires or produces a property is
held to its rule inside a verifying context.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from .errors import VerificationError
from .node_check import check_nodes
from .properties import STRUCTURAL, IRProperty
from .verification import flow, memory, structure, type_check
from .verification.diagnostics import Diagnostic, Findings, Severity, generate_report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .core import Function, Program

__all__ = [
    "RULES",
    "STRUCTURAL",
    "Diagnostic",
    "Rule",
    "Severity",
    "generate_report",
    "verify",
    "verify_or_throw",
]


class Check(Protocol):
    """Looks at one function of a program and records what is wrong."""

    def __call__(self, function: Function, program: Program, findings: Findings) -> None:
        """Record what is wrong with `function` in `findings`."""


@dataclass(frozen=True)
class Rule:
    """A rule of the verifier: its name in reports, and the check."""

    name: str
    check: Check


#: Which rule stands for which property.
RULES: dict[IRProperty, Rule] = {
    IRProperty.SSAForm: Rule("SSAVerify", flow.check_ssa),
    IRProperty.UseAfterDef: Rule("UseAfterDefCheck", flow.check_use_after_definition),
    IRProperty.TypeChecked: Rule("TypeCheck", type_check.check_types),
    IRProperty.NormalizedStmtStructure: Rule("NormalizedStmts", structure.check_normalized),
    IRProperty.NoRedundantBlocks: Rule("NoRedundantBlocks", structure.check_no_redundant_blocks),
    IRProperty.NoNestedCalls: Rule("NoNestedCalls", structure.check_no_nested_calls),
    IRProperty.BreakContinueValid: Rule("BreakContinueCheck", structure.check_jumps),
    IRProperty.PipelineLoopValid: Rule("PipelineLoopCheck", structure.check_pipeline_loops),
    IRProperty.InOutUseValid: Rule("InOutUseCheck", flow.check_inout_use),
    IRProperty.NoNestedInCore: Rule("NoNestedInCore", structure.check_regions),
    IRProperty.SplitIncoreOrch: Rule("SplitIncoreOrch", structure.check_split),
    IRProperty.IncoreTileOps: Rule("IncoreTileOps", structure.check_incore_ops),
    IRProperty.TileOps2D: Rule("TileOps2D", memory.check_tiles_2d),
    IRProperty.TileMemoryInferred: Rule("TileMemoryInferred", memory.check_memory_inferred),
    IRProperty.AccToGmStoreValid: Rule("AccToGmStoreValid", memory.check_stores),
    IRProperty.TensorViewCanonical: Rule("TensorViewCanonical", memory.check_tensor_views),
    IRProperty.HasMemRefs: Rule("HasMemRefs", memory.check_memrefs),
    IRProperty.AllocatedMemoryAddr: Rule("AllocatedMemoryAddr", memory.check_addresses),
}
assert list(RULES) == list(IRProperty), "every property has a rule, in the same order"


def verify(
    program: Program, properties: Iterable[IRProperty], *, strict_valid_k: bool = False
) -> list[Diagnostic]:
    """Return what is wrong with a program, in the order of the properties, then of the functions.

    Args:
        program: What is looked at.
        properties: What it is to have.
        strict_valid_k: Whether a matmul's valid K must reach into every group of its physical K.

    Raises:
        IRValueError: For a program that is not made of nodes.
    """
    check_nodes(program, launches=False)
    wanted = set(properties)
    found: list[Diagnostic] = []
    for member, rule in RULES.items():
        if member not in wanted:
            continue
        check: Check = rule.check
        if member is IRProperty.TypeChecked:
            check = partial(type_check.check_types, strict_valid_k=strict_valid_k)
        findings = Findings(rule.name)
        for function in program.functions.values():
            check(function, program, findings)
        found += findings.diagnostics
    return found


def verify_or_throw(
    program: Program,
    properties: Iterable[IRProperty],
    *,
    title: str = "Verification failed",
    strict_valid_k: bool = False,
) -> None:
    """Verify a program.

    Args:
        program: What is looked at.
        properties: What it is to have.
        title: The first line of the error.
        strict_valid_k: As for :func:`verify`.

    Raises:
        VerificationError: With the report, at the place of the first error.
    """
    found = verify(program, properties, strict_valid_k=strict_valid_k)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        message = f"{title}:\n{generate_report(found)}"
        raise VerificationError(message, errors[0].span)
