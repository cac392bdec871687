from dataclasses import replace

import pytest

from scalebox.codegen.isa.program import Instruction, make
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.tensors import Direction, Layout, Param, ParamKind, View
from scalebox.ir.errors import IRValueError, Span

A = Param("a", ParamKind.TENSOR, "FP8E4M3FN", 8, Direction.IN, (64, 128))
N = Param("n", ParamKind.SCALAR, "INDEX", 64)
ROWS_OF_A = View(0, Layout.ND, 8, (64, 128), (128, 1))
HALT = make("halt")


def kernel(*program: Instruction, params: tuple[Param, ...] = (A, N)) -> Kernel:
    return Kernel.assemble("k", params=params, views=[ROWS_OF_A], program=[*program, HALT])


def load(view: int = 0) -> Instruction:
    return make("gm_to_l1_nz", view=view, xr=0, xc=0, l1=0, rows=64, cols=128, l1_rows=64)


@pytest.mark.parametrize(
    ("shape", "bits", "size"), [((3, 5), 8, 15), ((3, 5), 4, 8), ((2, 2), 32, 16), ((7,), 1, 1)]
)
def test_a_tensors_size_packs_its_elements(shape: tuple[int, ...], bits: int, size: int):
    tensor = Param("t", ParamKind.TENSOR, "any", bits, Direction.IN, shape)
    assert tensor.size_bytes == size


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "A parameter's name must be non-empty and without '#', not ''."),
        ({"name": "a#2"}, "A parameter's name must be non-empty and without '#', not 'a#2'."),
        ({"bits": 0}, "Parameter 'a' must have elements of 1 to 64 bits, not 0."),
        ({"shape": ()}, "Parameter 'a' must have 1 to 5 dimensions, not 0."),
        ({"shape": (1,) * 6}, "Parameter 'a' must have 1 to 5 dimensions, not 6."),
        ({"shape": (4, 0)}, "Parameter 'a' must have positive extents, not [4, 0]."),
        (
            {"shape": (1 << 40, 1 << 40)},
            f"Parameter 'a' must have at most {1 << 44} elements, not {[1 << 40, 1 << 40]}.",
        ),
        (
            {"kind": ParamKind.SCALAR},
            "Parameter 'a' must have no shape, direction or layout, since it is a scalar.",
        ),
    ],
)
def test_a_parameter_checks_itself(changed: dict[str, object], message: str):
    with pytest.raises(IRValueError) as caught:
        replace(A, **changed)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strides": (1,)}, "A view must have as many strides as extents (2), not 1."),
        ({"strides": (-1, 1)}, f"A view's strides must be 0 to {1 << 44}, not [-1, 1]."),
        ({"offset": -1}, f"A view's offset must be 0 to {1 << 44}, not -1."),
        ({"dims": ()}, "A view must have 1 to 5 dimensions, not 0."),
        ({"bits": 65}, "A view must have elements of 1 to 64 bits, not 65."),
    ],
)
def test_a_view_checks_itself(changed: dict[str, object], message: str):
    with pytest.raises(IRValueError) as caught:
        replace(ROWS_OF_A, **changed)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            replace(ROWS_OF_A, offset=1),
            "View 0 of kernel 'k' must stay inside the 8192 bytes of 'a', not reach element 8192 "
            "of 8 bits.",
        ),
        (
            replace(ROWS_OF_A, bits=16),
            "View 0 of kernel 'k' must stay inside the 8192 bytes of 'a', not reach element 8191 "
            "of 16 bits.",
        ),
        (
            replace(ROWS_OF_A, param=2),
            "View 0 of kernel 'k' must name one of the 2 parameters, not 2.",
        ),
        (
            replace(ROWS_OF_A, param=1),
            "View 0 of kernel 'k' must be of a tensor, not of the scalar 'n'.",
        ),
    ],
)
def test_a_view_stays_inside_its_tensor(view: View, message: str):
    with pytest.raises(IRValueError) as caught:
        Kernel.assemble("k", params=[A, N], views=[view], program=[HALT])
    assert caught.value.message == message


def test_a_blocked_scale_view_has_the_strides_of_its_boxes():
    scales = Param("s", ParamKind.TENSOR, "FP8E8M0", 8, Direction.IN, (64, 4), Layout.MX_A_ZZ)
    view = View(0, Layout.MX_A_ZZ, 8, (1, 4, 2, 16, 2), (256, 64, 32, 2, 1))
    assert view.last == 255
    boxes = make("gm_to_l1_boxes", view=0, xi=0, xj=0, l1=0, ni=4, nj=2, l1_nj=2)
    built = Kernel.assemble("k", params=[scales], views=[view], program=[boxes, HALT])
    assert built.tensors == (scales,)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            [load(1)],
            "Instruction 0 (gm_to_l1_nz) of kernel 'k' must use one of the 1 views, not 1.",
        ),
        (
            [make("gm_to_l1_boxes", view=0, xi=0, xj=0, l1=0, ni=1, nj=1, l1_nj=1)],
            "Instruction 0 (gm_to_l1_boxes) of kernel 'k' must use a view of rank 5, not 2.",
        ),
        (
            [make("ldparam", xd=0, index=1)],
            "Instruction 0 (ldparam) of kernel 'k' must use one of the 1 scalar parameters, not 1.",
        ),
        (
            [make("nop"), make("jump", target=2)],
            "Instruction 1 (jump) of kernel 'k' must branch to an instruction, 0 to 2, not to 3.",
        ),
        (
            [make("jump", target=-1)],
            "Instruction 0 (jump) of kernel 'k' must branch to an instruction, 0 to 1, not to -1.",
        ),
    ],
)
def test_an_instruction_points_at_what_is_there(program: list[Instruction], message: str):
    with pytest.raises(IRValueError) as caught:
        kernel(*program)
    assert caught.value.message == message


@pytest.mark.parametrize("program", [(), (make("nop"),), (HALT, make("beqz", xa=0, target=-1))])
def test_a_program_cannot_run_past_its_end(program: tuple[Instruction, ...]):
    with pytest.raises(IRValueError) as caught:
        Kernel.assemble("k", params=[], views=[], program=program)
    assert caught.value.message == (
        "Kernel 'k' must end with a halt or a jump, not run past its end."
    )


def test_parameters_have_different_names():
    with pytest.raises(IRValueError, match=r"different names, not \['a', 'a'\]"):
        kernel(params=(A, A))


def test_spans_are_shared_in_a_table_and_found_again():
    here, there = Span("k.py", 3, 5), Span("k.py", 4, 5)
    built = Kernel.assemble(
        "k",
        params=[],
        views=[],
        program=[make("nop"), make("nop"), make("nop"), HALT],
        spans=[here, there, here, Span.unknown()],
        notes={2: "second half"},
    )
    assert built.span_table == (here, there)
    assert built.span_indices == (0, 1, 0, -1)
    assert [built.span(index) for index in range(4)] == [here, there, here, Span.unknown()]
    assert [built.note(index) for index in range(4)] == [None, None, "second half", None]


def test_debug_tables_fit_the_program():
    built = kernel()
    with pytest.raises(IRValueError, match=r"a span index per instruction \(1\), not 2"):
        replace(built, span_indices=(-1, -1))
    with pytest.raises(IRValueError, match="span indices of -1 to -1, not 0"):
        replace(built, span_indices=(0,))
    with pytest.raises(
        IRValueError, match=r"at most one note per instruction, in order, not \[1\]"
    ):
        replace(built, notes=((1, "beyond"),))


def test_words_are_read_only():
    words = kernel().words
    assert words.shape == (1, 2)
    assert not words.flags.writeable
