"""Slots of `pl.MemRef(slots=)`: loops over them are pipelined, and what lies in one stays alone there."""

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import ForKind, ForStmt, Function, Program
from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.passes import PassContext, default_pipeline, lower_slots
from scalebox.ir.passes.memrefs import tile_of, tile_vars
from scalebox.ir.printer import python_print
from scalebox.ir.structural import first_difference
from scalebox.ir.target import load_target
from scalebox.ir.types import MemorySpace
from scalebox.ir.verification.structure import STAGES
from scalebox.ir.verification.walk import statements

from .corpus import FOLDER

A5 = load_target("a5")


def kernel(
    index: str, loop: str = "pl.range(4)", slots: str = "slots=2", more: str = ""
) -> Program:
    made = pl.parse(
        f"buf = pl.MemRef({slots})\nother = pl.MemRef(slots=3)\n\n\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def k(self, a: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],"
        " n: pl.Scalar[pl.INDEX]):\n"
        f"        for i in {loop}:\n"
        f"            x: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, buf[{index}]] = pl.load(\n"
        "                a, [16 * i, 0], [16, 64], target_memory=pl.Mem.Vec)\n"
        f"            o = pl.store(pl.neg(x), [16 * i, 0], o){more}\n"
        "        return o\n"
    )
    assert isinstance(made, Program)
    return made


def the_loop(made: Program) -> ForStmt:
    (function,) = made.functions.values()
    (loop,) = (s for s in statements(function.body) if isinstance(s, ForStmt))
    return loop


@pytest.mark.parametrize("index", ["i % 2", "(i + 1) % 2", "1 - i % 2"])
def test_a_loop_over_slots_becomes_a_pipelined_one(index: str) -> None:
    done = lower_slots()(kernel(index))
    loop = the_loop(done)
    assert loop.kind is ForKind.Pipeline
    assert loop.attrs[STAGES] == 2
    assert lower_slots()(done) is done


def test_a_step_counts_for_the_trip() -> None:
    loop = the_loop(lower_slots()(kernel("i // 2 % 2", "pl.range(0, 4, 2)")))
    assert loop.attrs[STAGES] == 2


def test_the_text_with_slots_reads_back() -> None:
    made = kernel("i % 2")
    again = pl.parse(python_print(made))
    assert isinstance(again, Program)
    assert first_difference(made, again) is None


def test_a_program_without_slots_is_left_alone() -> None:
    made = pl.load_file(FOLDER / "unrolled.py").program
    assert lower_slots()(made) is made


def vec_buffers(vec_bytes: int, index: str, slots: str = "slots=2") -> dict[str, tuple[int, ...]]:
    """Where the tiles of a kernel lie in a small UB."""
    target = A5.with_settings({"ub_bytes": str(vec_bytes)}, source="test")
    made = kernel(index, slots=slots)
    with PassContext([], target):
        for each in default_pipeline():
            made = each(made)
    found: dict[str, set[int]] = {}
    (function,) = made.functions.values()
    for var in tile_vars(function):
        tile = tile_of(var)
        if tile is not None and tile.memory_space is MemorySpace.Vec and tile.memref is not None:
            kind = "loaded" if var.name_hint.startswith("x") else "made"
            found.setdefault(kind, set()).add(tile.memref.byte_offset)
    return {kind: tuple(sorted(places)) for kind, places in found.items()}


def test_each_slot_is_a_buffer_that_nothing_else_uses() -> None:
    size = 16 * 64 * 4
    places = vec_buffers(3 * size, "i % 2")
    assert len(places["loaded"]) == 2
    assert not set(places["loaded"]) & set(places["made"])


def test_tiles_of_one_slot_share_its_buffer_even_where_others_are_free() -> None:
    text = """
from scalebox.ir import language as pl
buf = pl.MemRef(slots=2)

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    a: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, buf[0]] = pl.load(x, [0, 0], [16, 64])
    out = pl.store(a, [0, 0], out)
    b: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec, buf[1]] = pl.load(x, [16, 0], [8, 64])
    out = pl.store(b, [16, 0], out)
    c: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec, buf[0]] = pl.load(x, [32, 0], [8, 64])
    out = pl.store(c, [32, 0], out)
    return out
"""
    made = pl.parse(text)
    assert isinstance(made, Function)
    with PassContext([], A5):
        done = default_pipeline()(Program([made]))
    (function,) = done.functions.values()
    places: dict[str, int] = {}
    for var in tile_vars(function):
        tile = tile_of(var)
        assert tile is not None
        assert tile.memref is not None
        places[var.name_hint[0]] = tile.memref.byte_offset
    assert places["a"] == places["c"] != places["b"]


