"""AutoTileMatmulL0: what is cut, how, what is left alone, and that no bit changes."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import ForKind, ForStmt, Program
from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.expr import Call
from scalebox.ir.passes import (
    PassContext,
    VerificationInstrument,
    auto_tile_matmul_l0,
    default_pipeline,
    l0_loops,
    l0_pieces,
)
from scalebox.ir.target import Target, load_target
from scalebox.ir.types import TileType, constant_dims
from scalebox.ir.verification.walk import statements

from .corpus import assert_same_bits, entry_and_inputs, interpret
from .kernels import after, before, calls_of, the
from .memories import Walk
from .tiled_kernels import SMALL_MACHINES, Kernel, random_matmuls

A5 = load_target("a5")
Pairs = list[tuple[tuple[int, ...], tuple[int, ...]]]


def small(**settings_: int) -> Target:
    return A5.with_settings(settings_)


def cut(kernel: Kernel, target: Target = A5, *, pieces: int = 1) -> Program:
    """The kernel after the pass, its operands loaded in at most so many pieces."""
    pieces_at_most = mock.patch.object(l0_pieces, "PIECES", pieces)
    with pieces_at_most, PassContext([VerificationInstrument()], target):
        return after(kernel.program(), auto_tile_matmul_l0)


def uncut(kernel: Kernel, target: Target = A5) -> bool:
    with PassContext([], target):
        made = before(kernel.program(), auto_tile_matmul_l0)
        return auto_tile_matmul_l0()(made) is made


def windows(made: Program, source: str) -> Pairs:
    """Place and shape of every window of a tile, whose places are constants."""
    found: Pairs = []
    for var, call in calls_of(made, "tile.extract"):
        if getattr(call.args[0], "name_hint", "") == source:
            assert isinstance(var.type, TileType)
            place, shape = constant_dims(call.args[1:3]), constant_dims(var.type.shape)
            assert place is not None
            assert shape is not None
            found.append((place, shape))
    return found


def same_on_the_machine(kernel: Kernel, target: Target, scalars: Mapping[str, int]) -> bool:
    """Run a kernel in the interpreter before and after the pass, and on the machine; whether it is cut."""
    made = kernel.program()
    entry, inputs = entry_and_inputs(made, scalars)
    golden = interpret(made, entry, inputs)
    with PassContext([VerificationInstrument()], target):
        ahead = before(made, auto_tile_matmul_l0)
        tiled = auto_tile_matmul_l0()(ahead)
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    executable = scalebox.compile(made, machine=target)
    found = scalebox.run(executable, inputs, machine=target, timing=False).outputs
    assert_same_bits(found, golden)
    return tiled is not ahead


# --------------------------------------------------------------------------- what is left alone


def test_what_fits_and_is_not_faster_in_steps_stays_the_same_object() -> None:
    assert uncut(Kernel(16, 64, 32))
    assert uncut(Kernel(16, 64, 32, bias=True))


def test_what_the_kernel_moved_itself_is_left_alone_and_refused_where_it_does_not_fit() -> None:
    text = Kernel(256, 1024, 32).text()
    text = text.replace("x = pl.matmul_mx(l0, p0, r0, q0)", (
        "x = pl.matmul_mx(pl.move(l0, pl.Mem.Left), pl.move(p0, pl.Mem.LeftScale), "
        "pl.move(r0, pl.Mem.Right), pl.move(q0, pl.Mem.RightScale))"
    ))  # fmt: skip
    made = pl.parse(text)
    assert isinstance(made, Program)
    ahead = before(made, auto_tile_matmul_l0)
    assert auto_tile_matmul_l0()(ahead) is ahead
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(made)
    assert caught.value.message.startswith(
        "Left buffer usage must be at most the 65536 bytes of L0A, not 262144 bytes: "
    )


def test_copies_of_a_pipelined_body_overlap_already() -> None:
    """64 x 512 is cut where it stands alone, not where the next trip's operands are on their way."""
    alone = Kernel(64, 512, 64)
    assert not uncut(alone)
    lines = alone.text().splitlines()
    first = next(n for n, line in enumerate(lines) if "l0 = " in line)
    last = next(n for n, line in enumerate(lines) if "pl.store" in line)
    body = [f"    {line}" for line in lines[first : last + 1]]
    head = "        for trip in pl.pipeline(0, 4, 1, stage=2):"
    made = pl.parse("\n".join([*lines[:first], head, *body, *lines[last + 1 :]]))
    assert isinstance(made, Program)
    ahead = before(made, auto_tile_matmul_l0)
    assert auto_tile_matmul_l0()(ahead) is ahead


