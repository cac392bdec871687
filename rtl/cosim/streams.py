"""Both ends of a valid/ready stream in cocotb, and a witness in between.

Ports are those of `amaranth.lib.stream`: `<name>__payload`, `<name>__valid`, `<name>__ready`.
Everything is read just after a rising edge, when the wires still hold what the edge saw, and
written after it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cocotb
from cocotb.triggers import RisingEdge

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from cocotb.task import Task

__all__ = ["Monitor", "Port", "Sink", "Source", "Transfer", "bursts", "never", "sometimes"]


class Port:
    """The wires of one stream.

    Args:
        dut: The top of the design.
        name: Which of its streams.
    """

    def __init__(self, dut: Any, name: str) -> None:
        self.name = name
        self.clock = dut.clk
        self.reset = dut.rst
        self.payload = getattr(dut, f"{name}__payload")
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")

    def in_reset(self) -> bool:
        """Whether the rising edge just seen was one of a reset, which passes nothing."""
        return self.reset.value == 1

    def transfers(self) -> bool:
        """Whether the rising edge just seen passed a word on."""
        return not self.in_reset() and self.valid.value == 1 and self.ready.value == 1


def never() -> Iterator[bool]:
    """Yield a pattern that pauses in no cycle."""
    while True:
        yield False


def sometimes(probability: float, rng: random.Random) -> Iterator[bool]:
    """Yield a pattern that pauses in each cycle with the same probability."""
    while True:
        yield rng.random() < probability


def bursts(longest_cycles: int, rng: random.Random) -> Iterator[bool]:
    """Yield a pattern of pauses and runs of random length by turns."""
    pausing = rng.random() < 0.5
    while True:
        for _ in range(rng.randint(1, longest_cycles)):
            yield pausing
        pausing = not pausing


class Source:
    """Offer words to a stream, each until it is taken; noise on the payload in between.

    Args:
        port: The stream.
        pause: Cycle by cycle, whether to hold back the next word.
        rng: Where the noise comes from.
    """

    def __init__(self, port: Port, *, pause: Iterator[bool], rng: random.Random) -> None:
        self.queue: deque[int] = deque()
        self._port = port
        self._pause = pause
        self._rng = rng
        self._idle()

    def start(self) -> Task[None]:
        """Begin offering what stands in `queue`, in order."""
        return cocotb.start_soon(self._run())

    def clear(self) -> None:
        """Drop what is queued, and withdraw what is on offer."""
        self.queue.clear()
        self._idle()

    def _idle(self) -> None:
        self._offering = False
        self._port.valid.value = 0
        self._port.payload.value = self._rng.getrandbits(len(self._port.payload))

    async def _run(self) -> None:
        while True:
            await RisingEdge(self._port.clock)
            if self._port.in_reset():
                self._idle()
            elif not self._offering or self._port.transfers():
                self._next()

    def _next(self) -> None:
        if not self.queue or next(self._pause):
            self._idle()
            return
        self._offering = True
        self._port.payload.value = self.queue.popleft()
        self._port.valid.value = 1


class Sink:
    """Take words from a stream.

    Args:
        port: The stream.
        pause: Cycle by cycle, whether to take nothing.
    """

    def __init__(self, port: Port, *, pause: Iterator[bool]) -> None:
        self._port = port
        self._pause = pause
        port.ready.value = 0

    def start(self) -> Task[None]:
        """Begin taking."""
        return cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            await RisingEdge(self._port.clock)
            self._port.ready.value = int(not next(self._pause))


@dataclass(frozen=True, slots=True)
class Transfer:
    """A word that passed: the rising edge that passed it, counted from the monitor's start."""

    cycle: int
    word: int


@dataclass(slots=True)
class Monitor:
    """Record a stream's transfers, and hold its producer to the rules.

    A word on offer stays on offer, and stays the same, until it is taken or a reset comes; no wire
    of the handshake is ever undefined.

    Attributes:
        port: The stream.
        transfers: What passed so far.
        cycle: Rising edges seen so far.
        stalled: Edges at which a word was on offer and not taken.
    """

    port: Port
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    cycle: int = 0
    stalled: int = 0
    _on_offer: int | None = None

    def start(self) -> Task[None]:
        """Begin to watch."""
        return cocotb.start_soon(self._run())

    @property
    def words(self) -> list[int]:
        """The words that passed, in order."""
        return [transfer.word for transfer in self.transfers]

    async def _run(self) -> None:
        while True:
            await RisingEdge(self.port.clock)
            self._observe()
            self.cycle += 1

    def _observe(self) -> None:
        if self.port.in_reset():
            self._on_offer = None
            return
        name = self.port.name
        valid, ready = self.port.valid.value, self.port.ready.value
        assert valid.is_resolvable, f"{name}: valid must be 0 or 1, not {valid}"
        assert ready.is_resolvable, f"{name}: ready must be 0 or 1, not {ready}"
        if valid == 0:
            assert self._on_offer is None, f"{name}: valid must stay until ready, but it fell"
            return
        word = self.port.payload.value.to_unsigned()
        if self._on_offer is not None:
            kept = self._on_offer == word
            assert kept, f"{name}: payload must stay {self._on_offer:#x} until ready, not {word:#x}"
        if ready == 1:
            self.transfers.append(Transfer(self.cycle, word))
            self._on_offer = None
        else:
            self._on_offer = word
            self.stalled += 1
