"""The scale-decode unit once more, slowly, from its description: lists of bytes, no tricks.

A side has two slots of bytes; a record is decoded when it enters the output register.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalebox.codegen.isa.scale_unit import request_order

Word = dict[str, Any]


@dataclass
class SlowSide:
    requests: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    slots: list[bytes] = field(default_factory=lambda: [b"", b""])
    writing: int = 0
    reading: int = 0

    def ready(self) -> bool:
        return len(self.slots[self.writing]) < 32

    def whole(self) -> bool:
        return len(self.slots[self.reading]) == 32

    def take(self, beat: bytes) -> None:
        self.slots[self.writing] += beat
        if len(self.slots[self.writing]) == 32:
            self.writing = 1 - self.writing

    def free(self) -> None:
        self.slots[self.reading] = b""
        self.reading = 1 - self.reading


class SlowUnit:
    """Call `cycle` with the wires into the unit; it returns the wires out of it in that cycle."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.busy = False
        self.sides = {"a": SlowSide(), "b": SlowSide()}
        self.records: list[tuple[int, int, bool]] = []
        self.shown: Word | None = None
        self.paired, self.groups = False, 0

    def cycle(self, wires: Mapping[str, Any]) -> Word:
        asking = any(side.requests for side in self.sides.values())
        out: Word = {"start_ready": not (self.busy or asking), "o_valid": self.shown is not None}
        out["o"] = self.shown
        for name, side in self.sides.items():
            out[f"{name}_ready"] = side.ready()
            out[f"{name}_request_valid"] = bool(side.requests)
            out[f"{name}_request"] = side.requests[0] if side.requests else None
        if wires["reset"]:
            self.reset()
            return out
        whole = all(side.whole() for side in self.sides.values())
        can_load = self.records and whole and (wires["o_ready"] or self.shown is None)
        for name, side in self.sides.items():
            if wires[f"{name}_valid"] and out[f"{name}_ready"]:
                side.take(wires[name])
            if side.requests and wires[f"{name}_request_ready"]:
                side.requests.pop(0)
        if self.shown is not None and wires["o_ready"]:
            self.busy = not self.shown["end"]
            self.shown = None
        if can_load:
            self.load()
        if wires["start_valid"] and out["start_ready"]:
            self.start(*wires["start"])
        return out

    def start(self, row_tiles: int, column_tiles: int, groups: int, paired: int) -> None:
        row_tiles, column_tiles = row_tiles % 256 or 256, column_tiles % 256 or 256
        groups = groups % 128 or 128
        self.busy, self.paired, self.groups = True, bool(paired), groups
        order = list(request_order(row_tiles, column_tiles, groups))
        self.sides["a"].requests = [(row, block) for row, _, block in order]
        self.sides["b"].requests = [(column, block) for _, column, block in order]
        step = 2 if paired else 1
        tiles = row_tiles * column_tiles
        self.records = [
            (group, tile, tile == tiles - 1)
            for tile in range(tiles)
            for group in range(0, groups, step)
        ]

    def load(self) -> None:
        group, _, final = self.records.pop(0)
        boxes = {name: side.slots[side.reading] for name, side in self.sides.items()}
        second = self.paired and group + 1 < self.groups
        last = group + (2 if self.paired else 1) >= self.groups
        self.shown = {"group": group, "second": second, "last": last, "end": last and final}
        for name, box in boxes.items():
            halves = [list(box[group % 2 :: 2]), list(box[1::2]) if second else None]
            self.shown[f"{name}_exponent"] = [_exponents(half) for half in halves]
            self.shown[f"{name}_nan"] = [_nans(half) for half in halves]
        if self.paired or last or group % 2 == 1:
            for side in self.sides.values():
                side.free()


def _exponents(codes: Sequence[int] | None) -> list[int]:
    return [0] * 16 if codes is None else [code - 127 for code in codes]


def _nans(codes: Sequence[int] | None) -> list[bool]:
    return [False] * 16 if codes is None else [code == 255 for code in codes]
