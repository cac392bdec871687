"""Running the generated Verilog: simulators, builds, and the parts of a cocotb bench.

`toolchain` finds the simulators, `cache` keeps what they compiled, `run` runs cocotb tests, `pairs`
runs arrays through the Verilog; `streams` and `bench` are for the inside of a cocotb test.
"""
