# SPDX-License-Identifier: Apache-2.0
"""The Metal Shading Language as text: a C++ compiler takes it with a header of its names, and it runs on the CPU."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from kernel_texts import EXPRESSIONS, PROGRAMS, build_expression, build_schedule, run_on_cpu  # the folder is on the path by conftest.py
from thread_programs import add_one, product

import baton
from baton import relay

FOLDER = Path(__file__).parent / "metal_on_cpu"
needs_gcc = pytest.mark.skipif(not shutil.which("g++"), reason="no g++: apt-get install g++")


def call(kernel, sizes):
    """A call of a kernel by a thread: buffers, numbers (offsets and sizes), places."""
    numbers = ["0"] * len(kernel["args"]) + [f"sizes[{i}]" for i in range(sizes)]
    places = "Place{block.x * block_size.x + thread.x, 0, 0}" if "items" in kernel else "block, thread"
    args = "".join(f"(uchar*)buffers[{a}], " for a in kernel["args"])
    return f"const long numbers[] = {{{', '.join(numbers)}}}; {kernel['name']}({args}numbers, {places});"


def run(text, folder, *arrays):
    """Runs the only function of a program on arrays, which it writes to."""
    flags = ["-I", FOLDER, "-Wno-attributes", "-Wno-unknown-pragmas"]
    return run_on_cpu(text, "metal", FOLDER / "metal_stdlib", call, folder, arrays, flags)


@needs_gcc
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_threads(name, tmp_path):
    made, x, want = PROGRAMS[name]
    np.testing.assert_array_equal(run(build_schedule(made(), "metal"), tmp_path, x.copy(), np.zeros_like(want)), want)


@needs_gcc
def test_a_product_in_shared_memory(tmp_path):
    a, b = np.random.default_rng(0).random((2, 64, 64), "float32")
    out = run(build_schedule(product(64), "metal"), tmp_path, a, b, np.zeros((64, 64), "float32"))
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


@needs_gcc
@pytest.mark.parametrize("name", [name for name in EXPRESSIONS if name != "float64"])
def test_tensor_expressions(name, tmp_path):
    text, x, want = build_expression(name, "metal")
    np.testing.assert_allclose(run(text, tmp_path, x, np.zeros_like(want)), want, rtol=1e-6)


def test_functions_are_text_and_say_so_when_they_are_called(tmp_path):
    f = baton.build(*add_one(64), "metal")
    text = f.get_source()
    assert "max_total_threads_per_threadgroup(64)" in text and "threadgroup_position_in_grid" in text and "#include <metal_stdlib>" in text
    f.save(str(tmp_path / "f.metal"))
    assert (tmp_path / "f.metal").read_text() == text
    with pytest.raises(baton.error.RuntimeError, match="it is code for metal as text .get_source., and there is no library libbaton_metal.so"):
        f(np.zeros(64, "float32"), np.zeros(64, "float32"))


def test_float64_is_refused_with_a_mend():
    with pytest.raises(baton.error.UnsupportedError, match="`f`: Metal has no values of dtype float64; let it be computed in float32"):
        build_expression("float64", "metal")


def test_a_program_of_relay_has_the_text_of_its_kernels():
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(32, 64))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))), target="metal")
    assert lib.get_source("metal").count("kernel void") >= 2
