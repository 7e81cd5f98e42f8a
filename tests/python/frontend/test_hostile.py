# SPDX-License-Identifier: Apache-2.0
"""Small files that ask for much, and files with bytes changed: compiling none takes more than 10 s of processor time or 2 GB."""

import json
import os
import signal
import sys
import tempfile
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import baton

SECONDS, BYTES = 10, 2 << 30
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def floats(name, shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


def model(nodes, shape=(4,), out=None, functions=(), opset=18, **weights):
    init = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", [floats("x", shape)], [floats("y", out)], init)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("own", 1)] * bool(functions)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions)).SerializeToString()


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def ints(*values):
    return np.array(values, "int64")


def body(nodes, state):
    """of a Loop."""
    ends = [helper.make_tensor_value_info("i", INT, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    return helper.make_graph([*nodes, node("Identity", "go", "on")], "body", [*ends, floats(state[0], None)], [on, floats(state[1], None)])


def nested_loops(depth, rounds):
    """rounds ** depth additions."""
    nodes = [node("Add", f"s{depth} x", f"t{depth}")]
    for level in range(depth - 1, -1, -1):
        ends = [helper.make_tensor_value_info(f"i{level}", INT, []), helper.make_tensor_value_info(f"go{level}", TensorProto.BOOL, [])]
        on = helper.make_tensor_value_info(f"on{level}", TensorProto.BOOL, [])
        inner = helper.make_graph([*nodes, node("Identity", f"go{level}", f"on{level}")], "b", [*ends, floats(f"s{level + 1}", [4])],
                                  [on, floats(f"t{level + 1}", [4])])  # fmt: skip
        nodes = [helper.make_node("Loop", ["n", "", "x" if level == 0 else f"s{level}"], ["y" if level == 0 else f"t{level}"], body=inner)]
    return model(nodes, n=np.int64(rounds))


def functions_within_functions(depth):
    """2 ** depth nodes."""
    made = [
        helper.make_function(
            "own",
            f"f{k}",
            ["a"],
            ["c"],
            [node(f"f{k - 1}" if k else "Neg", "a", "b", domain="own" if k else ""), node(f"f{k - 1}" if k else "Neg", "b", "c", domain="own" if k else "")],
            [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)],
        )
        for k in range(depth)
    ]
    return model([node(f"f{depth - 1}", "x", "y", domain="own")], functions=made)


def constants(n, then):
    """Values that no input reaches, of n x n ones."""
    return model([node("ConstantOfShape", "n", "c"), *then, node("ReduceSum", "d", "e", keepdims=0), node("Add", "x e", "y")], n=ints(n, n))


def doublings(op, value, then, count=29, shape=(4,)):
    """2 ** count elements, each step from the one before: `op` of a name gives the inputs of the next."""
    steps = [node(op, "v0 v0" if op == "Concat" else "v0 n", "v1", **({"axis": 0} if op == "Concat" else {}))]
    for k in range(1, count):
        steps.append(node(op, f"v{k} v{k}" if op == "Concat" else f"v{k} n", f"v{k + 1}", **({"axis": 0} if op == "Concat" else {})))
    return model([*steps, *then(f"v{count}")], shape=shape, v0=value, n=ints(2))


def crossed(count):
    """Two chains that take of each other, so that no value is used twice by one node."""
    steps = []
    for k in range(count):
        steps += [node("Concat", f"a{k} b{k}", f"a{k + 1}", axis=0), node("Concat", f"b{k} a{k}", f"b{k + 1}", axis=0)]
    sums = [node("ReduceSum", f"a{count}", "s", keepdims=0), node("Add", "x s", "y")]
    return model([*steps, *sums], a0=np.ones(1, "float32"), b0=np.zeros(1, "float32"))


def summed(value):
    return [node("ReduceSum", value, "s", keepdims=0), node("Add", "x s", "y")]


HOSTILE = {
    "doublings": lambda: doublings("Concat", np.ones(1, "float32"), summed),
    "doublings by Tile": lambda: doublings("Tile", np.ones(1, "float32"), summed),
    "doublings that come out": lambda: doublings("Concat", np.ones(1, "float32"), lambda v: [node("Add", f"x {v}", "y")], shape=(1,)),
    "doublings of indices": lambda: doublings("Concat", np.ones(1, "int64"), lambda v: [node("Cast", v, "f", to=FLOAT), node("Add", "x f", "y")], shape=(1,)),
    "doublings of an input": lambda: doublings("Concat", np.ones(1, "float32"), lambda v: [node("Mul", f"x {v}", "m"), node("ReduceSum", "m", "y", keepdims=0)], shape=(1,)),
    "chains that double each other": lambda: crossed(28),
    "expand": lambda: model([node("Expand", "x n", "y")], n=ints(1 << 20, 1 << 20, 4)),
    "expand and sum": lambda: model([node("Expand", "x n", "e"), node("ReduceSum", "e", "y", keepdims=0)], n=ints(1 << 16, 1 << 16, 4)),
    "constant": lambda: constants(1 << 18, [node("Neg", "c", "d")]),
    "constants multiplied": lambda: constants(8192, [node("MatMul", "c c", "d")]),
    "constants multiplied often": lambda: constants(2000, [node("MatMul", "c c", "c0"), *(node("MatMul", f"c{k} c", f"c{k + 1}") for k in range(50)), node("Neg", "c50", "d")]),
    "constant sines": lambda: constants(8192, [node("Sin", "c", "c0"), *(node("Sin", f"c{k}", f"c{k + 1}") for k in range(100)), node("Neg", "c100", "d")]),
    "constants sorted": lambda: constants(5000, [node("TopK", "c n", "d ignored")]),
    "range": lambda: model([node("Range", "a b c", "r"), node("ReduceSum", "r", "s", keepdims=0), node("Add", "x s", "y")], a=np.float32(0), b=np.float32(1e9), c=np.float32(1)),
    "loop": lambda: model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body([node("Add", "s x", "t")], ("s", "t")))], n=np.int64(1 << 31)),
    "loop of constants": lambda: model([helper.make_node("Loop", ["n", "", "z"], ["s2"], body=body([node("Add", "s z", "t")], ("s", "t"))), node("Add", "x s2", "y")],
                                       n=np.int64(1 << 31), z=np.zeros(4, "float32")),
    "loop that doubles": lambda: model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body([node("Concat", "s s", "t", axis=0)], ("s", "t")))], n=np.int64(1000)),
    "loops within loops": lambda: nested_loops(4, 1000),
    "short loops within loops": lambda: nested_loops(20, 4),
    "loop in the body's size": lambda: model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body([node("Add", "s x", "u0"), *(node("Neg", f"u{k}", f"u{k + 1}") for k in range(2000)), node("Neg", "u2000", "t")], ("s", "t")))], n=np.int64(1000)),
    "functions": lambda: functions_within_functions(40),
    "tile": lambda: model([node("Tile", "x n", "y")], n=ints(1 << 40)),
    "tile and fold": lambda: model([node("Tile", "z n", "t"), node("ReduceSum", "t", "s", keepdims=0), node("Add", "x s", "y")], n=ints(1 << 28), z=np.ones(4, "float32")),
    "pad": lambda: model([node("Pad", "x n", "y")], n=ints(1 << 40, 1 << 40)),
    "one hot": lambda: model([node("Cast", "x", "i", to=INT), node("OneHot", "i n v", "y")], n=ints(1 << 40), v=np.array([0, 1], "float32")),
    "split": lambda: model([node("Split", "x", "y " + " ".join(f"y{k}" for k in range(20_000)), num_outputs=20_001)], shape=(20_001,)),
    "a wide window": lambda: model([node("MaxPool", "x", "y", kernel_shape=[1 << 20], pads=[1 << 19, 1 << 19])], shape=(1, 1, 1 << 20)),
    "a wide convolution": lambda: model([node("ConstantOfShape", "n", "w"), node("Conv", "x w", "y")], shape=(1, 1, 1 << 22), n=ints(1 << 12, 1, 1 << 12)),
    "resize": lambda: model([helper.make_node("Resize", ["x", "", "s"], ["y"])], shape=(1, 1, 64, 64), s=np.array([1, 1, 30_000, 30_000], "float32")),
    "einsum": lambda: model([node("Einsum", "x x x x x x x x", "y", equation="a,b,c,d,e,f,g,h->abcdefgh")], shape=(100,)),
    "many axes": lambda: model([node("Reshape", "x n", "y")], n=ints(*[1] * 100_000, 4)),
    "lstm": lambda: model([node("LSTM", "x w r", "y", hidden_size=8)], shape=(1 << 24, 1, 8), w=np.ones((1, 32, 8), "float32"), r=np.ones((1, 32, 8), "float32")),
    "scan": lambda: model([helper.make_node("Scan", ["z", "x"], ["ignored", "y"], num_scan_inputs=1, body=helper.make_graph(
        [node("Add", "s v", "t"), node("Neg", "t", "w")], "b", [floats("s", [4]), floats("v", [4])], [floats("t", [4]), floats("w", [4])]))], shape=(1 << 24, 4), z=np.zeros(4, "float32")),
    "dft": lambda: model([node("DFT", "x", "y", axis=1)], shape=(1, 1 << 22, 1), opset=18),
    "a chain": lambda: model([node("Neg", "x", "v0"), *(node("Neg" if k % 2 else "Exp", f"v{k}", f"v{k + 1}") for k in range(20_000)), node("Neg", "v20000", "y")]),
    "a wide sum": lambda: model([*(node("Exp" if k % 2 else "Neg", "x" if k < 2 else f"v{k - 2}", f"v{k}") for k in range(5000)), helper.make_node("Sum", [f"v{k}" for k in range(5000)], ["y"])]),
}  # fmt: skip


