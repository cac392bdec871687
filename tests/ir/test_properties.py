"""Sets of properties."""

from scalebox.ir.properties import STRUCTURAL, IRProperty, IRPropertySet

SSA, DEF, TYPES = IRProperty.SSAForm, IRProperty.UseAfterDef, IRProperty.TypeChecked


def test_members_come_and_go() -> None:
    some = IRPropertySet([DEF])
    some.insert(SSA)
    some.insert(SSA)
    assert some.to_list() == [SSA, DEF]
    assert some.contains(SSA)
    assert SSA in some
    some.remove(SSA)
    some.remove(SSA)
    assert not some.contains(SSA)
    assert len(some) == 1


def test_a_union_is_a_new_set() -> None:
    one, other = IRPropertySet([SSA]), IRPropertySet([TYPES, SSA])
    both = one.union_with(other)
    assert both.to_list() == [SSA, TYPES]
    assert one.to_list() == [SSA]
    assert one.union_with([DEF]) == IRPropertySet([DEF, SSA])


def test_sets_are_equal_when_their_members_are() -> None:
    assert IRPropertySet([SSA, DEF]) == IRPropertySet([DEF, SSA])
    assert IRPropertySet() != IRPropertySet([SSA])
    assert IRPropertySet() != set()
    assert repr(IRPropertySet([DEF, SSA])) == "IRPropertySet({SSAForm, UseAfterDef})"


def test_what_holds_of_every_program() -> None:
    assert {member.name for member in STRUCTURAL} == {
        "TypeChecked",
        "UseAfterDef",
        "NoRedundantBlocks",
        "BreakContinueValid",
        "PipelineLoopValid",
        "InOutUseValid",
        "NoNestedInCore",
    }
