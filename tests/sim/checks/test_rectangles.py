"""The bytes that an instruction is said to touch, against the manual's formula for every element."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalebox.codegen.access import accesses
from scalebox.codegen.executable import Direction, Kernel, Param, ParamKind
from scalebox.codegen.isa.program import Instruction, make
from scalebox.codegen.isa.row import Row
from scalebox.codegen.isa.table import BY_MNEMONIC, ROWS
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind, FieldKind, Space
from scalebox.sim.checks.cells import cells_of
from scalebox.sim.checks.overlaps import STRETCH_WORDS, conflicts, first_common
from scalebox.sim.checks.rectangles import BYTE, Rectangle, rectangles

from ...codegen.sync.flag_checker import GRANULE, local_bytes
from ...codegen.test_access import EXAMPLES, INSTRUCTIONS, VIEWS
from ...codegen.test_access_ub import STILL
from ...codegen.test_access_ub import drawn as vector_fields

DTYPES = {4: "E2M1", 8: "E4M3", 16: "FP16", 32: "FP32"}
PARAMS = tuple(
    Param(
        f"t{number}", ParamKind.TENSOR, DTYPES[view.bits], view.bits, Direction.INOUT, (4096, 4096)
    )
    for number, view in enumerate(VIEWS)
)


def kernel_of(each: Instruction) -> Kernel:
    return Kernel.assemble(
        "k",
        params=PARAMS,
        views=VIEWS,
        program=[each, make("halt")],
        core=each.row.core or CoreKind.AIC,
    )


def instruction(mnemonic: str, fields: dict[str, int]) -> Instruction:
    registers = [f.name for f in BY_MNEMONIC[mnemonic].fields if f.kind is FieldKind.REG]
    return make(mnemonic, **fields, **dict.fromkeys(registers, 0))


def bytes_of(part: Rectangle) -> set[int]:
    first = part.start // BYTE
    return {
        first + run * part.pitch + byte for run in range(part.runs) for byte in range(part.size)
    }


def granules(parts: list[Rectangle], *, writes: bool) -> set[tuple[str, int]]:
    return {
        (Space(part.memory).name.lower(), byte // GRANULE)
        for part in parts
        if part.writes is writes and part.memory != Space.GM
        for byte in bytes_of(part)
    }


@settings(max_examples=200, deadline=None)
@given(drawn=INSTRUCTIONS)
def test_the_bytes_are_those_of_the_formula(drawn: tuple[str, dict[str, int]]) -> None:
    each = instruction(*drawn)
    parts = list(rectangles(kernel_of(each), 0, ClusterCore.AIC))
    for writes in (False, True):
        expected = {
            (space, address // GRANULE)
            for space, addresses, is_write in local_bytes(each, VIEWS)
            if is_write is writes
            for address in addresses
        }
        found = granules(parts, writes=writes)
        if each.mnemonic.startswith("mad"):
            # The formula there counts whole boxes; a product uses the rows that it is told.
            assert found <= expected
            assert {space for space, _ in found} == {space for space, _ in expected}
        else:
            assert found == expected


def test_a_product_uses_the_rows_it_is_told_and_their_scales() -> None:
    types = {"a_type": 0, "b_type": 0, "init": 0, "bias": 0}
    each = make("mad_mx", c=1024, a=512, b=0, m=17, k=96, n=16, **types)
    parts = {part.operand: part for part in rectangles(kernel_of(each), 0, ClusterCore.AIC)}
    # Three columns of boxes of two boxes; of the second box one line of 32 bytes.
    a = parts["a"]
    assert (a.start // BYTE, a.runs, a.pitch, a.size) == (512, 3, 1024, 17 * 32)
    scales = [
        part
        for part in rectangles(kernel_of(each), 0, ClusterCore.AIC)
        if part.operand == "a_scale"
    ]
    # Three groups are two boxes a row of boxes: 64 bytes, then row 16 of two boxes, the last one half.
    used = {byte for part in scales for byte in bytes_of(part)}
    assert used == {*range(32, 96), 96, 97, 128}


# The others around UB are held to the tiles that the machine works on.
MOVERS = [
    row
    for row in ROWS
    if row.mnemonic.removesuffix("_at") in EXAMPLES
    or ({*row.reads, *row.writes} and Space.UB not in (*row.reads, *row.writes))
]


@pytest.mark.parametrize("row", MOVERS, ids=lambda row: row.mnemonic)
def test_every_instruction_that_moves_data_has_rectangles(row: Row) -> None:
    mnemonic = row.mnemonic
    examples: dict[str, Any] = EXAMPLES
    example = examples[mnemonic.removesuffix("_at")]
    names = [f.name for f in BY_MNEMONIC[mnemonic].fields]
    each = make(mnemonic, **{name: example.get(name, 0) for name in names})
    found = rectangles(kernel_of(each), 0, ClusterCore.AIC)
    assert {Space(part.memory) for part in found if part.writes} == set(
        BY_MNEMONIC[mnemonic].writes
    )


@pytest.mark.parametrize("row", STILL, ids=lambda row: row.mnemonic)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_a_vector_instruction_touches_no_more_than_its_tiles(row: Row, data: st.DataObject) -> None:
    fields = vector_fields(data, row)
    each = instruction(row.mnemonic, fields)
    parts = rectangles(kernel_of(each), 0, ClusterCore.AIV0)
    for writes, regions in zip((False, True), accesses(row.mnemonic, fields, ()), strict=True):
        allowed = {byte for region in regions for byte in range(region.begin, region.end)}
        found = [bytes_of(part) for part in parts if part.writes is writes]
        assert len(found) >= (1 if regions else 0)
        assert {byte for each_part in found for byte in each_part} <= allowed


@given(
    st.sampled_from([(64, 1), (1, 64), (3, 128)]),
    st.integers(1, 9), st.integers(1, 9), st.integers(0, 5), st.integers(0, 5),
)  # fmt: skip
def test_a_window_of_global_memory_is_its_elements(
    strides: tuple[int, int], rows: int, cols: int, r0: int, r1: int
) -> None:
    view = VIEWS[0].__class__(0, VIEWS[0].layout, 16, (16, 16), strides, 7)
    each = make("gm_to_ub", view=0, xr=0, xc=0, ub=0, rows=rows, cols=cols, pitch=1)
    param = Param("t", ParamKind.TENSOR, "FP16", 16, Direction.IN, (4096,))
    core = each.row.core
    assert core is not None
    kernel = Kernel.assemble(
        "k", params=[param], views=[view], program=[each, make("halt")], core=core
    )
    parts = [p for p in rectangles(kernel, 0, ClusterCore.AIV0) if p.memory == Space.GM]
    steps = parts[0].steps
    ahead = (r0 * steps[0] + r1 * steps[1]) // BYTE
    found = {byte + ahead for part in parts for byte in bytes_of(part)}
    elements = {
        7 + (r0 + r) * strides[0] + (r1 + c) * strides[1] for r in range(rows) for c in range(cols)
    }
    assert found == {2 * element + half for element in elements for half in (0, 1)}


# --------------------------------------------------------------------------- what overlaps

STRETCH = st.tuples(
    st.integers(1, 2), st.integers(0, 1), st.integers(0, 60), st.integers(1, 5), st.integers(0, 9),
    st.integers(1, 9),
)  # fmt: skip


def placed(rows: list[tuple[int, ...]]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    made = [(m, w, s, n, max(p, z) if n > 1 else 0, z) for m, w, s, n, p, z in rows]
    lines = [(*each, number, number % 3) for number, each in enumerate(made)]
    return np.array(lines, np.int64).reshape(-1, STRETCH_WORDS)


def covered(line: np.ndarray[tuple[int], np.dtype[np.int64]]) -> set[tuple[int, int]]:
    memory, _, start, count, pitch, size = line[:6].tolist()
    return {(memory, start + n * pitch + byte) for n in range(count) for byte in range(size)}


@given(st.lists(STRETCH, min_size=1, max_size=12))
def test_conflicts_are_the_pairs_that_share_a_byte(rows: list[tuple[int, ...]]) -> None:
    places = placed(rows)
    found = {tuple(sorted(pair)) for pair in conflicts(places).tolist()}
    expected = {
        (one, other)
        for other in range(len(places))
        for one in range(other)
        if one % 3 != other % 3
        and (places[one, 1] or places[other, 1])
        and covered(places[one]) & covered(places[other])
    }
    assert found == expected
    for one, other in found:
        byte = int(first_common(places[one], places[other]))
        assert (int(places[one, 0]), byte) in covered(places[one]) & covered(places[other])


@given(st.lists(STRETCH, min_size=1, max_size=12))
def test_bytes_are_one_cell_if_the_same_stretches_cover_them(rows: list[tuple[int, ...]]) -> None:
    places = placed(rows)
    memory, _, start, count, pitch, size = (places[:, column] for column in range(6))
    cells = cells_of(memory, start, count, pitch, size)
    users: dict[int, set[int]] = {}
    for number in range(len(places)):
        for cell in cells.of[cells.begin[number] : cells.begin[number + 1]].tolist():
            users.setdefault(cell, set()).add(number)
    wholes = [covered(line) for line in places]
    of_bytes: dict[frozenset[int], set[tuple[int, int]]] = {}
    for byte in {byte for whole in wholes for byte in whole}:
        who = frozenset(number for number, whole in enumerate(wholes) if byte in whole)
        of_bytes.setdefault(who, set()).add(byte)
    assert {frozenset(each) for each in users.values()} == set(of_bytes)
    assert len(users) == len(of_bytes)
    for cell, who in users.items():
        assert cells.size[cell] == len(of_bytes[frozenset(who)])
    for number, line in enumerate(places):
        first = (int(line[0]), int(line[2]))
        head = users[int(cells.head[number])]
        assert head == {n for n, whole in enumerate(wholes) if first in whole}
