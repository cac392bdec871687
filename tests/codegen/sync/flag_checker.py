"""An independent judge of flags: runs a kernel's instructions and orders them by vector clocks.

Nothing here knows how the compiler chose its flags. What an instruction touches is worked out from its
fields, byte by byte where the manual gives a formula for an element.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from scalebox.codegen.isa.program import Instruction, make
from scalebox.codegen.isa.vocabulary import FixConvert, FixScale, MadInit, ScaleRows, Space
from scalebox.codegen.tensors import View

from ..emit.scalar_machine import Issued, run_scalar_unit
from ..ub_bytes import ub_bytes
from . import clocks as lanes
from .clocks import Clocks, Event, Flag

GRANULE = 32
NOP = make("nop")
Memory = tuple[str, int]
Stretch = tuple[Memory, int, int]


@dataclass
class Verdict:
    """What is wrong with a run; all empty when it is sound."""

    races: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs of instruction indices that touch the same bytes in no order, or in the wrong one."""
    raised_twice: list[int] = field(default_factory=list[int])
    """Indices of sets that may find their flag still up."""
    left_up: list[Flag] = field(default_factory=list[Flag])
    stuck: list[int] = field(default_factory=list[int])
    """Indices of waits that are never satisfied."""
    pairs: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Indices of each set and the wait that took it."""

    @property
    def sound(self) -> bool:
        return not (self.races or self.raised_twice or self.left_up or self.stuck)


def judge(
    program: Sequence[Instruction],
    views: Sequence[View],
    params: Sequence[int] = (),
    removed: Sequence[int] = (),
) -> Verdict:
    """Run a program for some scalar arguments, some of its instructions taken out."""
    return judge_cores([program], views, params, removed)


def judge_cores(
    programs: Sequence[Sequence[Instruction]],
    views: Sequence[View],
    params: Sequence[int] = (),
    removed: Sequence[int] = (),
    order: Sequence[int] = (),
) -> Verdict:
    """Run the programs of a cluster's cores at the same time, some instructions taken out.

    Args:
        programs: A program a core; an instruction's index counts those of the programs before it.
        views: What their view fields index.
        params: The scalar arguments, the same for all.
        removed: Indices of instructions that are taken out.
        order: The core of each instruction that touches memory, in the order in which the kernel's
            one program had them; needed where there are two cores.
    """
    streams = issue(programs, params, removed)
    events = [event for stream in streams for event in stream]
    clocks = Clocks(streams)
    verdict = Verdict()
    verdict.stuck += [event.index for event in clocks.left]
    verdict.left_up += clocks.up
    verdict.pairs |= {(one.index, other.index) for one, other in clocks.pairs}
    if not verdict.stuck:
        verdict.raised_twice += [event.index for event in clocks.misused(events)]
        _find_races(_in_order(streams, views, order), clocks, verdict)
    return verdict


def issue(
    programs: Sequence[Sequence[Instruction]],
    params: Sequence[int] = (),
    removed: Sequence[int] = (),
) -> list[list[Event]]:
    """Return what the scalar unit of each core hands on."""
    streams: list[list[Event]] = []
    first = 0
    for core, program in enumerate(programs):
        changed = [NOP if first + n in removed else each for n, each in enumerate(program)]
        issued = run_scalar_unit(changed, params)
        streams.append([Event(core, first + each.index, each) for each in issued])
        first += len(program)
    return streams


Touching = tuple[Event, list[tuple[Stretch, bool]]]


def _in_order(
    streams: list[list[Event]], views: Sequence[View], order: Sequence[int]
) -> list[Touching]:
    """Return what touches memory, in the order of the kernel's one program."""
    touching = [
        deque(
            (event, stretches)
            for event in stream
            if (stretches := list(touches(event.issued, tuple(views))))
        )
        for stream in streams
    ]
    if len(streams) == 1:
        return list(touching[0])
    assert [order.count(core) for core in range(len(streams))] == [len(each) for each in touching]
    return [touching[core].popleft() for core in order]


