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
from scalebox.codegen.isa.vocabulary import MadInit, Pipe
from scalebox.codegen.kernel import View

from .scalar_machine import Issued, run_scalar_unit

PIPES = tuple(pipe for pipe in Pipe if pipe is not Pipe.ALL)
GRANULE = 32
NOP = make("nop")
Memory = tuple[str, int]
Stretch = tuple[Memory, int, int]
Flag = tuple[int, int, int]


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
    changed = [NOP if index in removed else each for index, each in enumerate(program)]
    issued = run_scalar_unit(changed, params)
    verdict = Verdict()
    clocks = _clocks(issued, verdict)
    if not verdict.stuck:
        _find_races(issued, clocks, views, verdict)
    return verdict


@dataclass
class _Clock:
    """When an instruction runs: its number on its pipe, and what is done before it, a pipe each."""

    number: int
    done: list[int]


def _clocks(issued: list[Issued], verdict: Verdict) -> list[_Clock]:
    """Run the pipes as far as flags allow; a wait takes the oldest set that nobody took."""
    queues: dict[int, deque[int]] = {pipe: deque() for pipe in PIPES}
    clocks: dict[int, _Clock] = {}
    known: dict[int, list[int]] = {pipe: [0] * len(Pipe) for pipe in PIPES}
    sets: dict[Flag, deque[int]] = defaultdict(deque)
    last_taken: dict[Flag, int] = {}
    last_wait: dict[Flag, int] = {}

    def begin(place: int, pipe: int) -> list[int]:
        known[pipe][pipe] += 1
        clocks[place] = _Clock(known[pipe][pipe], list(known[pipe]))
        return known[pipe]

    def run(place: int) -> bool:
        each = issued[place].instruction
        fields, pipe = each.fields, each.pipe
        flag = (fields.get("src", 0), fields.get("dst", 0), fields.get("id", 0))
        if each.mnemonic == "wait_flag":
            if not sets[flag]:
                return False
            taken = sets[flag].popleft()
            verdict.pairs.add((issued[taken].index, issued[place].index))
            for other in PIPES:
                known[pipe][other] = max(known[pipe][other], clocks[taken].done[other])
            begin(place, pipe)
            last_taken[flag], last_wait[flag] = taken, place
        else:
            begin(place, pipe)
            if each.mnemonic == "set_flag":
                sets[flag].append(place)
        return True

    def drain() -> None:
        moved = True
        while moved:
            moved = False
            for queue in queues.values():
                while queue and run(queue[0]):
                    queue.popleft()
                    moved = True

    for place, each in enumerate(issued):
        if each.instruction.mnemonic == "pipe_barrier":
            if each.instruction["pipe"] == Pipe.ALL:
                drain()
                everything = [
                    known[pipe][pipe] if pipe in known else 0 for pipe in range(len(Pipe))
                ]
                for pipe in PIPES:
                    known[pipe] = list(everything)
            clocks[place] = _Clock(0, [])
        else:
            queues[each.instruction.pipe].append(place)
    drain()
    verdict.stuck += [issued[queue[0]].index for queue in queues.values() if queue]
    verdict.left_up += [flag for flag, waiting in sets.items() if waiting]
    if not verdict.stuck:
        _find_flags_raised_twice(issued, clocks, verdict)
    return [clocks.get(place, _Clock(0, [])) for place in range(len(issued))]


def _find_flags_raised_twice(
    issued: list[Issued], clocks: dict[int, _Clock], verdict: Verdict
) -> None:
    """A set may come only when its pipe knows that the previous one was taken."""
    waits: dict[Flag, list[int]] = defaultdict(list)
    for place, each in enumerate(issued):
        if each.instruction.mnemonic == "wait_flag":
            waits[_flag(each.instruction)].append(place)
    count: dict[Flag, int] = defaultdict(int)
    for place, each in enumerate(issued):
        if each.instruction.mnemonic != "set_flag":
            continue
        flag = _flag(each.instruction)
        number = count[flag]
        count[flag] += 1
        if number == 0:
            continue
        wait = waits[flag][number - 1] if number <= len(waits[flag]) else None
        if wait is None or clocks[place].done[flag[1]] < clocks[wait].number:
            verdict.raised_twice.append(each.index)


def _flag(instruction: Instruction) -> Flag:
    return instruction["src"], instruction["dst"], instruction["id"]


