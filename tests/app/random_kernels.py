"""Random MX kernels as source text, with inputs; the same seed gives the same kernel.

A kernel has loads, moves where the kernel makes them itself, products, accumulators that are carried
or renamed, stores, loops, branches and scalars, all with offsets that stay inside their tensors.
"""

import math
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from .oracle import Array

FAMILIES = (("FP8E4M3FN", "FP8E5M2"), ("FP4", "FP4E1M2"))
MEMORY = {"a": "Left", "p": "LeftScale", "b": "Right", "q": "RightScale", "r": "Bias"}
DEEPEST = 3


@dataclass(frozen=True)
class Kernel:
    """A program's text and what its launch needs: `dtypes` of a and b, outputs by name."""

    text: str
    entry: str
    sizes: tuple[int, int, int]
    dtypes: tuple[str, str]
    outputs: dict[str, str]
    is_viewed: bool
    has_bias: bool
    scalars: dict[str, int]


@dataclass(frozen=True)
class Scalar:
    """A name whose value is a multiple of `step` within first..last; whether a compiler can tell."""

    name: str
    first: int
    last: int
    step: int
    is_known: bool = True


@dataclass(frozen=True)
class Tile:
    """A name of a tile: `kind` a, p, b, q, r or c (sums), its K, and how much of that is valid."""

    name: str
    kind: str
    space: str
    k: int = 0
    valid_k: int = 0


@dataclass
class Scope:
    """What a block can use; `sums` are accumulators that nothing was added to in place."""

    tiles: list[Tile]
    scalars: list[Scalar]
    sums: set[str]
    has_moves: bool
    depth: int = 0

    def inner(self, *more: Scalar) -> "Scope":
        scalars = [*self.scalars, *more]
        return Scope(list(self.tiles), scalars, set(self.sums), self.has_moves, self.depth + 1)


