"""What a vector core cannot do is refused by the rule, with a way out and the place."""

import pytest

from scalebox.ir.core import Program
from scalebox.ir.errors import UserError

from .vector_kernels import compiled, kernel

VEC = "target_memory=pl.Mem.Vec"


def refusal(program: Program) -> UserError:
    with pytest.raises(UserError) as caught:
        compiled(program)
    assert caught.value.span is not None
    assert caught.value.span.is_known
    return caught.value


def copied(shape: str, dtype: str, *, valid: str = "") -> Program:
    """Return a kernel that loads a tile and stores it."""
    tensor = f"[[64, 512], pl.{dtype}]"
    body = [f"t = pl.load(a, [0, 0], {shape}{valid})", "out = pl.store(t, [0, 0], out)"]
    return kernel({"a": tensor}, body, tensor)


@pytest.mark.parametrize(
    ("columns", "dtype", "size", "name", "legal"),
    [
        (20, "FP32", 80, "Float32", 24),
        (4, "FP32", 16, "Float32", 8),
        (24, "BF16", 48, "BFloat16", 32),
        (33, "INT8", 33, "Int8", 64),
        (32, "FP4", 16, "E2M1", 64),
    ],
)
def test_rows_of_other_than_32_bytes_are_told_the_next_width(
    columns: int, dtype: str, size: int, name: str, legal: int
):
    found = refusal(copied(f"[16, {columns}]", dtype))
    assert found.message == (
        "The rows of a tile in Vec must take a multiple of 32 bytes each, not "
        f"{size} bytes for {columns} columns of {name}"
    )
    assert found.hint == (
        f"load a tile of {legal} columns, of which valid_shape says that {columns} are valid"
    )
    compiled(copied(f"[16, {legal}]", dtype, valid=f", [16, {columns}]"))


def test_what_does_not_fit_into_ub_is_told_with_all_that_is_there():
    tensor = "[[64, 512], pl.FP32]"
    body = [
        "t = pl.load(a, [0, 0], [64, 512])",
        "u = pl.exp(t)",
        "out = pl.store(pl.add(u, t), [0, 0], out)",
    ]
    found = refusal(kernel({"a": tensor}, body, tensor))
    assert found.message == (
        "Vec buffer usage must be at most the 245760 bytes of UB, not 262144 bytes: "
        "t (131072 bytes); u (131072 bytes)"
    )
    assert found.hint == "use smaller tiles or fewer stages"


def test_what_does_not_fit_into_ub_has_the_names_of_the_text():
    tensor = "[[512, 256], pl.FP32]"
    body = [
        "t = pl.load(a, [0, 0], [128, 128])",
        "for i in pl.pipeline(0, 512, 128, stage=2):",
        "    u = pl.load(a, [i, 0], [128, 256])",
        "    t = pl.load(a, [i, 0], [128, 128])",
        "    u = pl.add(pl.exp(u), u)",
        "    t = pl.add(t, t)",
        "    out = pl.store(u, [i, 0], out)",
        "    out = pl.store(t, [i, 0], out)",
        "out = pl.store(t, [0, 0], out)",
    ]
    found = refusal(kernel({"a": tensor}, body, tensor))
    _, _, listed = found.message.partition("not 393216 bytes: ")
    names = {part.rpartition(" (")[0] for part in listed.split("; ")}
    assert {"t", "u"} < names
    (other,) = names - {"t", "u"}
    assert other.startswith("a tile without a name of line ")


def test_an_odd_number_of_fp4_columns_is_refused():
    with pytest.raises(UserError, match="must be even"):
        compiled(copied("[16, 63]", "FP4"))
    found = refusal(copied("[16, 64]", "FP4", valid=", [16, 5]"))
    assert found.message == (
        "The valid columns of a tile of E2M1 in Vec must be even, since two of its elements lie in a "
        "byte, not 5"
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "what", "most"),
    [
        ("[1, 40000]", "FP16", "columns", 32767),
        ("[1, 32768]", "INT8", "columns", 32767),
        ("[65536, 1]", "INT8", "rows", 65535),
    ],
)
def test_more_than_an_instruction_counts_is_refused(shape: str, dtype: str, what: str, most: int):
    body = [f"t = pl.load(a, [0, 0], {shape})", "out = pl.store(t, [0, 0], out)"]
    tensor = f"[{shape}, pl.{dtype}]"
    found = refusal(kernel({"a": tensor}, body, tensor))
    number = max(int(part) for part in shape.strip("[]").split(","))
    assert found.message == (
        f"A tile in Vec must have at most {most} valid {what}, which is as far as an instruction "
        f"counts, not {number}"
    )
    assert found.hint == (
        f"a loop over tiles of fewer {what}, or pl.tensor.view of the tensor in another shape"
    )


def test_the_widest_tile_that_an_instruction_counts_compiles():
    tensor = "[[1, 32736], pl.FP16]"
    body = ["t = pl.load(a, [0, 0], [1, 32736])", "out = pl.store(t, [0, 0], out)"]
    compiled(kernel({"a": tensor}, body, tensor))


