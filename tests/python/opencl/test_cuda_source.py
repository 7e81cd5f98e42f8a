# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ as text: a C++ compiler takes it with a header of twenty names, and it runs on the CPU."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from kernel_texts import EXPRESSIONS, PROGRAMS, build_expression, build_schedule, run_on_cpu  # the folder is on the path by conftest.py
from thread_programs import add_one, product

import baton
from baton import relay

HEADER = Path(__file__).parent / "cuda_on_cpu.h"


def call(kernel, sizes):
    """A call of a kernel by a thread."""
    args = [f"(unsigned char*)buffers[{a}], 0" for a in kernel["args"]] + [f"sizes[{i}]" for i in range(sizes)]
    return f"blockIdx = block, threadIdx = thread, blockDim = block_size; {kernel['name']}({', '.join(args)});"


def run(text, folder, *arrays):
    """Runs the only function of a program on arrays, which it writes to."""
    return run_on_cpu(text, "cuda", HEADER, call, folder, arrays)


needs_gcc = pytest.mark.skipif(not shutil.which("g++"), reason="no g++: apt-get install g++")


@needs_gcc
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_threads(name, tmp_path):
    made, x, want = PROGRAMS[name]
    np.testing.assert_array_equal(run(build_schedule(made(), "cuda"), tmp_path, x.copy(), np.zeros_like(want)), want)


@needs_gcc
def test_a_product_in_shared_memory(tmp_path):
    a, b = np.random.default_rng(0).random((2, 64, 64), "float32")
    out = run(build_schedule(product(64), "cuda"), tmp_path, a, b, np.zeros((64, 64), "float32"))
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


@needs_gcc
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_tensor_expressions(name, tmp_path):
    text, x, want = build_expression(name, "cuda")
    np.testing.assert_allclose(run(text, tmp_path, x, np.zeros_like(want)), want, rtol=1e-6)


def test_the_size_of_blocks_is_said():
    text = baton.build(*add_one(64), "cuda").get_source("cu")
    assert "__launch_bounds__(64)" in text and "blockIdx.x" in text


def test_a_program_of_relay_has_the_text_of_its_kernels():
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(32, 64))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))), target="cuda")
    assert lib.get_source("cuda").count("__global__") >= 2
