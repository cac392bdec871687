"""The scale-decode unit: a mad's scale boxes in, decoded scales of every step out.

`unit` is the whole; `side` asks for and buffers the boxes of one operand; `walk` counts through a
mad in the order of its boxes.
"""

from __future__ import annotations

from .unit import ScaleDecode

__all__ = ["ScaleDecode"]