def compile_apart(data):
    """(outcome, seconds of processor time, bytes at most) of compiling in a child."""
    fd, path = tempfile.mkstemp()
    os.close(fd)
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            before = open("/proc/self/statm").read().split()[1]  # noqa: SIM115
            start = sum(os.times()[:2])
            try:
                baton.compile(data)
                outcome = "compiled"
            except MemoryError as error:
                outcome = f"MemoryError: {error}"
            except baton.Error as error:
                outcome = f"{type(error).__name__}: {str(error)[:200]}"
            with open(path, "w") as file:
                json.dump([outcome, sum(os.times()[:2]) - start, int(before) * os.sysconf("SC_PAGE_SIZE")], file)
        except BaseException as error:  # noqa: BLE001 - it must not come back to pytest
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(0)
    _, status, usage = os.wait4(child, 0)
    with open(path) as file:
        text = file.read()
    os.unlink(path)
    if not text:
        return f"ended by signal {status & 0x7F} or without a word", usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10
    outcome, seconds, before = json.loads(text)
    return outcome, seconds, max((usage.ru_maxrss << 10) - before, 0)


@pytest.fixture(scope="module", autouse=True)
def warm():
    baton.compile(model([node("Neg", "x", "y")]))


@pytest.mark.parametrize("name", HOSTILE)
def test_small_files_that_ask_for_much(name):
    data = HOSTILE[name]()
    outcome, seconds, most = compile_apart(data)
    assert outcome == "compiled" or "Error: " in outcome, outcome
    assert seconds < SECONDS and most < BYTES, f"{outcome} after {seconds:.1f} s, {most >> 20} MB"


