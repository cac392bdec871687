"""Transfers under way and the bytes a cycle that each of them gets; jitted, for `pipes`.

A transfer goes at most as fast as it would on its own: its bytes over its closed-form cycles. Its core's
GM port, the L2 and, for the part of its bytes that the L2 does not have, HBM are shared max-min
fairly: no transfer can get more without one that gets less, or as much, losing by it. A share holds
until a transfer begins or ends, which both happen at whole cycles: what is left of a transfer's last
cycle is nobody's.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Final

from ...ir.jit import lean
from .agenda import NEVER

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .tables import Setting

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

AGENT, PORT, FINISH, FLOW_WORDS = 0, 1, 2, 3
"""Columns of a flow in whole numbers: whose transfer it is, the core whose port it uses, and when it ends
as things stand."""

REMAINING, SPEED, CAP, MISSED, RATE_WORDS = 0, 1, 2, 3, 4
"""Columns of a flow in fractions: cycles that it still takes on its own; the share of its own speed that
it has; that speed, in bytes a cycle; and the bytes that HBM moves for each of its own."""

COUNT, SINCE, IS_STALE, NEXT, COMMON_WORDS = 0, 1, 2, 3, 4
"""What the flows have in common: how many there are, up to when they have been followed, whether one
began or ended then, and when the next one ends."""

ROOM, USERS, PORT_WORDS = 0, 1, 2
"""Columns of a port while shares are found: the bytes a cycle that are not given away, and how many flows
still have no share."""

_NOISE: Final = 1e-6
"""A part of a cycle that is no part of a transfer, but of the arithmetic about it."""
_LEVEL: Final = 1 + 1e-12
_NONE: Final = -1


@lean
def follow(now: int, flows: Table, rates: Floats, common: Line) -> None:
    """Let time pass up to `now`."""
    passed = now - common[SINCE]
    if passed:
        for flow in range(common[COUNT]):
            rates[flow, REMAINING] -= rates[flow, SPEED] * passed
        common[SINCE] = now


@lean
def begin(
    now: int,
    agent: int,
    port: int,
    cycles: int,
    size: int,
    missed: float,
    flows: Table,
    rates: Floats,
    common: Line,
) -> None:
    """Add a flow of `size` bytes that takes `cycles` on its own."""
    follow(now, flows, rates, common)
    flow = common[COUNT]
    flows[flow, AGENT], flows[flow, PORT], flows[flow, FINISH] = agent, port, NEVER
    rates[flow, REMAINING], rates[flow, SPEED] = cycles, 0
    rates[flow, CAP], rates[flow, MISSED] = size / cycles, missed
    common[COUNT] += 1
    common[IS_STALE] = 1


@lean
def take_finished(now: int, flows: Table, rates: Floats, common: Line) -> int:
    """Remove a flow that ends at `now`; return whose it was, or -1 if there is none."""
    follow(now, flows, rates, common)
    count = common[COUNT]
    for flow in range(count):
        if flows[flow, FINISH] == now:
            agent = int(flows[flow, AGENT])
            last = count - 1
            for word in range(FLOW_WORDS):
                flows[flow, word] = flows[last, word]
            for word in range(RATE_WORDS):
                rates[flow, word] = rates[last, word]
            common[COUNT] = last
            common[IS_STALE] = 1
            return agent
    return _NONE


@lean
def next_finish(
    setting: Setting, flows: Table, rates: Floats, ports: Floats, open_: Line, common: Line
) -> int:
    """Return when the next flow ends, or NEVER, after new shares if a flow began or ended."""
    if common[IS_STALE]:
        share(setting, flows, rates, ports, open_, common[COUNT])
        first = NEVER
        for flow in range(common[COUNT]):
            cycles = ceil(rates[flow, REMAINING] / rates[flow, SPEED] - _NOISE)
            flows[flow, FINISH] = common[SINCE] + max(1, cycles)
            first = min(first, flows[flow, FINISH])
        common[IS_STALE], common[NEXT] = 0, first
    return int(common[NEXT])


@lean
def share(
    setting: Setting, flows: Table, rates: Floats, ports: Floats, open_: Line, count: int
) -> None:
    """Give each flow its speed.

    All rise together. Who reaches its own speed, or something of which nothing is left, keeps what
    it has; the others go on.
    """
    l2, hbm, missed = setting.l2_rate, setting.hbm_rate, 0.0
    for flow in range(count):
        port = flows[flow, PORT]
        ports[port, ROOM], ports[port, USERS] = setting.port_rate, 0
        rates[flow, SPEED] = 1
        missed += rates[flow, MISSED]
        l2 -= rates[flow, CAP]
        hbm -= rates[flow, CAP] * rates[flow, MISSED]
    is_enough = l2 >= 0 and hbm >= 0
    for flow in range(count):
        port = flows[flow, PORT]
        ports[port, ROOM] -= rates[flow, CAP]
        ports[port, USERS] += 1
        is_enough &= ports[port, ROOM] >= 0
        open_[flow] = flow
    if is_enough:
        return
    for flow in range(count):
        ports[flows[flow, PORT], ROOM] = setting.port_rate
    l2, hbm, left = setting.l2_rate, setting.hbm_rate, count
    while left:
        l2_level = l2 / left
        hbm_level = hbm / missed if missed > _NOISE else inf
        level = min(l2_level, hbm_level)
        for place in range(left):
            flow = open_[place]
            port = flows[flow, PORT]
            level = min(level, rates[flow, CAP], ports[port, ROOM] / ports[port, USERS])
        reached = level * _LEVEL
        for place in range(left):
            flow = open_[place]
            port = flows[flow, PORT]
            is_full = l2_level <= reached or ports[port, ROOM] / ports[port, USERS] <= reached
            is_full |= hbm_level <= reached and rates[flow, MISSED] > 0
            if is_full or rates[flow, CAP] <= reached:
                open_[place] = _NONE - flow
        kept = 0
        for place in range(left):
            flow = open_[place]
            if flow >= 0:
                open_[kept] = flow
                kept += 1
                continue
            flow = _NONE - flow
            rate = min(level, rates[flow, CAP])
            rates[flow, SPEED] = rate / rates[flow, CAP]
            ports[flows[flow, PORT], ROOM] -= rate
            ports[flows[flow, PORT], USERS] -= 1
            l2 -= rate
            hbm -= rate * rates[flow, MISSED]
            missed -= rates[flow, MISSED]
        left = kept
