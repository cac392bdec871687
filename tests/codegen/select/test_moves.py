"""Selection of windows: the fields of every instruction by hand arithmetic, flags, and what is refused."""

from collections.abc import Callable

import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.codegen.executable import Executable
from scalebox.codegen.kernel import Kernel
from scalebox.ir.errors import IRValueError

from ..emit.scalar_machine import run_scalar_unit
from ..gemm_text import parsed
from ..sync.flag_checker import judge

Compile = Callable[[str], Executable]

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[96, 256], pl.{dtype}], sa: pl.Tensor[[96, 8], pl.FP8E8M0, pl.MX_A_ZZ],
          b: pl.Tensor[[256, 192], pl.{dtype}], sb: pl.Tensor[[8, 192], pl.FP8E8M0, pl.MX_B_NN],
          z: pl.Tensor[[1, 192], pl.FP32], c: pl.Out[pl.Tensor[[96, 192], pl.FP32]], s: pl.Scalar[pl.INDEX]):
        l = pl.load(a, [0, 0], [96, 256], {valid})
        p = pl.load(sa, [0, 0], [96, 8])
        r = pl.load(b, [0, 0], [256, 192])
        q = pl.load(sb, [0, 0], [8, 192])
        w = pl.load(z, [0, 0], [1, 192])
