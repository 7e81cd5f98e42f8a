# SPDX-License-Identifier: Apache-2.0
"""Models whose shapes follow from values, and models with control flow, for all shapes: beside ONNX's reference, saved, and run in
a process that has the runtime alone.
"""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F, INT, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info = helper.make_tensor_value_info
node = helper.make_node


def const(name, values, dtype=np.int64):
    return onnx.numpy_helper.from_array(np.asarray(values, dtype), name)


def model(nodes, inputs, outputs, weights=(), opset=18):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def rand(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype("float32")


def nonzero_gather():
    nodes = [
        node("Greater", ["x", "zero"], ["mask"]),
        node("NonZero", ["mask"], ["where"]),
        node("Squeeze", ["where", "first"], ["places"]),
        node("Gather", ["table", "places"], ["rows"], axis=0),
        node("Relu", ["rows"], ["kept"]),
        node("ReduceSum", ["kept", "second"], ["sums"], keepdims=0),
        node("Mul", ["sums", "sums"], ["y"]),
    ]
    weights = [const("zero", 0, np.float32), const("first", [0]), const("second", [1])]
    return model(nodes, [info("x", F, ["n"]), info("table", F, ["n", 8])], [info("y", F, ["m"])], weights)


def topk_by_input():
    nodes = [
        node("TopK", ["x", "k"], ["values", "places"], axis=-1),
        node("Softmax", ["values"], ["soft"], axis=-1),
        node("Shape", ["soft"], ["size"]),
    ]
    return model(nodes, [info("x", F, ["n", "m"]), info("k", INT, [1])], [info("soft", F, ["n", "k"]), info("places", INT, ["n", "k"]), info("size", INT, [2])])


def detector():
    nodes = [
        node("Sigmoid", ["logits"], ["scores"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["kept"]),
        node("Slice", ["kept", "from", "to", "axis"], ["index"]),
        node("Squeeze", ["index", "axis"], ["flat"]),
        node("Squeeze", ["boxes", "batch"], ["all"]),
        node("Gather", ["all", "flat"], ["found"], axis=0),
        node("Mul", ["found", "scale"], ["y"]),
    ]
    weights = [const("most", [20]), const("iou", [0.5], np.float32), const("least", [0.4], np.float32), const("from", [2]),
               const("to", [3]), const("axis", [1]), const("batch", [0]), const("scale", [2.0], np.float32)]  # fmt: skip
    return model(nodes, [info("boxes", F, [1, "n", 4]), info("logits", F, [1, 2, "n"])], [info("y", F, ["m", 4])], weights)


def branch():
    long = helper.make_graph([node("Relu", ["x"], ["r"]), node("Concat", ["r", "x"], ["a"], axis=0)], "long", [], [info("a", F, ["p", 4])])
    short = helper.make_graph([node("Neg", ["x"], ["b"])], "short", [], [info("b", F, ["q", 4])])
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["positive"]),
        node("If", ["positive"], ["z"], then_branch=long, else_branch=short),
        node("Softmax", ["z"], ["y"], axis=0),
    ]
    return model(nodes, [info("x", F, ["n", 4])], [info("y", F, ["m", 4])], [const("zero", 0, np.float32)])


def loop():
    body = helper.make_graph(
        [node("Mul", ["state", "half"], ["less"]), node("Add", ["less", "x"], ["next"]), node("Identity", ["going"], ["goes"])],
        "body",
        [info("i", INT, []), info("going", B, []), info("state", F, ["n", 4])],
        [info("goes", B, []), info("next", F, ["n", 4])],
        [const("half", 0.5, np.float32)],
    )
    return model([node("Loop", ["times", "yes", "x"], ["y"], body=body)], [info("x", F, ["n", 4]), info("times", INT, [])], [info("y", F, ["n", 4])],
                 [const("yes", True, bool)])  # fmt: skip


