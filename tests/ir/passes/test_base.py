"""What a pass is: names, contracts, contexts and what looks on."""

import threading

import pytest

from scalebox.ir.core import Function, Program, ReturnStmt
from scalebox.ir.errors import IRValueError, UserError, VerificationError
from scalebox.ir.expr import Neg, replace
from scalebox.ir.passes import (
    CallbackInstrument,
    IRProperty,
    Pass,
    PassContext,
    PassPipeline,
    PassProperties,
    VerificationInstrument,
    VerificationMode,
    create_function_pass,
    create_program_pass,
    default_pipeline,
    flatten_call_expr,
    run_verifier,
)
from scalebox.ir.passes.base import current_target
from scalebox.ir.properties import STRUCTURAL
from scalebox.ir.target import load_target

from .parts import INDEX, assign, call, function, program, scalar

N = scalar("n")
PLAIN = program(function("f", [N], ReturnStmt()), function("g", [N], ReturnStmt()))
#: A scalar that is assigned twice: no SSA form.
TWICE = program(function("f", [N], assign("x", N), replace(assign("x", N), var=N)))
#: A variable that nobody defines: structurally wrong.
BROKEN = program(function("f", [], assign("x", scalar("ghost"))))


def renamed(made: Function) -> Function:
    """Put a mark on a function."""
    return replace(made, name=made.name + "2")


def test_a_pass_made_of_a_function_has_its_name_and_contract() -> None:
    made = create_function_pass(
        renamed, "Rename", PassProperties({IRProperty.SSAForm}, [IRProperty.UseAfterDef])
    )
    assert isinstance(made, Pass)
    assert made.get_name() == "Rename"
    assert made.get_required_properties().to_list() == [IRProperty.SSAForm]
    assert made.get_produced_properties().to_list() == [IRProperty.UseAfterDef]
    assert made.get_invalidated_properties().to_list() == []
    assert made.__doc__ == "Put a mark on a function."
    assert [f.name for f in made(PLAIN).functions.values()] == ["f2", "g2"]


def test_a_function_pass_that_changes_nothing_returns_the_same_program() -> None:
    assert create_function_pass(lambda f: f, "Same")(PLAIN) is PLAIN


def test_a_function_pass_keeps_the_functions_that_it_does_not_change() -> None:
    made = create_function_pass(lambda f: renamed(f) if f.name == "f" else f, "One")(PLAIN)
    assert made.get_function("g") is PLAIN.get_function("g")
    assert (made.name, made.span) == (PLAIN.name, PLAIN.span)


def test_a_pass_made_of_a_program_function() -> None:
    other = program()
    made = create_program_pass(lambda _: other, "Replace")
    assert made(PLAIN) is other
    assert made.get_required_properties().to_list() == []


# --------------------------------------------------------------------------- contexts


def test_without_a_context_nothing_is_checked() -> None:
    assert PassContext.current() is None
    assert create_function_pass(lambda f: f, "Same")(BROKEN) is BROKEN


def test_contexts_nest_and_the_inner_one_counts() -> None:
    outer, inner = PassContext(), PassContext([])
    with outer as entered:
        assert entered is outer
        with inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current() is None


def test_a_context_ends_with_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), PassContext():
        raise ZeroDivisionError
    assert PassContext.current() is None