"""
PRODUCT = """
x = pl.matmul_mx_bias(
    pl.extract(l, {m}, {k}, [32, 128], target_memory=pl.Mem.Left),
    pl.extract(p, {m}, {k} // 32, [32, 4], target_memory=pl.Mem.LeftScale),
    pl.extract(r, {k}, {n}, [128, 64], target_memory=pl.Mem.Right),
    pl.extract(q, {k} // 32, {n}, [4, 64], target_memory=pl.Mem.RightScale),
    pl.extract(w, 0, {n}, [1, 64], target_memory=pl.Mem.Bias),
)
c = pl.store(x, [{m}, {n}], c)
"""
LOOPS = ("for m in pl.range(0, 96, 32):", "for n in pl.pipeline(0, 192, 64, stage=2):")


def source(
    body: str,
    loops: tuple[str, ...] = (),
    *,
    dtype: str = "FP8E4M3FN",
    valid: str = "[96, 256]",
) -> str:
    text = HEAD.format(dtype=dtype, valid=valid)
    for depth, line in enumerate(loops):
        text += "    " * (2 + depth) + line + "\n"
    indent = "    " * (2 + len(loops))
    text += "".join(f"{indent}{line}\n" for line in body.strip().splitlines())
    return f"{text}        return c\n"


def kernel(compiled: Compile, text: str) -> Kernel:
    (found,) = compiled(text).kernels
    return found


def fields(found: Kernel, mnemonic: str) -> dict[str, int]:
    (instruction,) = [each for each in found.program if each.mnemonic == mnemonic]
    return instruction.fields


# --------------------------------------------------------------------------- constant places


def test_a_window_at_a_constant_place_is_a_transfer_from_another_address(compiled: Compile) -> None:
    found = kernel(compiled, source(PRODUCT.format(m=32, k=128, n=64)))
    l1 = dict.fromkeys("lprqw", 0)
    sizes = {"l": 96 * 256, "p": 96 * 8, "r": 256 * 192, "q": 8 * 192}
    for before, after in zip("lprq", "prqw", strict=True):
        l1[after] = -(-(l1[before] + sizes[before]) // 512) * 512
    # Box row 2 of 6 in box column 4; box row 8 of 16 in box column 2.
    assert fields(found, "l1_to_l0a") == {
        "src": l1["l"] + (4 * 6 + 2) * 512, "dst": 0,
        "row_boxes": 2, "col_boxes": 4, "src_pitch": 6, "dst_pitch": 2,
    }  # fmt: skip
    assert fields(found, "l1_to_l0b") == {
        "src": l1["r"] + (2 * 16 + 8) * 512, "dst": 0, "bits": 8, "k": 128, "n": 64, "src_k": 256,
    }  # fmt: skip
    # Four pairs of groups a row of boxes: row of boxes 2, pair 2; row of boxes 4, pair 2.
    assert fields(found, "l1_to_scale_a") == {
        "src": l1["p"] + (2 * 4 + 2) * 32, "dst": 0, "row_boxes": 2, "col_boxes": 2, "src_pitch": 4,
    }  # fmt: skip
    assert fields(found, "l1_to_scale_b") == {
        "src": l1["q"] + (4 * 4 + 2) * 32, "dst": 0, "row_boxes": 4, "col_boxes": 2, "src_pitch": 4,
    }  # fmt: skip
    assert fields(found, "l1_to_bias") == {"src": l1["w"] + 64 * 4, "dst": 0, "bytes": 256}


def test_a_window_is_moved_as_far_as_it_is_valid(compiled: Compile) -> None:
    text = source(PRODUCT.format(m=64, k=128, n=0), valid="[70, 256]")
    found = kernel(compiled, text)
    assert fields(found, "l1_to_l0a")["row_boxes"] == 1
    assert fields(found, "l1_to_scale_a")["row_boxes"] == 1
    assert fields(found, "mad_mx")["m"] == 6


# --------------------------------------------------------------------------- places from registers


def test_a_loop_moves_the_window_by_a_register(compiled: Compile) -> None:
    loops = ("for m in pl.range(0, 96, 32):", "for n in pl.range(0, 192, 64):")
    found = kernel(compiled, source(PRODUCT.format(m="m", k=128, n="n"), loops))
    distances: dict[str, list[int]] = {}
    for each in run_scalar_unit(found.program, [0]):
        if each.instruction.mnemonic.endswith("_at"):
            distances.setdefault(each.instruction.mnemonic, []).append(each.registers["xo"])
    places = [(m, n) for m in (0, 32, 64) for n in (0, 64, 128)]
    # In units of 32 bytes; a line of a box is one, and so is a box of scales.
    assert distances == {
        "l1_to_l0a_at": [4 * 6 * 16 + m for m, _ in places],
        "l1_to_scale_a_at": [m // 16 * 4 + 2 for m, _ in places],
        "l1_to_l0b_at": [n // 32 * 256 + 128 for _, n in places],
        "l1_to_scale_b_at": [n // 16 * 4 + 2 for _, n in places],
        "l1_to_bias_at": [n // 8 for _, n in places],
    }


@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP4"])
@pytest.mark.parametrize("k", ["0", "128", "k"])
def test_the_machine_takes_the_windows_that_the_interpreter_takes(dtype: str, k: str) -> None:
    loops = (*LOOPS, "for k in pl.range(0, 256, 128):") if k == "k" else LOOPS
    text = source(PRODUCT.format(m="m", k=k, n="n"), loops, dtype=dtype)
    made = parsed(text.replace(", s: pl.Scalar[pl.INDEX]", ""))
    (function,) = made.functions.values()
    inputs = draw_inputs(function, 3)
    golden = scalebox.interpret(made, inputs)["c"]
    executable = scalebox.compile(made)
    assert scalebox.run(executable, inputs, timing=False).outputs["c"].tobytes() == golden.tobytes()
    (found,) = executable.kernels
    assert judge(found.program, found.views).sound


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("loops", "m", "what"),
    [
        ((), "s", "begins where no constant tells"),
        (("for m in pl.range(0, s, 32):",), "m", "begins where no constant tells"),
        (("for m in pl.range(0, 64, 8):",), "m", "may begin inside a box"),
        (("for m in pl.range(0, 96, 16):",), "m", "takes 32 from 0 to 80 on"),
        (("for m in pl.range(0, 64, 32):",), "m - 32", "takes 32 from -32 to 0 on"),
    ],
)
def test_a_window_whose_place_is_not_known_to_be_right_is_refused(
    compiled: Compile, loops: tuple[str, ...], m: str, what: str
) -> None:
    with pytest.raises(IRValueError) as caught:
        compiled(source(PRODUCT.format(m=m, k=0, n=0), loops))
    assert caught.value.message == (
        "The row of a window must be known to be a multiple of 16 and to end within the 96 valid "
        f"elements of the tile, but it {what}"
    )
    assert caught.value.hint == "let it follow from constants and loops with constant bounds"
    assert caught.value.span is not None
