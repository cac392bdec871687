"""Emission: a tree of machine code becomes a list of instructions, with registers and labels."""
