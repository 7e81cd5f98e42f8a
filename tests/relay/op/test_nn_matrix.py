# SPDX-License-Identifier: Apache-2.0
"""Matrix products: dense, matmul, batch_matmul, dense with a packed weight, einsum."""

import numpy as np
from cases import Case, Reject, Value, bf16, bfloat16, each, f16, f32, f64, i8, i32, i64, rejects, table, u8
from reference_nn import wide

TOL = dict(rtol=2e-5, atol=2e-5)


def product(a, b, transpose_a=False, transpose_b=False, units=None, out_dtype=""):
    u = wide(np.swapaxes(a, -1, -2) if transpose_a and a.ndim > 1 else a)
    v = wide(np.swapaxes(b, -1, -2) if transpose_b and b.ndim > 1 else b)
    return np.asarray(np.matmul(u, v)).astype(out_dtype or a.dtype)


def dense(x, w, units=None, out_dtype=""):
    return np.matmul(wide(x), wide(w).T).astype(out_dtype or x.dtype)


def batch_matmul(a, b, out_dtype="", transpose_a=False, transpose_b=True):
    return product(a, b, transpose_a, transpose_b, out_dtype=out_dtype)


def permuted(a, b, axes):
    return product(a, np.transpose(b, axes))


def unpacked(w, scale, zero, bits=4, block=32, panel=0, units=0, activations=0, terms=1):
    if not panel:
        w, scale, zero, panel, units = w[None], scale[None], zero[None], w.shape[1], w.shape[1]
    w = w.reshape(*w.shape[:2], 1, panel, terms)  # panels, lines, parts of a byte, columns, terms
    numbers = (w >> np.arange(0, 8, bits, dtype="u1")[:, None, None]) & ((1 << bits) - 1)
    numbers = numbers.transpose(1, 2, 4, 0, 3).reshape(-1, len(w) * panel)[:, :units]
    scale, zero = (v.transpose(1, 0, 2).reshape(-1, len(w) * panel)[:, :units] for v in (scale, zero))
    spread = [np.repeat(v, block, 0)[: len(numbers)] for v in (zero, scale)]
    return ((numbers - spread[0].astype("f8")) * spread[1]).astype(scale.dtype)


def few_bits(x, w, scale, zero, bits=4, block=32, activations=0, **panels):
    if activations:
        parts = [x[..., i : i + block] for i in range(0, x.shape[-1], block)]
        steps = [np.abs(p).max(-1, keepdims=True) * np.float32(1 / 127) for p in parts]
        x = np.concatenate([np.rint(p / s) * s for p, s in zip(parts, steps, strict=True)], -1)
    return product(x, unpacked(w, scale, zero, bits, block, **panels).astype(x.dtype))


def unpack_panels(w, units=None, out_dtype=""):
    panels, k, columns = w.shape
    return w.transpose(0, 2, 1).reshape(panels * columns, k)[:units]


def dense_pack(x, w, units=None, out_dtype=""):
    plain = np.moveaxis(w, 1, 2).reshape(-1, w.shape[1])
    return dense(x, plain[:units] if units else plain)


