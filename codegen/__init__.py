"""The instruction set, and the lowering of programs onto it.

From a program after all passes: selection makes a tree of instructions, synchronisation puts event
flags into it, emission gives it registers and labels, and the whole becomes an executable.
"""
