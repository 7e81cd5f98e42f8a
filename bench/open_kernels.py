# SPDX-License-Identifier: Apache-2.0
"""Kernels whose extents are variables, beside kernels compiled for each size: the ratio of their times.

    python bench/open_kernels.py                          # all
    python bench/open_kernels.py dense softmax --check    # exit code 1 if a bar is missed
    BATON_NUM_THREADS=1 python bench/open_kernels.py --sizes 1,7,64

A row is one kernel over all sizes: geometric mean and worst ratio. Bars: 1.03 and 1.10, from the design.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

LENGTHS = (1, 2, 5, 7, 13, 16, 31, 64, 127, 256, 509)
SIDES = (160, 200, 224, 255, 320)
BARS = (1.03, 1.10)


def var(name, *shape):
    from baton import relay

    return relay.var(name, shape=shape)


def dense(k, units, gelu=False):
    from baton import relay

    def make(d):
        columns = 64 if not isinstance(d["n"], int) else packed_columns(d["n"], k, units)
        x, w, b = var("x", d["n"], k), var("w", -(-units // columns), k, columns), var("b", units)
        y = relay.add(relay.nn.contrib_dense_pack(x, w, weight_layout=f"NC{columns}n", units=units), b)
        if gelu:
            y = y * relay.const(0.5) * (relay.erf(y * relay.const(0.70710678)) + relay.const(1.0))
        return [x, w, b], y

    return make


def packed_columns(rows, k, units):
    """The width of panels that the compiler chooses for so many rows."""
    import baton
    from baton import relay

    x = var("x", rows, k)
    mod = baton.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(np.zeros((units, k), "float32")))))
    with baton.target.Target("llvm -num-cores=2"):
        mod = relay.transform.PackDense()(relay.transform.InferType()(mod))
    return int(mod["main"].body.args[1].data.shape[2])


def simple(shapes, body):
    def make(d):
        params = [var(f"p{i}", *s) for i, s in enumerate(shapes(d["n"]))]
        return params, body(*params)

    return make


def convolution(channels, units, window, step, shrink, groups=1):
    """At a side of `n` pixels of the model's input."""
    from baton import relay

    def make(d):
        n = d["n"] // shrink if isinstance(d["n"], int) else d["n"]
        own = 1 if groups > 1 else 16
        x = var("x", 1, channels // 16, n, n, 16)
        w = var("w", units // 16, 1 if groups > 1 else channels // 16, window, window, own, 16)
        y = relay.nn.contrib_conv2d_nchwc(
            x, w, strides=(step, step), padding=(window // 2,) * 2, kernel_size=(window, window), channels=units,
            groups=groups, data_layout="NCHW16c", kernel_layout=f"OIHW{own}i16o", out_layout="NCHW16c",
        )  # fmt: skip
        return [x, w], relay.nn.relu(y)

    return make, lambda n: n // shrink


def rows():
    from baton import relay

    nn = relay.nn
    yield "dense 384x384", dense(384, 384), LENGTHS, None
    yield "dense 384x1536 gelu", dense(384, 1536, True), LENGTHS, None
    yield "dense 1536x384", dense(1536, 384), LENGTHS, None
    yield "dense 768x768", dense(768, 768), LENGTHS, None
    yield "dense 768x3072 gelu", dense(768, 3072, True), LENGTHS, None
    keys = simple(lambda n: [(12, n, 64), (12, n, 64)], lambda q, k: nn.batch_matmul(q, k, transpose_b=True))
    yield "attention keys", keys, LENGTHS, None
    values = simple(lambda n: [(12, n, n), (12, n, 64)], lambda p, v: nn.batch_matmul(p, v, transpose_b=False))
    yield "attention values", values, LENGTHS, None
    masked = simple(lambda n: [(1, 12, n, n), (1, 1, 1, n)], lambda x, m: nn.softmax(relay.add(x, m)))
    yield "softmax", masked, LENGTHS, None
    norm = simple(lambda n: [(1, n, 384), (1, n, 384), (384,), (384,)], lambda x, r, g, b: nn.layer_norm(relay.add(x, r), g, b))
    yield "layer norm", norm, LENGTHS, None
    for axes in ((0, 2, 1, 3), (0, 2, 3, 1)):
        name = "transpose " + "".join(map(str, axes))
        yield name, simple(lambda n: [(1, n, 12, 32)], lambda x, axes=axes: relay.transpose(x, axes)), LENGTHS, None
    for channels, units, window, step, shrink, groups in (
        (64, 64, 1, 1, 4, 1), (64, 64, 3, 1, 4, 1), (128, 128, 3, 2, 4, 1), (256, 256, 3, 1, 16, 1), (512, 2048, 1, 1, 32, 1),
        (96, 96, 3, 1, 4, 96), (192, 192, 3, 2, 8, 192),
    ):  # fmt: skip
        make, size = convolution(channels, units, window, step, shrink, groups)
        kind = "depthwise" if groups > 1 else "convolution"
        yield f"{kind} {channels}-{units} {window}x{window} / {step}, side / {shrink}", make, SIDES, size


class Kernel:
    def __init__(self, params, body):
        import baton
        from baton import relay
        from baton._ffi import get_global_func

        target = baton.target.Target("llvm -num-cores=2")
        main = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body)))["main"]
        with target:
            func = get_global_func("relay.LowerPrimitive")(main, "kernel", target).with_attr("global_symbol", "kernel")
            self.run = baton.build(func, target=target)["kernel"]
        self.flat = all(len(b.shape) == 1 for b in func.buffer_map.values())
        self.out = main.body.checked_type.shape

    def arguments(self, params, out, sizes):
        import baton

        rng = np.random.default_rng(0)
        shapes = [[int(d) for d in p.type_annotation.shape] for p in params]
        arrays = [rng.standard_normal(s, dtype="float32") for s in shapes] + [np.zeros(out, "float32")]
        return [baton.nd.array(a.reshape(-1) if self.flat else a) for a in arrays] + sizes