@dataclass
class Writer:
    """Writes one program."""

    seed: int
    size: int = 1
    names: int = 0
    outputs: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        r = self.random = Random(self.seed)
        family = r.choice(FAMILIES)
        self.dtypes = r.choice(family), r.choice(family)
        self.is_narrow = family is FAMILIES[1]
        self.m, self.n = r.choice([16, 16, 32, 48]), r.choice([32, 32, 64, 96])
        self.depth = r.choice([128, 192, 256, 384])
        self.depths = sorted({64, r.choice([64, 128])})
        self.rows, self.cols = self.m * r.choice([1, 2, 3]), self.n * r.choice([1, 2])
        self.is_full = r.random() < 0.6
        self.valid_m = self.m if self.is_full else r.randint(1, self.m)
        self.valid_n = self.n if self.is_full else 2 * r.randint(1, self.n // 2)
        for name in ("out0", "out1", "out2")[: r.choice([1, 1, 2, 3])]:
            self.outputs[name] = r.choice(["FP32", "FP32", "BF16", "FP16"])
        self.has_bias, self.is_viewed = r.random() < 0.4, r.random() < 0.25

    # ------------------------------------------------------------------- scalars

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def offset(self, scope: Scope, last: int, step: int, *, is_scale: bool = False) -> str:
        """An expression for a multiple of `step` within 0..last."""
        r = self.random
        found: list[str] = []
        for s in scope.scalars:
            if s.first < 0 or (is_scale and not s.is_known and r.random() < 0.9):
                continue
            more = step * r.randint(1, 3)
            if s.step % step == 0:
                found += [s.name] * 2 if s.last <= last else []
                found += [f"{s.name} + {more}"] if s.last + more <= last else []
            found += [f"{s.name} * {step}"] if s.last * step <= last else []
            found += (
                [f"{s.name} // 32"] if s.step % (32 * step) == 0 and s.last // 32 <= last else []
            )
        if found and r.random() < 0.8:
            return r.choice(found)
        return str(step * r.randint(0, last // step))

    def scalar(self, scope: Scope) -> str:
        r = self.random
        name, by = self.fresh("s"), r.choice([2, 3, 16, 32])
        if not scope.scalars or r.random() < 0.2:
            scope.scalars.append(Scalar(name, by, by, by))
            return f"{name} = {by}"
        s = r.choice(scope.scalars)
        known, both = s.is_known, math.gcd(s.step, by)
        forms = {
            f"{s.name} * {by}": Scalar(name, s.first * by, s.last * by, s.step * by, known),
            f"{s.name} + {by}": Scalar(name, s.first + by, s.last + by, both, known),
            f"{s.name} - {by}": Scalar(name, s.first - by, s.last - by, both, is_known=False),
            f"{s.name} // {by}": Scalar(name, s.first // by, s.last // by, 1, is_known=False),
            f"{s.name} % {by}": Scalar(name, 0, by - 1, 1, is_known=False),
        }
        text = r.choice(list(forms))
        scope.scalars.append(forms[text])
        return f"{name} = {text}"

    def condition(self, scope: Scope) -> str:
        r = self.random
        s = r.choice(scope.scalars)
        if r.random() < 0.3:
            return f"{s.name} % {r.choice([2, 3, 128])} == {r.randint(0, 1)}"
        sign = r.choice(["==", "!=", "<", "<=", ">", ">="])
        return f"{s.name} {sign} {r.randint(s.first, s.last)}"

    # ------------------------------------------------------------------- tiles

    def load(self, scope: Scope, kind: str, k: int, valid_k: int) -> tuple[str, str]:
        """A load, and the memory that its tile is known to be in."""
        r, even = self.random, 2 if self.is_narrow else 1
        groups, valid_groups = k // 32, -(-valid_k // 32)
        m, n, vm, vn = self.m, self.n, self.valid_m, self.valid_n

        def at(last: int, *steps: int) -> str:
            return self.offset(scope, last, r.choice(steps), is_scale=kind in "pq")

        row, last_group = self.rows - vm, self.depth // 32 - groups
        match kind:
            case "a":
                head = f"a, [{at(row, 1, m)}, {at(self.depth - valid_k, 64, 64, even)}]"
                window, valid = [m, k], [vm, valid_k]
            case "b":
                head = f"b, [{at(self.depth - valid_k, 64, 64, 1)}, {at(self.cols - vn, 32, even)}]"
                window, valid = [k, n], [valid_k, vn]
            case "p":
                head = f"{self.scales[0]}, [{at(self.rows - m, 16)}, {at(last_group, 2)}]"
                window, valid = [m, groups], [vm, valid_groups]
            case "q":
                head = f"{self.scales[1]}, [{at(last_group, 2)}, {at(self.cols - n, 16)}]"
                window, valid = [groups, n], [valid_groups, vn]
            case _:
                head = f"bias, [0, {at(self.cols - vn, 1)}]"
                window, valid = [1, n], [1, vn]
        text = f"pl.load({head}, {window}"
        text += f", {valid}" if valid != window or r.random() < 0.2 else ""
        if scope.has_moves or r.random() < 0.3:
            return f"{text}, target_memory=pl.Mem.Mat)", "Mat"
        return f"{text})", "Mat" if kind in "pq" else ""

    def operand(self, scope: Scope, out: list[str], kind: str, k: int, valid_k: int) -> str:
        r = self.random
        known = [t for t in scope.tiles if (t.kind, t.k, t.valid_k) == (kind, k, valid_k)]
        if known and r.random() < 0.55:
            found = r.choice(known)
            if scope.has_moves and found.space == "Mat":
                return f"pl.move({found.name}, pl.Mem.{MEMORY[kind]})"
            return found.name
        text, space = self.load(scope, kind, k, valid_k)
        if scope.has_moves:
            if r.random() < 0.5:
                name = self.named(scope, Tile("", kind, space, k, valid_k))
                out.append(f"{name} = {text}")
                text = name
            text, space = f"pl.move({text}, pl.Mem.{MEMORY[kind]})", MEMORY[kind]
        if r.random() < 0.4:
            return text
        name = self.named(scope, Tile("", kind, space, k, valid_k))
        out.append(f"{name} = {text}")
        return name

    def named(self, scope: Scope, tile: Tile) -> str:
        """The name of a known tile of the same type, or a new one."""
        same = [t.name for t in scope.tiles if replace(t, name="") == tile]
        if same and self.random.random() < 0.35:
            return self.random.choice(same)
        name = self.fresh(tile.kind)
        scope.tiles.append(replace(tile, name=name))
        return name

    def product(self, scope: Scope, out: list[str]) -> None:
        r = self.random
        k = r.choice(self.depths)
        valid_k = k if self.is_full else k - 2 * r.randint(0, 15)
        shapes = [(t.k, t.valid_k) for t in scope.tiles if t.kind in "ab"]
        if shapes and r.random() < 0.6:
            k, valid_k = r.choice(shapes)
        operands = ", ".join(self.operand(scope, out, kind, k, valid_k) for kind in "apbq")
        target = self.named(scope, Tile("", "c", "Acc"))
        sums = sorted(scope.sums)
        if sums and r.random() < 0.7:
            acc = r.choice(sums)
            target = acc if scope.depth or r.random() < 0.6 else target
            scope.sums.discard(acc)
            text = f"pl.matmul_mx_acc({acc}, {operands})"
        elif self.has_bias and r.random() < 0.6:
            text = f"pl.matmul_mx_bias({operands}, {self.operand(scope, out, 'r', 0, 0)})"
        else:
            text = f"pl.matmul_mx({operands})"
        out.append(f"{target} = {text}")
        scope.sums.add(target)

    def store(self, scope: Scope, out: list[str]) -> None:
        r = self.random
        if not scope.sums:
            self.product(scope, out)
        acc, target = r.choice(sorted(scope.sums)), r.choice(list(self.outputs))
        row = self.offset(scope, self.rows - self.valid_m, r.choice([1, self.m]))
        col = self.offset(scope, self.cols - self.valid_n, r.choice([1, self.n]))
        call = f"pl.store({acc}, [{row}, {col}], {target})"
        out.append(f"{target} = {call}" if r.random() < 0.9 else call)

    def rename(self, scope: Scope, out: list[str]) -> None:
        tiles = [t for t in scope.tiles if t.kind != "c"]
        if tiles:
            tile = self.random.choice(tiles)
            name = self.named(scope, replace(tile, name=""))
            out.append(f"{name} = {tile.name}")

    # ------------------------------------------------------------------- statements

    def block(self, scope: Scope, count: int) -> list[str]:
        r, out = self.random, list[str]()
        for _ in range(count):
            kinds = ["product"] * 8 + ["store"] * 3 + ["scalar"] * 2 + ["rename"]
            kinds += ["loop"] * 3 + ["branch"] * 2 * bool(scope.scalars)
            match r.choice(kinds):
                case "store":
                    self.store(scope, out)
                case "scalar":
                    out.append(self.scalar(scope))
                case "rename":
                    self.rename(scope, out)
                case "loop" if scope.depth < DEEPEST:
                    self.loop(scope, out)
                case "branch" if scope.depth < DEEPEST:
                    self.branch(scope, out)
                case _:
                    self.product(scope, out)
        if not out:
            self.product(scope, out)
        return out

    def loop(self, scope: Scope, out: list[str]) -> None:
        r = self.random
        name, trips, step = self.fresh("i"), r.choice([0, 1, 2, 2, 3, 5]), r.choice([1, 2, 32, 64])
        start = step * r.choice([0, 0, 1])
        stop = start + trips * step - (r.randint(0, step - 1) if trips else 0)
        counter = Scalar(name, start, start + max(trips - 1, 0) * step, step)
        limits = [s for s in scope.scalars if s.name == "n0"]
        bounds, most = f"{start}, {stop}, {step}", 4
        if limits and r.random() < 0.3:
            bounds, most = limits[0].name, 2
            counter = Scalar(name, 0, limits[0].last - 1, 1)
        stages = f"pl.pipeline({bounds}, stage={r.randint(1, most)})"
        out.append(f"for {name} in {r.choice([f'pl.range({bounds})', stages])}:")
        inner = scope.inner(counter)
        out += [f"    {line}" for line in self.block(inner, r.randint(1, 3))]
        scope.sums &= inner.sums

    def branch(self, scope: Scope, out: list[str]) -> None:
        r = self.random
        out.append(f"if {self.condition(scope)}:")
        arms = [scope.inner(), scope.inner()]
        out += [f"    {line}" for line in self.block(arms[0], r.randint(1, 2))]
        if r.random() < 0.6:
            out.append("else:")
            out += [f"    {line}" for line in self.block(arms[1], r.randint(1, 2))]
        scope.sums &= arms[0].sums & arms[1].sums

    # ------------------------------------------------------------------- program

    def params(self, scalars: list[Scalar]) -> str:
        groups = "K // 32"
        sa, sb = f"[M, {groups}], pl.FP8E8M0, pl.MX_A_ZZ", f"[{groups}, N], pl.FP8E8M0, pl.MX_B_NN"
        if self.is_viewed:
            sa, sb = f"[1, M * ({groups})], pl.FP8E8M0", f"[2, N * ({groups}) // 2], pl.FP8E8M0"
        a, b = self.dtypes
        given = [f"a: pl.Tensor[[M, K], pl.{a}]", f"sa: pl.Tensor[{sa}]"]
        given += [f"b: pl.Tensor[[K, N], pl.{b}]", f"sb: pl.Tensor[{sb}]"]
        given += ["bias: pl.Tensor[[1, N], pl.FP32]"] * self.has_bias
        given += [f"{c}: pl.Out[pl.Tensor[[M, N], pl.{d}]]" for c, d in self.outputs.items()]
        given += [f"{s.name}: pl.Scalar[pl.INDEX]" for s in scalars]
        return ", ".join(["self", *given])

    def kernel(self, name: str, scalars: list[Scalar]) -> list[str]:
        r = self.random
        scope = Scope([], list(scalars), set(), has_moves=r.random() < 0.5)
        body: list[str] = []
        self.scales = "sa", "sb"
        if self.is_viewed:
            body.append("va = pl.tensor.view(sa, [M, K // 32], layout=pl.MX_A_ZZ)")
            body.append("vb = pl.tensor.view(sb, [K // 32, N], layout=pl.MX_B_NN)")
            self.scales = "va", "vb"
        body += self.block(scope, r.randint(2, 5) * self.size)
        self.store(scope, body)
        return self.function(name, "InCore", scalars, body)

    def function(self, name: str, kind: str, scalars: list[Scalar], body: list[str]) -> list[str]:
        head = [
            f"@pl.function(type=pl.FunctionType.{kind})",
            f"def {name}({self.params(scalars)}):",
        ]
        body = [*body, f"return {', '.join(self.outputs)}"]
        return [f"    {line}" for line in (*head, *(f"    {line}" for line in body))]

    def program(self) -> Kernel:
        """The program, launched by its kernel alone or by an orchestration function."""
        r = self.random
        count = r.choice([1, 1, 2])
        is_called = count > 1 or r.random() < 0.5
        scalars = [Scalar("n0", 1, r.randint(1, 3), 1, is_called)] * r.randint(0, 1)
        scalars += [Scalar("n1", 0, self.rows - self.m, 16, is_called)] * r.randint(0, 1)
        lines = ["from scalebox.ir import language as pl", ""]
        lines += [
            f"M, K, N = {self.rows}, {self.depth}, {self.cols}",
            "",
            "@pl.program",
            "class P:",
        ]
        names = ["k", "k2"][:count]
        for name in names:
            lines += self.kernel(name, scalars)
        launch = [Scalar("m", 0, 3, 1)]
        if is_called:
            lines += self.function("main", "Orchestration", launch, self.calls(names, scalars))
        picked = launch if is_called else scalars
        return Kernel(
            "\n".join(lines) + "\n",
            "main" if is_called else "k",
            (self.rows, self.depth, self.cols),
            self.dtypes,
            self.outputs,
            self.is_viewed,
            self.has_bias,
            {s.name: s.first + s.step * r.randint(0, (s.last - s.first) // s.step) for s in picked},
        )

    def calls(self, names: list[str], scalars: list[Scalar]) -> list[str]:
        r, out = self.random, list[str]()
        scope = Scope([], [], set(), has_moves=False)

        def call(scope: Scope) -> str:
            given = ["a", "sa", "b", "sb", *["bias"] * self.has_bias, *self.outputs]
            given += [
                str(s.last) if s.first else self.offset(scope, s.last, s.step) for s in scalars
            ]
            return f"{', '.join(self.outputs)} = self.{r.choice(names)}({', '.join(given)})"

        for _ in range(r.randint(1, 3)):
            kind = r.choice(["call", "loop", "branch"])
            if kind == "loop":
                name, step = self.fresh("j"), r.choice([1, 16])
                out.append(f"for {name} in pl.range(0, {2 * step}, {step}):")
                out.append(f"    {call(scope.inner(Scalar(name, 0, step, step)))}")
            else:
                out += [f"if m > {r.randint(0, 2)}:"] * (kind == "branch")
                out.append(f"{'    ' * (kind == 'branch')}{call(scope)}")
        return out


def inputs_of(kernel: Kernel, seed: int) -> dict[str, Array]:
    """Draw all finite codes, and scales that are near one, anything finite, or now and then NaN."""
    rng = np.random.default_rng(seed)
    m, k, n = kernel.sizes

    def codes(dtype: str, *shape: int) -> Array:
        found = rng.integers(0, 256 if dtype.startswith("FP8") else 16, shape).astype(np.uint8)
        mask, replacement = {"FP8E4M3FN": (0x7F, 0x38), "FP8E5M2": (0x7C, 0x3C)}.get(
            dtype, (0x80, 0)
        )
        found[found & mask == mask] = replacement
        return found

    def scales(*shape: int) -> Array:
        first, last = ((120, 134), (60, 194), (0, 254), (110, 144))[seed % 4]
        found = rng.integers(first, last + 1, shape)
        if seed % 4 == 3:
            for code in (0, 254, 255):
                found[rng.random(shape) < 0.02] = code
        return found.astype(np.uint8)

    sa, sb = scales(m, k // 32), scales(k // 32, n)
    given = {"a": codes(kernel.dtypes[0], m, k), "b": codes(kernel.dtypes[1], k, n)}
    given["sa"] = sa.reshape(1, -1) if kernel.is_viewed else sa
    given["sb"] = sb.reshape(2, -1) if kernel.is_viewed else sb
    if kernel.has_bias:
        given["bias"] = rng.standard_normal((1, n)).astype(np.float32)
    return given
