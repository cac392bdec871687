"""A small kernel for each op of the table, with the op on a line of its own that ends in `# here`.

Kernels on tiles load `x` and `y`, matrices of 16 x 32 numbers of FP32, and store `r`; kernels on tensors
take `x` and `y` and return `r`.
"""

from dataclasses import dataclass

_MATRIX = "pl.Tensor[[16, 32], pl.FP32]"
_LOADS = "x = pl.load(a, [0, 0], [16, 32])\ny = pl.load(b, [0, 0], [16, 32])\n"

_ONE = ("exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "neg", "abs", "relu")
_TWO = ("add", "sub", "mul", "div", "rem", "maximum", "minimum")
_REDUCTIONS = ("sum", "prod", "max", "min")
_EXPANSIONS = ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")


@dataclass(frozen=True)
class OpKernel:
    """The parameters, the lines and the type of a function `f`, and what stands beside it."""

    params: str
    body: str
    kind: str = "InCore"
    beside: str = ""

    @property
    def text(self) -> str:
        """The program."""
        lines = "".join(f"        {line}\n" for line in self.body.splitlines())
        head = f"    @pl.function(type=pl.FunctionType.{self.kind})\n"
        return f"@pl.program\nclass P:\n{self.beside}{head}    def f(self, {self.params}):\n{lines}"

    @property
    def marked(self) -> set[int]:
        """Numbers of the lines that are about the op."""
        lines = enumerate(self.text.splitlines(), 1)
        return {number for number, line in lines if line.endswith("# here")}


def _marked(lines: str) -> str:
    return lines if "# here" in lines else f"{lines}  # here"


def _tiles(
    call: str, shape: str = "[16, 32]", dtype: str = "FP32", *, before: str = ""
) -> OpKernel:
    params = f"a: {_MATRIX}, b: {_MATRIX}, o: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]"
    body = f"{_LOADS}{before}{_marked(call)}\n"
    return OpKernel(params, f"{body}o = pl.store(r, [0, 0], o)\nreturn o")


def _tensors(call: str, *, before: str = "") -> OpKernel:
    return OpKernel(f"x: {_MATRIX}, y: {_MATRIX}", f"{before}{_marked(call)}\nreturn r")


def _both(
    name: str, operands: str, shape: str = "[16, 32]", *, dtype: str = "FP32", before: str = ""
) -> dict[str, OpKernel]:
    """Return the kernels of an op that tiles and tensors have, as `r = op(operands)`."""
    return {
        f"tile.{name}": _tiles(
            f"r = pl.tile.{name}({operands})",
            shape,
            dtype,
            before=before.replace("op.", "pl.tile."),
        ),
        f"tensor.{name}": _tensors(
            f"r = pl.tensor.{name}({operands})", before=before.replace("op.", "pl.tensor.")
        ),
    }


def _vector() -> dict[str, OpKernel]:
    """Return the kernels of what the vector core does to tiles and to tensors alike."""
    made: dict[str, OpKernel] = {}
    for name in _ONE:
        made |= _both(name, "x")
    for name in _TWO:
        made |= _both(name, "x, y") | _both(f"{name}s", "x, 3.0")
    for name in _REDUCTIONS:
        made |= _both(f"row_{name}", "x", "[16, 1]") | _both(f"col_{name}", "x", "[1, 32]")
    for axis in ("row", "col"):
        for name in _EXPANSIONS:
            made |= _both(f"{axis}_expand{name}", "x, v", before=f"v = op.{axis}_max(y)\n")
    made |= _both("sel", "m, x, y", before="m = op.cmp(x, y, cmp_type=4)\n")
    made |= _both("sels", "m, x, 2.0", before="m = op.cmps(x, 0.0, cmp_type=2)\n")
    made |= _both("cast", "x, pl.BF16, mode='floor'", dtype="BF16")
    made |= _both("transpose", "x, 0, 1", "[32, 16]")
    made |= _both("reshape", "x, [32, 16]", "[32, 16]")
    made |= _both("concat", "x, y", "[16, 64]")
    made |= _both("slice", "x, [16, 8], [0, 8]", "[16, 8]")
    made |= _both("full", "[16, 32], pl.FP32, 2.5")
    for level in ("tile", "tensor"):
        kernel = _tiles if level == "tile" else _tensors
        masked = f"# here\nr = pl.{level}.sel(m, x, y)"
        made[f"{level}.cmp"] = kernel(f"m = pl.{level}.cmp(x, y, cmp_type=4)  {masked}")
        made[f"{level}.cmps"] = kernel(f"m = pl.{level}.cmps(x, 0.5, cmp_type=4)  {masked}")
        made[f"{level}.read"] = kernel(f"v = pl.{level}.read(x, [3, 5])  # here\nr = pl.mul(y, v)")
    return made


_SHAPES = {
    "tile.write": _tiles("r = pl.tile.write(x, [3, 5], 2.0)"),
    "tensor.write": OpKernel(
        f"r: pl.InOut[{_MATRIX}]", "r = pl.tensor.write(r, [3, 5], 2.0)  # here\nreturn r"
    ),
    "tile.create": _tiles("z = pl.tile.create([16, 32], pl.FP32)  # here\nr = pl.add(z, x)"),
    "tile.assemble": _tiles(
        "r = pl.tile.assemble(x, z, [0, 8])", before="z = pl.slice(y, [16, 8], [0, 0])\n"
    ),
    "tile.set_validshape": _tiles("r = pl.tile.set_validshape(x, 9, 20)", "[9, 20]"),
    "tile.fillpad": _tiles(
        "r = pl.tile.fillpad(z)", before="z = pl.tile.set_validshape(x, 9, 20)\n"
    ),
    "tensor.fillpad": _tensors(
        "r = pl.tensor.fillpad(z)", before="z = pl.slice(x, [16, 32], [0, 0], [9, 20])\n"
    ),
    "tensor.create": _tensors("r = pl.create_tensor([16, 32], dtype=pl.FP32)  # here\nr[:] = x"),
    "tensor.assemble": OpKernel(
        f"x: {_MATRIX}, r: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]",
        "r = pl.tensor.assemble(r, x, [8, 0])  # here\nreturn r",
    ),
    "tensor.view": OpKernel(
        f"x: {_MATRIX}, o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]",
        "v = pl.tensor.view(x, [32, 16])  # here\n"
        "o = pl.store(pl.load(v, [0, 0], [32, 16]), [0, 0], o)\nreturn o",
    ),
    "tensor.dim": _tensors(
        "n = pl.tensor.dim(x, 0)  # here\nr = x\nif n > 3:\n    r = pl.add(x, y)"
    ),
}

_PLAIN = (
    "a: pl.Tensor[[{m}, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], "
    "z: pl.Tensor[[1, 32], pl.FP32], o: pl.Out[pl.Tensor[[{m}, 32], pl.FP32]]"
)
_SCALED = (
    "a: pl.Tensor[[{m}, 64], pl.FP8E4M3FN], sa: pl.Tensor[[{m}, 2], pl.FP8E8M0{layout}], "
    "b: pl.Tensor[[64, 32], pl.FP8E5M2], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN], "
    "z: pl.Tensor[[1, 32], pl.FP32], o: pl.Out[pl.Tensor[[{m}, 32], pl.FP32]]"
)


def _product(name: str, call: str) -> OpKernel:
    """Return the kernel of an op on two tiles in L0, with scales where its name says so."""
    scaled, row = "_mx" in name, name.startswith("gemv")
    names = ("a", "sa", "b", "sb", "z") if scaled else ("a", "b", "z")
    m = 1 if row else 16
    shapes = {"a": [m, 64], "sa": [m, 2], "b": [64, 32], "sb": [2, 32], "z": [1, 32]}
    loads = "".join(
        f"{each}t = pl.load({each}, [0, 0], {shapes[each]}, target_memory=pl.Mem.Mat)\n"
        for each in names
    )
    params = (_SCALED if scaled else _PLAIN).format(m=m, layout="" if row else ", pl.MX_A_ZZ")
    operands = "at, sat, bt, sbt" if scaled else "at, bt"
    plain = f"pl.tile.{name.removesuffix('_acc').removesuffix('_bias')}({operands})"
    start = f"acc = {plain}\n" if name.endswith("_acc") else ""
    return OpKernel(
        params,
        f"{loads}{start}acc = pl.tile.{name}({call.format(operands)})  # here\n"
        "o = pl.store(acc, [0, 0], o)\nreturn o",
    )


_WHOLE = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16]"
_MX_WHOLE = (
    "a: pl.Tensor[[16, 64], pl.FP8E4M3FN], sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ], "
    "b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN]"
)
_ROW = "z: pl.Tensor[[1, 32], pl.FP32]"
_QUANTISED = "r, s = pl.{level}.quant_mx(x, group_axis=1)  # here\n"
_QUANT = OpKernel(
    "a: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP8E4M3FN]], "
    "t: pl.Out[pl.Tensor[[1, 32], pl.FP8E8M0]]",
    f"x = pl.load(a, [0, 0], [16, 64])\n{_QUANTISED.format(level='tile')}"
    "o = pl.store(r, [0, 0], o)\nt = pl.store(s, [0, 0], t, [1, 32])\nreturn o, t",
)
_MOVED = OpKernel(
    _PLAIN.format(m=16),
    "at = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)\n"
    "bt = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)\n"
    "al = pl.tile.move(at, target_memory=pl.Mem.Left)  # here\n"
    "bl = pl.tile.extract(bt, 0, 0, [64, 32], target_memory=pl.Mem.Right)  # here\n"
    "acc = pl.matmul(al, bl)\no = pl.store(acc, [0, 0], o)\nreturn o",
)
_CUBE = {
    **{
        f"tile.{name}{suffix}": _product(name + suffix, call)
        for name in ("matmul", "gemv", "matmul_mx", "gemv_mx")
        for suffix, call in (("", "{}"), ("_acc", "acc, {}"), ("_bias", "{}, zt"))
    },
    "tensor.matmul": OpKernel(_WHOLE, "r = pl.tensor.matmul(a, b)  # here\nreturn r"),
    "tensor.matmul_acc": OpKernel(
        _WHOLE, "r = pl.matmul(a, b)\nr = pl.tensor.matmul_acc(r, a, b)  # here\nreturn r"
    ),
    "tensor.matmul_bias": OpKernel(
        f"{_WHOLE}, {_ROW}", "r = pl.tensor.matmul_bias(a, b, z)  # here\nreturn r"
    ),
    "tensor.matmul_mx": OpKernel(
        _MX_WHOLE, "r = pl.tensor.matmul_mx(a, sa, b, sb)  # here\nreturn r"
    ),
    "tensor.matmul_mx_acc": OpKernel(
        _MX_WHOLE,
        "r = pl.matmul_mx(a, sa, b, sb)\nr = pl.tensor.matmul_mx_acc(r, a, sa, b, sb)  # here\nreturn r",
    ),
    "tensor.matmul_mx_bias": OpKernel(
        f"{_MX_WHOLE}, {_ROW}", "r = pl.tensor.matmul_mx_bias(a, sa, b, sb, z)  # here\nreturn r"
    ),
    "tile.quant_mx": _QUANT,
    "tensor.quant_mx": OpKernel(
        "x: pl.Tensor[[16, 64], pl.FP32]", f"{_QUANTISED.format(level='tensor')}return r, s"
    ),
    "tile.move": _MOVED,
    "tile.extract": _MOVED,
    "tile.fillpad_mat": OpKernel(
        _PLAIN.format(m=16),
        "at = pl.load(a, [0, 0], [16, 64], [9, 50], target_memory=pl.Mem.Mat)\n"
        "af = pl.fillpad(at)  # here\n"
        "bt = pl.load(b, [0, 0], [64, 32])\n"
        "acc = pl.matmul(af, bt)\no = pl.store(acc, [0, 0], o)\nreturn o",
    ),
}