def growing_cache():
    """A decoder: each step appends a row to its cache and attends to all rows."""
    body = helper.make_graph(
        [
            node("Concat", ["past", "query"], ["grown"], axis=0),
            node("Transpose", ["grown"], ["turned"], perm=[1, 0]),
            node("MatMul", ["query", "turned"], ["weights"]),
            node("Softmax", ["weights"], ["soft"], axis=-1),
            node("MatMul", ["soft", "grown"], ["read"]),
            node("Tanh", ["read"], ["new"]),
            node("Identity", ["going"], ["goes"]),
        ],
        "body",
        [info("i", INT, []), info("going", B, []), info("past", F, ["before", 4]), info("query", F, [1, 4])],
        [info("goes", B, []), info("grown", F, ["now", 4]), info("new", F, [1, 4])],
    )
    nodes = [node("Loop", ["times", "yes", "cache", "row"], ["all", "last"], body=body), node("ReduceMean", ["all"], ["mean"], keepdims=0)]
    return model(nodes, [info("cache", F, ["n", 4]), info("row", F, [1, 4]), info("times", INT, [])],
                 [info("last", F, [1, 4]), info("mean", F, []), info("all", F, ["m", 4])], [const("yes", True, bool)])  # fmt: skip


def tensor_list():
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Concat", ["x", "r"], ["xr"], axis=0),
        node("SequenceConstruct", ["x", "r", "xr"], ["parts"]),
        node("SequenceAt", ["parts", "place"], ["part"]),
        node("SequenceLength", ["parts"], ["length"]),
        node("ConcatFromSequence", ["parts"], ["joined"], axis=0),
        node("Softmax", ["joined"], ["y"], axis=0),
    ]
    return model(nodes, [info("x", F, ["n", 3])], [info("part", F, ["p", 3]), info("length", INT, []), info("y", F, ["m", 3])], [const("place", 2)])


def computed_reshape():
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["n"]),
        node("Concat", ["n", "given"], ["wanted"], axis=0),
        node("Reshape", ["x", "wanted"], ["y0"]),
        node("Slice", ["y0", "from", "to", "axes"], ["y1"]),
        node("Relu", ["y1"], ["y"]),
    ]
    return model(nodes, [info("x", F, ["n", "m"]), info("given", INT, [2]), info("from", INT, [1]), info("to", INT, [1])],
                 [info("y", F, ["a", "b", "c"])], [const("zero", [0]), const("axes", [1])])  # fmt: skip


def against_aliasing():
    """A table of taps asks for factors that are known: the resize is a function of the host between two regions."""
    nodes = [
        node("Relu", ["x"], ["kept"]),
        node("Resize", ["kept", "", "", "sizes"], ["small"], mode="linear", antialias=1),
        node("Softmax", ["small"], ["y"], axis=-1),
    ]
    return model(nodes, [info("x", F, [1, 1, "h", "w"])], [info("y", F, [1, 1, 4, 5])], [const("sizes", [1, 1, 4, 5])])


def boxes(n, seed):
    corner = np.random.default_rng(seed).random((1, n, 2)) * 10
    return np.concatenate([corner, corner + 1 + np.random.default_rng(seed + 1).random((1, n, 2)) * 4], axis=2).astype("float32")


# name: model, feeds
CASES = {
    "nonzero_gather": (nonzero_gather, [(rand(n, seed=n), rand(n, 8)) for n in (1, 2, 5, 40, 7, 333)]),
    "topk": (topk_by_input, [(rand(n, m), np.array([k])) for n, m, k in [(1, 4, 2), (3, 9, 9), (2, 50, 7), (5, 5, 1)]]),
    "detector": (detector, [(boxes(n, n), rand(1, 2, n)) for n in (1, 3, 30, 8, 100)]),
    "if": (branch, [(np.full((n, 4), s, "float32") + rand(n, 4) / 4,) for n in (1, 3, 8) for s in (1, -1)]),
    "loop": (loop, [(rand(n, 4), np.array(t)) for n, t in [(1, 0), (2, 3), (7, 10), (33, 2)]]),
    "growing_cache": (growing_cache, [(rand(n, 4), rand(1, 4), np.array(t)) for n, t in [(1, 1), (3, 12), (20, 5), (0, 4)]]),
    "against_aliasing": (against_aliasing, [(rand(1, 1, h, w),) for h, w in [(9, 7), (4, 5), (20, 33)]]),
    "tensor_list": (tensor_list, [(rand(n, 3),) for n in (1, 4, 9)]),
    "computed_reshape": (computed_reshape, [
        (rand(2, 12), np.array([3, 4]), np.array([0]), np.array([2])),
        (rand(5, 8), np.array([-1, 4]), np.array([-1]), np.array([2**62])),
        (rand(3, 6), np.array([2, -1]), np.array([1]), np.array([-1])),
    ]),
}  # fmt: skip

