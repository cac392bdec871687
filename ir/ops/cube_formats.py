"""Which formats the cube multiplies with scales, and what stands for a compound dtype there."""

from __future__ import annotations

from ..dtypes import E1M2, BlockScaledDType, DType

#: The element dtypes that the cube multiplies with each other; a pair takes both from one set.
OPERAND_SETS: tuple[tuple[DType, ...], ...] = (
    (DType.E4M3, DType.E5M2),
    (DType.E2M1, E1M2),
)


def planes_on_tiles(dtype: DType) -> str | None:
    """Return the two tensors that stand for one of `dtype` where the cube multiplies, or None."""
    if not isinstance(dtype, BlockScaledDType) or dtype.simple_types[1:] != (DType.E8M0,):
        return None
    if not any(dtype.element in legal for legal in OPERAND_SETS):
        return None
    return f"two tensors, elements of {dtype.element.name} and scales of E8M0 in MX_A_ZZ or MX_B_NN"
