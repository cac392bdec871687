"""Test vectors of the RTL's units: words in, and the words that must come out.

What must come out is what the model side says: `sim` for the scale-decode unit and its cycles, and
`ir.numerics` for every number. `document` makes the file of a unit; `scales` and `products` make its
cases.
"""

from __future__ import annotations

from .document import vectors

__all__ = ["vectors"]