def _find_races(
    issued: list[Issued], clocks: list[_Clock], views: Sequence[View], verdict: Verdict
) -> None:
    """Look, in program order, whether what an instruction touches is done with."""
    touched = [list(touches(each, tuple(views))) for each in issued]
    points: dict[Memory, set[int]] = defaultdict(set)
    for stretches in touched:
        for (memory, begin, end), _ in stretches:
            points[memory] |= {begin, end}
    cuts = {memory: sorted(found) for memory, found in points.items()}
    readers: dict[tuple[Memory, int], dict[int, int]] = defaultdict(dict)
    writers: dict[tuple[Memory, int], dict[int, int]] = defaultdict(dict)
    found: set[tuple[int, int]] = set()
    for place, stretches in enumerate(touched):
        pipe = issued[place].instruction.pipe
        cells = [
            ((memory, cell), writes)
            for (memory, begin, end), writes in stretches
            for cell in range(bisect_left(cuts[memory], begin), bisect_left(cuts[memory], end))
        ]
        for cell, writes in cells:
            for users in (writers, readers) if writes else (writers,):
                for other, before in users[cell].items():
                    if other != pipe and clocks[place].done[other] < clocks[before].number:
                        found.add((issued[before].index, issued[place].index))
        for cell, writes in cells:
            (writers if writes else readers)[cell][pipe] = place
    verdict.races += sorted(found)


# --------------------------------------------------------------------------- what is touched


def touches(issued: Issued, views: tuple[View, ...]) -> Iterator[tuple[Stretch, bool]]:
    """Yield the stretches of memory that an instruction touches, and whether it writes them."""
    each, registers = issued.instruction, issued.registers
    yield from _local_stretches(each, views, registers.get("xo", 0))
    if each.row.has("view"):
        view = views[each["view"]]
        for begin, end in _window(each, registers, view):
            yield (("gm", view.param), begin, end), each.mnemonic == "l0c_to_gm"


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
    if each.mnemonic == "gm_to_l1_boxes":
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
        case "l1_to_l0a":
            cells = [
                (c, r, byte)
                for c in range(f["col_boxes"])
                for r in range(f["row_boxes"])
                for byte in range(0, 512, GRANULE)
            ]
            read = frozenset(f["src"] + (c * f["src_pitch"] + r) * 512 + b for c, r, b in cells)
            written = frozenset(f["dst"] + (c * f["dst_pitch"] + r) * 512 + b for c, r, b in cells)
            return ("l1", read, False), ("l0a", written, True)
        case "l1_to_l0b":
            wide = 256 // f["bits"]
            read = frozenset(
                f["src"] + (n // wide * (f["src_k"] // 16) + k // 16) * 512 + k % 16 * 32
                for k in range(f["k"])
                for n in range(0, f["n"], wide)
            )
            boxes = -(-f["k"] // wide) * -(-f["n"] // 16)
            written = frozenset(range(f["dst"], f["dst"] + boxes * 512, GRANULE))
            return ("l1", read, False), ("l0b", written, True)
        case "l1_to_scale_a" | "l1_to_scale_b":
            boxes = [(i, j) for i in range(f["row_boxes"]) for j in range(f["col_boxes"])]
            read = frozenset(f["src"] + (i * f["src_pitch"] + j) * 32 for i, j in boxes)
            written = frozenset(f["dst"] + (i * f["col_boxes"] + j) * 32 for i, j in boxes)
            return ("l1", read, False), (mnemonic[-7:], written, True)
        case "l1_to_bias":
            read = frozenset(range(f["src"], f["src"] + f["bytes"]))
            return ("l1", read, False), (
                "bias",
                frozenset(range(f["dst"], f["dst"] + f["bytes"])),
                True,
            )
        case "mad_mx":
            return tuple(_mad_bytes(f))
        case "l0c_to_gm":
            addresses = frozenset(
                f["l0c"] + (c // 16 * (f["src_rows"] // 16) + r // 16) * 1024 + r % 16 * 64 + half
                for r in range(f["rows"])
                for c in range(0, f["cols"], 16)
                for half in (0, 32)
            )
            return (("l0c", addresses, False),)
        case _:
            return ()


def _mad_bytes(f: dict[str, int]) -> Iterator[tuple[str, frozenset[int], bool]]:
    wide = 32 if f["a_type"] in (0, 1) else 64
    rows, columns = -(-f["m"] // 16), -(-f["n"] // 16)
    depth, boxes = -(-f["k"] // wide), -(-f["k"] // 64)

    def span(begin: int, size: int) -> frozenset[int]:
        return frozenset(range(begin, begin + size, GRANULE))

    yield "l0a", span(f["a"], rows * depth * 512), False
    yield "l0b", span(f["b"], columns * depth * 512), False
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
    queues: dict[int, deque[Instruction]] = {pipe: deque() for pipe in PIPES}
    up: dict[Flag, int] = defaultdict(int)

    def work() -> None:
        moved = True
        while moved:
            moved = False
            for queue in queues.values():
                while queue:
                    head = queue[0]
                    if head.mnemonic == "wait_flag":
                        if not up[_flag(head)]:
                            break
                        up[_flag(head)] -= 1
                    elif head.mnemonic == "set_flag":
                        up[_flag(head)] += 1
                    queue.popleft()
                    moved = True

    for each in issued:
        instruction = each.instruction
        work()
        if instruction.mnemonic == "pipe_barrier" and instruction["pipe"] == Pipe.ALL:
            if any(queues.values()):
                return False
            continue
        queue = queues[instruction.pipe]
        if len(queue) >= depth:
            return False
        queue.append(instruction)
    work()
    return not any(queues.values())