def test_each_thread_has_contexts_of_its_own() -> None:
    seen: list[PassContext | None] = []
    with PassContext():
        thread = threading.Thread(target=lambda: seen.append(PassContext.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_the_machine_is_that_of_the_context_or_the_default() -> None:
    assert current_target() == load_target("a5")
    other = replace(load_target("a5"), l1_bytes=1024)
    with PassContext(target=other):
        assert current_target() is other
    with PassContext():
        assert current_target() == load_target("a5")


# --------------------------------------------------------------------------- instruments


def test_callbacks_see_the_pass_and_the_program_before_and_after() -> None:
    seen: list[tuple[str, str, Program]] = []
    instrument = CallbackInstrument(
        before_pass=lambda p, made: seen.append(("before", p.name, made)),
        after_pass=lambda p, made: seen.append(("after", p.name, made)),
        name="Watch",
    )
    other = program()
    with PassContext([instrument]):
        create_program_pass(lambda _: other, "Replace")(PLAIN)
    assert seen == [("before", "Replace", PLAIN), ("after", "Replace", other)]
    assert instrument.name == "Watch"


def test_callbacks_may_be_left_out() -> None:
    with PassContext([CallbackInstrument()]):
        assert create_function_pass(lambda f: f, "Same")(PLAIN) is PLAIN


REQUIRES = PassProperties(required=[IRProperty.SSAForm])
PRODUCES = PassProperties(produced=[IRProperty.SSAForm])


@pytest.mark.parametrize(
    ("contract", "given", "returned", "mode", "title"),
    [
        (
            REQUIRES,
            TWICE,
            PLAIN,
            VerificationMode.BEFORE,
            "Pre-verification failed before pass 'P'",
        ),
        (REQUIRES, TWICE, PLAIN, VerificationMode.AFTER, None),
        (PRODUCES, PLAIN, TWICE, VerificationMode.AFTER, "Post-verification failed after pass 'P'"),
        (PRODUCES, PLAIN, TWICE, VerificationMode.BEFORE, None),
        (None, PLAIN, TWICE, VerificationMode.BEFORE_AND_AFTER, None),
        (None, BROKEN, PLAIN, VerificationMode.BEFORE, "Pre-verification failed before pass 'P'"),
        (None, PLAIN, BROKEN, VerificationMode.AFTER, "Post-verification failed after pass 'P'"),
    ],
)
def test_a_pass_is_held_to_its_contract(
    contract: PassProperties | None,
    given: Program,
    returned: Program,
    mode: VerificationMode,
    title: str | None,
) -> None:
    made = create_program_pass(lambda _: returned, "P", contract)
    with PassContext([VerificationInstrument(mode)]):
        if title is None:
            assert made(given) is returned
            return
        with pytest.raises(VerificationError) as caught:
            made(given)
    assert caught.value.message.startswith(f"{title}:\n")


def test_verification_looks_before_and_after_by_default() -> None:
    assert VerificationInstrument().mode is VerificationMode.BEFORE_AND_AFTER


# --------------------------------------------------------------------------- the verifier as a pass


def test_the_verifier_is_a_pass_that_changes_nothing() -> None:
    verifier = run_verifier()
    assert isinstance(verifier, Pass)
    assert verifier.get_name() == "RunVerifier"
    assert verifier(PLAIN) is PLAIN
    assert verifier.properties == STRUCTURAL
    with pytest.raises(VerificationError):
        verifier(BROKEN)


def test_the_verifier_looks_at_what_it_is_told_to() -> None:
    assert run_verifier([IRProperty.NoNestedCalls])(BROKEN) is BROKEN
    with pytest.raises(VerificationError, match="SSAVerify"):
        run_verifier([IRProperty.SSAForm])(TWICE)


# --------------------------------------------------------------------------- pipelines


def test_passes_run_one_after_another() -> None:
    pipeline = PassPipeline().add_pass(create_function_pass(renamed, "A"))
    pipeline.add_pass(create_function_pass(renamed, "B"))
    assert pipeline.get_pass_names() == ["A", "B"]
    assert [p.name for p in pipeline] == ["A", "B"]
    for made in (pipeline.run(PLAIN), pipeline(PLAIN)):
        assert [f.name for f in made.functions.values()] == ["f22", "g22"]


def test_the_default_pipeline_reads_aloud() -> None:
    assert default_pipeline().get_pass_names() == [
        "InlineFunctions",
        "FoldTensorDims",
        "UnrollLoops",
        "LowerSlots",
        "ConvertToSSA",
        "NormalizeStmtStructure",
        "FlattenCallExpr",
        "OutlineScopes",
        "ExpandCompoundTensors",
        "ConvertTensorToTileOps",
        "LegalizeTileSlice",
        "FlattenTileNdTo2D",
        "BlockNzTensorViews",
        "BlockMxScaleTensorViews",
        "LegalizeElementAccess",
        "LegalizeQuantMx",
        "LegalizeTileCast",
        "AutoTileMatmulL0",
        "InferTileMemorySpace",
        "InsertMxScaleAddr",
        "LowerPipelineLoops",
        "CanonicalizeIOOrder",
        "MaterializeTensorStrides",
        "CopyChangedTiles",
        "CopyCarriedTiles",
        "InitMemRef",
        "MaterializeSemanticAliases",
        "MemoryReuse",
        "AllocateMemoryAddr",
    ]


def test_the_default_pipeline_gives_each_pass_what_it_requires() -> None:
    held: set[IRProperty] = set()
    for each in default_pipeline():
        assert each.required <= held, each.name
        held = (held - each.invalidated) | each.produced


def test_the_option_of_the_pipeline_reaches_its_pass() -> None:
    found = [p for p in default_pipeline(allow_mx_store=True) if hasattr(p, "allow_mx_store")]
    assert [getattr(p, "allow_mx_store") for p in found] == [True]  # noqa: B009


def test_every_pass_of_the_pipeline_says_what_it_does() -> None:
    for each in default_pipeline():
        assert each.__doc__
        assert each.__doc__.split("\n")[0].endswith(".")


# --------------------------------------------------------------------------- depth


def test_expressions_that_nest_too_deep_are_the_users_mistake() -> None:
    deep = N
    for _ in range(5000):
        deep = Neg(deep, INDEX.dtype)
    made = program(function("f", [N], assign("x", deep), assign("y", call("g"))))
    with pytest.raises(UserError) as caught:
        flatten_call_expr()(made)
    assert isinstance(caught.value, IRValueError)
    assert caught.value.message == "The expressions and loops of 'p' must not nest so deep"
    assert caught.value.hint == "give parts of a long expression names of their own"