test_dense = table(
    Case("nn.dense", dense, f32(3, 5), f32(4, 5), units=each(None, 4), **TOL),
    Case("nn.dense", dense, f32(2, 3, 5), f32(4, 5), **TOL),
    Case("nn.dense", dense, f32(5), f32(4, 5), **TOL),
    Case("nn.dense", dense, f32(17, 130), f32(70, 130), constant=(1,), name="fixed weight", **TOL),
    Case("nn.dense", dense, f32(1, 257), f32(33, 257), constant=(1,), name="fixed weight", **TOL),
    Case("nn.dense", dense, f32(17, 64), f32(48, 64), **TOL),
    Case("nn.dense", dense, f16(3, 5), f16(4, 5), rtol=2e-3, atol=1e-3),
    Case("nn.dense", dense, f64(3, 5), f64(4, 5), rtol=1e-12, atol=1e-12),
    Case("nn.dense", dense, f16(3, 5), f16(4, 5), out_dtype="float32", **TOL),
    *(
        [Case("nn.dense", lambda x, w: dense(x.astype("f4"), w.astype("f4")).astype(bfloat16), bf16(3, 5), bf16(4, 5), atol=1e-2)]
        if bfloat16 is not None
        else []
    ),
    Case("nn.dense", dense, i8(3, 50), i8(4, 50)),
    Case("nn.dense", dense, i8(3, 50), i8(4, 50), out_dtype="int32"),
    Case("nn.dense", dense, u8(3, 50), i8(4, 50), out_dtype="int32"),
    Case("nn.dense", dense, i32(3, 5), i32(4, 5)),
    Case("nn.dense", dense, f32(0, 5), f32(4, 5)),
    Case("nn.dense", dense, f32(3, 0), f32(4, 0)),
    Case("nn.dense", dense, f32(3, 5), f32(0, 5)),
    Case("nn.contrib_dense_pack", dense_pack, f32(3, 5), f32(2, 5, 4), units=each(None, 5, 7, 8), **TOL),
    Case("nn.contrib_dense_pack", dense_pack, f32(2, 3, 32), f32(3, 32, 16), units=40, **TOL),
    Case("nn.contrib_dense_pack", dense_pack, f32(5), f32(2, 5, 4), **TOL),
    Case("nn.contrib_dense_pack", dense_pack, f32(0, 5), f32(2, 5, 4)),
    Case("nn.contrib_unpack_panels", unpack_panels, f32(2, 5, 4), units=each(None, 5, 7, 8), fold=False),
    Case("nn.contrib_unpack_panels", unpack_panels, i8(3, 2, 16), units=40, fold=False),
    Case("nn.contrib_dense_pack", dense_pack, f16(3, 5), f16(2, 5, 4), rtol=2e-3, atol=1e-3),
)
test_matmul = table(
    Case("nn.matmul", product, f32(3, 5), f32(5, 4), units=each(None, 4), **TOL),
    Case("nn.matmul", product, f32(5, 3), f32(5, 4), transpose_a=True, **TOL),
    Case("nn.matmul", product, f32(3, 5), f32(4, 5), transpose_b=True, **TOL),
    Case("nn.matmul", product, f32(2, 5, 3), f32(4, 5), transpose_a=True, transpose_b=True, **TOL),
    Case("nn.matmul", product, f32(5), f32(5, 4), **TOL),
    Case("nn.matmul", product, f32(3, 5), f32(5), **TOL),
    Case("nn.matmul", product, f32(5), f32(5), **TOL),
    Case("nn.contrib_matmul_permuted", permuted, f32(2, 3, 5), f32(4, 2, 5), axes=[1, 2, 0], **TOL),
    Case("nn.contrib_matmul_permuted", permuted, f32(2, 3, 7, 20), f32(70, 2, 3, 20), axes=[1, 2, 3, 0], **TOL),
    Case("nn.contrib_matmul_permuted", permuted, f32(2, 3, 1, 70), f32(70, 1, 3, 20), axes=[1, 2, 0, 3], **TOL),
    Case("nn.contrib_matmul_permuted", permuted, f32(3, 5), f32(4, 2, 5), axes=[1, 2, 0], **TOL),
    Case("nn.contrib_matmul_permuted", permuted, i32(3, 5), i32(4, 5), axes=[1, 0]),
    Case("nn.contrib_matmul_permuted", permuted, f32(0, 5), f32(4, 5), axes=[1, 0]),
    Case("nn.contrib_matmul_nbits", few_bits, f32(2, 3, 64), u8(32, 10), f32(2, 10), f32(2, 10), **TOL),
    Case("nn.contrib_matmul_nbits", few_bits, f32(48), u8(24, 7), f32(2, 7), f32(2, 7), name="part of a block", **TOL),
    Case("nn.contrib_matmul_nbits", few_bits, f32(2, 32), u8(8, 17), f32(2, 17), f32(2, 17), bits=2, block=16, **TOL),
    Case("nn.contrib_matmul_nbits", few_bits, f32(2, 32), u8(32, 17), f32(2, 17), f32(2, 17), bits=8, block=16, rtol=1e-4, atol=2e-3),
    Case("nn.contrib_matmul_nbits", few_bits, f64(2, 64), u8(32, 5), f64(2, 5), f64(2, 5), rtol=1e-12, atol=1e-12),
    Case("nn.contrib_matmul_nbits", few_bits, f32(2, 3, 64), u8(32, 10), f32(2, 10), f32(2, 10), activations=8, **TOL),
    Case("nn.contrib_matmul_nbits", few_bits, f32(3, 64), u8(1, 32, 16), f32(1, 2, 16), f32(1, 2, 16), panel=16, units=10, **TOL),
    Case("nn.contrib_matmul_nbits", few_bits, f32(6, 64), u8(1, 8, 64), f32(1, 2, 16), f32(1, 2, 16), panel=16, units=10, terms=4, activations=8, **TOL),
    Case(
        "nn.contrib_matmul_nbits",
        few_bits,
        f32(1, 40),
        u8(2, 10, 32),
        f32(2, 3, 8),
        f32(2, 3, 8),
        panel=8,
        units=16,
        terms=4,
        activations=8,
        bits=8,
        block=16,
        rtol=1e-4,
        atol=2e-3,
    ),
    Case("nn.contrib_unpack_nbits", unpacked, u8(2, 10, 32), f32(2, 3, 8), f32(2, 3, 8), panel=8, units=15, terms=4, bits=8, block=16, fold=False, **TOL),
    Case("nn.contrib_unpack_nbits", unpacked, u8(1, 8, 64), f32(1, 2, 16), f32(1, 2, 16), panel=16, units=10, terms=4, fold=False, **TOL),
    Case("nn.contrib_unpack_nbits", unpacked, u8(32, 10), f32(2, 10), f32(2, 10), fold=False, **TOL),
    Case("nn.contrib_unpack_nbits", unpacked, u8(10, 7), f32(3, 7), f32(3, 7), bits=2, block=16, fold=False, **TOL),
    Case("nn.contrib_unpack_nbits", unpacked, u8(40, 7), f32(3, 7), f32(3, 7), bits=8, block=16, fold=False, **TOL),
    Case("nn.matmul", product, f32(2, 1, 3, 5), f32(4, 5, 2), **TOL),
    Case("nn.matmul", product, f32(5), f32(2, 3, 5, 4), **TOL),
    Case("nn.matmul", product, f32(2, 3, 4, 5), f32(5), **TOL),
    Case("nn.matmul", product, f32(5, 4), f32(2, 3, 4, 2), **TOL),
    Case("nn.matmul", product, f32(33, 65), f32(65, 50), **TOL),
    Case("nn.matmul", product, f32(33, 65), f32(65, 50), constant=(1,), name="fixed", **TOL),
    Case("nn.matmul", product, f32(12, 17, 32), f32(12, 32, 17), **TOL),
    Case("nn.matmul", product, f16(3, 5), f16(5, 4), rtol=2e-3, atol=1e-3),
    Case("nn.matmul", product, f64(3, 5), f64(5, 4), rtol=1e-12, atol=1e-12),
    Case("nn.matmul", product, i8(3, 5), i8(5, 4), out_dtype=each("", "int32")),
    Case("nn.matmul", product, i64(3, 5), i64(5, 4)),
    Case("nn.matmul", product, f32(0, 5), f32(5, 4)),
    Case("nn.matmul", product, f32(3, 0), f32(0, 4)),
    Case("nn.matmul", product, f32(0, 3, 5), f32(5, 4)),
    Case("nn.batch_matmul", batch_matmul, f32(2, 3, 5), f32(2, 4, 5), **TOL),
    Case("nn.batch_matmul", batch_matmul, f32(2, 5, 3), f32(2, 5, 4), transpose_a=True, transpose_b=False, **TOL),
    Case("nn.batch_matmul", batch_matmul, f32(2, 3, 5), f32(1, 4, 5), **TOL),
    Case("nn.batch_matmul", batch_matmul, f32(1, 3, 5), f32(4, 5, 4), transpose_b=False, **TOL),
    Case("nn.batch_matmul", batch_matmul, f32(12, 33, 64), f32(12, 33, 64), **TOL),
    Case("nn.batch_matmul", batch_matmul, f16(2, 3, 5), f16(2, 4, 5), rtol=2e-3, atol=1e-3),
    Case("nn.batch_matmul", batch_matmul, i8(2, 3, 5), i8(2, 4, 5), out_dtype="int32"),
    Case("nn.batch_matmul", batch_matmul, f32(0, 3, 5), f32(0, 4, 5)),
    Case("nn.batch_matmul", batch_matmul, f32(2, 3, 0), f32(2, 4, 0)),
)


