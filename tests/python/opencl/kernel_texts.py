# SPDX-License-Identifier: Apache-2.0
"""Programs for targets whose code is text, and the first line of such a text."""

import ctypes
import json
import subprocess

import numpy as np
from thread_programs import add_one, backwards, block_sums, grid, program  # the folder is on the path by conftest.py

import baton
from baton import te, tir


def head_of(text, device):
    """The first line of a text: its functions, and how each is launched."""
    return json.loads(text.partition("\n")[0].removeprefix(f"// baton-{device} "))


def number(formula, sizes):
    """The value of a number in the head of a program: a literal, or what a stack machine makes of its words."""
    if isinstance(formula, int):
        return formula
    stack = []
    for word in formula:
        if word[0] == "s":
            stack.append(sizes[int(word[1:])])
        elif word in ("+", "-", "*", "//"):
            b, a = stack.pop(), stack.pop()
            stack.append({"+": a + b, "-": a - b, "*": a * b, "//": a // b}[word])
        else:
            stack.append(int(word))
    return stack.pop()


def run_on_cpu(text, device, header, call, folder, arrays, flags=()):
    """Compiles a text as C++ with a header that defines the language's names, runs its only function on arrays, and returns the last of them.
    `call(kernel, sizes)`: a call of a kernel by one thread."""
    (function,) = head_of(text, device)["functions"]
    sizes = [arrays[param].shape[dim] for param, dim in function["read"]]
    places = list(arrays) + [np.zeros(number(n, sizes), "uint8") for n in function["workspace"]]
    source = folder / "kernels.cpp"
    kernels = [{**k, "args": [a if a >= 0 else len(arrays) - 1 - a for a in k["args"]]} for k in function["kernels"]]
    launchers = [
        f'extern "C" void launch_{k["name"]}(const int64_t* groups, const int64_t* threads, void** buffers, const int64_t* sizes) {{\n'
        f"  Launch(groups, threads, [=](Place block, Place thread, Place block_size) {{ {call(k, len(sizes))} }});\n}}\n"
        for k in kernels
    ]
    source.write_text(f'#include "{header}"\n{text}\n{"".join(launchers)}')
    always = ["-std=c++20", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function", "-pthread", "-fPIC", "-shared"]
    subprocess.run(["g++", *always, *flags, "-o", folder / "kernels.so", source], check=True)
    library = ctypes.CDLL(folder / "kernels.so")
    buffers = (ctypes.c_void_p * len(places))(*[p.ctypes.data for p in places])
    for k in kernels:
        groups, threads = [[number(n, sizes) for n in k.get(key, ())] for key in ("groups", "threads")]
        if "items" in k:
            groups, threads = [-(-number(k["items"], sizes) // 64), 1, 1], [64, 1, 1]
        three = ctypes.c_int64 * 3
        library[f"launch_{k['name']}"](three(*groups), three(*threads), buffers, (ctypes.c_int64 * max(len(sizes), 1))(*sizes))
    return arrays[-1]


X = np.random.default_rng(0).integers(-100, 100, 1000).astype("float32")
PROGRAMS = {
    "blocks of threads": (lambda: add_one(1000), X, X + 1),
    "open length": (lambda: add_one(te.var("n")), X[:130], X[:130] + 1),
    "shared memory": (lambda: program((64,), "float32", backwards), X[:64], X[63::-1]),
    "allreduce": (lambda: program((160,), "float32", block_sums, out=(5,)), X[:160], X[:160].reshape(5, 32).sum(1)),
    "grid": (lambda: program((720,), "int32", grid), np.arange(720, dtype="int32"), 2 * np.arange(720, dtype="int32")),
}


def softmax(a):
    n = a.shape[1]
    k, m = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "m")
    most = te.compute((a.shape[0],), lambda i: te.max(a[i, k], axis=k))
    e = te.compute(a.shape, lambda i, j: te.exp(a[i, j] - most[i]))
    total = te.compute((a.shape[0],), lambda i: te.sum(e[i, m], axis=m))
    return te.compute(a.shape, lambda i, j: e[i, j] / total[i])


# Of tensor expressions: (dtype of the argument, the result, its meaning).
EXPRESSIONS = {
    "softmax": ("float32", softmax, lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)),
    "float64": ("float64", lambda a: te.compute(a.shape, lambda i, j: te.sqrt(te.abs(a[i, j]))), lambda x: np.sqrt(np.abs(x))),
    "half floats": ("float16", lambda a: te.compute(a.shape, lambda i, j: a[i, j] * a[i, j]), lambda x: x * x),
    "to integers": ("float32", lambda a: te.compute(a.shape, lambda i, j: (a[i, j] * 1e9).astype("int32")), lambda x: np.clip(np.trunc(x.astype("float64") * 1e9), -(2**31), 2**31 - 1).astype("int32")),
    "division": ("int64", lambda a: te.compute(a.shape, lambda i, j: tir.floordiv(a[i, j], 7) + tir.floormod(a[i, j], 5)), lambda x: x // 7 + x % 5),
    "bits": ("uint8", lambda a: te.compute(a.shape, lambda i, j: tir.popcount(a[i, j]) + (a[i, j] >> 2)), lambda x: np.bitwise_count(x) + (x >> 2) if hasattr(np, "bitwise_count") else np.unpackbits(x[..., None], axis=-1).sum(-1).astype("uint8") + (x >> 2)),
    "conditions": ("int32", lambda a: te.compute(a.shape, lambda i, j: tir.if_then_else(tir.all(i > 0, a[i, j] < 0), -a[i - 1, j], tir.max(a[i, j], 3))), lambda x: np.where((np.arange(len(x))[:, None] > 0) & (x < 0), -np.roll(x, 1, 0), np.maximum(x, 3))),
}  # fmt: skip


FORMATS = {"cuda": "cu", "webgpu": "wgsl"}  # of a target's text, where that is not its name


def build_schedule(made, target):
    """The text of a schedule and its arguments."""
    f = baton.build(*made, target)
    (kernels,) = f.imported_modules
    assert kernels.type_key == target
    return f.get_source(FORMATS.get(target, target))


def build_expression(name, target):
    """The text of one of EXPRESSIONS, its argument and the result."""
    dtype, made, meaning = EXPRESSIONS[name]
    a = te.placeholder((7, 33), dtype, "a")
    out = made(a)
    x = np.random.default_rng(0).integers(0 if dtype == "uint8" else -9, 9, (7, 33)).astype(dtype)
    f = te.create_prim_func([a, out], target=target).with_attr("global_symbol", "f")
    return baton.build(baton.IRModule({"f": f}), target=target).get_source(FORMATS.get(target, target)), x, meaning(x)
