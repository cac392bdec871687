from scalebox.ir import language as pl

M = 64