def seconds(run, arguments, rounds=5) -> float:
    """The fastest of several series of calls, each two milliseconds or more."""
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < 2e-3:
        run(*arguments)
        calls += 1
    best = math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run(*arguments)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def measure(name, make, sizes, extent, verbose) -> tuple[float, float]:
    from baton import te

    opened = Kernel(*make({"n": te.var("n")}))
    ratios = []
    for n in sizes:
        params, body = make({"n": n})
        fixed = Kernel(params, body)
        out = [int(d) for d in fixed.out]
        of_fixed = fixed.arguments(params, out, [])
        if name.startswith("dense"):  # panels as the open kernel reads them
            params = [var(p.name_hint, *p.type_annotation.shape) for p in make({"n": te.var("n")})[0]]
            params[0] = var("x", n, params[1].type_annotation.shape[1])
        of_open = opened.arguments(params, out, [extent(n) if extent else n])
        times = [math.inf, math.inf]
        for _ in range(3):
            times[0] = min(times[0], seconds(fixed.run, of_fixed))
            times[1] = min(times[1], seconds(opened.run, of_open))
        ratios.append(times[1] / times[0])
        if verbose:
            print(f"  {n:5}  literal {times[0] * 1e6:9.2f} us  open {times[1] * 1e6:9.2f} us  {ratios[-1]:.3f}", flush=True)
    return math.exp(sum(map(math.log, ratios)) / len(ratios)), max(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only rows that begin so")
    parser.add_argument("--sizes", help="these instead, separated by commas")
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    parser.add_argument("-q", "--quiet", action="store_true", help="no line for each size")
    options = parser.parse_args()
    missed = False
    for name, make, sizes, extent in rows():
        if options.names and not any(name.startswith(n) for n in options.names):
            continue
        if options.sizes:
            sizes = [int(s) for s in options.sizes.split(",")]
        mean, worst = measure(name, make, sizes, extent, not options.quiet)
        missed |= mean > BARS[0] or worst > BARS[1]
        print(f"{name:48} mean {mean:.3f} ({BARS[0]})  worst {worst:.3f} ({BARS[1]})", flush=True)
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