RUN = textwrap.dedent("""
    import pickle, sys
    import numpy as np, baton
    m = baton.load(sys.argv[1])
    out = []
    for feed in pickle.load(open(sys.argv[2], "rb")):
        got = m(*feed)
        out.append([a.numpy() for a in (got if isinstance(got, tuple) else (got,))])
    maps = open("/proc/self/maps").read()
    assert "libbaton.so" not in maps and "libLLVM" not in maps
    pickle.dump(out, open(sys.argv[3], "wb"))
""")


@pytest.mark.parametrize("name", CASES)
def test_runs_for_all_shapes_and_alone(name, tmp_path):
    build, feeds = CASES[name]
    source = build()
    reference = ReferenceEvaluator(source)
    names = [i.name for i in source.graph.input]
    wanted = [reference.run(None, dict(zip(names, feed, strict=True))) for feed in feeds]
    made = baton.compile(source)
    for feed, want in zip(feeds, wanted, strict=True):
        got = made(*feed)
        for a, b in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert a.shape == np.shape(b)
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=1e-5)
    path = tmp_path / "m.so"
    made.save(path)
    (tmp_path / "feeds").write_bytes(pickle.dumps(feeds))
    done = subprocess.run([sys.executable, "-c", RUN, str(path), str(tmp_path / "feeds"), str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for got, want in zip(pickle.loads((tmp_path / "out").read_bytes()), wanted, strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_dims_shapes_and_memory():
    made = baton.compile(branch(), shape={"x": (baton.Dim("n", 1, 100), 4)})
    assert made.dims == (baton.Dim("n", 1, 100),) and made.inputs[0].shape == ("n", 4)
    with pytest.raises(ValueError, match=r"input `x` has shape \(101, 4\): n is 1 to 100"):
        made(np.ones((101, 4), "float32"))
    with pytest.raises(baton.error.UnsupportedError, match="depend on values"):
        made.shapes(x=(3, 4))
    made.reserve(n=50)
    held = made.memory()
    made(np.ones((50, 4), "float32"))
    assert made.memory()["plans"] >= held["plans"] > 0
    made.trim()
    assert made.memory()["plans"] == 0
    assert made(np.ones((3, 4), "float32")).shape == (6, 4)


def test_shapes_of_a_loop_are_known():
    made = baton.compile(loop())
    assert [d.name for d in made.dims] == ["n"]
    feed = (np.ones((3, 4), "float32"), np.array(4))
    special = made.specialize({"x": (3, 4), "times": ()})
    np.testing.assert_allclose(special(*feed).numpy(), made(*feed).numpy(), rtol=1e-6)


def test_values_out_of_bounds_are_an_error_and_the_next_call_works():
    made = baton.compile(computed_reshape())
    x = rand(2, 12)
    good = (x, np.array([3, 4]), np.array([0]), np.array([2]))
    for bad in ([5, 4], [-1, -1], [-7, 4]):
        with pytest.raises((ValueError, baton.error.RuntimeError)):
            made(x, np.array(bad), *good[2:])
        assert made(*good).shape == (2, 2, 4)


RESERVE = textwrap.dedent("""
    import os, resource, sys
    import numpy as np, baton

    def faults():
        with open("/proc/self/status", encoding="ascii") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt, resident

    m = baton.load(sys.argv[1])
    x = np.full((4096, 1024), 1, "float32")
    m(x[:1])  # the code's own pages, and the threads'
    before = faults()[1]
    m.reserve(n=4096)
    assert faults()[1] - before > 0.9 * m.memory()["workspace"] / 1024 > 30 << 10, (faults()[1] - before, m.memory())
    for n in (4000, 1000, 77, 4096, 2048):
        rows = x[:n]
        count, resident = faults()
        m(rows)
        count, resident = faults()[0] - count, faults()[1] - resident
        assert resident < 256 and count < 64, (n, count, resident)
    m.trim()
    assert m.memory()["workspace"] == 0
""")


def test_reserve_takes_the_pages_of_all_regions(tmp_path):
    source = """#[version = "0.0.5"]
    def @main(%x: Tensor[(n, 1024), float32]) {
      let %a = nn.softmax(nn.softmax(%x));
      let %b = if (greater(sum(%x), 0f)) { nn.softmax(add(%a, nn.softmax(%a))) } else { nn.softmax(negative(%a)) };
      sum(nn.softmax(%b))
    }"""
    baton.compile(source).save(tmp_path / "m.so")
    done = subprocess.run([sys.executable, "-c", RESERVE, str(tmp_path / "m.so")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
