"""Running the generated Verilog: simulators, builds, and what drives the units in them.

`toolchain` finds the simulators, `cache` keeps what they compiled, `run` runs cocotb tests, and
`library` makes shared libraries of Verilog.

`wires` tells how the streams of the scale-decode unit lie in arrays. `replay` puts such a recording
onto the hardware, through `verilated_unit` or through cocotb and `replay_bench`, and compares.

`pairs` runs arrays of scale pairs, `dot` sums of products, `cube` whole mads with `cube_harness` as
its memories and `cube_rate` as its stop watch. `bench`, `streams` and `coverage` are for the inside
of a cocotb test.
"""