def einsum(parts, equation):
    return np.asarray(np.einsum(equation, *[wide(p) for p in parts])).astype(parts[0].dtype)


def ein(equation, *parts, **kw):
    return Case("einsum", einsum, list(parts), equation=equation, **{**TOL, **kw})


test_einsum = table(
    ein("ij,jk->ik", f32(2, 3), f32(3, 4)),
    ein("ij,jk", f32(2, 3), f32(3, 4)),
    ein("ba", f32(2, 3)),
    ein("ii->i", f32(3, 3)),
    ein("ii", f32(3, 3)),
    ein("ij->", f32(2, 3)),
    ein("i,j->ij", f32(2), f32(3)),
    ein("bij,bjk->bik", f32(4, 2, 3), f32(4, 3, 5)),
    ein("...ij,...jk->...ik", f32(2, 1, 3, 4), f32(5, 4, 2)),
    ein("ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 5)),
    ein("a...b->b...a", f32(2, 3, 4, 5)),
    ein("ij , ij -> ", f32(2, 3), f32(2, 3)),
    ein("ij,jk->ik", i32(2, 3), i32(3, 4)),
    ein("ij,jk->ik", f16(2, 3), f16(3, 4), rtol=2e-3, atol=1e-3),
    ein("ij,jk->ik", f32(2, 0), f32(0, 4)),
    Case(
        "einsum",
        lambda parts, equation: np.einsum(equation, parts[0], np.broadcast_to(parts[1], (3, 4))),
        [f32(2, 3), f32(1, 4)],
        equation="ij,jk->ik",
        name="1",
        **TOL,
    ),
    Case("einsum", einsum, [Value(np.arange(3.0, dtype="float32")), Value(np.ones(3, "float32"))], equation="i,i"),
)


def f(*shape):
    return (shape, "float32")


test_rejects = rejects(
    Reject("nn.dense", "R1", ((3, 5), "bool"), ((4, 5), "bool")),
    Reject("nn.dense", "R1", f(3, 5), ((4, 5), "float64")),
    Reject("nn.dense", "R2", f(), f(4, 5)),
    Reject(
        "nn.dense",
        "R2",
        f(3, 5),
        f(
            5,
        ),
    ),
    Reject("nn.dense", "R2", f(3, 5), f(5, 4), says="ends with 5"),
    Reject("nn.dense", "R3", f(3, 5), f(4, 5), units=7, says="units = 7"),
    Reject("nn.contrib_unpack_panels", "R1", f(5, 4)),
    Reject("nn.contrib_unpack_panels", "R2", f(2, 5, 4), units=4),
    Reject("nn.contrib_dense_pack", "R1", ((3, 5), "int32"), ((2, 5, 4), "int32")),
    Reject("nn.contrib_dense_pack", "R1", f(3, 5), ((2, 5, 4), "float64")),
    Reject("nn.contrib_dense_pack", "R2", f(), f(2, 5, 4)),
    Reject("nn.contrib_dense_pack", "R2", f(3, 5), f(5, 4)),
    Reject("nn.contrib_dense_pack", "R2", f(3, 5), f(2, 6, 4)),
    Reject("nn.contrib_dense_pack", "R4", ((3, 8), "int8"), ((2, 2, 4, 4), "int8")),
    Reject("nn.contrib_dense_pack", "R4", ((3, 8), "uint8"), ((2, 2, 4, 3), "int8")),
    *[Reject("nn.contrib_dense_pack", "R3", f(3, 5), f(2, 5, 4), units=u, says=f"units = {u}") for u in (4, 9)],
    Reject("nn.matmul", "R1", ((3, 5), "bool"), ((5, 4), "bool")),
    Reject("nn.matmul", "R1", f(3, 5), ((5, 4), "int8")),
    Reject("nn.matmul", "R2", f(), f(5, 4)),
    Reject("nn.matmul", "R2", f(3, 5), f(4, 5), says="5 and 4"),
    Reject("nn.matmul", "R2", f(2, 3, 5), f(3, 5, 4)),
    Reject("nn.matmul", "R3", f(3, 5), f(5, 4), units=7, says="units = 7"),
    Reject("nn.contrib_matmul_permuted", "R1", ((3, 5), "bool"), ((5, 4), "bool"), axes=[0, 1]),
    Reject("nn.contrib_matmul_permuted", "R1", f(3, 5), ((5, 4), "float64"), axes=[0, 1]),
    Reject("nn.contrib_matmul_permuted", "R2", f(5), f(5, 4), axes=[0, 1]),
    Reject("nn.contrib_matmul_permuted", "R2", f(3, 5), f(4, 5), axes=[0, 1], says="5 and 4"),
    Reject("nn.contrib_matmul_permuted", "R2", f(2, 3, 5), f(3, 5, 4), axes=[0, 1, 2]),
    Reject("nn.contrib_matmul_permuted", "R3", f(3, 5), f(5, 4), axes=[0, 0]),
    Reject("nn.contrib_matmul_permuted", "R3", f(3, 5), f(5, 4), axes=[0]),
    Reject("nn.contrib_matmul_permuted", "R3", f(3, 5), f(5, 4), axes=[0, 2]),
    Reject("nn.contrib_matmul_nbits", "R1", ((3, 64), "float64"), ((32, 5), "uint8"), f(2, 5), f(2, 5)),
    Reject("nn.contrib_matmul_nbits", "R2", f(), ((32, 5), "uint8"), f(2, 5), f(2, 5)),
    Reject("nn.contrib_matmul_nbits", "R3", f(3, 64), ((32, 5), "uint8"), f(2, 5), f(2, 5), bits=3),
    Reject("nn.contrib_matmul_nbits", "R3", f(3, 64), ((32, 5), "uint8"), f(2, 5), f(2, 5), activations=4),
    Reject("nn.contrib_matmul_nbits", "R3", f(3, 64), ((32, 5), "uint8"), f(2, 5), f(2, 5), terms=4),
    Reject("nn.contrib_matmul_nbits", "R3", f(3, 64), ((1, 8, 20), "uint8"), f(1, 2, 5), f(1, 2, 5), terms=4, panel=5, units=5, says="even number"),
    Reject("nn.contrib_matmul_nbits", "R4", f(3, 60), ((32, 5), "uint8"), f(2, 5), f(2, 5), says="other numbers of elements"),
    Reject("nn.contrib_unpack_nbits", "R1", ((32, 5), "uint8"), f(2, 5), ((2, 5), "float64")),
    Reject("nn.contrib_unpack_nbits", "R2", ((32, 5), "uint8"), f(5), f(5)),
    Reject("nn.contrib_unpack_nbits", "R3", ((32, 5), "uint8"), f(2, 5), f(2, 5), block=31),
    Reject("nn.contrib_unpack_nbits", "R4", ((32, 5), "uint8"), f(2, 5), f(2, 5), block=16, says="does not fit"),
    Reject("nn.contrib_unpack_nbits", "R4", ((32, 5), "int8"), f(2, 5), f(2, 5)),
    Reject("nn.batch_matmul", "R1", ((2, 3, 5), "bool"), ((2, 4, 5), "bool")),
    Reject("nn.batch_matmul", "R1", f(2, 3, 5), ((2, 4, 5), "float16")),
    Reject("nn.batch_matmul", "R2", f(3, 5), f(4, 5)),
    Reject("nn.batch_matmul", "R2", f(2, 3, 5), f(2, 5, 4)),
    Reject("nn.batch_matmul", "R3", f(2, 3, 5), f(3, 4, 5)),
    *[
        Reject("einsum", "R1", [f(2, 3), f(3, 4)], equation=e)
        for e in ("ij->ij", "ijk,jk->i", "ij,jk->iz", "ij,jk->ii", "i.j,jk->ik", "i?,jk->ik", "......ij,jk->ik")
    ],
    Reject("einsum", "R2", [], equation="i->i"),
    Reject("einsum", "R2", [f(2, 3), ((3, 4), "float64")], equation="ij,jk->ik"),
    Reject("einsum", "R2", [((2,), "bool")], equation="i->i"),
    Reject("einsum", "R3", [f(2, 3), f(4, 5)], equation="ij,jk->ik"),
)
