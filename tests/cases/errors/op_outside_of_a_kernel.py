from scalebox.ir import language as pl

t = pl.load(None, [0, 0], [16, 64])
