"""Small random programs of the vector core: tiles that are cut, joined, turned, reduced and changed.

All tiles of a program have one dtype; a cast to another one goes straight back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from scalebox import pl
from scalebox.ir.dtypes import SimpleDType
from scalebox.ir.numerics.functions import FLOATS, Binary, Unary

ROWS, COLS = 40, 64

#: What a program may compute with, and how numpy has it.
DTYPES: dict[str, type[Any]] = {
    "FP32": np.float32,
    "BF16": ml_dtypes.bfloat16,
    "FP16": np.float16,
    "INT32": np.int32,
    "INT16": np.int16,
}
_EXPANSIONS: dict[str, Binary] = {
    "add": Binary.ADD,
    "sub": Binary.SUB,
    "mul": Binary.MUL,
    "div": Binary.DIV,
    "max": Binary.MAXIMUM,
    "min": Binary.MINIMUM,
    "expdif": Binary.EXPDIF,
}


@dataclass(frozen=True)
class Tile:
    """A tile by its name, its physical and its valid extents."""

    name: str
    shape: tuple[int, int]
    valid: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Whether all of it is valid."""
        return self.shape == self.valid


@dataclass
class Drawn:
    """A program as it grows."""

    random: Random
    dtype: str
    lines: list[str] = field(default_factory=list[str])
    tiles: list[Tile] = field(default_factory=list[Tile])

    @property
    def descriptor(self) -> SimpleDType:
        """The dtype of all tiles."""
        found = getattr(pl, self.dtype)
        assert isinstance(found, SimpleDType)
        return found

    @property
    def is_float(self) -> bool:
        """Whether the tiles hold floats."""
        return self.descriptor in FLOATS

    @property
    def step(self) -> int:
        """How many elements take 32 bytes."""
        return 32 // np.dtype(DTYPES[self.dtype]).itemsize

    def number(self) -> str:
        """Return a number that a tile may hold."""
        return self.random.choice(("1.5", "-1.0", "0.25") if self.is_float else ("3", "-1", "200"))

    def pad(self) -> str:
        """Return what a tile may be filled up with."""
        return self.random.choice(("zero", "max", "min"))

    def places(self, shape: tuple[int, int]) -> bool:
        """Return whether the rows of a tile stand at multiples of 32 bytes."""
        return shape[1] % self.step == 0 or 1 in shape

    def name(self) -> str:
        """Return a fresh name."""
        return f"t{len(self.tiles)}"

    def add(self, text: str, shape: tuple[int, int], valid: tuple[int, int]) -> None:
        """Append a statement that makes a tile; one that has no place in UB is left out."""
        made = Tile(self.name(), shape, valid)
        if self.places(shape) and shape[0] * shape[1] <= ROWS * COLS:
            self.lines.append(f"{made.name} = {text}")
            self.tiles.append(made)

    def pick(self, wanted: Callable[[Tile], bool] = lambda _: True) -> Tile | None:
        """Return one of the tiles that are as wanted."""
        found = [tile for tile in self.tiles if wanted(tile)]
        return self.random.choice(found) if found else None

    def width(self) -> int:
        """Return a number of columns that a tile may have."""
        return self.random.choice((1, *range(self.step, COLS // 2 + 1, self.step), COLS))


def _load(p: Drawn) -> None:
    shape = p.random.randint(1, ROWS), p.width()
    valid = (
        (p.random.randint(1, shape[0]), p.random.randint(1, shape[1]))
        if p.random.random() < 0.5
        else shape
    )
    at = p.random.randint(0, ROWS - shape[0]), p.random.randint(0, COLS - shape[1])
    text = f"pl.load(x, {list(at)}, {list(shape)}, {list(valid)}, target_memory=pl.Mem.Vec)"
    p.add(text, shape, valid)


def _slice(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    rows, cols = p.random.randint(1, source.shape[0]), min(p.width(), source.shape[1])
    row = p.random.randint(0, min(source.shape[0] - rows, source.valid[0] - 1))
    col = p.random.randint(0, min(source.shape[1] - cols, source.valid[1] - 1))
    valid = min(rows, source.valid[0] - row), min(cols, source.valid[1] - col)
    rest = ""
    if p.random.random() < 0.3:
        rest, valid = f", clamp=True, pad_value=pl.PadValue.{p.pad()}", (rows, cols)
    text = f"pl.slice({source.name}, {[rows, cols]}, {[row, col]}{rest})"
    p.add(text, (rows, cols), valid)


def _assemble(p: Drawn) -> None:
    target = p.pick()
    assert target is not None
    source = p.pick(lambda s: s.valid[0] <= target.valid[0] and s.valid[1] <= target.valid[1])
    assert source is not None
    row = p.random.randint(0, target.valid[0] - source.valid[0])
    col = p.random.randint(0, target.valid[1] - source.valid[1])
    text = f"pl.assemble({target.name}, {source.name}, {[row, col]})"
    p.add(text, target.shape, target.valid)


def _transpose(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    (rows, cols), (valid_rows, valid_cols) = source.shape, source.valid
    p.add(f"pl.transpose({source.name}, 0, 1)", (cols, rows), (valid_cols, valid_rows))


def _reshape(p: Drawn) -> None:
    source = p.pick(lambda tile: tile.whole)
    if source is None:
        return
    count = source.shape[0] * source.shape[1]
    rows = p.random.choice([n for n in range(1, count + 1) if count % n == 0])
    shape = (rows, count // rows)
    p.add(f"pl.reshape({source.name}, {list(shape)})", shape, shape)


def _concat(p: Drawn) -> None:
    left = p.pick(lambda tile: tile.shape[1] == tile.valid[1])
    if left is None:
        return
    right = p.pick(lambda t: t.shape[0] == left.shape[0] and t.valid[0] == left.valid[0])
    assert right is not None
    shape = left.shape[0], left.shape[1] + right.shape[1]
    valid = left.valid[0], left.shape[1] + right.valid[1]
    p.add(f"pl.concat({left.name}, {right.name})", shape, valid)


def _fillpad(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    text = f"pl.fillpad({source.name}, pl.PadValue.{p.pad()})"
    p.add(text, source.shape, source.shape)


def _narrow(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    valid = p.random.randint(1, source.valid[0]), p.random.randint(1, source.valid[1])
    text = f"pl.set_validshape({source.name}, {valid[0]}, {valid[1]})"
    p.add(text, source.shape, valid)


def _reduce(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    name = p.random.choice(("sum", "max", "min", "prod"))
    if p.random.random() < 0.5:
        p.lines.append(f"tmp{p.name()} = pl.create_tile({list(source.shape)}, dtype=pl.{p.dtype})")
        text = f"pl.row_{name}({source.name}, tmp{p.name()})"
        p.add(text, (source.shape[0], 1), (source.valid[0], 1))
    else:
        p.add(f"pl.col_{name}({source.name})", (1, source.shape[1]), (1, source.valid[1]))


def _expand(p: Drawn) -> None:
    x = p.pick()
    assert x is not None
    row = p.random.random() < 0.5
    shape, valid = ((x.shape[0], 1), (x.valid[0], 1)) if row else ((1, x.shape[1]), (1, x.valid[1]))
    vec = p.pick(lambda tile: tile.shape == shape and tile.valid == valid)
    if vec is not None:
        known = [name for name, each in _EXPANSIONS.items() if p.descriptor in each.dtypes]
        op = p.random.choice(("", *(f"_{name}" for name in known)))
        line = "row" if row else "col"
        p.add(f"pl.{line}_expand{op}({x.name}, {vec.name})", x.shape, x.valid)


def _with_element(p: Drawn) -> None:
    x, source = p.pick(), p.pick()
    assert x is not None
    assert source is not None
    at = [p.random.randrange(extent) for extent in source.valid]
    op = p.random.choice(("add", "mul", "maximum"))
    p.add(f"pl.{op}({x.name}, pl.read({source.name}, {at}))", x.shape, x.valid)


def _write(p: Drawn) -> None:
    x, source = p.pick(), p.pick()
    assert x is not None
    assert source is not None
    at = [p.random.randrange(extent) for extent in x.valid]
    there = [p.random.randrange(extent) for extent in source.valid]
    value = p.random.choice((f"pl.read({source.name}, {there})", p.number()))
    p.add(f"pl.write({x.name}, {at}, {value})", x.shape, x.valid)


def _pairs(p: Drawn) -> None:
    a = p.pick()
    assert a is not None
    b = p.pick(lambda tile: tile.shape == a.shape and tile.valid == a.valid)
    assert b is not None
    known = [each.value for each in Binary if p.descriptor in each.dtypes and each in _PAIRED]
    text = f"pl.{p.random.choice(known)}({a.name}, {b.name})"
    if p.random.random() < 0.3:
        a_again, b_again = p.random.sample((a.name, b.name), 2)
        mask = f"pl.cmp({a.name}, {b.name}, cmp_type={p.random.randrange(6)})"
        text = f"pl.sel({mask}, {a_again}, {b_again})"
    p.add(text, a.shape, a.valid)


def _alone(p: Drawn) -> None:
    x = p.pick()
    assert x is not None
    known = [each.value for each in Unary if p.descriptor in each.dtypes]
    p.add(f"pl.{p.random.choice(known)}({x.name})", x.shape, x.valid)


def _there_and_back(p: Drawn) -> None:
    x = p.pick(lambda tile: 1 in tile.shape or tile.shape[1] % 16 == 0)
    if x is not None:
        other = p.random.choice([name for name in DTYPES if name != p.dtype])
        text = f"pl.cast(pl.cast({x.name}, pl.{other}), pl.{p.dtype})"
        p.add(text, x.shape, x.valid)


def _with_number(p: Drawn) -> None:
    x = p.pick()
    assert x is not None
    op = p.random.choice(("add", "sub", "mul", "minimum"))
    p.add(f"pl.{op}({x.name}, {p.number()})", x.shape, x.valid)


def _place(p: Drawn, room: int, trips: int) -> str:
    """Return a place that moves with a loop and never needs more than `room`."""
    step = p.random.randint(0, room // max(1, trips - 1))
    return f"i * {step} + {p.random.randint(0, room - step * (trips - 1))}"


def _loop(p: Drawn) -> None:
    target = p.pick()
    assert target is not None
    source = p.pick()
    assert source is not None
    rows = p.random.randint(1, min(source.valid[0], target.valid[0]))
    cols = min(p.width(), source.valid[1], target.valid[1])
    if rows > 1 and cols > 1 and cols % p.step:
        return
    trips = p.random.randint(1, 4)
    begin, end = (
        [
            _place(p, extent - size, trips)
            for extent, size in zip(tile.valid, (rows, cols), strict=True)
        ]
        for tile in (source, target)
    )
    name = p.name()
    p.add(target.name, target.shape, target.valid)
    if p.tiles[-1].name != name:
        return
    p.lines += [
        f"for i in pl.range({trips}):",
        f"    w{name} = pl.slice({source.name}, {[rows, cols]}, [{', '.join(begin)}])",
        f"    {name} = pl.assemble({name}, w{name}, [{', '.join(end)}])",
    ]
    if p.random.random() < 0.5:
        p.lines.append(f"    {name} = pl.maximum({name}, pl.mul({name}, -1{'.0' * p.is_float}))")
    if target.whole and p.random.random() < 0.3:
        part = f"pl.set_validshape({name}, {rows}, {cols})"
        p.lines.append(f"    {name} = pl.fillpad({part}, pl.PadValue.{p.pad()})")


#: What is computed of pairs; a remainder by 0 is no number, and would be refused.
_PAIRED = (Binary.ADD, Binary.SUB, Binary.MUL, Binary.DIV, Binary.MAXIMUM, Binary.MINIMUM)
_STEPS = (
    _load, _slice, _assemble, _assemble, _transpose, _reshape, _concat, _fillpad, _narrow,
    _reduce, _expand, _expand, _with_element, _with_number, _write, _pairs, _alone, _there_and_back,
    _loop, _loop,
)  # fmt: skip


def drawn(seed: int, dtype: str, count: int = 12) -> tuple[list[str], int]:
    """Return the lines of a random kernel, and how many rows of 64 its output must have.

    It reads `x` of 40 x 64 in a dtype of :data:`DTYPES`, and stores every tile that it has made into
    `out`.
    """
    p = Drawn(Random(seed), dtype)
    _load(p)
    for _ in range(count):
        p.random.choice(_STEPS)(p)
    rows = 0
    stores = list[str]()
    for tile in p.tiles:
        if tile.valid[1] <= COLS:
            stores.append(f"out = pl.store({tile.name}, [{rows}, 0], out)")
            rows += tile.valid[0]
    return [*p.lines, *stores], rows


def numbers(seed: int, dtype: str) -> npt.NDArray[Any]:
    """Return what `x` holds: normal floats, or integers of which some are the largest there are."""
    random = np.random.default_rng(seed)
    numpy_type = DTYPES[dtype]
    if not dtype.startswith("INT"):
        return random.standard_normal((ROWS, COLS)).astype(numpy_type)
    some = random.integers(-100, 100, (ROWS, COLS), numpy_type)
    limits = np.iinfo(numpy_type)
    ends = random.choice(np.array([limits.min, limits.max], numpy_type), (ROWS, COLS))
    return np.where(random.random((ROWS, COLS)) < 0.1, ends, some)
