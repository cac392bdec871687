"""What a run found, for Python users and for files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.errors import InputError, IRTypeError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..codegen.executable import Executable
    from ..ir.core import Program
    from ..ir.target import Target
    from ..sim.report import SimResult, TimelineEvent
    from ..sim.scales.stream import ScaleStream
    from ..traces.bundle import Bundle
    from .origin import Outputs
    from .rtl_cube import CubeAccount


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes:
        executable: What ran.
        target: The machine on which it ran.
        entry: The function that was launched.
        inputs: As they were given.
        outputs: Output name to array in logical shape; empty without functional execution. `compare`
            reads from them which instruction wrote what.
        simulation: The machine model's own account: traffic, stalls, warnings.
        options: How it was run.
        program: What was compiled, if it was not compiled already.
        cube: The cycles of the cube in hardware against those of the machine, if it multiplied.
        scales: What the scale-decode unit consumed, if it was recorded.
        dims: The extents of the program's dynamic dimensions by name, for which it was compiled.
    """

    executable: Executable
    target: Target
    entry: str
    inputs: Mapping[str, Any]
    outputs: Outputs
    simulation: SimResult
    options: Mapping[str, Any]
    program: Program | None = None
    cube: CubeAccount | None = None
    scales: ScaleStream | None = None
    dims: Mapping[str, int] = field(default_factory=dict[str, int])

    def __repr__(self) -> str:
        return f"<run of {self.entry!r}: {self.cycles or 'no'} cycles; outputs {self.outputs!r}>"

    @property
    def cycles(self) -> int:
        """All cycles, the launch included; 0 without timing."""
        return self.simulation.cycles

    @property
    def microseconds(self) -> float:
        """The cycles at the machine's clock."""
        return self.cycles / self.target.clock_hz * 1e6

    @property
    def pipes(self) -> tuple[Mapping[str, int], ...]:
        """Busy cycles by pipe name, one dictionary a core."""
        return self.simulation.pipes

    @property
    def timeline(self) -> list[TimelineEvent]:
        """What each pipe did when, with source lines."""
        return self.simulation.timeline

    def bundle(
        self, golden: Mapping[str, npt.NDArray[Any]] | None = None, *, timeline: bool = True
    ) -> Bundle:
        """Return the run as a bundle, ready to be saved.

        Args:
            golden: What outputs should be, if that is known.
            timeline: Whether it has the timeline of a run that was timed.
        """
        from ..traces.bundle import Bundle
        from .account.trace import timeline_of
        from .versions import versions

        shows = timeline and self.options["timing"]
        return Bundle(
            inputs={name: _as_array(given) for name, given in self.inputs.items()},
            outputs=self.outputs if self.options["functional"] else None,
            golden=None if golden is None else dict(golden),
            executable=self.executable.to_bytes(),
            machine=self.target.to_toml(),
            program=None if self.program is None else _printed(self.program),
            options={**self.options, "cycles": self.cycles, "versions": versions()},
            timeline=timeline_of(self.simulation, self.target) if shows else None,
            scales=None if self.scales is None else _recorded(self.scales),
        )

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the run to a folder, or to one file if the name ends in `.hrry`, whole or not at all.

        Raises:
            InputError: When something else stands there, or it cannot be written.
        """
        from pathlib import Path

        from ..traces.bundle import save_bundle

        try:
            place = Path(directory)
        except TypeError as error:
            message = f"The folder of a run must be named by a string or a path, not {directory!r}"
            raise InputError(message) from error
        save_bundle(place, self.bundle())


def _recorded(scales: ScaleStream) -> bytes:
    from ..sim.scales.file import stream_to_bytes

    return stream_to_bytes(scales)


def _printed(program: Program) -> str | None:
    """Return a program as text that parses back; None where a dtype has no name in the language."""
    from ..ir.printer import python_print

    try:
        return python_print(program)
    except IRTypeError:
        return None


def _as_array(given: Any) -> Any:
    """Return an input as a bundle holds it: a scalar is an array of rank 0."""
    return np.asarray(given) if isinstance(given, int | float) else given
