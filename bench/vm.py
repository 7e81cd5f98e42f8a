# SPDX-License-Identifier: Apache-2.0
"""The virtual machine: an LSTM over a sequence, in a loop against the same steps unrolled into static functions, interleaved, and
recursion over a list.

    python bench/vm.py [--steps 1000] [--unrolled 100] [--rounds 7]

The loop runs `--steps` steps; the static function has `--unrolled` of them and is called as often as it takes. Bars: the loop at
most 1.3 times the unrolled function's time a step; a list of 1,000,000 elements built and summed by recursion.
"""

import argparse
import statistics
import time

import numpy as np

import baton
from baton import relay
from baton.runtime.vm import VirtualMachine

HIDDEN = 128

LIST = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @sum(%l: List[Tensor[(), int64]]) -> Tensor[(), int64] {
  match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0i64 } }
}
def @upto(%n: Tensor[(), int64]) -> List[Tensor[(), int64]] {
  if (equal(%n, 0i64)) { Nil } else { Cons(%n, @upto(subtract(%n, 1i64))) }
}
def @main(%n: Tensor[(), int64]) { @sum(@upto(%n)) }
"""


def cell(xs, at, h, c, w, u):
    """One step: gates i, f, g, o of `x w + h u`, x is row `at` of the sequence."""
    x = relay.take(xs, at, axis=0, mode="clip")
    gates = relay.add(relay.nn.dense(x, w), relay.nn.dense(h, u))
    i, f, g, o = relay.split(gates, 4, axis=1)
    c = relay.add(relay.multiply(relay.sigmoid(f), c), relay.multiply(relay.sigmoid(i), relay.tanh(g)))
    return relay.multiply(relay.sigmoid(o), relay.tanh(c)), c


def weights():
    """Weights of the cell, seeded."""
    rng = np.random.default_rng(0)
    return [relay.const((rng.standard_normal((4 * HIDDEN, HIDDEN)) / 12).astype("float32")) for _ in range(2)]


def parameters(steps):
    kind = relay.TensorType((1, HIDDEN), "float32")
    return [relay.var("n", shape=(1,), dtype="int64"), relay.var("xs", shape=(steps, HIDDEN)), relay.var("h", kind), relay.var("c", kind)]


def loop_module(steps):
    """@loop calls itself until it has taken all steps; a scalar counter would be as good, this one is an index."""
    w, u = weights()
    kind = relay.TensorType((1, HIDDEN), "float32")
    names = n, xs, h, c = parameters(steps)
    loop = relay.GlobalVar("loop")
    h2, c2 = cell(xs, n, h, c, w, u)
    body = relay.If(relay.equal(relay.squeeze(n), relay.const(steps, "int64")), h, relay.Call(loop, [relay.add(n, relay.const(1, "int64")), xs, h2, c2]))
    mod = baton.IRModule({loop: relay.Function(names, body, kind)})
    again = parameters(steps)
    mod["main"] = relay.Function(again, relay.Call(loop, again), kind)
    return mod


def unrolled_module(steps):
    """`steps` steps as one static graph."""
    w, u = weights()
    names = xs, h, c = parameters(steps)[1:]
    for i in range(steps):
        h, c = cell(xs, relay.const(np.array([i], "int64")), h, c, w, u)
    return baton.IRModule.from_expr(relay.Function(names, relay.Tuple([h, c])))


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--unrolled", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    if args.steps % args.unrolled:
        parser.error("--steps must be a multiple of --unrolled")
    xs = rng.standard_normal((args.steps, HIDDEN)).astype("float32")
    whole = baton.nd.array(xs)
    parts = [baton.nd.array(xs[i : i + args.unrolled]) for i in range(0, args.steps, args.unrolled)]
    h, c = (baton.nd.array(rng.standard_normal((1, HIDDEN)).astype("float32")) for _ in range(2))
    loop = VirtualMachine(relay.vm.compile(loop_module(args.steps), target="llvm"), baton.cpu())
    begin = time.perf_counter()
    lib = relay.build(unrolled_module(args.unrolled), target="llvm")
    unrolled_compile = time.perf_counter() - begin
    run = lib["default"](baton.cpu())["run_with"]

    def by_loop():
        return loop.invoke("main", np.zeros(1, "int64"), whole, h, c).numpy()

    def by_static():
        a, b = h, c
        for part in parts:
            a, b = run(part, a, b)
        return a.numpy()

    np.testing.assert_allclose(by_loop(), by_static(), rtol=1e-4, atol=1e-5)
    times = {by_loop: [], by_static: []}
    for _ in range(args.rounds):
        for f, seen in times.items():
            begin = time.perf_counter()
            f()
            seen.append((time.perf_counter() - begin) / args.steps * 1e6)
    a, b = (statistics.median(t) for t in times.values())
    print(
        f"LSTM cell, {HIDDEN} wide: loop {a:.2f} us a step, unrolled {b:.2f} us a step: ratio {a / b:.2f} (bar 1.3); "
        f"unrolled {args.unrolled} steps compiled in {unrolled_compile:.1f} s"
    )
    lists = VirtualMachine(relay.vm.compile(baton.parser.fromtext(LIST), target="llvm"), baton.cpu())
    n = 1_000_000
    begin = time.perf_counter()
    value = lists.invoke("main", np.int64(n)).item()
    took = time.perf_counter() - begin
    assert value == n * (n + 1) // 2
    print(f"a list of {n:,} elements built and summed by recursion: {took:.2f} s, {took / n * 1e9:.0f} ns an element")


if __name__ == "__main__":
    main()
