"""Which views suit which instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..codegen.executable import Layout
from ..codegen.isa.vocabulary import Convert, FixConvert, ScaleRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.executable import View

_VIEW_BITS: Final = (4, 8, 16, 32)
_NZ_BITS: Final = (8, 16, 32)
_BOX_TAIL: Final = ((16, 2), (2, 1))
_BOX_ROWS: Final = 16
_LINE_BITS: Final = 256
_BYTE: Final = 8
_WIDEST_GAP: Final = 65535
"""Rows between two columns of boxes that a load's 16-bit field can skip."""


def view_complaint(mnemonic: str, view: View, named: Mapping[str, int]) -> str | None:
    """Return what a view must be for an instruction, and what it is, or None if it suits.

    Args:
        mnemonic: The instruction.
        view: The view that it names.
        named: Its fields.
    """
    if "convert" in named:
        return _stored(mnemonic, view, named["convert"])
    match mnemonic:
        case "gm_to_l1_boxes" | "ub_to_gm_boxes":
            return _boxes(view)
        case "gm_to_l1_nz_boxes":
            return _nz_boxes(view) or _gap(view, named)
        case "gm_to_l1_scales":
            return _pairs(view, ScaleRows(named["layout"]))
        case "gm_to_l1_nz" if view.bits < _BYTE and view.strides[0] == 1:
            return _columns(view)
        case _:
            return _elements(view)


def _stored(mnemonic: str, view: View, convert: int) -> str | None:
    kind = Convert if mnemonic == "l0c_to_gm" else FixConvert
    wanted = kind(convert).bits
    if view.bits != wanted:
        return f"of {wanted}-bit elements, not of {view.bits}-bit ones"
    return _nz_boxes(view) if mnemonic == "l0c_to_gm_nz" else None


def _boxes(view: View) -> str | None:
    if view.bits == 8 and (view.dims[3:], view.strides[3:]) == _BOX_TAIL:
        return None
    return (
        "of 8-bit elements whose last two dimensions are 16 x 2 with strides 2 and 1, not "
        f"{_as_it_is(view)}"
    )


def _nz_boxes(view: View) -> str | None:
    wide = _LINE_BITS // view.bits
    if view.bits in _NZ_BITS and (view.dims[3:], view.strides[3:]) == ((16, wide), (wide, 1)):
        return None
    return (
        "of elements of 8, 16 or 32 bits whose last two dimensions are 16 x c0 with strides "
        f"c0 and 1, c0 of 32 bytes, not {_as_it_is(view)}"
    )


def _gap(view: View, named: Mapping[str, int]) -> str | None:
    """Return why a load of several columns of boxes cannot go from one to the next."""
    wide = _LINE_BITS // view.bits
    gap = view.strides[1] // wide - named["row_boxes"] * _BOX_ROWS
    if named["col_boxes"] == 1 or gap <= _WIDEST_GAP:
        return None
    return (
        f"of which a load of several columns of boxes skips at most {_WIDEST_GAP} rows from one to "
        f"the next, not {gap}"
    )


def _pairs(view: View, layout: ScaleRows) -> str | None:
    """Return why a view is not of rows and pairs of scales, in the order that the layout says."""
    wanted = Layout[layout.name[-2:]]
    if view.bits == 8 and view.layout is wanted:
        last = view.dims[4], view.strides[3:]
        if view.dims[:2] == (1, 1) and last == (2, (2, 1)):
            return None
    order = "[1, 1, rows, pairs, 2]" if layout.by_rows else "[1, 1, pairs, rows, 2]"
    return (
        f"in {wanted.name} of 8-bit elements and dimensions {order} with strides 2 and 1 at the end, "
        f"as {layout.name.lower()} has them, not in {view.layout.name} {_as_it_is(view)}"
    )


def _elements(view: View) -> str | None:
    if view.bits not in _VIEW_BITS:
        return f"of 4-, 8-, 16- or 32-bit elements, not of {view.bits}-bit ones"
    if view.bits < _BYTE and view.strides[1] != 1:
        return f"with stride 1 along the last axis for 4-bit elements, not {view.strides[1]}"
    return None


def _columns(view: View) -> str | None:
    """Return why the columns of a view are not whole bytes one after the other."""
    if view.strides[1] == 1 or view.strides[1] * view.bits % _BYTE == 0:
        return None
    return f"whose columns lie an even number of 4-bit elements apart, not {view.strides[1]}"


def _as_it_is(view: View) -> str:
    return (
        f"of {view.bits}-bit elements, dimensions {list(view.dims)} and strides "
        f"{list(view.strides)}"
    )
