"""Instruction selection: what a kernel computes, after all passes, as a tree of machine code."""