def test_a_second_run_finds_nothing_left() -> None:
    done = cut(Kernel(256, 512, 256))
    assert auto_tile_matmul_l0()(done) is done


# --------------------------------------------------------------------------- how it is cut


def test_windows_cover_each_operand_once_for_each_tile_and_k_ascends() -> None:
    made = cut(Kernel(256, 512, 256))
    left = windows(made, "l0")
    rows = sorted({(place[0], shape[0]) for place, shape in left})
    assert [start for start, _ in rows] == [sum(s for _, s in rows[:i]) for i in range(len(rows))]
    assert sum(size for _, size in rows) == 256
    for start, _ in rows:
        steps = [(p[1], s[1]) for p, s in left if p[0] == start]
        assert steps == sorted(steps)
        assert all(k % 64 == 0 and size % 64 == 0 for k, size in steps)
        assert sum(size for _, size in steps) == 512
    scales = windows(made, "p0")
    assert scales == [((r, k // 32), (m, size // 32)) for (r, k), (m, size) in left]


def test_what_is_not_valid_is_not_moved() -> None:
    made = cut(Kernel(256, 1024, 256, valid=(200, 330, 256)))
    depths = {place[1] + shape[1] for place, shape in windows(made, "l0")}
    assert max(depths) == 384
    assert max(place[0] + shape[0] for place, shape in windows(made, "l0")) == 208


def test_operands_come_in_pieces_the_first_ones_first() -> None:
    """A valid K of 4000 in four pieces of 1024, the last with 928 valid elements."""
    made = cut(Kernel(32, 4096, 32, valid=(32, 4000, 32)), pieces=4)
    loads = calls_of(made, "tile.load")
    assert [var.name_hint for var, _ in loads] == ["l0", "p0", "r0", "q0"] * 4
    types = [var.type for var, _ in loads]
    lefts, left_scales, rights, right_scales = (types[n::4] for n in range(4))
    sizes = [[constant_dims(t.valid_shape) for t in each if isinstance(t, TileType)]
             for each in (lefts, left_scales, rights, right_scales)]  # fmt: skip
    depths = [1024, 1024, 1024, 928]
    assert sizes[0] == [(32, k) for k in depths]
    assert sizes[1] == [(32, k // 32) for k in depths]
    assert sizes[2] == [(k, 32) for k in depths]
    assert sizes[3] == [(k // 32, 32) for k in depths]
    places = [constant_dims(call.args[1].elements) for _, call in loads[::4]]  # type: ignore[attr-defined]
    assert places == [(0, 0), (0, 1024), (0, 2048), (0, 3072)]
    boxes = [constant_dims(call.args[1].elements) for _, call in loads[1::4]]  # type: ignore[attr-defined]
    assert boxes == [(0, 0, group, 0, 0) for group in (0, 16, 32, 48)]


def test_an_operand_of_many_rows_comes_whole_for_each_piece_of_a_row_takes_time() -> None:
    """A part of 256 rows takes 256 * 1.7 = 435 cycles beside its bytes; as a whole they take 900."""
    made = cut(Kernel(256, 512, 256, valid=(256, 450, 256)), pieces=4)
    names = [var.name_hint for var, _ in calls_of(made, "tile.load")]
    assert names == ["l0", "p0", *["r0", "q0"] * 4]


def test_biases_come_first_since_the_first_step_reads_them() -> None:
    made = cut(Kernel(32, 4096, 32, bias=True), pieces=4)
    names = [var.name_hint for var, _ in calls_of(made, "tile.load")]
    assert names == ["start", *["l0", "p0", "r0", "q0"] * 4]


def test_all_products_of_a_sum_come_in_pieces() -> None:
    made = cut(Kernel(64, 512, 64, products=2), pieces=2)
    names = [var.name_hint for var, _ in calls_of(made, "tile.load")]
    assert names == [f"{side}{n}" for n in range(2) for side in ("l", "p", "r", "q", "r", "q")]


def test_a_row_of_scales_comes_in_a_piece_for_each_step() -> None:
    """Steps of K of 256 have 8 scales each, which begin a tile in L1, not a multiple of 32 bytes in one."""
    made = cut(Kernel(1, 2048, 128), pieces=4)
    loads = [(var.name_hint, var.type) for var, _ in calls_of(made, "tile.load")]
    sizes = {name: [constant_dims(type_.shape) for each, type_ in loads if each == name
                    and isinstance(type_, TileType)] for name in ("p0", "r0")}  # fmt: skip
    assert sizes == {"p0": [(1, 8)] * 8, "r0": [(512, 128)] * 4}
    assert windows(made, "p0") == [((0, 0), (1, 8))] * 8
    order = [name for name, _ in loads]
    assert [order[: n + 1].count("p0") for n, name in enumerate(order) if name == "r0"] == [
        1,
        3,
        5,
        7,
    ]


def test_an_operand_that_others_read_too_is_loaded_as_a_whole() -> None:
    text = Kernel(256, 512, 256).text()
    second = "        c = pl.store(pl.matmul_mx(l0, p0, r0, q0), [0, 0], c)\n        return c\n"
    made = pl.parse(text.replace("        return c\n", second))
    assert isinstance(made, Program)
    assert len(calls_of(after(made, auto_tile_matmul_l0), "tile.load")) == 4


def test_a_load_does_not_pass_by_a_store() -> None:
    """The right operand is loaded behind a store, so its pieces must not be mixed with earlier loads."""
    text = Kernel(256, 512, 256).text()
    store = "        c = pl.store(pl.matmul_mx(l1, p1, r1, q1), [0, 0], c)\n"
    small_ = "".join(f"        {line}\n" for line in (
        "l1 = pl.load(a, [0, 0], [16, 64])", "p1 = pl.load(sa, [0, 0], [16, 2])",
        "r1 = pl.load(b, [0, 0], [64, 32])", "q1 = pl.load(sb, [0, 0], [2, 32])",
    ))  # fmt: skip
    made = pl.parse(text.replace("        r0 = ", f"{small_}{store}        r0 = "))
    assert isinstance(made, Program)
    assert len(calls_of(after(made, auto_tile_matmul_l0), "tile.load")) == 8


def test_products_that_only_the_next_one_uses_are_cut_alike() -> None:
    made = cut(Kernel(512, 128, 256, products=3))
    stores = calls_of(made, "tile.store")
    sums = [call.name for _, call in calls_of(made, "tile.matmul_mx_acc")]
    assert len(stores) > 1
    assert len(calls_of(made, "tile.matmul_mx")) == len(stores)
    assert len(sums) % len(stores) == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((256, 256), (64, 64)),
        ((64, 64), (256, 256)),
        ((256, 256), (256, 130)),
        ((256, 65), (256, 256)),
    ],
)
def test_products_of_other_extents_are_added_up_as_they_are(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    """K of a product, and how much of it is valid."""
    lines = [
        line
        for name, (k, valid) in (("0", first), ("1", second))
        for line in (
            f"l{name} = pl.load(a, [0, 0], [64, {k}], [64, {valid}])",
            f"p{name} = pl.load(sa, [0, 0], [64, {k // 32}], [64, {-(-valid // 32)}])",
            f"r{name} = pl.load(b, [0, 0], [{k}, 64], [{valid}, 64])",
            f"q{name} = pl.load(sb, [0, 0], [{k // 32}, 64], [{-(-valid // 32)}, 64])",
        )
    ]
    lines += ["x = pl.matmul_mx(l0, p0, r0, q0)", "x = pl.matmul_mx_acc(x, l1, p1, r1, q1)"]
    text = Kernel(64, 256, 64).text()
    head, store = text[: text.index("        l0 = ")], text[text.index("        c = pl.store") :]
    made = pl.parse(head + "".join(f"        {line}\n" for line in lines) + store)
    assert isinstance(made, Program)
    target = small(l0a_bytes=4096, l0b_bytes=4096)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    golden = interpret(made, entry, inputs)
    with PassContext([VerificationInstrument()], target):
        tiled = after(made, auto_tile_matmul_l0)
    assert calls_of(tiled, "tile.extract")
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    executable = scalebox.compile(made, machine=target)
    found = scalebox.run(executable, inputs, machine=target, timing=False).outputs
    assert_same_bits(found, golden)


def test_products_are_joined_only_where_l1_holds_all_their_operands() -> None:
    lines = [
        (
            f"x = pl.matmul_mx{'_acc' if k else ''}({'x, ' if k else ''}"
            f"pl.load(a, [0, {k}], [128, 128]), pl.load(sa, [0, {k // 32}], [128, 4]), "
            f"pl.load(b, [{k}, 0], [128, 256]), pl.load(sb, [{k // 32}, 0], [4, 256]))"
        )
        for k in range(0, 384, 128)
    ]
    text = Kernel(128, 384, 256).text()
    head, store = text[: text.index("        l0 = ")], text[text.index("        c = pl.store") :]
    made = pl.parse(head + "".join(f"        {line}\n" for line in lines) + store)
    assert isinstance(made, Program)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    golden = interpret(made, entry, inputs)
    for bytes_, joined in ((4 * 2**20, True), (128 * 2**10, False)):
        target = small(l1_bytes=bytes_, l0b_bytes=16384)
        with PassContext([VerificationInstrument()], target):
            tiled = after(made, auto_tile_matmul_l0)
        values = [getattr(stmt, "value", None) for stmt in statements(the(tiled).body)]
        names = [value.op.name for value in values if isinstance(value, Call)]
        last_load = max(n for n, name in enumerate(names) if name == "tile.load")
        assert (names.index("tile.matmul_mx") > last_load) == joined
        executable = scalebox.compile(made, machine=target)
        found = scalebox.run(executable, inputs, machine=target, timing=False).outputs
        assert_same_bits(found, golden)


def test_a_result_that_is_used_twice_is_cut_along_k_only() -> None:
    made = cut(Kernel(128, 512, 128, twice=True))
    assert {place[0] for place, _ in windows(made, "l0")} == {0}
    assert len(windows(made, "l0")) > 1
    assert len(calls_of(made, "tile.store")) == 2


def test_more_products_than_are_written_one_by_one_are_looped_over() -> None:
    with mock.patch.object(l0_loops, "STRAIGHT", 1):
        made = cut(Kernel(64, 512, 64), small(l0a_bytes=4096, l0b_bytes=4096, l0c_bytes=4096))
    loops = [s for s in statements(the(made).body) if isinstance(s, ForStmt)]
    assert [loop.loop_var.name_hint for loop in loops].count("k") >= 1
    assert any(loop.kind is ForKind.Pipeline for loop in loops)


def test_a_sum_in_a_loop_is_cut_along_k_in_each_trip() -> None:
    """The accumulator that a loop carries stays whole."""
    made = pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[64, 2048], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 64], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[2048, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[64, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        x = pl.matmul_mx(
            pl.load(a, [0, 0], [64, 512]), pl.load(sa, [0, 0], [64, 16]),
            pl.load(b, [0, 0], [512, 64]), pl.load(sb, [0, 0], [16, 64]),
        )
        for k in pl.range(512, 2048, 512):
            x = pl.matmul_mx_acc(
                x,
                pl.load(a, [0, k], [64, 512]), pl.load(sa, [0, k // 32], [64, 16]),
                pl.load(b, [k, 0], [512, 64]), pl.load(sb, [k // 32, 0], [16, 64]),
            )
        c = pl.store(x, [0, 0], c)
        return c
""")
    assert isinstance(made, Program)
    entry, inputs = entry_and_inputs(made, {})
    golden = interpret(made, entry, inputs)
    tiled = after(made, auto_tile_matmul_l0)
    assert len(calls_of(tiled, "tile.matmul_mx_acc")) > 2
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    assert_same_bits(scalebox.run(made, inputs, timing=False).outputs, golden)


def test_room_is_left_for_an_accumulator_that_is_still_needed() -> None:
    """`x` waits for its store while `y` is computed: both must lie in L0C."""
    text = Kernel(64, 128, 64).text()
    lines = text.replace("        c = pl.store(x, [0, 0], c)\n", (
        "        y = pl.matmul_mx(l0, p0, r0, q0)\n"
        "        x = pl.matmul_mx_acc(x, l0, p0, r0, q0)\n"
        "        c = pl.store(y, [0, 0], c)\n"
        "        c = pl.store(x, [64, 0], c)\n"
        "        c = pl.store(x, [0, 0], c)\n"
    ))  # fmt: skip
    made = pl.parse(lines)
    assert isinstance(made, Program)
    target = small(l0c_bytes=64 * 64 * 4 + 4096)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    golden = interpret(made, entry, inputs)
    executable = scalebox.compile(made, machine=target)
    assert_same_bits(scalebox.run(executable, inputs, machine=target, timing=False).outputs, golden)


@pytest.mark.parametrize("straight", [1, 32])
@pytest.mark.parametrize(
    ("around", "store"),
    [
        ((), "pl.store(x, [0, 0], c)"),
        (("for j in pl.range(0, 2, 1):",), "c = pl.store(x, [j * 32, 0], c)"),
        (("for j in pl.pipeline(0, 3, 1, stage=2):",), "c = pl.store(x, [j * 16, 0], c)"),
        (("if at < 1:",), "c = pl.store(x, [at, 0], c)"),
    ],
    ids=["for its effect", "in a loop", "in a pipelined loop", "in a branch"],
)
def test_a_store_is_cut_wherever_it_stands(
    around: tuple[str, ...], store: str, straight: int
) -> None:
    lines = Kernel(96, 256, 128).text().splitlines()
    first = next(n for n, line in enumerate(lines) if "l0 = " in line)
    last = next(n for n, line in enumerate(lines) if "pl.store" in line)
    body = [*lines[first:last], f"        {store}"]
    inner = [f"{'    ' * len(around)}{line}" for line in body]
    heads = [f"        {line}" for line in around]
    made = pl.parse("\n".join([*lines[:first], *heads, *inner, *lines[last + 1 :]]))
    assert isinstance(made, Program)
    target = small(l0a_bytes=4096, l0b_bytes=8192, l0c_bytes=8192)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    golden = interpret(made, entry, inputs)
    with mock.patch.object(l0_loops, "STRAIGHT", straight):
        with PassContext([], target):
            tiled = after(made, auto_tile_matmul_l0)
        executable = scalebox.compile(made, machine=target)
    assert calls_of(tiled, "tile.extract")
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    assert_same_bits(scalebox.run(executable, inputs, machine=target, timing=False).outputs, golden)


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("straight", [1, 32])
@pytest.mark.parametrize("valid", [(96, 256, 128), (83, 200, 70)])
@pytest.mark.parametrize("shape", ["3, 96, 128", "2, 2, 96, 128"])
def test_a_store_into_one_matrix_of_several_is_cut_too(
    shape: str, valid: tuple[int, int, int], straight: int
) -> None:
    leading = shape.count(",") - 1
    places, ones = ", ".join(["1"] * leading), "1, " * leading
    text = Kernel(96, 256, 128, valid).text().replace("[224, 128], pl.FP32", f"[{shape}], pl.FP32")
    old = "pl.store(x, [0, 0], c)"
    new = f"pl.store(x, [{places}, 0, 0], c, [{ones}{valid[0]}, {valid[2]}])"
    assert f"[{shape}]" in text
    assert old in text
    made = pl.parse(text.replace(old, new))
    assert isinstance(made, Program)
    target = small(l0a_bytes=4096, l0b_bytes=8192, l0c_bytes=8192)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    golden = interpret(made, entry, inputs)
    with mock.patch.object(l0_loops, "STRAIGHT", straight):
        with PassContext([], target):
            tiled = after(made, auto_tile_matmul_l0)
        executable = scalebox.compile(made, machine=target)
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    found = scalebox.run(executable, inputs, machine=target, timing=False).outputs
    assert_same_bits(found, golden)


def test_a_store_that_cuts_rows_into_matrices_stays_whole() -> None:
    text = Kernel(64, 512, 64).text().replace("[160, 64], pl.FP32", "[4, 16, 64], pl.FP32")
    made = pl.parse(
        text.replace("pl.store(x, [0, 0], c)", "pl.store(x, [0, 0, 0], c, [4, 16, 64])")
    )
    assert isinstance(made, Program)
    target = small(l0a_bytes=8192, l0b_bytes=8192)
    entry, inputs = entry_and_inputs(made, {"at": 0})
    with PassContext([], target):
        tiled = after(made, auto_tile_matmul_l0)
    assert len(calls_of(tiled, "tile.store")) == 1
    assert calls_of(tiled, "tile.extract")
    golden = interpret(made, entry, inputs)
    executable = scalebox.compile(made, machine=target)
    found = scalebox.run(executable, inputs, machine=target, timing=False).outputs
    assert_same_bits(found, golden)


@pytest.mark.parametrize(
    ("kernel", "settings_", "message", "hint"),
    [
        (
            Kernel(512, 64, 256, twice=True),
            {},
            "Acc buffer usage must be at most the 262144 bytes of L0C, not 524288 bytes: x cannot be "
            "cut below [512, 256]",
            "let a store be the only use of the result: M and N are then cut too",
        ),
        (
            Kernel(64, 64, 32, twice=True),
            {"l0a_bytes": 2048},
            "Left buffer usage must be at most the 2048 bytes of L0A, not 4096 bytes: l0 cannot be "
            "cut below [64, 64]",
            "let a store be the only use of the result: M and N are then cut too",
        ),
        (
            Kernel(64, 128, 64),
            {"l0b_bytes": 1024},
            "Right buffer usage must be at most the 1024 bytes of L0B, not 2048 bytes: r0 cannot be "
            "cut below [64, 32]",
            "use smaller tiles",
        ),
    ],
)
def test_what_fits_in_no_tiles_is_refused(
    kernel: Kernel, settings_: dict[str, int], message: str, hint: str
) -> None:
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(kernel.program(), machine=small(**settings_))
    assert caught.value.message == message
    assert caught.value.hint == hint
    assert caught.value.span is not None


# --------------------------------------------------------------------------- no bit changes


@settings(max_examples=15, deadline=None)
@given(random_matmuls(), SMALL_MACHINES, st.sampled_from((1, 4, 32)))
def test_interpreter_before_and_after_and_machine_agree(
    kernel: Kernel, sizes: dict[str, int], straight: int
) -> None:
    target = small(**sizes)
    refusal = ""
    # A row of scales comes in a piece for each step, and steps with pieces are written out.
    straight = 32 if kernel.scaled and kernel.m == 1 else straight
    with mock.patch.object(l0_loops, "STRAIGHT", straight):
        try:
            event("cut" if same_on_the_machine(kernel, target, {"at": 16}) else "left alone")
        except UserError as error:
            refusal = error.message
    # What is only stored always fits in some tiles.
    assert not refusal or (kernel.twice and "buffer usage must be" in refusal)


@settings(max_examples=15, deadline=None)
@given(random_matmuls(), SMALL_MACHINES, st.sampled_from((1, 32)))
def test_every_window_is_still_where_it_was_put(
    kernel: Kernel, sizes: dict[str, int], straight: int
) -> None:
    target = small(**sizes)
    made = kernel.program()
    with mock.patch.object(l0_loops, "STRAIGHT", straight), PassContext([], target):
        try:
            for each in default_pipeline():
                made = each(made)
        except UserError:
            return
    assert Walk(made, {"at": 0}, target).reads


@pytest.mark.parametrize(
    "kernel",
    [Kernel(256, 768, 256), Kernel(256, 512, 256), Kernel(256, 1024, 256, dtypes=("FP4", "FP4"))],
    ids=["fp8-768", "fp8-512", "fp4-1024"],
)
@pytest.mark.parametrize("tile", [(64, 128, 128), (128, 128, 128)], ids=str)
def test_a_large_product_is_no_slower_than_one_that_is_tiled_by_hand(
    kernel: Kernel, tile: tuple[int, int, int]
) -> None:
    """The tiles of examples/mx_tiled and larger ones, in one launch; K goes round in a pipelined loop."""
    results: dict[str, Any] = {}
    for name, text in (("ours", kernel.text()), ("theirs", tiled_by_hand(kernel, *tile))):
        made = pl.parse(text)
        assert isinstance(made, Program)
        entry, inputs = entry_and_inputs(made, {"at": 0})
        result = scalebox.run(made, inputs)
        assert_same_bits(result.outputs, interpret(made, entry, inputs))
        results[name] = result.cycles
    assert results["ours"] < results["theirs"]


def tiled_by_hand(kernel: Kernel, m: int, k: int, n: int) -> str:
    head, _ = kernel.text().split("        l0 = ")
    groups = k // 32
    loads = """
            l = pl.move(pl.load(a, [row, {k}], [{m}, {step}], target_memory=pl.Mem.Mat), pl.Mem.Left)
            p = pl.move(pl.load(sa, [row, {g}], [{m}, {groups}]), pl.Mem.LeftScale)
            r = pl.move(pl.load(b, [{k}, col], [{step}, {n}], target_memory=pl.Mem.Mat), pl.Mem.Right)
            q = pl.move(pl.load(sb, [{g}, col], [{groups}, {n}]), pl.Mem.RightScale)
"""
    sizes = {"m": m, "step": k, "n": n, "groups": groups}
    first = loads.format(k=0, g=0, **sizes)
    others = loads.format(k="k", g="k // 32", **sizes).replace("\n    ", "\n        ")
    return f"""{head}        for row in pl.range(0, {kernel.m}, {m}):
          for col in pl.range(0, {kernel.n}, {n}):{first}            x = pl.matmul_mx(l, p, r, q)
            for k in pl.pipeline({k}, {kernel.k}, {k}, stage=2):{others}                x = pl.matmul_mx_acc(x, l, p, r, q)
            c = pl.store(x, [row, col], c)
        return c
"""


# --------------------------------------------------------------------------- without scales


PLAIN_CUTS = [
    # 128 x 512 of 2 bytes are twice L0A, 512 x 64 are all of L0B; K goes in steps of whole boxes.
    (Kernel(128, 512, 64, dtypes=("FP16", "FP16"), scaled=False), 16),
    (Kernel(64, 512, 48, dtypes=("FP32", "FP32"), scaled=False), 16),
    (Kernel(128, 1024, 80, (100, 1000, 77), ("INT8", "INT8"), "INT32", scaled=False), 32),
    (Kernel(128, 1024, 80, bias=True, products=2, scaled=False), 32),
]


@pytest.mark.parametrize(("kernel", "unit"), PLAIN_CUTS)
def test_products_without_scales_are_cut_between_steps_of_the_cube(
    kernel: Kernel, unit: int
) -> None:
    made = cut(kernel)
    places = windows(made, "l0")
    assert len(places) > 1
    assert all(place[1] % unit == 0 for place, _ in places)
    assert not calls_of(made, "tile.matmul_mx")
    assert same_on_the_machine(kernel, A5, {"at": 0})


ANEW = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[128, 1024], pl.BF16], b: pl.Tensor[[1024, 64], pl.BF16],
          c: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
        x = pl.create_tile([128, 64], pl.FP32, target_memory=pl.Mem.Acc)
        for k in pl.range(0, 1024, 512):
            l0 = pl.load(a, [0, k], [128, 512])
            r0 = pl.load(b, [k, 0], [512, 64])
            x = pl.matmul_acc(x, l0, r0, init_cond=(k == 0))
        c = pl.store(x, [0, 0], c)
        return c
"""


def test_only_the_first_step_asks_whether_a_sum_begins_anew() -> None:
    made = pl.parse(ANEW)
    assert isinstance(made, Program)
    with PassContext([VerificationInstrument()], A5):
        tiled = after(made, auto_tile_matmul_l0)
    steps = [len(call.args) for _, call in calls_of(tiled, "tile.matmul_acc")]
    assert len(steps) > 1
    assert steps == [4, *(3 for _ in steps[1:])]
    entry, inputs = entry_and_inputs(made, {})
    golden = interpret(made, entry, inputs)
    assert_same_bits(interpret(tiled, entry, inputs), golden)
    found = scalebox.run(scalebox.compile(made), inputs, timing=False).outputs
    assert_same_bits(found, golden)