def mutants(data, count):
    rng = np.random.default_rng(18)
    for k in range(count):
        changed = bytearray(data)
        for _ in range(rng.integers(1, 6)):
            at = int(rng.integers(len(changed)))
            what = int(rng.integers(4))
            if what == 0:
                changed[at] = int(rng.integers(256))
            elif what == 1:
                changed[at] ^= 1 << int(rng.integers(8))
            elif what == 2:
                del changed[at : at + int(rng.integers(1, 9))]
            else:
                changed[at:at] = rng.bytes(int(rng.integers(1, 9)))
        yield k, bytes(changed)


def test_files_with_changed_bytes():
    """In one child, until there is an end or an alarm."""
    sources = [HOSTILE[name]() for name in ("loop", "range", "pad", "tile", "split", "resize", "scan", "constants multiplied")]
    sources.append(
        model(
            [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("MaxPool", "r", "y", kernel_shape=[2, 2])],
            shape=(1, 3, 8, 8),
            w=np.ones((4, 3, 3, 3), "float32"),
        )
    )
    worst = 0.0
    for data in sources:
        for k, changed in mutants(data[:4000] if len(data) > 100_000 else data, 12):
            start = time.process_time()
            outcome, seconds, most = compile_apart(changed)
            worst = max(worst, seconds, time.process_time() - start)
            assert outcome == "compiled" or "Error: " in outcome, (k, outcome)
            assert seconds < SECONDS and most < BYTES, f"mutant {k}: {outcome} after {seconds:.1f} s, {most >> 20} MB"
    assert worst < SECONDS and onnx
