"""What Perfetto's trace processor makes of a Chrome trace: its rules for JSON, in a few lines.

Most machines have no trace processor. `tests/app/test_perfetto.py` holds this model against the real
one where there is one. The rules are those of its sources (`json_trace_tokenizer`, `trace_sorter`,
`slice_tracker`, `flow_tracker`, v56):

* Time is whole nanoseconds; `ts` and `dur` are rounded each for itself.
* Records are sorted by time; at one time the longer slices come first, and what has no length is in
  the order of the file.
* A slice closes what ends by its start, but those of no length at one time stand on each other. One
  that would outlast what is open is dropped.
* An end of an arrow belongs to the innermost slice that has begun on its thread. The arrow leads from
  the slice that begins earlier to the other one.
* A counter is named after the record and the key of the value.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DROPPED = "slice_drop_overlapping_complete_event"
_DEEPEST = 512


class Shown(NamedTuple):
    """A slice as it is shown: times in nanoseconds, `depth` how many others it stands in."""

    process: str
    thread: str
    name: str
    category: str
    ts: int
    dur: int
    depth: int
    args: dict[str, Any]

    @property
    def end(self) -> int:
        return self.ts + self.dur


@dataclass
class Opened:
    """An opened trace: what is shown, the arrows by their ends, and what was not understood."""

    slices: list[Shown] = field(default_factory=list[Shown])
    arrows: list[tuple[Shown, Shown]] = field(default_factory=list[tuple[Shown, Shown]])
    counters: set[str] = field(default_factory=set[str])
    errors: Counter[str] = field(default_factory=Counter[str])


def opened(trace: dict[str, Any]) -> Opened:
    """Return what a Chrome trace is opened as."""
    records: list[dict[str, Any]] = trace["traceEvents"]
    names = {
        (record["pid"], record["tid"] if record["name"] == "thread_name" else None): record["args"][
            "name"
        ]
        for record in records
        if record["ph"] == "M" and "name" in record["args"]
    }
    found = Opened()
    stacks: defaultdict[tuple[int, int], list[Shown]] = defaultdict(list)
    tails: dict[int, Shown] = {}
    heads: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    timed = [record for record in records if record["ph"] != "M"]
    for record in sorted(timed, key=_order):
        place = record["pid"], record.get("tid", 0)
        stack = stacks[place]
        match record["ph"]:
            case "X":
                new = (_nanoseconds(record["ts"]), _nanoseconds(record["dur"]))
                if not _has_closed(stack, *new) or len(stack) >= _DEEPEST:
                    found.errors[DROPPED] += 1
                    continue
                shown = Shown(
                    names[place[0], None], names[place], record["name"], record["cat"], *new,
                    len(stack), record["args"],
                )  # fmt: skip
                stack.append(shown)
                found.slices.append(shown)
                found.arrows += [(tails[number], shown) for number in heads.pop(place, ())]
            case "C":
                found.counters |= {f"{record['name']} {key}" for key in record["args"]}
            case "f" if record.get("bp") != "e":
                heads[place].append(record["id"])
            case "s" | "f" if not stack:
                found.errors["flow_no_enclosing_slice"] += 1
            case "s" if record["id"] in tails:
                found.errors["flow_duplicate_id"] += 1
            case "s":
                tails[record["id"]] = stack[-1]
            case "f" if record["id"] not in tails:
                found.errors["flow_end_without_start"] += 1
            case "f":
                tail, head = tails[record["id"]], stack[-1]
                found.arrows.append((head, tail) if tail.ts > head.ts else (tail, head))
            case other:
                found.errors[f"phase {other}"] += 1
    return found


def assert_nested_or_apart(found: Opened) -> None:
    """Hold the slices of every thread against each other."""
    ends: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for each in sorted(found.slices, key=lambda one: (one.ts, -one.dur)):
        around = ends[each.process, each.thread]
        while around and around[-1] <= each.ts:
            around.pop()
        assert not around or each.end <= around[-1], each
        around.append(each.end)


def _order(record: dict[str, Any]) -> tuple[int, int]:
    return _nanoseconds(record["ts"]), -_nanoseconds(record.get("dur", 0))


def _nanoseconds(microseconds: float) -> int:
    return math.floor(microseconds * 1000 + 0.5)


def _has_closed(stack: list[Shown], ts: int, dur: int) -> bool:
    """Close what ends by a new slice; return whether that crosses nothing which is open."""
    for each in reversed(stack.copy()):
        if each.end < ts or (each.end == ts and not each.dur == dur == 0):
            stack.pop()
        elif ts < each.end < ts + dur:
            return False
    return True
