# SPDX-License-Identifier: Apache-2.0
"""WGSL as text, run by the package `wgpu` on a device of this machine (Debian's lavapipe is one on the CPU)."""

import functools
import json

import numpy as np
import pytest
from kernel_texts import EXPRESSIONS, PROGRAMS, build_expression, build_schedule, head_of, number  # the folder is on the path by conftest.py
from thread_programs import add_one, axes, product, program

import baton
from baton import relay, te, tir


@functools.cache
def adapter_or_why():
    """A WebGPU adapter, or the reason why there is none."""
    try:
        import wgpu
    except ImportError:
        return None, "no wgpu: pip install wgpu"
    try:
        return wgpu.gpu.request_adapter_sync(), ""
    except Exception as error:
        return None, f"no WebGPU adapter ({error}): apt-get install mesa-vulkan-drivers"


@pytest.fixture
def adapter():
    found, why = adapter_or_why()
    if why:
        pytest.skip(why)
    return found


def run(adapter, text, *arrays, given=()):
    """Runs the only function of a program and returns what it wrote to the last array; `given`: sizes that are parameters."""
    import wgpu

    head = head_of(text, "webgpu")
    (function,) = head["functions"]
    device = adapter.request_device_sync(required_features=head["needs"])
    shader = device.create_shader_module(code=text)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    sizes = [*given] + [arrays[param].shape[dim] for param, dim in function["read"]]

    def buffer(data):
        whole = data.tobytes()
        return device.create_buffer_with_data(data=whole + bytes(-len(whole) % 4), usage=usage)

    memory = [np.dtype(p.get("memory", p["dtype"])) for p in function["params"]]
    places = [buffer(a.astype(t)) for a, t in zip(arrays, memory, strict=True)]
    places += [device.create_buffer(size=-(-number(n, sizes) // 4) * 4, usage=usage) for n in function["workspace"]]
    encoder = device.create_command_encoder()
    for k in function["kernels"]:
        pipeline = device.create_compute_pipeline(layout="auto", compute={"module": shader, "entry_point": k["name"]})
        args = [a if a >= 0 else len(arrays) - 1 - a for a in k["args"]]
        numbers = np.array([0] * len(args) + sizes + [0] * 4, "int32")
        uniform = device.create_buffer_with_data(data=numbers.tobytes(), usage=wgpu.BufferUsage.UNIFORM)
        bound = [places[a] for a in args] + [uniform]
        entries = [{"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate(bound)]
        step = encoder.begin_compute_pass()
        step.set_pipeline(pipeline)
        step.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
        groups = [number(n, sizes) for n in k.get("groups", ())]
        if "items" in k:
            blocks = -(-number(k["items"], sizes) // 64)
            groups = [min(blocks, 65535), -(-blocks // 65535), 1]
        step.dispatch_workgroups(*groups)
        step.end()
    device.queue.submit([encoder.finish()])
    out = arrays[-1]
    data = np.frombuffer(device.queue.read_buffer(places[len(arrays) - 1]), memory[-1])[: out.size]
    return data.astype(out.dtype).reshape(out.shape)


def of_expression(made, dtype, shape, *more):
    """The text of a tensor expression of one argument."""
    a = te.placeholder(shape, dtype, "a")
    f = te.create_prim_func([a, made(a)], target="webgpu").with_attr("global_symbol", "f")
    return baton.build(baton.IRModule({"f": f}), target="webgpu").get_source("wgsl")


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_threads(name, adapter):
    made, x, want = PROGRAMS[name]
    np.testing.assert_array_equal(run(adapter, build_schedule(made(), "webgpu"), x, np.zeros_like(want)), want)


def test_a_product_in_shared_memory(adapter):
    a, b = np.random.default_rng(0).random((2, 64, 64), "float32")
    out = run(adapter, build_schedule(product(64), "webgpu"), a, b, np.zeros((64, 64), "float32"))
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


WITHOUT = ("float64", "division", "bits")  # of types that WGSL lacks


@pytest.mark.parametrize("name", [name for name in EXPRESSIONS if name not in WITHOUT])
def test_tensor_expressions(name, adapter):
    text, x, want = build_expression(name, "webgpu")
    np.testing.assert_allclose(run(adapter, text, x, np.zeros_like(want)), want, rtol=1e-5)


def ints(shape=(7, 33), seed=0):
    x = np.random.default_rng(seed).integers(-1000, 1000, shape).astype("int32")
    x.flat[:4] = [0, -(2**31), 2**31 - 1, -1]
    return x


def floats(shape=(7, 33)):
    x = np.random.default_rng(0).normal(0, 3, shape).astype("float32")
    x.flat[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]
    return x


def same(f):
    return lambda a: te.compute(a.shape, lambda i, j: f(a[i, j]))


# Of single expressions: (argument, the expression, its meaning).
EACH = {
    "division of integers": (ints(), lambda x: tir.floordiv(x, 7) + tir.floormod(x, 5) + tir.truncdiv(x, 3), lambda x: x // 7 + x % 5 + np.trunc(x / 3).astype("int32")),
    "division by what may be 0": (ints(), lambda x: tir.truncdiv(1000, tir.max(x, -1)), lambda x: np.where(np.maximum(x, -1) == 0, 0, np.trunc(1000 / np.where(np.maximum(x, -1) == 0, 1, np.maximum(x, -1)))).astype("int32")),
    "integers wrap": (ints(), lambda x: x * 12345 + 2000000000, lambda x: x * np.int32(12345) + np.int32(2000000000)),
    "bits": (ints(), lambda x: (x & 255) | ((x ^ 3) >> 2) | tir.popcount(x), lambda x: (x & 255) | ((x ^ 3) >> 2) | np.array([bin(int(v) & 0xFFFFFFFF).count("1") for v in x.ravel()], "int32").reshape(x.shape)),
    "unsigned": (ints().astype("uint32"), lambda x: x * 3 + (x >> 3), lambda x: x * np.uint32(3) + (x >> np.uint32(3))),
    "to integers": (floats(), lambda x: (x * 1e9).astype("int32"), lambda x: np.where(np.isnan(x), 0, np.clip(np.trunc(x.astype("float64") * 1e9), -(2**31), 2**31 - 1)).astype("int32")),
    "NaN and infinities": (floats(), lambda x: tir.if_then_else(tir.isnan(x), tir.const(1, "float32"), tir.max(x, tir.const(-1e30, "float32"))), lambda x: np.where(np.isnan(x), 1, np.maximum(x, np.float32(-1e30))).astype("float32")),
    "a literal that is not finite": (floats(), lambda x: tir.min(x, tir.const(float("inf"), "float32")), lambda x: x),
    "least and most with NaN": (floats(), lambda x: tir.max(tir.min(x, tir.const(2, "float32")), tir.const(-2, "float32")), lambda x: np.clip(x, -2, 2)),
    "roundings": (floats(), lambda x: tir.floor(x) + tir.ceil(x) + tir.trunc(x) + tir.round(x) + tir.nearbyint(x), lambda x: np.floor(x) + np.ceil(x) + np.trunc(x) + np.trunc(x + np.copysign(np.float32(0.5), x)) + np.rint(x)),
    "functions": (np.abs(np.nan_to_num(floats(), posinf=1, neginf=1)), lambda x: tir.exp(-x) + tir.log(x + 1) + tir.tanh(x) + tir.erf(x) + tir.sqrt(x) + tir.sin(x) + tir.cos(x), None),
    "inverse functions": (np.random.default_rng(0).uniform(-1, 1, (7, 33)).astype("float32"), lambda x: tir.asin(x) + 3 * tir.acos(x) + 5 * tir.atan(x), lambda x: np.arcsin(x) + 3 * np.arccos(x) + 5 * np.arctan(x)),
    "remainders": (np.array([[1, 7.5, -7.5, 1e30, 5, -0.0, 3, np.inf, 1, 6]] * 2, "float32"), lambda x: tir.fmod(x, tir.const(0.1, "float32")) + tir.fmod(x, tir.const(-2.5, "float32")), lambda x: np.fmod(x, np.float32(0.1)) + np.fmod(x, np.float32(-2.5))),
    "NaN is true": (floats(), lambda x: tir.Select(x.astype("bool"), tir.const(2, "float32"), tir.const(3, "float32")), lambda x: np.where(x != 0, 2, 3).astype("float32")),
    "powers of any sign": (np.array([[0, -0.0, 0, -0.0, 1, -2, -2, 4, 5, -1]] * 2, "float32"), lambda x: tir.pow(x, tir.const(-1, "float32")) + tir.pow(x, tir.const(0, "float32")), lambda x: 1 / x + 1),
    "powers": (np.nan_to_num(floats(), posinf=1, neginf=1), lambda x: tir.pow(x, tir.const(3, "float32")), lambda x: x**3),
    "truth": (floats(), lambda x: tir.all(x > 0, x < 2), lambda x: (x > 0) & (x < 2)),
    "of truth": (floats() > 0, lambda x: tir.Select(x, tir.const(2, "float32"), tir.const(3, "float32")), lambda x: np.where(x, 2, 3).astype("float32")),
    "half floats": (np.random.default_rng(0).normal(0, 3, (7, 33)).astype("float16"), lambda x: x + x * x, lambda x: x + x * x),
}  # fmt: skip


def meaning_of_functions(x):
    import math

    y = x.astype("float64")
    return np.exp(-y) + np.log(y + 1) + np.tanh(y) + np.vectorize(math.erf)(y) + np.sqrt(y) + np.sin(y) + np.cos(y)


@pytest.mark.parametrize("name", EACH)
def test_expressions(name, adapter):
    x, f, meaning = EACH[name]
    with np.errstate(all="ignore"):
        want = (meaning or meaning_of_functions)(x)
    text = of_expression(same(f), str(x.dtype), x.shape)
    out = np.zeros(x.shape, "float32" if name == "functions" else want.dtype)
    tolerance = {"half floats": 2e-3, "functions": 1e-5, "inverse functions": 1e-5}.get(name, 1e-6)
    np.testing.assert_allclose(run(adapter, text, x, out), want, rtol=tolerance, atol={"functions": 1e-6, "half floats": 2e-3}.get(name, 0))


def test_open_lengths_and_rows_of_blocks(adapter):
    a = te.placeholder((te.var("n"),), "float32", "a")
    f = te.create_prim_func([a, te.compute(a.shape, lambda i: a[i] * 2 + i.astype("float32"))], target="webgpu").with_attr("global_symbol", "f")
    text = baton.build(baton.IRModule({"f": f}), target="webgpu").get_source("wgsl")
    (function,) = head_of(text, "webgpu")["functions"]
    for n in (1, 63, 1000, 65535 * 64 + 5):
        x = np.ones(n, "float32")
        np.testing.assert_array_equal(run(adapter, text, x, np.zeros_like(x), given=[n] * function["sizes"]), 2 + np.arange(n).astype("float32"))


# ---- Without a device


def test_functions_are_text_and_say_so_when_they_are_called(tmp_path):
    f = baton.build(*add_one(64), "webgpu")
    text = f.get_source()
    assert "@workgroup_size(64, 1, 1)" in text and "@builtin(workgroup_id)" in text
    f.save(str(tmp_path / "f.wgsl"))
    assert (tmp_path / "f.wgsl").read_text() == text
    with pytest.raises(baton.error.RuntimeError, match="it is code for webgpu as text .get_source., and there is no library libbaton_webgpu.so"):
        f(np.zeros(64, "float32"), np.zeros(64, "float32"))


@pytest.mark.parametrize(
    ("dtype", "made"),
    [
        ("float64", lambda x: x + 1),
        ("int64", lambda x: x + 1),
        ("uint8", lambda x: x + 1),
        ("bfloat16", lambda x: x + x),
        ("int32", lambda x: (x.astype("int64") * x.astype("int64")).astype("int32")),
    ],
)
def test_types_that_wgsl_lacks(dtype, made):
    lacks = "int64" if dtype == "int32" else dtype
    with pytest.raises(baton.error.UnsupportedError, match=f"`f`: WGSL has no values of dtype {lacks}; it has int32, uint32, float32, float16 and bool: cast"):
        of_expression(same(made), dtype, (7, 33))


def test_blocks_of_an_open_number_of_threads_are_refused():
    n = te.var("n")

    def write(ib, a, b):
        (i,) = axes(ib, threadIdx_x=n)
        b[i] = a[i]

    with pytest.raises(baton.error.UnsupportedError, match="the number of threads of a block is open; let it be a number"):
        baton.build(*program((n,), "float32", write), "webgpu")


def test_arrays_beyond_32_bits_are_refused():
    with pytest.raises(baton.error.UnsupportedError, match="32 bits"):
        of_expression(same(lambda x: x + 1), "float32", (65536, 65536))


def test_a_program_of_relay_has_the_text_of_its_kernels():
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(32, 64))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))), target="webgpu")
    assert lib.get_source("wgsl").count("@compute") >= 2


def operators(lib):
    """The operators of a program's kernels, by the type of their device."""
    program = json.loads(json.loads(lib.get_source("json"))["program"])
    types = [d[0] for d in program["devices"]]
    found = {}
    for k in program["kernels"]:
        found.setdefault(types[k.get("device", 0)], []).append(k["operators"])
    return found


@pytest.mark.parametrize("target", ["webgpu", "metal"])
def test_operators_of_types_that_the_language_lacks_run_on_the_host(target):
    x = relay.var("x", shape=(4, 64))
    y = relay.exp(relay.cast(relay.nn.softmax(x), "float64"))
    mod = baton.IRModule.from_expr(relay.Function([x], relay.tanh(relay.cast(relay.add(y, relay.const(1.0, "float64")), "float32"))))
    lib = relay.build(mod, target=target)
    by_device = operators(lib)
    number = {"webgpu": 15, "metal": 8}[target]
    assert any("softmax" in o for o in by_device[number]) and not any("add" in o or "cast" in o for o in by_device[number])
    assert any("add" in o for o in by_device[1])
    assert ("@compute" if target == "webgpu" else "kernel void") in lib.get_source(target)


def test_annotated_parts_are_for_the_device():
    x, w = relay.var("x", shape=(4, 64)), relay.var("w", shape=(32, 64))
    y = relay.on_device(relay.nn.dense(x, w), baton.webgpu(0))
    mod = baton.IRModule.from_expr(relay.Function([x, w], relay.add(y, relay.const(1.0))))
    lib = relay.build(mod, target={"cpu": "llvm", "webgpu": "webgpu"})
    assert operators(lib) == {1: ["add"], 15: ["nn.dense"]}


def test_running_a_model_says_that_the_device_is_not_there(tmp_path):
    x = relay.var("x", shape=(4, 64))
    lib = relay.build(baton.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), target="webgpu")
    lib.export_library(tmp_path / "m.so")
    for module in (lib, baton.runtime.load_module(str(tmp_path / "m.so"))):
        with pytest.raises(baton.error.RuntimeError, match=r"compiled for cpu and webgpu: device `webgpu\(0\)` is not available"):
            module["default"](baton.webgpu(0))
