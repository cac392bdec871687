"""Small random programs of the vector core: tiles that are cut, joined, turned, reduced and changed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

ROWS, COLS = 40, 64
_FP32_STEP = 8


@dataclass(frozen=True)
class Tile:
    """A tile by its name, its physical and its valid extents, and whether it has been filled up."""

    name: str
    shape: tuple[int, int]
    valid: tuple[int, int]
    filled: bool = False

    @property
    def whole(self) -> bool:
        """Whether all of it is valid."""
        return self.shape == self.valid

    @property
    def places(self) -> bool:
        """Whether its rows stand at multiples of 32 bytes."""
        return self.shape[1] % _FP32_STEP == 0 or 1 in self.shape


@dataclass
class Drawn:
    """A program as it grows."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    tiles: list[Tile] = field(default_factory=list[Tile])

    def name(self) -> str:
        """Return a fresh name."""
        return f"t{len(self.tiles)}"

    def add(
        self, text: str, shape: tuple[int, int], valid: tuple[int, int], *, filled: bool = False
    ) -> None:
        """Append a statement that makes a tile; one that has no place in UB is left out."""
        made = Tile(self.name(), shape, valid, filled)
        if made.places and shape[0] * shape[1] <= ROWS * COLS:
            self.lines.append(f"{made.name} = {text}")
            self.tiles.append(made)

    def pick(self, wanted: Callable[[Tile], bool] = lambda _: True) -> Tile | None:
        """Return one of the tiles that are as wanted."""
        found = [tile for tile in self.tiles if wanted(tile)]
        return self.random.choice(found) if found else None

    def width(self) -> int:
        """Return a number of columns that a tile may have."""
        return self.random.choice((1, 8, 16, 24, 32, 64))


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
    p.add(f"pl.slice({source.name}, {[rows, cols]}, {[row, col]})", (rows, cols), valid)


def _assemble(p: Drawn) -> None:
    target = p.pick()
    assert target is not None
    source = p.pick(lambda s: s.valid[0] <= target.valid[0] and s.valid[1] <= target.valid[1])
    assert source is not None
    row = p.random.randint(0, target.valid[0] - source.valid[0])
    col = p.random.randint(0, target.valid[1] - source.valid[1])
    text = f"pl.assemble({target.name}, {source.name}, {[row, col]})"
    p.add(text, target.shape, target.valid, filled=target.filled)


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
    pad = p.random.choice(("zero", "max", "min"))
    text = f"pl.fillpad({source.name}, pl.PadValue.{pad})"
    p.add(text, source.shape, source.shape, filled=True)


def _narrow(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    valid = p.random.randint(1, source.valid[0]), p.random.randint(1, source.valid[1])
    text = f"pl.set_validshape({source.name}, {valid[0]}, {valid[1]})"
    p.add(text, source.shape, valid, filled=source.filled)


def _reduce(p: Drawn) -> None:
    source = p.pick()
    assert source is not None
    name = p.random.choice(("sum", "max", "min", "prod"))
    if p.random.random() < 0.5:
        p.lines.append(f"tmp{p.name()} = pl.create_tile({list(source.shape)}, dtype=pl.FP32)")
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
        op = p.random.choice(("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif"))
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
    value = p.random.choice((f"pl.read({source.name}, {there})", "1.5"))
    p.add(f"pl.write({x.name}, {at}, {value})", x.shape, x.valid, filled=x.filled)


def _pairs(p: Drawn) -> None:
    a = p.pick()
    assert a is not None
    b = p.pick(lambda tile: tile.shape == a.shape and tile.valid == a.valid)
    assert b is not None
    op = p.random.choice(("add", "sub", "maximum"))
    p.add(f"pl.{op}({a.name}, {b.name})", a.shape, a.valid)


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
    if rows > 1 and cols > 1 and cols % _FP32_STEP:
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
    p.add(target.name, target.shape, target.valid, filled=target.filled)
    if p.tiles[-1].name != name:
        return
    p.lines += [
        f"for i in pl.range({trips}):",
        f"    w{name} = pl.slice({source.name}, {[rows, cols]}, [{', '.join(begin)}])",
        f"    {name} = pl.assemble({name}, w{name}, [{', '.join(end)}])",
    ]
    if not target.filled and p.random.random() < 0.5:
        p.lines.append(f"    {name} = pl.maximum({name}, pl.mul({name}, -1.0))")


_STEPS = (
    _load, _slice, _assemble, _assemble, _transpose, _reshape, _concat, _fillpad, _narrow,
    _reduce, _expand, _expand, _with_element, _write, _pairs, _loop, _loop,
)  # fmt: skip


def drawn(seed: int, count: int = 12) -> tuple[list[str], int]:
    """Return the lines of a random kernel, and how many rows of 64 its output must have.

    It reads `x`, FP32 of 40 x 64, and stores every tile that it has made into `out`.
    """
    p = Drawn(Random(seed))
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