def _find_races(touched: list[Touching], clocks: Clocks, verdict: Verdict) -> None:
    """Look, in program order, whether what an instruction touches is done with."""
    points: dict[Memory, set[int]] = defaultdict(set)
    for _, stretches in touched:
        for (memory, begin, end), _ in stretches:
            points[memory] |= {begin, end}
    cuts = {memory: sorted(found) for memory, found in points.items()}
    readers: dict[tuple[Memory, int], dict[int, Event]] = defaultdict(dict)
    writers: dict[tuple[Memory, int], dict[int, Event]] = defaultdict(dict)
    found: set[tuple[int, int]] = set()
    for event, stretches in touched:
        cells = [
            ((memory, cell), writes)
            for (memory, begin, end), writes in stretches
            for cell in range(bisect_left(cuts[memory], begin), bisect_left(cuts[memory], end))
        ]
        for cell, writes in cells:
            for users in (writers, readers) if writes else (writers,):
                for lane, other in users[cell].items():
                    if lane != event.lane and not clocks.before(other, event):
                        found.add((other.index, event.index))
        for cell, writes in cells:
            (writers if writes else readers)[cell][event.lane] = event
    verdict.races += sorted(found)


# --------------------------------------------------------------------------- what is touched


def touches(issued: Issued, views: tuple[View, ...]) -> Iterator[tuple[Stretch, bool]]:
    """Yield the stretches of memory that an instruction touches, and whether it writes them."""
    each, registers = issued.instruction, issued.registers
    yield from _local_stretches(each, views, registers.get("xo", 0))
    if each.row.has("view"):
        view = views[each["view"]]
        for begin, end in _window(each, registers, view):
            yield (("gm", view.param), begin, end), Space.GM in each.row.writes


@cache
def _local_stretches(
    each: Instruction, views: tuple[View, ...], ahead: int
) -> tuple[tuple[Stretch, bool], ...]:
    return tuple(
        (((space, 0), begin, end), writes)
        for space, addresses, writes in local_bytes(each, views, ahead)
        for begin, end in _stretches(addresses)
    )


def _window(each: Instruction, registers: dict[str, int], view: View) -> Iterator[tuple[int, int]]:
    """Yield the bits of a window of GM, row by row."""
    if each.mnemonic in ("gm_to_l1_boxes", "ub_to_gm_boxes"):
        starts = [
            (registers["xi"] + i) * view.strides[1] + registers["xj"] * view.strides[2]
            for i in range(each["ni"])
        ]
        length = each["nj"] * 32
    elif each.mnemonic == "gm_to_l1_nz_boxes":
        starts = [
            (registers["xj"] + j) * view.strides[1] + registers["xi"] * view.strides[2]
            for j in range(each["col_boxes"])
        ]
        length = each["row_boxes"] * 512 * 8 // view.bits
    else:
        rows = each["rows"] if each.row.has("rows") else 1
        starts = [
            (registers["xr"] + r) * view.strides[0] + registers["xc"] * view.strides[1]
            for r in range(rows)
        ]
        length = each["cols"]
    for start in starts:
        first = (view.offset + start) * view.bits
        yield first, first + length * view.bits


