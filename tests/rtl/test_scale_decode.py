# amaranth: UnusedElaboratable=no
"""The scale-decode unit and the combine step in Amaranth's own simulator."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.sim import Simulator

from scalebox.ir.errors import UserError
from scalebox.rtl.scale_decode import ScaleDecode
from scalebox.rtl.scale_pair import ScalePair
from scalebox.rtl.shapes import DecodedBox, unpack_decoded_box

PERIOD_SECONDS = 1e-8
LANES = 32
# Long enough for the sleepiest consumer to take the last box, and for a box too many to show itself.
DRAIN_CYCLES = 200
PATIENCE_CYCLES = 500


def decoded(box: Sequence[int]) -> DecodedBox:
    """What OCP MX says of every lane: the exponent is the code less 127, and 255 is NaN."""
    return DecodedBox(tuple(c - 127 for c in box), tuple(c == 255 for c in box))


class Run:
    """Boxes through the unit, with a producer that idles and a consumer that stalls."""

    def __init__(
        self, boxes: Sequence[Sequence[int]], *, idle: float = 0.0, stall: float = 0.0
    ) -> None:
        self.dut = ScaleDecode()
        self.boxes = boxes
        self.idle, self.stall = idle, stall
        self.left: list[tuple[int, DecodedBox]] = []
        self.entered: list[int] = []
        self.edge = 0
        self.on_offer: int | None = None
        simulator = Simulator(self.dut)
        simulator.add_clock(PERIOD_SECONDS)
        simulator.add_testbench(self.produce)
        simulator.add_testbench(self.consume, background=True)
        simulator.add_process(self.watch)
        simulator.run()

    async def produce(self, ctx: Any) -> None:
        rng = random.Random(1)
        for box in self.boxes:
            while rng.random() < self.idle:
                await ctx.tick()
            ctx.set(self.dut.i.payload, box)
            ctx.set(self.dut.i.valid, 1)
            await self.taken(ctx)
            ctx.set(self.dut.i.valid, 0)
        for _ in range(DRAIN_CYCLES):
            await ctx.tick()

    async def taken(self, ctx: Any) -> None:
        for _ in range(PATIENCE_CYCLES):
            _, _, ready = await ctx.tick().sample(self.dut.i.ready)
            if ready:
                return
        pytest.fail(f"a box must be taken within {PATIENCE_CYCLES} cycles")

    async def consume(self, ctx: Any) -> None:
        rng = random.Random(2)
        while True:
            ctx.set(self.dut.o.ready, int(rng.random() >= self.stall))
            await ctx.tick()

    async def watch(self, ctx: Any) -> None:
        i, o = self.dut.i, self.dut.o
        ticks = ctx.tick().sample(i.valid, i.ready, o.valid, o.ready, o.payload.as_value())
        async for _, _, i_valid, i_ready, valid, ready, word in ticks:
            if i_valid and i_ready:
                self.entered.append(self.edge)
            if self.on_offer is not None:
                assert valid, "valid must stay until ready"
                assert word == self.on_offer, "payload must stay until ready"
            self.on_offer = word if valid and not ready else None
            if valid and ready:
                self.left.append((self.edge, unpack_decoded_box(word)))
            self.edge += 1


def boxes_of_every_code_in_every_lane() -> list[list[int]]:
    return [[(first + 3 * lane) % 256 for lane in range(LANES)] for first in range(256)]


def test_every_code_decodes_in_every_lane() -> None:
    boxes = boxes_of_every_code_in_every_lane()
    run = Run(boxes)
    assert [box for _, box in run.left] == [decoded(box) for box in boxes]


def test_codes_of_the_standard_decode_to_its_exponents() -> None:
    box = [0, 1, 126, 127, 128, 254, 255] + [127] * 25
    [(_, result)] = Run([box]).left
    assert result.exponents[:6] == (-127, -126, -1, 0, 1, 127)
    assert result.is_nan[:7] == (False, False, False, False, False, False, True)


def test_a_box_enters_and_one_leaves_every_cycle_one_cycle_later() -> None:
    run = Run(boxes_of_every_code_in_every_lane())
    left = [edge for edge, _ in run.left]
    assert run.entered == list(range(run.entered[0], run.entered[0] + 256))
    assert left == [edge + 1 for edge in run.entered]
    assert run.dut.latency_cycles == 1


def test_an_empty_unit_takes_a_box_before_anyone_asks_for_it() -> None:
    run = Run([[0] * LANES], stall=1.0)
    assert len(run.entered) == 1
    assert run.left == []


@pytest.mark.parametrize("idle", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("stall", [0.0, 0.5, 0.9])
def test_no_box_is_lost_or_doubled_under_random_stalls(idle: float, stall: float) -> None:
    rng = random.Random(3)
    boxes = [[rng.randrange(256) for _ in range(LANES)] for _ in range(60)]
    run = Run(boxes, idle=idle, stall=stall)
    assert [box for _, box in run.left] == [decoded(box) for box in boxes]
    assert len(run.entered) == len(boxes)


def test_all_pairs_of_codes_combine_without_a_wrap() -> None:
    dut = ScalePair()
    sample = [0, 1, 2, 63, 64, 126, 127, 128, 129, 191, 192, 200, 253, 254, 255]

    async def compare(ctx: Any) -> None:
        for a in range(256):
            for b in sample:
                ctx.set(dut.a, a)
                ctx.set(dut.b, b)
                assert ctx.get(dut.is_nan) == (a == 255 or b == 255)
                assert ctx.get(dut.exponent) == a + b - 254

    simulator = Simulator(dut)
    simulator.add_testbench(compare)
    simulator.run()


def test_a_unit_names_its_parameters() -> None:
    unit = ScaleDecode(rows=4, groups=1)
    assert (unit.rows, unit.groups) == (4, 1)
    assert unit.parameters == {"rows": 4, "groups": 1}
    assert ScalePair().parameters == {}
    assert ScalePair().latency_cycles == 0


@pytest.mark.parametrize(
    ("parameters", "kind", "sentence"),
    [
        ({"rows": 0}, ValueError, "ScaleDecode rows must be at least 1, not 0"),
        ({"groups": -2}, ValueError, "ScaleDecode groups must be at least 1, not -2"),
        ({"groups": "2"}, TypeError, "ScaleDecode groups must be an integer, not '2'"),
    ],
)
def test_a_unit_refuses_impossible_parameters(
    parameters: dict[str, int], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        ScaleDecode(**parameters)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UserError)
