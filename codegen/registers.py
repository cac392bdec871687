"""Scalar registers during emission: which are free, and which constants they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.errors import IRValueError
from .isa.row import REGISTERS

if TYPE_CHECKING:
    from ..ir.errors import Span

#: Registers that constants may occupy; the rest is for variables and intermediate values.
CONSTANT_LIMIT = 12


@dataclass
class Registers:
    """The register file while code is emitted.

    Constants stay in registers for reuse. Inside a loop or an arm those from outside are pinned, for
    the next trip needs them; those made inside are forgotten at its end, for it may not have run.
    """

    _free: list[int] = field(default_factory=lambda: list(range(REGISTERS - 1, -1, -1)))
    _constants: dict[int, int] = field(default_factory=dict[int, int])
    _pinned: list[frozenset[int]] = field(default_factory=list["frozenset[int]"])

    def take(self, span: Span) -> int:
        """Return a free register, at the cost of a constant if need be.

        Raises:
            IRValueError: When every register holds a value that is still needed.
        """
        if not self._free:
            self._drop_constant()
        if not self._free:
            message = (
                f"At most {REGISTERS} scalar values may be needed at one place of a kernel, and here "
                "are more"
            )
            raise IRValueError(message, span)
        return self._free.pop()

    def give(self, register: int) -> None:
        """Make `register` free again."""
        assert register not in self._free, "a register is given back once"
        self._free.append(register)

    def constant(self, value: int) -> int | None:
        """Return the register that holds `value`, if there is one."""
        return self._constants.get(value)

    def keep_constant(self, value: int, register: int) -> bool:
        """Keep `register` as the home of `value`; False when constants have no room for it."""
        if len(self._constants) >= CONSTANT_LIMIT:
            return False
        self._constants[value] = register
        return True

    def enter(self) -> None:
        """Begin a loop's body or a branch's arm."""
        self._pinned.append(frozenset(self._constants))

    def leave(self) -> None:
        """End it: constants made inside give their registers back."""
        outside = self._pinned.pop()
        for value in [v for v in self._constants if v not in outside]:
            self.give(self._constants.pop(value))

    def _drop_constant(self) -> None:
        pinned = self._pinned[-1] if self._pinned else frozenset[int]()
        for value in self._constants:
            if value not in pinned:
                self.give(self._constants.pop(value))
                return
