"""Instruction selection for the vector core: a table of rules for each kind of op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .elementwise import RULES as ELEMENTWISE
from .quantise import RULES as QUANTISE
from .reductions import RULES as REDUCTIONS
from .shapes import RULES as SHAPES

if TYPE_CHECKING:
    from ..operands import Rule

RULES: dict[str, Rule] = {**ELEMENTWISE, **REDUCTIONS, **SHAPES, **QUANTISE}
"""The rule of each op that only a vector core has."""
