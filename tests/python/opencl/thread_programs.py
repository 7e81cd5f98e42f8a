# SPDX-License-Identifier: Apache-2.0
"""Programs of thread axes: a schedule and its arguments, A and B."""

from baton import te, tir


def program(shape, dtype, write, name="B", out=None):
    """A -> B, where `write(ib, a, b)` writes the loops of `B`."""

    def generate(ins, outs):
        ib = tir.ir_builder.create()
        write(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]))
        return ib.get()

    A = te.placeholder(shape, dtype, name="A")
    B = te.extern([out or shape], [A], generate, dtype=dtype, name=name)
    return te.create_schedule(B.op), [A, B]


def axes(ib, **extents):
    """Marks axes, as `threadIdx_x=64`, and returns their variables."""
    found = []
    for name, extent in extents.items():
        axis = te.thread_axis(name.replace("_", "."))
        ib.scope_attr(axis, "thread_extent", extent)
        found.append(axis.var)
    return found


def add_one(n, threads=64):
    def write(ib, a, b):
        block, thread = axes(ib, blockIdx_x=tir.indexdiv(n + threads - 1, threads), threadIdx_x=threads)
        i = block * threads + thread
        with ib.if_scope(ib.likely(i < n)):
            b[i] = a[i] + 1.0

    return program((n,), "float32", write)


def backwards(ib, a, b, n=64, scope="shared"):
    (i,) = axes(ib, threadIdx_x=n)
    kept = ib.allocate("float32", (n,), name="kept", scope=scope)
    kept[i] = a[i]
    b[i] = kept[n - 1 - i]


def block_sums(ib, a, b):
    """The sums of five blocks of 32 elements."""
    block, thread = axes(ib, blockIdx_y=5, threadIdx_x=32)
    total = ib.allocate("float32", (1,), name="total", scope="local")
    lhs, rhs = te.var("l", "float32"), te.var("r", "float32")
    reducer = tir.CommReducer([lhs], [rhs], [lhs + rhs], [tir.const(0, "float32")])
    ib.scope_attr(reducer, "reduce_scope", tir.reinterpret("handle", tir.const(0, "uint64")))
    one, always = tir.const(1, "uint32"), tir.const(True, "bool")
    ib.emit(tir.call_intrin("handle", "tir.tvm_thread_allreduce", one, a[block * 32 + thread], always, total[0], thread))
    b[block] = total[0]


def grid(ib, a, b):
    """Twice each of 720 elements, by a grid of three dimensions."""
    z, y, x, v, u = axes(ib, blockIdx_z=2, blockIdx_y=3, blockIdx_x=4, threadIdx_y=5, threadIdx_x=6)
    i = (((z * 3 + y) * 4 + x) * 5 + v) * 6 + u
    b[i] = a[i] * 2


def split_by(stage, axis, factors):
    """Splits an axis by factors, the last of them innermost; returns the loops from the outermost on."""
    inner = []
    for factor in reversed(factors):
        axis, loop = stage.split(axis, factor)
        inner.append(loop)
    return [axis, *reversed(inner)]


def product(n, block=8, tile=2, deep=16):
    """A schedule of a product: a block keeps tiles of both factors in shared memory, which its threads fetch together, and each thread a tile."""
    A, B, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
    s = te.create_schedule(C.op)
    shared = [s.cache_read(t, "shared", [C]) for t in (A, B)]
    local = [s.cache_read(t, "local", [C]) for t in shared]
    sums = s.cache_write(C, "local")
    (xb, xo, xi), (yb, yo, yi) = (split_by(s[C], axis, (block, tile)) for axis in s[C].op.axis)
    s[C].reorder(xb, yb, xo, yo, xi, yi)
    for loop, thread in zip((yb, xb, yo, xo), ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"), strict=True):
        s[C].bind(loop, te.thread_axis(thread))
    s[sums].compute_at(s[C], yo)
    ko, ki = s[sums].split(s[sums].op.reduce_axis[0], deep)
    s[sums].reorder(ko, ki, *s[sums].op.axis)
    for fetched, kept in zip(shared, local, strict=True):
        s[fetched].compute_at(s[sums], ko)
        s[kept].compute_at(s[sums], ki)
        (yo, yi), (xo, xi) = (s[fetched].split(axis, nparts=block) for axis in s[fetched].op.axis)
        s[fetched].reorder(yo, xo, yi, xi)
        s[fetched].bind(yo, te.thread_axis("threadIdx.y"))
        s[fetched].bind(xo, te.thread_axis("threadIdx.x"))
    return s, [A, B, C]