_ENDS = OpKernel(
    f"a: {_MATRIX}, o: pl.Out[{_MATRIX}]",
    "r = pl.tile.load(a, [0, 0], [16, 32])  # here\no = pl.tile.store(r, [0, 0], o)  # here\nreturn o",
)
_GRID = OpKernel(
    f"a: {_MATRIX}, o: pl.Out[{_MATRIX}]",
    "with pl.spmd(2):\n    o = self.part(a, o)\nreturn o",
    "Orchestration",
    "    @pl.function(type=pl.FunctionType.InCore)\n"
    f"    def part(self, a: {_MATRIX}, o: pl.Out[{_MATRIX}]):\n"
    "        row = (pl.tile.get_block_idx() + pl.tile.get_subblock_idx()) * 8  # here\n"
    "        if row < 8 * pl.tile.get_block_num():  # here\n"
    "            o = pl.store(pl.load(a, [row, 0], [8, 32]), [row, 0], o)\n"
    "        return o\n",
)
_TASKS = OpKernel(
    f"a: {_MATRIX}, o: pl.Out[{_MATRIX}]",
    "prev = pl.system.task_invalid()  # here\n"
    "done = pl.system.task_dummy(deps=[prev])  # here\n"
    "o, last = pl.submit(self.part, a, o, deps=[done])\nreturn o",
    "Orchestration",
    "    @pl.function(type=pl.FunctionType.InCore)\n"
    f"    def part(self, a: {_MATRIX}, o: pl.Out[{_MATRIX}]):\n"
    "        o = pl.store(pl.load(a, [0, 0], [16, 32]), [0, 0], o)\n"
    "        return o\n",
)

KERNELS: dict[str, OpKernel] = {
    **_vector(),
    **_SHAPES,
    **_CUBE,
    "tile.load": _ENDS,
    "tile.store": _ENDS,
    **{f"tile.get_{what}": _GRID for what in ("block_idx", "block_num", "subblock_idx")},
    **{f"system.task_{what}": _TASKS for what in ("invalid", "dummy")},
}
"""Op to its kernel."""

MADE_BY_PASSES = {
    "tile.tget_scale_addr": KERNELS["tile.matmul_mx"],
    "tile.quant_scales": _QUANT,
    "tile.quant_elements": _QUANT,
    "tile.scale_boxes": _QUANT,
    "tensor.slice_scales": OpKernel(
        "a: pl.Tensor[[16, 128], pl.MXFP8_E4M3], b: pl.Tensor[[64, 32], pl.MXFP8_E4M3]",
        "r = pl.matmul(pl.slice(a, [16, 64], [0, 64]), b)\nreturn r",
    ),
}
"""Op that nobody writes to a kernel of which some pass makes it."""
