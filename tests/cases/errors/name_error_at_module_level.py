from scalebox.ir import language as pl

K = 64 * GROUPS
