"""Numbers for flags: each pair of pipes has eight, each pair of cores a few more.

No flag is set while it is still up, so flags that may be up at the same time need different numbers, and
so do those of two cores that different pipes might take from each other. Where these do not suffice the
orders are changed by a :class:`~.relief.Round`, and all is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .orders import Orders
from .relief import Round
from .walk import is_safe, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .hazards import Barrier, Edge, Hazards

GENTLE_ROUNDS = 40
"""Rounds after which only barriers are tried, each of which makes an order superfluous for good."""
_TIDY_STEPS = 60_000
"""Steps that may be walked in order to drop what others imply."""


@dataclass(frozen=True)
class Plan:
    """The orders of a tree with the number of each one's flag, and the barriers."""

    numbers: dict[Edge, int]
    barriers: frozenset[Barrier]


def number(hazards: Hazards, edges: Iterable[Edge]) -> Plan:
    """Return `edges`, changed as little as the numbers allow, each with one."""
    orders = Orders(hazards, dict.fromkeys(edges))
    rounds, tidied = 0, False
    while True:
        report = walk(hazards, orders.edges, orders.barriers, flags=True)
        if report.missing:
            new = report.missing.keys() - orders.edges.keys()
            assert new, "an order that is kept is not missing"
            orders.edges.update(report.missing)
            continue
        numbers = Round(orders, report, gentle=rounds < GENTLE_ROUNDS).numbers()
        if numbers is not None:
            if tidied or not rounds or not _drop_implied(orders):
                return Plan(_without_answers(orders, numbers), frozenset(orders.barriers))
            tidied = True
        rounds += 1


def _drop_implied(orders: Orders) -> bool:
    """Drop the orders that merged ones imply; return whether there were any."""
    candidates = [edge for edge in orders.edges if edge not in orders.answers]
    if not _affordable(orders, len(candidates)):
        return False
    before = len(orders.edges)
    for edge in sorted(candidates, key=lambda e: e.around is not None):
        rest = [e for e in orders.edges if e is not edge and e not in orders.answers]
        if is_safe(orders.hazards, rest, orders.barriers):
            del orders.edges[edge]
    return len(orders.edges) < before


def _without_answers(orders: Orders, numbers: dict[Edge, int]) -> dict[Edge, int]:
    """Drop what was added for the sake of numbers and turns out not to be needed for them."""
    if not _affordable(orders, len(orders.answers)):
        return numbers
    for answer in [edge for edge in numbers if edge in orders.answers]:
        rest = {edge: number for edge, number in numbers.items() if edge is not answer}
        report = walk(orders.hazards, rest, orders.barriers, flags=True)
        if not report.missing and all(rest[a] != rest[b] for a, b in report.apart):
            numbers = rest
    return numbers


def _affordable(orders: Orders, walks: int) -> bool:
    return walks * len(orders.hazards.steps) <= _TIDY_STEPS
