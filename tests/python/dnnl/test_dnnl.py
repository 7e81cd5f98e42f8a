# SPDX-License-Identifier: Apache-2.0
"""Regions for oneDNN: divided, compiled, run by the graph executor and the virtual machine, saved and loaded without the compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay
from baton.contrib import graph_executor
from baton.relay.op.contrib import dnnl

WHY = dnnl.why_none()
needs_onednn = pytest.mark.skipif(bool(WHY), reason=WHY)


def f32(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape).astype("float32")


def const(*shape, seed=0):
    return relay.const(f32(*shape, seed=seed))


def regions(mod):
    """The functions for oneDNN: the names of their composites and operators."""
    names = []
    for var, func in mod.functions.items():
        if func.attrs and "Compiler" in func.attrs.keys() and str(func.attrs["Compiler"]) == "dnnl":
            names.append((str(var.name_hint), func))
    return names


def composites(mod):
    found = []

    def see(e):
        if isinstance(e, relay.Function) and e.attrs and "Composite" in e.attrs.keys():
            found.append(str(e.attrs["Composite"]))

    for _, func in regions(mod):
        relay.analysis.post_order_visit(func, see)
    return found


X4, X2 = ("x", (1, 8, 12, 10)), ("x", (5, 16))


def conv(x, w, **attrs):
    return relay.nn.conv2d(x, w, **{"kernel_size": tuple(int(d) for d in w.data.shape[2:]), "channels": int(w.data.shape[0]), **attrs})


PROGRAMS = {
    "convolution": (X4, lambda x: conv(x, const(6, 8, 3, 3)), [], 1),
    "with padding, steps and dilation": (X4, lambda x: conv(x, const(6, 8, 3, 3), padding=(1, 2), strides=(2, 1), dilation=(2, 1)), [], 1),
    "padding of four sides": (X4, lambda x: conv(x, const(6, 8, 3, 3), padding=(0, 1, 2, 1)), [], 1),
    "groups": (X4, lambda x: conv(x, const(6, 4, 3, 3), groups=2), [], 1),
    "depthwise": (X4, lambda x: conv(x, const(8, 1, 3, 3), groups=8, padding=(1, 1)), [], 1),
    "convolution, bias and relu": (X4, lambda x: relay.nn.relu(relay.add(conv(x, const(6, 8, 3, 3)), const(6, 1, 1))), ["dnnl.conv2d_bias_relu"], 1),
    "convolution, bias_add and relu": (X4, lambda x: relay.nn.relu(relay.nn.bias_add(conv(x, const(6, 8, 3, 3)), const(6))), ["dnnl.conv2d_bias_relu"], 1),
    "convolution and bias": (X4, lambda x: relay.add(conv(x, const(6, 8, 1, 1)), const(1, 6, 1, 1)), ["dnnl.conv2d_bias"], 1),
    "convolution and relu": (X4, lambda x: relay.nn.relu(conv(x, const(6, 8, 3, 3))), ["dnnl.conv2d_relu"], 1),
    "a residual": (X4, lambda x: relay.nn.relu(relay.add(conv(x, const(8, 8, 3, 3), padding=(1, 1)), x)), [], 1),
    "product": (X2, lambda x: relay.nn.dense(x, const(7, 16)), [], 1),
    "product, bias and relu": (X2, lambda x: relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, const(7, 16)), const(7))), ["dnnl.dense_bias_relu"], 1),
    "product and sum": (X2, lambda x: relay.add(relay.nn.dense(x, const(7, 16)), const(7)), ["dnnl.dense_bias"], 1),
    "products in a row": (X2, lambda x: relay.nn.dense(relay.nn.relu(relay.nn.dense(x, const(7, 16))), const(3, 7)), ["dnnl.dense_relu"], 1),
    "elements": (X2, lambda x: relay.multiply(relay.add(x, const(16)), relay.nn.relu(x)), [], 1),
    "others around": (X2, lambda x: relay.exp(relay.nn.dense(relay.tanh(x), const(7, 16))), [], 1),
}  # fmt: skip


def build(name, params=None):
    (hint, shape), made, want, count = PROGRAMS[name]
    x = relay.var(hint, shape=shape)
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], made(x))))
    return mod, dnnl.partition_for_dnnl(mod), f32(*shape, seed=9), want, count


def plain(mod, x):
    return relay.create_executor("graph", mod=mod, device=baton.cpu(), target="llvm").evaluate()(x).numpy()


@needs_onednn
@pytest.mark.parametrize("name", PROGRAMS)
def test_regions_compute_what_the_program_means(name):
    mod, parts, x, want, count = build(name)
    assert len(regions(parts)) == count and composites(parts) == want
    lib = relay.build(parts, target="llvm")
    run = graph_executor.GraphModule(lib["default"](baton.cpu()))
    run.run(x=x)
    expected = plain(mod, x)
    np.testing.assert_allclose(run.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
    machine = baton.runtime.vm.VirtualMachine(relay.vm.compile(parts, target="llvm"), baton.cpu())
    np.testing.assert_allclose(machine.invoke("main", x).numpy(), expected, rtol=1e-5, atol=1e-5)


@needs_onednn
def test_weights_that_come_with_the_call():
    x, w, b = relay.var("x", shape=(1, 8, 12, 10)), relay.var("w", shape=(6, 4, 3, 3)), relay.var("b", shape=(6, 1, 1))
    y = relay.nn.relu(relay.add(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=6, groups=2), b))
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x, w, b], y)))
    parts = dnnl.partition_for_dnnl(mod)
    values = f32(1, 8, 12, 10), f32(6, 4, 3, 3, seed=1), f32(6, 1, 1, seed=2)
    got = baton.compile(parts)(*values).numpy()
    np.testing.assert_allclose(got, baton.compile(mod)(*values).numpy(), rtol=1e-5, atol=1e-5)


@needs_onednn
def test_parameters_become_constants():
    x, w = relay.var("x", shape=(5, 16)), relay.var("w", shape=(7, 16))
    mod = baton.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    parts = dnnl.partition_for_dnnl(mod, {"w": f32(7, 16)})
    assert len(parts["main"].params) == 1
    np.testing.assert_allclose(baton.compile(parts)(f32(5, 16, seed=1)).numpy(), f32(5, 16, seed=1) @ f32(7, 16).T, rtol=1e-5, atol=1e-5)


@needs_onednn
@pytest.mark.parametrize(
    ("shape", "made"),
    [
        ((1, 12, 10, 8), lambda x: relay.nn.conv2d(x, const(3, 3, 8, 6), kernel_size=(3, 3), channels=6, data_layout="NHWC", kernel_layout="HWIO")),
        ((relay.Any(), 16), lambda x: relay.nn.dense(x, const(7, 16))),
        ((5, 16), lambda x: relay.nn.dense(relay.cast(x, "float64"), relay.const(np.ones((7, 16))))),
        ((5, 16), lambda x: relay.add(relay.reshape(x, (5, 1, 16)), const(5, 16))),
    ],
)
def test_calls_that_it_does_not_take(shape, made):
    x = relay.var("x", shape=shape)
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], made(x))))
    assert regions(dnnl.partition_for_dnnl(mod)) == []


@needs_onednn
def test_an_input_that_is_a_result_and_a_result_twice():
    x = relay.var("x", shape=(4, 4))
    y = relay.nn.relu(x)
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], relay.Tuple([y, relay.add(y, x), y]))))
    parts = dnnl.partition_for_dnnl(mod)
    a = f32(4, 4)
    got = baton.compile(parts)(a)
    for value, want in zip(got, (np.maximum(a, 0), np.maximum(a, 0) + a, np.maximum(a, 0)), strict=True):
        np.testing.assert_allclose(value.numpy(), want, rtol=1e-6)


CODE = """
import baton, numpy as np
x = np.random.default_rng(9).normal(0, 1, (1, 8, 12, 10)).astype("float32")
print(baton.load({path!r})(x).numpy().tobytes().hex())
from baton._ffi import compiler_loaded
assert not compiler_loaded()
"""


@needs_onednn
def test_saved_and_loaded_without_the_compiler(tmp_path):
    mod, parts, x, *_ = build("convolution, bias and relu")
    model = baton.compile(parts)
    assert [m.type_key for m in model.module.imported_modules] == ["dnnl"]
    assert '"dnnl.conv2d_bias_relu"' in model.module.imported_modules[0].get_source("json")
    path = str(tmp_path / "m.so")
    model.save(path)
    done = subprocess.run([sys.executable, "-c", CODE.format(path=path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == model(x).numpy().tobytes().hex()
    without = {**os.environ, "BATON_DNNL_LIBRARY": str(tmp_path / "libnone.so")}
    done = subprocess.run([sys.executable, "-c", CODE.format(path=path)], capture_output=True, text=True, check=False, env=without)
    assert done.returncode == 1
    assert "there is no oneDNN library" in done.stderr and "apt-get install libdnnl2" in done.stderr and "Traceback" in done.stderr


def test_without_the_library_nothing_is_divided(tmp_path):
    code = """
import baton
from baton import relay
from baton.relay.op.contrib import dnnl
x = relay.var("x", shape=(4, 4))
try:
    dnnl.partition_for_dnnl(baton.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
except baton.error.UnsupportedError as error:
    print(error)
"""
    without = {**os.environ, "BATON_DNNL_LIBRARY": str(tmp_path / "libnone.so")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=without)
    assert "there is no oneDNN library" in done.stdout and "BATON_DNNL_LIBRARY" in done.stdout, done.stderr
    notes = tmp_path / "libnone.so"
    notes.write_text("not a library")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=without)
    assert "there is no oneDNN library" in done.stdout


@needs_onednn
def test_options_are_refused():
    with pytest.raises(baton.error.UnsupportedError, match="takes no option `alter_layout`"):
        dnnl.partition_for_dnnl(baton.IRModule.from_expr(relay.const(1.0)), alter_layout=True)
