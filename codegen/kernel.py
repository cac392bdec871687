"""One compiled kernel: its parameters, the windows it sees of them, and its instructions.

A kernel that uses both kinds of core of a cluster is two programs over the same parameters and windows:
the cube core's, and its mate, which the cluster's first vector core runs at the same time.
Everything here is frozen and checks itself when it is made, so that a kernel that exists can be run:
its branches land on instructions, its views lie inside their tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..ir.errors import Span
from .isa.encoding import encode_program
from .isa.vocabulary import CoreKind, FieldKind, Flow
from .tensors import packed_bytes, refuse
from .tile_records import NO_RECORDS, TileRecords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from .isa.program import Instruction
    from .tensors import Param, View

NO_SPAN = -1


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to be run.

    Args:
        name: Name of the function it came from.
        params: In the order of the launch's arguments.
        views: What the instructions' view fields index.
        program: The instructions.
        span_table: Places in source text.
        span_indices: Per instruction an index into `span_table`, or -1 where it has no source.
        notes: Remarks on instructions, as (instruction index, text), by ascending index.
        core: The kind of core that it is for.
        mate: For a kernel of the cube core, the program that the cluster's first vector core (AIV0)
            runs at the same time: of the same name, parameters and views, with no mate of its own.
        tiles: Which tiles its instructions work on, as far as that is known.

    Raises:
        IRValueError: If a field points at something that is not there, or the mate does not fit.
    """

    name: str
    params: tuple[Param, ...]
    views: tuple[View, ...]
    program: tuple[Instruction, ...]
    span_table: tuple[Span, ...] = ()
    span_indices: tuple[int, ...] = ()
    notes: tuple[tuple[int, str], ...] = ()
    core: CoreKind = CoreKind.AIC
    mate: Kernel | None = None
    tiles: TileRecords = NO_RECORDS

    def __post_init__(self) -> None:
        if not self.name:
            refuse("A kernel's name must be at least one character, not empty.")
        names = [param.name for param in self.params]
        if len(set(names)) != len(names):
            refuse(f"Kernel {self.name!r} must have parameters of different names, not {names}.")
        for index, view in enumerate(self.views):
            self._check_view(index, view)
        for index, instruction in enumerate(self.program):
            self._check_instruction(index, instruction)
        if not self.program or self.program[-1].row.flow not in (Flow.HALT, Flow.JUMP):
            refuse(f"Kernel {self.name!r} must end with a halt or a jump, not run past its end.")
        self._check_debug()
        if self.mate is not None:
            self._check_mate(self.mate)

    @classmethod
    def assemble(
        cls,
        name: str,
        *,
        params: Sequence[Param],
        views: Sequence[View],
        program: Sequence[Instruction],
        spans: Sequence[Span] = (),
        notes: Mapping[int, str] | None = None,
        core: CoreKind = CoreKind.AIC,
        mate: Kernel | None = None,
        tiles: TileRecords | None = None,
    ) -> Kernel:
        """Return a kernel from one span per instruction, or none at all.

        Args:
            name: Name of the function.
            params: In the order of the launch's arguments.
            views: What view fields index.
            program: The instructions.
            spans: One per instruction; unknown spans are allowed.
            notes: Instruction index to remark.
            core: The kind of core that it is for.
            mate: What the vector core runs at the same time.
            tiles: Which tiles its instructions work on.

        Raises:
            IRValueError: As the class.
        """
        table: dict[Span, int] = {}
        indices = tuple(
            table.setdefault(span, len(table)) if span.is_known else NO_SPAN for span in spans
        )
        return cls(
            name,
            tuple(params),
            tuple(views),
            tuple(program),
            tuple(table),
            indices or (NO_SPAN,) * len(program),
            tuple(sorted((notes or {}).items())),
            core,
            mate,
            tiles or NO_RECORDS,
        )

    @property
    def programs(self) -> tuple[Kernel, ...]:
        """The kernel and its mate, where it has one: a program per core that runs it."""
        return (self,) if self.mate is None else (self, self.mate)

    @cached_property
    def words(self) -> npt.NDArray[np.uint64]:
        """The encoded program, uint64 [n, 2], read-only."""
        words = encode_program(self.program)
        words.flags.writeable = False
        return words

    @property
    def tensors(self) -> tuple[Param, ...]:
        """The tensor parameters, in order; a task binds a buffer to each."""
        return tuple(param for param in self.params if param.is_tensor)

    @property
    def scalars(self) -> tuple[Param, ...]:
        """The scalar parameters, in order; a task gives an integer for each."""
        return tuple(param for param in self.params if not param.is_tensor)

    def span(self, index: int) -> Span:
        """Return the source of instruction `index`; the unknown span where it has none."""
        place = self.span_indices[index]
        return Span.unknown() if place == NO_SPAN else self.span_table[place]

    def note(self, index: int) -> str | None:
        """Return the remark on instruction `index`, if there is one."""
        return self._note_of.get(index)

    @cached_property
    def kept(self) -> dict[object, object]:
        """What those who run it have made of it and will look for again; it lives as long as it."""
        return {}

    @cached_property
    def _note_of(self) -> dict[int, str]:
        return dict(self.notes)

    def _check_view(self, index: int, view: View) -> None:
        where = f"View {index} of kernel {self.name!r}"
        if not 0 <= view.param < len(self.params):
            refuse(f"{where} must name one of the {len(self.params)} parameters, not {view.param}.")
        param = self.params[view.param]
        if not param.is_tensor:
            refuse(f"{where} must be of a tensor, not of the scalar {param.name!r}.")
        if packed_bytes(view.last + 1, view.bits) > param.size_bytes:
            refuse(
                f"{where} must stay inside the {param.size_bytes} bytes of {param.name!r}, not "
                f"reach element {view.last} of {view.bits} bits."
            )

    def _check_instruction(self, index: int, instruction: Instruction) -> None:
        where = f"Instruction {index} ({instruction.mnemonic}) of kernel {self.name!r}"
        for field, value in zip(instruction.row.fields, instruction.values, strict=True):
            match field.kind:
                case FieldKind.VIEW:
                    if value >= len(self.views):
                        refuse(f"{where} must use one of the {len(self.views)} views, not {value}.")
                    rank = self.views[value].rank
                    if rank != field.rank:
                        refuse(f"{where} must use a view of rank {field.rank}, not {rank}.")
                case FieldKind.PARAM:
                    count = len(self.scalars)
                    if value >= count:
                        refuse(
                            f"{where} must use one of the {count} scalar parameters, not {value}."
                        )
                case FieldKind.TARGET:
                    if not 0 <= index + value < len(self.program):
                        refuse(
                            f"{where} must branch to an instruction, 0 to "
                            f"{len(self.program) - 1}, not to {index + value}."
                        )
                case _:
                    pass

    def _check_debug(self) -> None:
        where = f"Kernel {self.name!r}"
        count, places = len(self.program), len(self.span_table)
        if len(self.span_indices) != count:
            refuse(
                f"{where} must have a span index per instruction ({count}), "
                f"not {len(self.span_indices)}."
            )
        for place in self.span_indices:
            if not NO_SPAN <= place < places:
                refuse(f"{where} must have span indices of -1 to {places - 1}, not {place}.")
        noted = [index for index, _ in self.notes]
        if noted != sorted(set(noted)) or any(not 0 <= index < count for index in noted):
            refuse(f"{where} must have at most one note per instruction, in order, not {noted}.")
        why = self.tiles.complaint(count)
        if why is not None:
            refuse(f"{where} {why}.")

    def _check_mate(self, mate: Kernel) -> None:
        where = f"Kernel {self.name!r}"
        if (self.core, mate.core) != (CoreKind.AIC, CoreKind.AIV):
            found = f"{self.core.value} and {mate.core.value}"
            refuse(f"{where} and its mate must be for aic and aiv, not for {found}.")
        if mate.mate is not None:
            refuse(f"The mate of kernel {self.name!r} must have no mate of its own.")
        if (mate.name, mate.params, mate.views) != (self.name, self.params, self.views):
            refuse(f"{where} and its mate must have the same name, parameters and views.")
