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
