"""Scalar registers during emission: which are free, and which constants they hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir.errors import IRValueError
from ..isa.row import REGISTERS

if TYPE_CHECKING:
    from ...ir.errors import Span


class RegistersExhausted(IRValueError):  # noqa: N818 - a limit of the machine, not a mistake of ours
    """More scalar values are needed at one place than there are registers."""


@dataclass
class Registers:
    """The register file while code is emitted.

    Constants stay in registers for reuse. Inside a loop or an arm those from outside are pinned, for
    the next trip needs them; those made inside are forgotten at its end, for it may not have run.

    Args:
        constant_limit: Registers that constants may occupy beyond the instruction that uses them.
    """

    constant_limit: int
    _free: list[int] = field(default_factory=lambda: list(range(REGISTERS - 1, -1, -1)))
    _constants: dict[int, int] = field(default_factory=dict[int, int])
    _locked: Counter[int] = field(default_factory=Counter[int])
    _pinned: list[frozenset[int]] = field(default_factory=list["frozenset[int]"])

    @property
    def room_for_constants(self) -> bool:
        """Whether one more constant could stay."""
        return len(self._constants) < self.constant_limit

    def take(self, span: Span) -> int:
        """Return a free register, at the cost of a constant if need be.

        Raises:
            RegistersExhausted: When every register holds a value that is still needed.
        """
        if not self._free:
            self._drop_constant()
        if not self._free:
            message = (
                f"At most {REGISTERS} scalar values may be needed at one place of a kernel, and here "
                "are more"
            )
            raise RegistersExhausted(message, span)
        return self._free.pop()

    def give(self, register: int) -> None:
        """Make `register` free again, unless it is the home of a constant: that is unlocked."""
        if register in self._locked:
            self._locked[register] -= 1
            if not self._locked[register]:
                del self._locked[register]
            return
        assert register not in self._free, "a register is given back once"
        self._free.append(register)

    def constant(self, value: int) -> int | None:
        """Return the register that holds `value`, if there is one, locked until it is given back."""
        register = self._constants.get(value)
        if register is not None:
            self._locked[register] += 1
        return register

    def keep_constant(self, value: int, register: int) -> None:
        """Make `register` the home of `value`, locked until it is given back, if there is room."""
        if self.room_for_constants:
            self._constants[value] = register
            self._locked[register] += 1

    def enter(self) -> None:
        """Begin a loop's body or a branch's arm."""
        self._pinned.append(frozenset(self._constants))

    def leave(self) -> None:
        """End it: constants made inside give their registers back."""
        outside = self._pinned.pop()
        for value in [v for v in self._constants if v not in outside]:
            self._forget(value)

    def _drop_constant(self) -> None:
        pinned = self._pinned[-1] if self._pinned else frozenset[int]()
        for value, register in self._constants.items():
            if value not in pinned and register not in self._locked:
                self._forget(value)
                return

    def _forget(self, value: int) -> None:
        register = self._constants.pop(value)
        assert register not in self._locked, "a constant in use stays"
        self._free.append(register)
