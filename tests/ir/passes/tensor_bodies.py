"""Bodies of kernels that work on whole tensors: parameters and statements, by what they show."""

from typing import Final

BODIES: Final[dict[str, tuple[str, str]]] = {
    "rank 1": (
        "a: pl.Tensor[[100], pl.FP32], b: pl.Tensor[[4, 25], pl.FP32]",
        "c = pl.add(a, pl.reshape(b, [100]))\nd = pl.concat(c, a[3:20])\nx = c[3]\ny = a[4]\nd[5] = y\nreturn d, pl.mul(c, x)",
    ),
    "rank 1 aligned": (
        "a: pl.Tensor[[128], pl.FP32], b: pl.Tensor[[4, 32], pl.FP32], o: pl.Out[pl.Tensor[[64], pl.FP32]]",
        "c = pl.add(a, pl.reshape(pl.neg(b), [128]))\no[:] = c[0:64]\nreturn o, pl.tensor.full([7], pl.INT32, 3)",
    ),
    "sum begun in a loop": (
        "a: pl.Tensor[[40, 64], pl.BF16], b: pl.Tensor[[64, 30], pl.BF16], o: pl.Out[pl.Tensor[[40, 30], pl.FP32]]",
        "for m in pl.range(0, 40, 20):\n    s = pl.create_tensor([20, 30], dtype=pl.FP32)\n    for k in pl.range(0, 64, 16):\n"
        "        s = pl.matmul_acc(s, a[m : m + 20, k : k + 16], b[k : k + 16, :], init_cond=(k == 0))\n"
        "    o[m : m + 20, :] = pl.relu(s)\nreturn o",
    ),
    "carried columns": (
        "a: pl.Tensor[[64, 40], pl.FP32], b: pl.Tensor[[16, 40], pl.FP32]",
        "m = pl.row_sum(b)\nfor i in pl.range(4):\n    m = pl.maximum(m, pl.row_sum(a[16 * i : 16 * i + 16, :]))\nreturn m",
    ),
    "while and yields": (
        "a: pl.Tensor[[64, 40], pl.FP32], n: pl.Scalar[pl.INDEX]",
        "for i, (s,) in pl.range(2, init_values=(a,)):\n    t = pl.yield_(pl.add(s, a))\nif n > 0:\n    u = pl.yield_(pl.neg(t))\nelse:\n    u = pl.yield_(t)\nreturn u, t",
    ),
    "nested windows": (
        "a: pl.Tensor[[64, 64], pl.FP32]",
        "w = a[8:40, 8:48]\nv = w[4:20, :]\nreturn pl.add(v, v), w",
    ),
    "renamed": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "b = a\nc = pl.neg(b)\nd = c\ne = pl.add(d, b)\nreturn d, e",
    ),
    "one element": (
        "a: pl.Tensor[[16, 40], pl.FP32]",
        "s = pl.col_sum(pl.row_sum(a))\nreturn s",
    ),
    "ints": (
        "a: pl.Tensor[[16, 40], pl.INT32], b: pl.Tensor[[16, 40], pl.INT32]",
        "return pl.maximum(pl.rem(a, 3), pl.abs(b))",
    ),
    "chain": (
        "a: pl.Tensor[[20, 40], pl.FP32], b: pl.Tensor[[20, 40], pl.FP32]",
        "c = pl.add(pl.mul(a, 2.0), pl.exp(b))\nreturn c",
    ),
    "aligned": (
        "a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32]",
        "c = pl.sub(pl.mul(a, b), pl.neg(b))\nreturn c",
    ),
    "softmax": (
        "a: pl.Tensor[[48, 50], pl.FP32]",
        "m = pl.row_max(a)\ne = pl.row_expand_expdif(a, m)\ns = pl.row_sum(e)\nreturn pl.row_expand_div(e, s)",
    ),
    "columns": (
        "a: pl.Tensor[[17, 33], pl.BF16]",
        "s = pl.col_max(a)\nt = pl.col_expand_sub(a, s)\nu = pl.col_sum(t)\nreturn t, u",
    ),
    "casts": (
        "a: pl.Tensor[[16, 40], pl.FP32]",
        "h = pl.cast(a, pl.BF16, mode='rint')\ni = pl.cast(h, pl.INT32, mode='floor')\nreturn h, i",
    ),
    "fp4": (
        "a: pl.Tensor[[16, 64], pl.FP4]",
        "h = pl.cast(a, pl.BF16)\nreturn h",
    ),
    "fp4 narrow": (
        "a: pl.Tensor[[16, 32], pl.FP4]",
        "h = pl.cast(a, pl.BF16)\nreturn h",
    ),
    "masks": (
        "a: pl.Tensor[[16, 40], pl.FP32], b: pl.Tensor[[16, 40], pl.FP32]",
        "m = pl.cmp(a, b, cmp_type=4)\nc = pl.sel(m, a, b)\nd = pl.sel(pl.cmps(a, 0.0, cmp_type=2), c, 0.0)\nreturn c, d",
    ),
    "transpose": (
        "a: pl.Tensor[[20, 40], pl.FP32]",
        "t = pl.transpose(a, 0, 1)\nu = pl.transpose(pl.add(t, 1.0), -1, -2)\nreturn t, u",
    ),
    "transpose aligned": (
        "a: pl.Tensor[[32, 64], pl.BF16]",
        "t = pl.transpose(a, 0, 1)\nreturn pl.add(t, t)",
    ),
    "transpose column": (
        "a: pl.Tensor[[20, 40], pl.FP32]",
        "t = pl.transpose(pl.row_sum(a), 0, 1)\nu = pl.transpose(pl.col_sum(a), 0, 1)\nreturn t, u",
    ),
    "reshape": (
        "a: pl.Tensor[[20, 40], pl.FP32]",
        "t = pl.reshape(a, [40, 20])\nu = pl.reshape(pl.add(t, 1.0), [10, 80])\nreturn t, u",
    ),
    "reshape aligned": (
        "a: pl.Tensor[[32, 64], pl.FP32]",
        "t = pl.reshape(pl.add(a, 1.0), [64, 32])\nreturn pl.neg(t)",
    ),
    "reshape 3": (
        "a: pl.Tensor[[2, 16, 32], pl.FP32]",
        "t = pl.reshape(pl.add(a, 1.0), [32, 32])\nu = pl.reshape(t, [4, 8, 32])\nreturn u",
    ),
    "rank 3": (
        "a: pl.Tensor[[2, 16, 40], pl.FP32], b: pl.Tensor[[2, 16, 40], pl.FP32]",
        "return pl.mul(pl.add(a, b), 2.0)",
    ),
    "concat": (
        "a: pl.Tensor[[16, 20], pl.FP32], b: pl.Tensor[[16, 24], pl.FP32]",
        "c = pl.concat(a, b)\nreturn pl.add(c, 1.0)",
    ),
    "concat aligned": (
        "a: pl.Tensor[[16, 32], pl.FP32], b: pl.Tensor[[16, 24], pl.FP32]",
        "c = pl.concat(a, pl.neg(b))\nreturn c",
    ),
    "concat with a column": (
        "a: pl.Tensor[[2, 64], pl.BF16]",
        "s = pl.row_sum(a)\nc = pl.concat(a, s)\nd = pl.concat(pl.col_sum(a), pl.col_sum(s))\nreturn c, d, pl.concat(s, a), pl.concat(s, s)",
    ),
    "product of a product": (
        "a: pl.Tensor[[17, 32], pl.FP32], b: pl.Tensor[[32, 16], pl.FP32], c: pl.Tensor[[20, 16], pl.FP32]",
        "t = pl.matmul(a, b)\nu = pl.matmul(t, c, b_trans=True)\nv = pl.matmul(u, t, a_trans=True)\nreturn u, v",
    ),
    "joined and reshaped": (
        "a: pl.Tensor[[5, 3], pl.FP32], b: pl.Tensor[[5, 7], pl.FP32]",
        "c = pl.neg(a)\nd = pl.concat(c, a)\ne = pl.reshape(c, [3, 5])\nf = pl.concat(c, b)\nreturn d, e, f, pl.reshape(f, [25, 2])",
    ),
    "full": (
        "a: pl.Tensor[[16, 20], pl.FP32]",
        "c = pl.tensor.full([16, 20], pl.FP32, 3.5)\nreturn pl.add(c, a)",
    ),
    "create": (
        "a: pl.Tensor[[16, 20], pl.FP32], b: pl.Tensor[[16, 24], pl.FP32]",
        "c = pl.create_tensor([16, 44], dtype=pl.FP32)\nc[:, 0:20] = pl.neg(a)\nc[:, 20:44] = b\nreturn c",
    ),
    "create scratch": (
        "a: pl.Tensor[[16, 20], pl.FP32]",
        "c = pl.create_tensor([16, 20], dtype=pl.FP32)\nc = pl.assemble(c, pl.neg(a), [0, 0])\nd = pl.add(c, a)\nreturn d",
    ),
    "windows": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "x = a[3:19, 5:25]\ny = a[4:20, 6:26]\nreturn pl.add(x, y), a[0:3, 0:40]",
    ),
    "mixed": (
        "a: pl.Tensor[[64, 40], pl.FP32], o: pl.InOut[pl.Tensor[[64, 40], pl.FP32]]",
        "o[2:18, 7] = pl.add(a[3:19, 5], 1.0)\no[0] = a[1]\nreturn o",
    ),
    "mixed 3": (
        "a: pl.Tensor[[4, 16, 40], pl.FP32], o: pl.Out[pl.Tensor[[4, 16, 40], pl.FP32]]",
        "for i in pl.range(4):\n    o[i, :, :] = pl.add(a[3 - i, :, :], 1.0)\nreturn o",
    ),
    "middle": (
        "a: pl.Tensor[[4, 16, 40], pl.FP32]",
        "x = pl.slice(a, [4, 1, 40], [0, 3, 0], drop_dims=[1])\nreturn pl.neg(x)",
    ),
    "clamp": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = pl.slice(a, [16, 40], [56, 0], clamp=True, pad_value=pl.PadValue.max)\nreturn pl.neg(w)",
    ),
    "clamp of a window": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = a[2:9, 12:14]\nv = pl.slice(w, [7, 5], [3, 0], clamp=True, pad_value=pl.PadValue.zero)\nu = pl.slice(w[1:6, :], [4, 8], [2, 1], clamp=True)\nreturn v, pl.fillpad(u, pl.PadValue.max)",
    ),
    "clamp beyond a window": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = a[2:9, 12:14]\nreturn pl.slice(w, [4, 8], [7, 1], clamp=True, pad_value=pl.PadValue.min)",
    ),
    "clamp of a row": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = a[2, 3:19]\nreturn pl.slice(w, [8], [12], clamp=True, pad_value=pl.PadValue.zero)",
    ),
    "load of a window that clamps": (
        "a: pl.Tensor[[64, 40], pl.FP32], o: pl.Out[pl.Tensor[[8, 8], pl.FP32]], p: pl.Out[pl.Tensor[[8, 8], pl.FP32]]",
        "w = a[2:9, 12:14]\nt = pl.load(w, [3, 0], [8, 8], clamp=True, target_memory=pl.Mem.Vec)\no = pl.store(pl.fillpad(t), [0, 0], o)\n"
        "u = pl.load(w, [7, 0], [8, 8], clamp=True, target_memory=pl.Mem.Vec)\np = pl.store(pl.fillpad(u), [0, 0], p)\nreturn o, p",
    ),
    "pad": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = pl.slice(a, [16, 40], [0, 0], [10, 33])\nv = pl.fillpad(w, pl.PadValue.min)\nreturn pl.add(v, v)",
    ),
    "pad dropped": (
        "a: pl.Tensor[[64, 40], pl.FP32]",
        "w = pl.slice(a, [16, 1], [56, 3], clamp=True, pad_value=pl.PadValue.zero, drop_dims=[1])\nreturn pl.neg(w)",
    ),
    "loop": (
        "a: pl.Tensor[[16, 40], pl.FP32], b: pl.Tensor[[64, 40], pl.FP32]",
        "c = a\nfor i in pl.range(4):\n    c = pl.add(c, b[16 * i : 16 * i + 16, :])\nreturn c",
    ),
    "branch": (
        "a: pl.Tensor[[16, 40], pl.FP32], n: pl.Scalar[pl.INDEX]",
        "c = a\nif n > 0:\n    c = pl.add(a, 1.0)\nreturn c",
    ),
    "scalars": (
        "a: pl.Tensor[[16, 40], pl.FP32], s: pl.Scalar[pl.FP32]",
        "return pl.mul(a, s)",
    ),
    "read write": (
        "a: pl.Tensor[[16, 40], pl.FP32], o: pl.InOut[pl.Tensor[[16, 40], pl.FP32]]",
        "x = a[3, 4]\no[1, 2] = x\no[2, 2] = 7.0\nb = pl.mul(a, x)\ny = b[1, 1]\nreturn o, pl.add(b, y)",
    ),
    "assemble bf16": (
        "a: pl.Tensor[[16, 40], pl.FP32], o: pl.Out[pl.Tensor[[16, 40], pl.BF16]]",
        "o = pl.assemble(o, pl.add(a, 1.0), [0, 0])\nreturn o",
    ),
    "snapshot": (
        "o: pl.InOut[pl.Tensor[[16, 40], pl.FP32]]",
        "w = o[0:4, :]\no[0:4, :] = pl.neg(w)\nreturn o, w",
    ),
    "matmul": (
        "a: pl.Tensor[[17, 40], pl.BF16], b: pl.Tensor[[40, 50], pl.BF16]",
        "return pl.matmul(a, b)",
    ),
    "matmul out": (
        "a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16]",
        "c = pl.matmul(a, b, out_dtype=pl.FP16)\nreturn pl.relu(c)",
    ),
    "matmul acc": (
        "a: pl.Tensor[[32, 128], pl.FP32], b: pl.Tensor[[128, 32], pl.FP32]",
        "c = pl.matmul(a[:, 0:64], b[0:64, :])\nfor k in pl.range(64, 128, 32):\n    c = pl.matmul_acc(c, a[:, k : k + 32], b[k : k + 32, :])\nreturn c",
    ),
    "matmul cond": (
        "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16]",
        "c = pl.matmul(a, b)\nfor k in pl.range(0, 2):\n    c = pl.matmul_acc(c, a, b, init_cond=(k == 0))\nreturn c",
    ),
    "matmul bias": (
        "a: pl.Tensor[[32, 64], pl.INT8], b: pl.Tensor[[64, 40], pl.INT8], s: pl.Tensor[[1, 40], pl.INT32]",
        "return pl.matmul_bias(a, b, s)",
    ),
    "matmul turned": (
        "a: pl.Tensor[[64, 17], pl.BF16], b: pl.Tensor[[50, 64], pl.BF16]",
        "return pl.matmul(a, b, a_trans=True, b_trans=True)",
    ),
    "attention": (
        "q: pl.Tensor[[64, 64], pl.BF16], k: pl.Tensor[[64, 64], pl.BF16]",
        "s = pl.matmul(q, k, b_trans=True)\ne = pl.row_expand_expdif(s, pl.row_max(s))\nreturn pl.row_expand_div(e, pl.row_sum(e))",
    ),
    "quant": (
        "x: pl.Tensor[[32, 128], pl.FP32], y: pl.Tensor[[64, 128], pl.BF16]",
        "a, p = pl.quant_mx(pl.relu(x), group_axis=1)\nb, q = pl.quant_mx(y, layout=pl.MX_B_NN)\nc = pl.matmul_mx(a, p, b, q)\nreturn pl.relu(c), a, p, b, q",
    ),
    "vector then cube": (
        "a: pl.Tensor[[17, 40], pl.BF16], b: pl.Tensor[[40, 50], pl.BF16]",
        "return pl.matmul(pl.relu(a), pl.neg(b))",
    ),
}
"""A scalar `n` is launched with 1; a name that is not among them is an input or an output."""
