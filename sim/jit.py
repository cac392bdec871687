"""The ways in which this room compiles a function; see `ir.jit`."""

from ..ir.jit import compiled, inner, lean

__all__ = ["compiled", "inner", "lean"]
