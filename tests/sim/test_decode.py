"""The tables that the machine reads agree with the instruction table, row by row."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.table import ROWS
from scalebox.codegen.isa.vocabulary import Convert, ElementType, FieldKind, MadInit, Pipe, Space
from scalebox.ir.errors import ExecutableError
from scalebox.sim import decode
from scalebox.sim.datapaths import drain, kernels, l0
from scalebox.sim.datapaths.actions import ACTIONS, IMPLIED, WRITES
from scalebox.sim.decode import IDENTITIES, ROLES, ScalarOp


def test_every_instruction_has_exactly_one_meaning() -> None:
    for row in ROWS:
        name = row.mnemonic
        scalar = name.removesuffix("i").upper() in ScalarOp.__members__ or name == "movi"
        told = (name in ACTIONS, name in ROLES, name in IDENTITIES, scalar)
        assert sum(told) == 1, name
    assert {row.mnemonic for row in ROWS} >= {*ACTIONS, *ROLES}


def test_an_action_takes_every_field_that_is_no_register() -> None:
    for row in ROWS:
        if row.mnemonic in ACTIONS:
            _, fields = ACTIONS[row.mnemonic]
            wanted = {f.name for f in row.fields if f.kind is not FieldKind.REG}
            implied = IMPLIED.get(row.mnemonic, {}).keys() - wanted
            assert wanted == set(fields) - {WRITES, *implied}, row.mnemonic
            registers = [f.name for f in row.fields if f.kind is FieldKind.REG]
            assert len(registers) in (0, 2) or registers in (["xo"], ["xs"], ["xz"]), row.mnemonic


def test_numbers_in_kernels_are_the_vocabulary() -> None:
    assert [*kernels.SPACE] == [int(space) for space in Space]
    assert kernels.SPACE._fields == tuple(space.name.lower() for space in Space)
    assert tuple(int(each) for each in Convert) == (drain.FP32, drain.BF16, drain.FP16)
    assert (int(MadInit.ACC), int(MadInit.BIAS)) == (l0.ACC_INIT, l0.BIAS_INIT)
    assert all((each >= l0.NARROW) == (each.bits == 4) for each in ElementType)
    assert len(Pipe) - 1 == decode.PIPES


def test_flag_slots_are_distinct_and_can_be_read_back(bench: Any) -> None:
    pipes = [pipe for pipe in Pipe if pipe is not Pipe.ALL]
    names = [
        (src, dst, number)
        for src in pipes
        for dst in pipes
        if src is not dst
        for number in range(8)
    ]
    text = "\n".join(
        f"set_flag src={src.name.lower()}, dst={dst.name.lower()}, id={number}"
        for src, dst, number in names
    )
    decoded = decode.decode(bench.kernel(text))
    slots = decoded.flags[: len(names)].tolist()
    assert len(set(slots)) == len(slots)
    assert [decode.flag_of(slot) for slot in slots] == names


@pytest.mark.parametrize(
    ("text", "view", "clause"),
    [
        (
            "gm_to_l1_nz v0, x0, x0, l1[0], rows=1, cols=2, l1_rows=16",
            View(0, Layout.ND, 64, (4, 4), (4, 1)),
            "of 4-, 8-, 16- or 32-bit elements, not of 64-bit ones",
        ),
        (
            "gm_to_l1_nz v0, x0, x0, l1[0], rows=1, cols=2, l1_rows=16",
            View(0, Layout.DN, 4, (5, 4), (1, 5)),
            "whose columns lie an even number of 4-bit elements apart, not 5",
        ),
        (
            "gm_to_l1_nz v0, x0, x0, l1[0], rows=1, cols=2, l1_rows=16",
            View(0, Layout.ND, 4, (4, 4), (8, 2)),
            "with stride 1 along the last axis for 4-bit elements, not 2",
        ),
        (
            "gm_to_l1_boxes v0, x0, x0, l1[0], ni=1, nj=1, l1_nj=1",
            View(0, Layout.ND, 8, (1, 1, 1, 16, 2), (32, 32, 32, 1, 16)),
            "of 8-bit elements whose last two dimensions are 16 x 2 with strides 2 and 1, not of "
            "8-bit elements, dimensions [1, 1, 1, 16, 2] and strides [32, 32, 32, 1, 16]",
        ),
        (
            "gm_to_l1_nz_boxes v0, x0, x0, l1[0], col_boxes=1, row_boxes=1, dst_pitch=1",
            View(0, Layout.NZ, 16, (1, 1, 1, 16, 32), (512, 512, 512, 32, 1)),
            "of elements of 8, 16 or 32 bits whose last two dimensions are 16 x c0 with strides c0 "
            "and 1, c0 of 32 bytes, not of 16-bit elements, dimensions [1, 1, 1, 16, 32] and strides "
            "[512, 512, 512, 32, 1]",
        ),
        (
            "gm_to_l1_nz_boxes v0, x0, x0, l1[0], col_boxes=2, row_boxes=1, dst_pitch=1",
            View(0, Layout.NZ, 8, (1, 2, 4097, 16, 32), (2**22, 4098 * 512, 512, 32, 1)),
            "of which a load of several columns of boxes skips at most 65535 rows from one to the next, "
            "not 65552",
        ),
        (
            "l0c_to_gm v0, x0, x0, l0c[0], rows=1, cols=1, src_rows=16, convert=bf16",
            View(0, Layout.ND, 32, (4, 4), (4, 1)),
            "of 16-bit elements, not of 32-bit ones",
        ),
    ],
)
def test_a_view_that_does_not_suit_is_refused(
    bench: Any, text: str, view: View, clause: str
) -> None:
    kernel = bench.kernel(text, [bench.tensor("t", "FP32", (4096, 1024), "inout")], [view])
    with pytest.raises(ExecutableError) as caught:
        decode.decode(kernel)
    mnemonic = text.split()[0]
    assert caught.value.message == (
        f"Instruction 0 ({mnemonic}) of kernel 'k' must use a view {clause}."
    )


def test_a_gap_of_65535_rows_and_any_gap_behind_a_single_column_of_boxes_are_fine(
    bench: Any,
) -> None:
    text = "gm_to_l1_nz_boxes v0, x0, x0, l1[0], col_boxes={}, row_boxes={}, dst_pitch=2"
    wide = View(0, Layout.NZ, 8, (1, 2, 4097, 16, 32), (2**22, 4097 * 512, 512, 32, 1))
    for columns, rows in ((2, 2), (1, 1)):
        kernel = bench.kernel(
            text.format(columns, rows), [bench.tensor("t", "INT8", (8192, 1024))], [wide]
        )
        assert len(decode.decode(kernel)) == 2


def test_transfers_tell_windows_as_rows_of_bytes(bench: Any) -> None:
    kernel = bench.kernel(
        """
        gm_to_l1_nz v0, x1, x2, l1[0], rows=3, cols=10, l1_rows=16
        gm_to_l1_nz v1, x1, x2, l1[0], rows=3, cols=10, l1_rows=16
        gm_to_l1_row v0, x1, x2, l1[0], cols=10
        gm_to_l1_boxes v2, x1, x2, l1[0], ni=2, nj=3, l1_nj=3
        gm_to_l1_nz_boxes v3, x1, x2, l1[0], col_boxes=2, row_boxes=3, dst_pitch=4
        """,
        [
            bench.tensor("a", "E2M1", (64, 64)),
            bench.tensor("s", "E8M0", (64, 8)),
            bench.tensor("z", "BF16", (64, 32)),
        ],
        [
            View(0, Layout.ND, 4, (32, 64), (64, 1), 128),
            View(0, Layout.DN, 8, (32, 64), (1, 32)),
            bench.boxes(1, 64, 8),
            View(2, Layout.NZ, 16, (1, 2, 4, 16, 16), (2048, 1024, 256, 16, 1)),
        ],
    )
    decoded = decode.decode(kernel)
    table = decode.transfers(decoded)
    views = decode.bind_views(kernel, [4096, 8192, 16384])
    table[:, 1] = decode.transfer_starts(table, decoded, views)
    assert table.tolist() == [
        [1, 4096 * 8 + 512, 256, 4, 3, 32, 5],
        [1, 4096 * 8, 8, 256, 10, 32, 3],
        [1, 4096 * 8 + 512, 256, 4, 1, 32, 5],
        [1, 8192 * 8, 1024, 256, 2, 128, 96],
        [1, 16384 * 8, 16384, 4096, 2, 2048, 1536],
        [0] * 7,
    ]
    assert table.dtype == np.int64
