"""How the parts that repeat are put into a module: as instances, or as copies."""

# Amaranth's submodules are named at run time.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amaranth.hdl import Value
    from amaranth.lib import wiring

__all__ = ["put"]


def put(
    m: Module,
    name: str,
    part: wiring.Component | str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    clocked: bool = True,
    reset: Value | None = None,
) -> None:
    """Put a part into a module.

    Args:
        m: The module.
        name: What the part is called there.
        part: A copy of the part, or the name of a Verilog module that stands for it. Amaranth's own
            simulator can only run copies; Verilog grows with every one of them.
        inputs: What drives each of its inputs.
        outputs: What each of its outputs drives.
        clocked: Whether the part has a clock and a reset.
        reset: What resets an instance; None for what resets the module.
    """
    if isinstance(part, str):
        clock = {"clk": ClockSignal(), "rst": ResetSignal() if reset is None else reset}
        m.submodules[name] = Instance(
            part,
            *(("i", port, value) for port, value in clock.items() if clocked),
            *(("i", port, value) for port, value in inputs.items()),
            *(("o", port, value) for port, value in outputs.items()),
        )
        return
    m.submodules[name] = part
    m.d.comb += [getattr(part, port).eq(value) for port, value in inputs.items()]
    m.d.comb += [value.eq(getattr(part, port)) for port, value in outputs.items()]
