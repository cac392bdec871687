"""What our Verilog costs in gates, lookup tables and depth, and how fast it could be clocked.

`tools` runs Yosys and nextpnr, `measure` takes the figures of one netlist, `page` makes a document
of them. `python -m scalebox.rtl.synthesis` writes that document anew.
"""
