"""The instruction set: one table, and what is derived from it.

`table` holds a row an instruction, those of the scalar unit in `scalar`. `program`, `encoding`,
`asm` and `docs` read the rows and name no instruction; `row` says what a row is and checks it,
`vocabulary` names pipes, spaces and the other things that fields count.
"""
