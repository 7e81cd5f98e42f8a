# SPDX-License-Identifier: Apache-2.0
"""Kernels of thread axes: blocks are work-groups, threads work-items, shared memory is a group's."""

import numpy as np
import pytest
from thread_programs import add_one, axes, backwards, block_sums, grid, product, program  # the folder is on the path by conftest.py

import baton
from baton import te


def run(program, device, x, out):
    s, args = program
    result = baton.nd.array(np.zeros_like(out), device)
    baton.build(s, args, "opencl")(baton.nd.array(x, device), result)
    return result.numpy()


def test_blocks_of_threads(device):
    x = np.random.default_rng(0).random(1000, "float32")
    np.testing.assert_array_equal(run(add_one(1000), device, x, x), x + 1)


def test_one_function_for_each_length(device):
    s, args = add_one(te.var("n"))
    f = baton.build(s, args, "opencl")
    for n in (1, 64, 1000, 0):
        x = np.random.default_rng(n).random(n, "float32")
        y = baton.nd.array(np.zeros(n, "float32"), device)
        f(baton.nd.array(x, device), y)
        np.testing.assert_array_equal(y.numpy(), x + 1)
    with pytest.raises(ValueError, match="argument 1 .`B`. must be float32.5., got float32.6."):
        f(baton.nd.array(np.zeros(5, "float32"), device), baton.nd.array(np.zeros(6, "float32"), device))


def test_sizes_may_come_before_buffers(device):
    n = te.var("n", "int64")
    s, args = add_one(n)
    x = np.arange(10, dtype="float32")
    y = baton.nd.array(np.zeros(10, "float32"), device)
    baton.build(s, [n, *args], "opencl")(10, baton.nd.array(x, device), y)
    np.testing.assert_array_equal(y.numpy(), x + 1)


def test_threads_of_a_block_share_memory(device):
    x = np.random.default_rng(0).random(64, "float32")
    s, args = program((64,), "float32", backwards)
    assert "barrier(CLK_LOCAL_MEM_FENCE)" in baton.build(s, args, "opencl").get_source()
    np.testing.assert_array_equal(run((s, args), device, x, x), x[::-1])


def test_sums_of_blocks_by_allreduce(device):
    x = np.random.default_rng(0).integers(0, 100, 160).astype("float32")
    sums = program((160,), "float32", block_sums, out=(5,))
    np.testing.assert_array_equal(run(sums, device, x, np.zeros(5, "float32")), x.reshape(5, 32).sum(1))


def test_a_grid_of_three_dimensions(device):
    x = np.arange(720, dtype="int32")
    np.testing.assert_array_equal(run(program((720,), "int32", grid), device, x, x), x * 2)


def test_a_saved_program_is_launched_the_same(device, tmp_path):
    s, args = add_one(te.var("n"))
    baton.build(s, args, "opencl").save(str(tmp_path / "f.cl"))
    x = np.arange(100, dtype="float32")
    y = baton.nd.array(np.zeros(100, "float32"), device)
    baton.runtime.load_module(str(tmp_path / "f.cl"))(baton.nd.array(x, device), y)
    np.testing.assert_array_equal(y.numpy(), x + 1)


def test_blocks_larger_than_the_device_takes(device):
    x = np.zeros(1 << 20, "float32")
    with pytest.raises(ValueError, match="blocks of 1048576 threads.*takes at most .*; split the axes that are bound to threadIdx"):
        run(add_one(1 << 20, 1 << 20), device, x, x)


def build(write, shape=(64,), **more):
    s, args = program(shape, "float32", write, **more)
    return baton.build(s, args, "opencl")


def in_a_loop(ib, a, b):
    with ib.for_range(0, 4, name="k") as k:
        (i,) = axes(ib, threadIdx_x=16)
        b[k * 16 + i] = a[k * 16 + i]


def two_extents(ib, a, b):
    (i,) = axes(ib, threadIdx_x=16)
    b[i] = a[i]
    (j,) = axes(ib, threadIdx_x=32)
    b[j] = a[j]


def extent_of_data(ib, a, b):
    (i,) = axes(ib, threadIdx_x=a[0].astype("int32"))
    b[i] = a[i]


@pytest.mark.parametrize(
    "write, message",
    [
        (in_a_loop, "thread axes are within a loop or a condition"),
        (two_extents, "`threadIdx.x` has two extents in one kernel"),
        (lambda ib, a, b: backwards(ib, a, b, scope="warp"), 'buffer `kept` has the scope "warp"; in a kernel there are "local" and "shared"'),
        (extent_of_data, "extent of threadIdx.x"),
    ],
    ids=["in a loop", "two extents", "warp memory", "an extent of data"],
)
def test_kernels_that_a_device_cannot_run(write, message):
    with pytest.raises(baton.error.BatonError, match=message):
        build(write)


def test_the_kernels_are_an_import_of_the_functions():
    s, args = add_one(1000)
    f = baton.build(s, args, "opencl")
    (kernels,) = f.imported_modules
    assert kernels.type_key == "opencl" and "__kernel" in kernels.get_source() and f.type_key == "host"


def test_a_product_whose_loops_are_bound_to_threads(device):
    n = 64
    a, b = np.random.default_rng(0).random((2, n, n), "float32")
    out = baton.nd.array(np.zeros((n, n), "float32"), device)
    f = baton.build(*product(n), target="opencl", target_host="llvm", name="product")
    assert "__local float A_shared" in f.imported_modules[0].get_source()
    f(baton.nd.array(a, device), baton.nd.array(b, device), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)


@pytest.mark.parametrize("scope", ["", "local", "global"])
def test_threads_do_not_share_memory_of_one(scope):
    A = te.placeholder((256,), name="A")
    B = te.compute((256,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((256,), lambda i: B[i // 64 * 64 + 63 - i % 64], name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=64)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], block)
    s[B].set_scope(scope)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ValueError, match='is bound to threadIdx.x within a kernel, where each thread keeps a copy of `B`.*keep it in "shared" memory'):
        baton.build(s, [A, C], "opencl")


def test_an_open_length_bound_to_threads(device):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    for loop, thread in zip(s[B].split(B.op.axis[0], factor=32), ("blockIdx.x", "threadIdx.x"), strict=True):
        s[B].bind(loop, te.thread_axis(thread))
    x = np.arange(100, dtype="float32")
    np.testing.assert_array_equal(run((s, [A, B]), device, x, x), x * 2)
