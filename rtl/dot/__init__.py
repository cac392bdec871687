"""The dot unit: products of a group of K, their exact sum, one rounding, and an accumulator.

`LineDecode` turns a line of elements and its scales into an operand, `DotCore` is what stands at
every place of the cube, `DotUnit` is both behind streams. Each step of the arithmetic is a
component of its own: `Multiply`, `AlignedSum`, `PlainSum`, `Magnitude`, `RoundFp32`, `AddFp32`.
"""