def test_accumulators_lie_in_the_slots_that_they_are_given() -> None:
    # A pipelined loop has one accumulator of its own accord; two slots are two.
    text = """
from scalebox.ir import language as pl
sums = pl.MemRef(slots=2)

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64, 512], pl.FP16], y: pl.Tensor[[64, 64], pl.FP16],
      out: pl.Out[pl.Tensor[[64, 512], pl.FP32]]):
    right = pl.load(y, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
    for i in pl.range(8):
        left = pl.load(x, [0, i * 64], [64, 64], target_memory=pl.Mem.Mat)
        acc: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc, sums[i % 2]] = pl.matmul(left, right)
        out = pl.store(acc, [0, i * 64], out)
    return out
"""
    made = pl.parse(text)
    assert isinstance(made, Function)
    (compiled,) = scalebox.compile(Program([made])).kernels
    places = [each["c"] for each in compiled.program if each.mnemonic == "mad"]
    assert len(places) == len(set(places)) == 2


def test_slots_that_do_not_fit_are_refused() -> None:
    with pytest.raises(IRValueError, match="Vec buffer usage must be at most"):
        vec_buffers(2 * 16 * 64 * 4, "i % 2")


@pytest.mark.parametrize(
    ("index", "loop", "sentence"),
    [
        ("2", "pl.range(4)", "The slot of 'buf' must be in 0..1, not 2"),
        (
            "n % 2",
            "pl.range(4)",
            "The slot of 'buf' must be a number, or follow from the variable of",
        ),
        (
            "i % 3",
            "pl.range(4)",
            "The slots of 'buf' must come one after another from trip to trip",
        ),
        ("i % 2", "pl.range(0, 4, 2)", "The slots of 'buf' must come one after another"),
        ("i % 2 + 0 * n", "pl.range(4)", "The slots of 'buf' must come one after another"),
        (
            "i % 2",
            "pl.parallel(4)",
            "A loop over 2 slots must be a pl.range or have that many stages",
        ),
        ("i % 2", "pl.pipeline(4, stage=3)", "A loop over 2 slots must be a pl.range"),
    ],
)
def test_slots_that_follow_from_no_loop_are_refused(index: str, loop: str, sentence: str) -> None:
    with pytest.raises(IRValueError) as caught:
        lower_slots()(kernel(index, loop))
    assert caught.value.message.startswith(sentence)
    assert caught.value.span is not None


def test_a_loop_with_a_jump_is_refused() -> None:
    made = kernel("i % 2", more="\n            if i == n:\n                break")
    with pytest.raises(IRValueError, match="must not be left by break or continue"):
        lower_slots()(made)


def test_buffers_of_one_loop_have_as_many_slots() -> None:
    more = (
        "\n            y: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, other[i % 3]] = pl.load(\n"
        "                a, [16 * i, 0], [16, 64], target_memory=pl.Mem.Vec)"
    )
    with pytest.raises(IRValueError, match="must be as many for each buffer, not 2 and 3"):
        lower_slots()(kernel("i % 2", more=more))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pl.Tile[[16, 64], pl.FP32, buf[0]]", "A tile with a MemRef must name its memory"),
        (
            "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, buf]",
            "A tile must name one of the 2 slots of buf",
        ),
    ],
)
def test_an_annotation_that_says_too_little_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        pl.parse(
            "buf = pl.MemRef(slots=2)\n\n\n@pl.program\nclass P:\n"
            "    @pl.function(type=pl.FunctionType.InCore)\n"
            "    def k(self, a: pl.Tensor[[16, 64], pl.FP32]):\n"
            f"        x: {text} = pl.load(a, [0, 0], [16, 64])\n        return\n"
        )
    assert sentence in caught.value.message


def test_slots_need_one_at_least() -> None:
    with pytest.raises(UserError, match="'buf' must have at least one slot, not 0"):
        kernel("0", slots="slots=0")


def test_double_buffering_by_hand_costs_what_a_pipeline_does() -> None:
    text = python_print(kernel("i % 2"))
    staged = pl.parse(
        text.replace("pl.range(4)", "pl.pipeline(4, stage=2)").replace(
            ', attrs={"slot": ["buf", 2, i % 2]}', ""
        )
    )
    assert isinstance(staged, Program)
    times = [
        scalebox.run(made, {"n": 0}, functional=False).cycles for made in (kernel("i % 2"), staged)
    ]
    assert times[0] == times[1]