def _stretches(addresses: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of granules that hold some addresses."""
    granules = sorted({address // GRANULE for address in addresses})
    begin = None
    for place, granule in enumerate(granules):
        if begin is None:
            begin = granule
        if place + 1 == len(granules) or granules[place + 1] != granule + 1:
            yield begin * GRANULE, (granule + 1) * GRANULE
            begin = None


@cache
def local_bytes(
    each: Instruction, views: tuple[View, ...], ahead: int = 0
) -> tuple[tuple[str, frozenset[int], bool], ...]:
    """Return the bytes of each on-chip memory that an instruction touches, and whether it writes.

    `ahead` is what the register of a transfer says: units of 32 bytes from `src` to its source.
    """
    f, mnemonic = dict(each.fields), each.mnemonic.removesuffix("_at")
    if ahead:
        f["src"] += ahead * 32
    match mnemonic:
        case "gm_to_l1_nz":
            wide = 256 // views[f["view"]].bits
            addresses = frozenset(
                f["l1"] + (c // wide * (f["l1_rows"] // 16) + r // 16) * 512 + r % 16 * 32
                for r in range(f["rows"])
                for c in range(0, f["cols"], wide)
            )
            return (("l1", addresses, True),)
        case "gm_to_l1_row":
            size = -(-f["cols"] * views[f["view"]].bits // 8)
            return (("l1", frozenset(range(f["l1"], f["l1"] + size)), True),)
        case "gm_to_l1_boxes":
            boxes = [(i, j) for i in range(f["ni"]) for j in range(f["nj"])]
            addresses = frozenset(f["l1"] + (i * f["l1_nj"] + j) * 32 for i, j in boxes)
            return (("l1", addresses, True),)
        case "gm_to_l1_nz_boxes":
            boxes = [(j, i) for j in range(f["col_boxes"]) for i in range(f["row_boxes"])]
            addresses = frozenset(
                f["l1"] + (j * f["dst_pitch"] + i) * 512 + byte
                for j, i in boxes
                for byte in range(0, 512, GRANULE)
            )
            return (("l1", addresses, True),)
        case "gm_to_l1_scales":
            by_rows = ScaleRows(f["layout"]) in (ScaleRows.A_ND, ScaleRows.B_DN)
            rows, pairs = (f["ni"], f["nj"]) if by_rows else (f["nj"], f["ni"])
            addresses = frozenset(
                f["l1"] + (row // 16 * f["l1_nj"] + pair) * 32 + row % 16 * 2
                for row in range(rows)
                for pair in range(pairs)
            )
            return (("l1", addresses, True),)
        case "l1_fill":
            lines = [(i, j) for i in range(f["lines"]) for j in range(f["units"])]
            addresses = frozenset(f["l1"] + (i * f["pitch"] + j) * 32 for i, j in lines)
            return (("l1", addresses, True),)
        case "l1_to_l0a_row":
            units = range(f["units"])
            read = frozenset(f["src"] + unit * 32 for unit in units)
            return ("l1", read, False), ("l0a", frozenset(f["dst"] + u * 512 for u in units), True)
        case "l1_to_scale_a_row":
            groups = range(f["groups"])
            written = frozenset(f["dst"] + g // 2 * 32 + g % 2 for g in groups)
            return ("l1", frozenset(f["src"] + g for g in groups), False), (
                "scale_a",
                written,
                True,
            )
        case "l1_to_l0a" | "l1_to_l0b_boxes":
            cells = [
                (c, r, byte)
                for c in range(f["col_boxes"])
                for r in range(f["row_boxes"])
                for byte in range(0, 512, GRANULE)
            ]
            read = frozenset(f["src"] + (c * f["src_pitch"] + r) * 512 + b for c, r, b in cells)
            written = frozenset(f["dst"] + (c * f["dst_pitch"] + r) * 512 + b for c, r, b in cells)
            return ("l1", read, False), (mnemonic[6:9], written, True)
        case "l1_to_l0b" | "l1_to_l0a_turned":
            wide, across = 256 // f["bits"], f.get("n", f.get("m", 0))
            read = frozenset(
                f["src"] + (n // wide * (f["src_k"] // 16) + k // 16) * 512 + k % 16 * 32
                for k in range(f["k"])
                for n in range(0, across, wide)
            )
            boxes = -(-f["k"] // wide) * -(-across // 16)
            written = frozenset(range(f["dst"], f["dst"] + boxes * 512, GRANULE))
            return ("l1", read, False), (mnemonic[6:9], written, True)
        case "l1_to_scale_a" | "l1_to_scale_b":
            boxes = [(i, j) for i in range(f["row_boxes"]) for j in range(f["col_boxes"])]
            read = frozenset(f["src"] + (i * f["src_pitch"] + j) * 32 for i, j in boxes)
            written = frozenset(f["dst"] + (i * f["col_boxes"] + j) * 32 for i, j in boxes)
            return ("l1", read, False), (mnemonic[-7:], written, True)
        case "l1_to_bias" | "l1_to_fixp":
            read = frozenset(range(f["src"], f["src"] + f["bytes"]))
            return ("l1", read, False), (
                mnemonic[6:],
                frozenset(range(f["dst"], f["dst"] + f["bytes"])),
                True,
            )
        case "mad_mx":
            return tuple(_mad_bytes(f, 32 if f["a_type"] in (0, 1) else 64, scaled=True))
        case "mad" | "mad_if":
            wide = {0: 16, 1: 16, 2: 8}.get(f["a_type"], 32)
            return tuple(_mad_bytes({"init": MadInit.ACC, **f}, wide, scaled=False))
        case _ if Space.L0C in each.row.reads and Space.UB not in each.row.writes:
            return tuple(_drain_bytes(f))
        case _ if Space.UB in (*each.row.reads, *each.row.writes):
            bits = views[f["view"]].bits if "view" in f else 0
            return tuple(ub_bytes(each.mnemonic, f, bits))
        case _:
            return ()


def _drain_bytes(f: dict[str, int]) -> Iterator[tuple[str, frozenset[int], bool]]:
    """Yield what leaves the accumulator, by what numbers, and where in L1 it goes."""
    tall = f["src_boxes"] if "src_boxes" in f else f["src_rows"] // 16
    elements = [(r, c) for r in range(f["rows"]) for c in range(f["cols"])]
    yield (
        "l0c",
        frozenset(
            f["l0c"] + (c // 16 * tall + r // 16) * 1024 + r % 16 * 64 + half
            for r, c in elements
            for half in (0, 32)
        ),
        False,
    )
    if f.get("quant", FixScale.COLUMNS) == FixScale.COLUMNS and "scales" in f:
        yield "fixp", frozenset(f["scales"] + c * 4 for c in range(f["cols"])), False
    if "l1_boxes" in f:
        width = FixConvert(f["convert"]).bits // 8
        wide = 32 // width
        place = {(r, c): (c // wide * f["l1_boxes"] + r // 16) * 512 for r, c in elements}
        yield "l1", frozenset(f["l1"] + at + r % 16 * 32 for (r, _), at in place.items()), True


def _mad_bytes(
    f: dict[str, int], wide: int, *, scaled: bool
) -> Iterator[tuple[str, frozenset[int], bool]]:
    """Yield what a mad touches; a box of its operands is `wide` elements wide along k."""
    rows, columns = -(-f["m"] // 16), -(-f["n"] // 16)
    depth, boxes = -(-f["k"] // wide), -(-f["k"] // 64)

    def span(begin: int, size: int) -> frozenset[int]:
        return frozenset(range(begin, begin + size, GRANULE))

    yield "l0a", span(f["a"], rows * depth * 512), False
    yield "l0b", span(f["b"], columns * depth * 512), False
    if scaled:
        yield "scale_a", span(f["a"] // 16, rows * boxes * 32), False
        yield "scale_b", span(f["b"] // 16, columns * boxes * 32), False
    sums = span(f["c"], rows * columns * 1024)
    yield "l0c", sums, True
    if f["init"] == MadInit.ACC:
        yield "l0c", sums, False
    if f["init"] == MadInit.BIAS:
        yield "bias", frozenset(range(f["bias"], f["bias"] + f["n"] * 4)), False


# --------------------------------------------------------------------------- queues


def gets_through(issued: list[Issued], depth: int) -> bool:
    """Whether a scalar unit with queues of `depth` entries, a waiting head included, gets through."""
    return lanes.gets_through([[Event(0, each.index, each) for each in issued]], depth)