def test_rows_that_lie_further_apart_than_an_instruction_steps_are_refused():
    tensor = "[[2, 16384], pl.FP32]"
    body = ["t = pl.load(a, [0, 0], [2, 16384])", "out = pl.store(t, [0, 0], out)"]
    found = refusal(kernel({"a": tensor}, body, tensor))
    assert found.message == (
        "The rows of a tile in Vec must take at most 65504 bytes each, which is as far as an "
        "instruction steps, not 65536 bytes for 16384 columns of Float32"
    )
    assert found.hint == (
        "a loop over tiles of fewer columns, or pl.tensor.view of the tensor in another shape"
    )


def test_a_tile_of_int64_is_refused_where_it_is_loaded():
    found = refusal(copied("[16, 64]", "INT64"))
    assert found.message == (
        "tile.load of the vector core must move elements of at most 32 bits, not Int64"
    )
    assert (
        found.hint == "the vector core computes on Int32; Int64 is for scalars, which need no tile"
    )


def test_fp4_of_32_rows_on_axis_0_is_refused():
    body = [
        "q, s = pl.quant_mx(pl.load(a, [0, 0], [32, 64]), group_axis=0, dtype=pl.FP4)",
        "out = pl.store(q, [0, 0], out)",
    ]
    found = refusal(kernel({"a": "[[32, 64], pl.BF16]"}, body, "[[64, 32], pl.FP4]"))
    assert "N must be a multiple of 64 to be compiled" in found.message
    assert found.hint == "quantise more rows at once, or fill up with zeros"


@pytest.mark.parametrize(("index", "shape"), [("3, 0:8", "[1, 8]"), ("0:8, 3", "[8, 1]")])
def test_an_index_that_drops_an_axis_of_a_tile_is_refused(index: str, shape: str):
    body = ["t = pl.load(a, [0, 0], [32, 64])", f"out = pl.store(pl.neg(t[{index}]), [0], out)"]
    found = refusal(kernel({"a": "[[32, 64], pl.FP32]"}, body, "[[8], pl.FP32]"))
    assert found.message.startswith(f"tile.slice must keep all axes of {shape} to be compiled")
    assert found.hint == "t[3:4, 0:8] takes a row, and pl.reshape turns a column into one"


@pytest.mark.parametrize("made", ["pl.load(a, [0], [64])", "pl.full([64], pl.FP32, 1.0)"])
def test_a_tile_of_one_axis_is_refused(made: str):
    vector = "[[64], pl.FP32]"
    found = refusal(kernel({"a": vector}, [f"out = pl.store({made}, [0], out)"], vector))
    assert found.message == ("A tile must have rows and columns to be compiled, not the shape [64]")
    assert found.hint == "pl.tensor.view(x, [1, 64]) of a tensor x is loaded as a tile [1, 64]"


def test_several_matrices_in_columns_are_refused():
    view = "pl.TensorView(stride=[2048, 1, 64], layout=pl.DN)"
    body = [
        f"t = pl.load(a, [0, 0, 0], [1, 64, 32], {VEC})",
        "out = pl.store(t, [0, 0, 0], out)",
    ]
    found = refusal(
        kernel({"a": f"[[2, 64, 32], pl.FP32, {view}]"}, body, "[[2, 64, 32], pl.FP32]")
    )
    assert found.message == (
        "tile.load must take a rank-2 tensor in ND or DN here, not one of rank 3 in DN"
    )


def test_a_kernel_of_the_cube_core_has_no_vector_ops():
    body = [f"t = pl.load(a, [0, 0], [16, 64], {VEC})", "out = pl.store(pl.exp(t), [0, 0], out)"]
    found = refusal(kernel({"a": "[[16, 64], pl.FP32]"}, body, "[[16, 64], pl.FP32]", kind="AIC"))
    assert found.message == (
        "The function 'k' of type AIC must use the cube core only, not a vector core"
    )
    assert found.hint == "write type=pl.FunctionType.InCore, which leaves it open"


@pytest.mark.parametrize(
    ("window", "extents"),
    [
        (
            "pl.slice(x, [16, 100], [m, 0], clamp=True, pad_value=pl.PadValue.zero)",
            "[pl.min(16, pl.max(0, 40 - m)), 100]",
        ),
        ("pl.load(x, [m, 0], [16, 104], [pl.min(16, 40 - m), 100])", "[pl.min(16, 40 - m), 100]"),
    ],
)
def test_a_window_that_a_loop_cuts_shorter_is_told_its_extents_and_pl_unroll(
    window: str, extents: str
):
    def program(loop: str) -> Program:
        body = [
            f"for m in {loop}(0, 40, 16):",
            f"    w = pl.fillpad({window})",
            "    out[m : m + 16, :] = w" if "slice" in window else "    pl.store(w, [m, 0], out)",
        ]
        columns = 100 if "slice" in window else 104
        return kernel({"x": "[[40, 100], pl.FP32]"}, body, f"[[48, {columns}], pl.FP32]")

    found = refusal(program("pl.range"))
    assert (
        found.message == "The valid shape of a tile that is compiled must be constant, not symbolic"
    )
    assert found.hint == (
        f"it is {extents}: pl.unroll in place of pl.range makes a number of a loop's variable; or give "
        "the last, shorter window a branch of its own, with constants"
    )
    compiled(program("pl.unroll"))
