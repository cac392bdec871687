"""The machine in numba: what a compiled kernel computes, and how many cycles it takes.

`device.simulate` is the door; `report.SimResult` is what comes out. A launch goes task by task:
`scalar` resolves the kernel's loops into a stream of instructions, `core.check_bounds` holds every
access against its memory, `timing` runs the pipes, and `core.execute` moves and multiplies the data
in the order in which the pipes finish.
"""
