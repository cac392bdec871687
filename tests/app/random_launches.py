"""Random orchestrations as source text: launches of every kind, in loops and branches of every kind.

Every launch reads a row that an earlier one may have written, so that their order shows in the result.
"""

from dataclasses import dataclass, field
from random import Random

ROWS, COLS = 64, 64
HEAD = f"""from scalebox.ir import language as pl

A = pl.Tensor[[{ROWS}, 64], pl.FP8E4M3FN]
SA = pl.Tensor[[{ROWS}, 2], pl.FP8E8M0, pl.MX_A_ZZ]
B = pl.Tensor[[64, {COLS}], pl.FP8E4M3FN]
SB = pl.Tensor[[2, {COLS}], pl.FP8E8M0, pl.MX_B_NN]
C = pl.Tensor[[{ROWS}, {COLS}], pl.FP32]
FLAT = pl.Tensor[[1, {ROWS * COLS}], pl.FP32]


@pl.program
class Launches:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(self, a: A, sa: SA, b: B, sb: SB, z: FLAT, c: pl.InOut[C], row: pl.Scalar[pl.INDEX], col: pl.Scalar[pl.INDEX], at: pl.Scalar[pl.INDEX]):
        i = row + pl.tile.get_block_idx() * 16
{{tile}}
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: A, sa: SA, b: B, sb: SB, c: pl.InOut[C], d: pl.InOut[C], n: pl.Scalar[pl.INDEX]):
        t = None
        x = n
        z = pl.tensor.view(d, [1, {ROWS * COLS}])
        c = self.tile(a, sa, b, sb, z, c, 0, 0, 0)
"""
PRODUCT = (
    "acc = pl.matmul_mx_bias(pl.load(a, [{row}, 0], [16, 64]), pl.load(sa, [{row}, 0], [16, 2]), "
    "pl.load(b, [0, {col}], [64, 32]), pl.load(sb, [0, {col}], [2, 32]), pl.load({z}, [0, {at}], [1, 32]))",
    "{c} = pl.store(acc, [{row}, {col}], {c})",
)
DEEPEST = 3


@dataclass
class Writer:
    """Writes one program; `places` are names of numbers from 0 to 1, known not to be negative."""

    seed: int
    names: int = 0
    lines: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def program(self) -> str:
        """Return the text."""
        tile = "\n".join(
            " " * 8 + line.format(row="i", col="col", z="z", at="at", c="c") for line in PRODUCT
        )
        self.block(8, (), 0)
        return HEAD.replace("{tile}", tile) + "\n".join([*self.lines, " " * 8 + "return c, d", ""])

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def place(self, places: tuple[str, ...], step: int, most: int) -> str:
        """Return a multiple of `step` from 0 to `most * step`."""
        choices = [str(self.random.randint(0, most) * step)]
        if most >= 1:
            choices += [f"{name} * {step}" for name in places]
        if most >= 2:
            choices += [f"({name} + 1) * {step}" for name in places]
        return self.random.choice(choices)

    def condition(self, places: tuple[str, ...]) -> str:
        r = self.random
        name = r.choice(["x", "n", *places])
        return f"{name} {r.choice(['<', '>', '==', '!='])} {r.randint(0, 4)}"

    def block(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            kinds = ["launch"] * 3 + ["scalar"]
            if depth < DEEPEST:
                kinds += ["for", "for", "if", "while"]
            getattr(self, f"write_{self.random.choice(kinds)}")(indent, places, depth)

    def write(self, indent: int, *lines: str) -> None:
        self.lines += [" " * indent + line for line in lines]

    # ------------------------------------------------------------------- control flow

    def write_for(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        name, word = self.fresh("i"), self.random.choice(["range", "parallel", "unroll"])
        bounds = self.random.choice(["2", "1", "1, 2", "0, 2, 1", "1, -1, -1"])
        known = not bounds.endswith("-1")
        self.write(indent, f"for {name} in pl.{word}({bounds}):")
        self.block(indent + 4, (*places, name) if known else places, depth + 1)

    def write_if(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        self.write(indent, f"if {self.condition(places)}:")
        self.block(indent + 4, places, depth + 1)
        if self.random.random() < 0.6:
            self.write(indent, "else:")
            self.block(indent + 4, places, depth + 1)

    def write_while(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        name = self.fresh("w")
        self.write(indent, f"{name} = {self.random.choice(['0', 'n % 3', 'x % 2'])}")
        self.write(indent, f"while {name} < {self.random.randint(0, 2)}:")
        self.block(indent + 4, places, depth + 1)
        self.write(indent + 4, f"{name} = {name} + 1")

    def write_scalar(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        del depth
        other = self.random.choice(["n", "1", *places])
        self.write(indent, f"x = (x * 3 + {other}) % 7")

    # ------------------------------------------------------------------- launches

    def write_launch(self, indent: int, places: tuple[str, ...], depth: int) -> None:
        del depth
        r = self.random
        c, other = r.choice([("c", "d"), ("d", "c")])
        kind = r.choice(["call", "submit", "spmd_submit", "grid", "blocks", "region"])
        blocks = r.randint(1, 2) if kind in ("spmd_submit", "grid", "blocks") else 1
        row, col = self.place(places, 16, 4 - blocks), self.place(places, 32, 1)
        at = self.place(places, 32, 3)
        view = self.fresh("z")
        self.write(indent, f"{view} = pl.tensor.view({other}, [1, {ROWS * COLS}])")
        args = f"a, sa, b, sb, {view}, {c}, {row}, {col}, {at}"
        deps = r.choice(
            ["", ", deps=[t]", ", deps=[t, None]", ", deps=[pl.system.task_dummy(deps=[t])]"]
        )
        named = r.random() < 0.5
        match kind:
            case "call":
                self.write(indent, f"{c} = self.tile({args})")
            case "submit":
                self.write(indent, f"{c}, t = pl.submit(self.tile, {args}{deps})")
            case "spmd_submit":
                self.write(
                    indent, f"{c}, t = pl.spmd_submit(self.tile, {args}, core_num={blocks}{deps})"
                )
            case "grid":
                head = f"{blocks}{deps}) as t" if named else f"{blocks})"
                self.write(indent, f"with pl.spmd({head}:", f"    {c} = self.tile({args})")
            case "blocks":
                number = self.fresh("b")
                self.write(indent, f"for {number} in pl.spmd({blocks}):")
                self.write_product(indent + 4, f"{row} + {number} * 16", col, view, at, c)
            case _:
                head = f"{deps}) as t" if named else ")"
                self.write(indent, f"with pl.at(level=pl.Level.CORE_GROUP{head}:")
                self.write_product(indent + 4, row, col, view, at, c)

    def write_product(self, indent: int, row: str, col: str, z: str, at: str, c: str) -> None:
        for line in PRODUCT:
            self.write(indent, line.format(row=row, col=col, z=z, at=at, c=c))
