# SPDX-License-Identifier: Apache-2.0
"""Bad models, files, inputs and places to write, through Python: one error each that says what, where and how to mend it,
nothing left behind. The same through the command stands in ../cli/test_bad_input.py.
"""

import pickle
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import baton
from baton import relay
from baton.contrib import graph_executor
from baton.relay.frontend import from_onnx

sys.path.insert(0, str(Path(__file__).parents[1]))
import limits  # noqa: E402

X = np.ones((1, 4), np.float32)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, name=f"node_{outputs[0]}", **attrs)


def model(nodes, weights=(), opset=17, inputs=None, values=()):
    graph = helper.make_graph(
        nodes, "g", inputs or [value("x", [1, 4])], [value("y", [1, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights], value_info=values,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


GOOD = model([node("Relu", ["x"], ["y"])])
DATA = GOOD.SerializeToString()
FILES = {
    "empty": (b"", "is empty"),
    "truncated": (DATA[:-7], "truncated or damaged"),
    "random": (np.random.default_rng(1).bytes(5000), "no ONNX model"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG image"),
    "zip": (b"PK\x03\x04" + bytes(40), "zip archive"),
    "html": (b"<!DOCTYPE html><html></html>", "HTML"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "LFS"),
}


@pytest.mark.parametrize("use", [from_onnx, baton.compile])
@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_model(tmp_path, name, use):
    data, words = FILES[name]
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(data)
    with pytest.raises(baton.error.CompileError, match=words) as error:
        use(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("use", [from_onnx, baton.compile])
def test_missing_file_and_directory(tmp_path, use):
    with pytest.raises(baton.Error, match=r"none.onnx`: no such file; check the path"):
        use(tmp_path / "none.onnx")
    with pytest.raises(baton.Error, match="is a directory"):
        use(tmp_path)


@pytest.mark.parametrize("thing", [None, 5, [DATA]])
def test_things_that_are_no_model(thing):
    with pytest.raises(TypeError, match=f"an ONNX model is a ModelProto.*not {type(thing).__name__}"):
        from_onnx(thing)


def test_every_cut_of_a_model():
    # A cut between two fields of the model leaves a shorter one: it has no graph, or no operator set, and is refused too.
    for size in range(len(DATA)):
        with pytest.raises(baton.error.CompileError):
            from_onnx(DATA[:size])


MODELS = {
    "cycle": (
        [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])], {},
        r"cycle.*\n.*node `node_a` \(Add\) needs `b`\n.*`node_b` \(Relu\) needs `a`",
    ),
    "missing initializer": ([node("Add", ["x", "w"], ["y"])], {}, r"`node_y` \(Add\) reads `w`.*\n.*export the model again"),
    "wrong shapes": (
        [node("MatMul", ["x", "w"], ["y"])], {"weights": [("w", np.zeros((3, 4), np.float32))]},
        r"`node_y` \(MatMul\): the matrices have inner lengths 4 and 3",
    ),
    "unknown opset": ([node("Relu", ["x"], ["y"])], {"opset": 999}, "operator set 999 .*export the model for that version"),
    "unknown operator": ([node("Frob", ["x"], ["y"])], {}, r"node `node_y` \(Frob\) of `ai.onnx` 17: no such operator"),
    "unknown attribute": ([node("Relu", ["x"], ["y"], slope=1.0)], {}, r"`node_y` \(Relu\) .*: attribute `slope`"),
    "unknown type": (
        [node("Relu", ["s"], ["y"])], {"inputs": [value("s", [2], TensorProto.STRING)]}, r"`node_y` \(Relu\) .*: strings",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_bad_models(name):
    nodes, more, words = MODELS[name]
    with pytest.raises((baton.error.CompileError, baton.error.UnsupportedError), match=words) as error:
        from_onnx(model(nodes, **more))
    assert not isinstance(error.value, baton.error.InternalError)


def test_unsupported_operators_are_data_of_the_error():
    m = model(
        [
            node("Frob", ["x"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"], domain="com.nobody", name="theirs"),
            node("Frob", ["b"], ["c"]),
            node("Elu", ["c"], ["d"], beta=1.0),
            node("Relu", ["x"], ["y"], slope=1.0),
        ],
        values=[value("c", [1, 4])],
    )
    for use in (from_onnx, baton.compile):
        with pytest.raises(baton.error.UnsupportedError) as error:
            use(m)
        assert error.value.ops == ["Frob", "com.nobody.Relu", "Elu", "Relu"]
        # Each node by name; behind one that is not supported too, where the model declares what it gives.
        for words in ("`node_a` (Frob)", "node `theirs` (", "`node_c` (Frob)", "attribute `beta`", "attribute `slope`"):
            assert words in str(error.value)
        again = pickle.loads(pickle.dumps(error.value))
        assert again.ops == error.value.ops and str(again) == str(error.value)
    with pytest.raises(baton.error.UnsupportedError) as error:
        from_onnx(GOOD, dtype="float16")
    assert error.value.ops == []


BIG, I64 = 2**62, np.int64
HOSTILE = {
    "Expand": ([node("Expand", ["x", "n"], ["y"])], [("n", np.array([BIG, BIG, 1, 4], I64))]),
    "Tile": ([node("Tile", ["x", "n"], ["y"])], [("n", np.array([BIG, 3], I64))]),
    "Reshape": ([node("Reshape", ["x", "n"], ["y"])], [("n", np.array([BIG, BIG, -1], I64))]),
    "ConstantOfShape": ([node("ConstantOfShape", ["n"], ["y"])], [("n", np.array([BIG, BIG], I64))]),
    "Range": ([node("Range", ["a", "n", "b"], ["y"])],
              [("a", np.array(0, I64)), ("n", np.array(BIG, I64)), ("b", np.array(1, I64))]),
    "HannWindow": ([node("HannWindow", ["n"], ["y"])], [("n", np.array(2**40, I64))]),
    "Pad": ([node("Pad", ["x", "n"], ["y"], mode="edge")], [("n", np.array([0, 2**30, 0, 2**30], I64))]),
    "OneHot": ([node("OneHot", ["i", "n", "v"], ["y"])],
               [("i", np.zeros(3, I64)), ("n", np.array(-5, I64)), ("v", np.zeros(2, np.float32))]),
    "Resize": ([node("Resize", ["x", "", "", "n"], ["y"])], [("n", np.array([BIG, BIG], I64))]),
    "Split": ([node("Split", ["x"], ["y"], num_outputs=BIG, axis=1)], []),
    "DepthToSpace": ([node("DepthToSpace", ["d"], ["y"], blocksize=2**32)], [("d", np.zeros((1, 4, 1, 1), np.float32))]),
    "MaxPool": ([node("MaxPool", ["d"], ["y"], kernel_shape=[BIG, 1], pads=[BIG, 0, BIG, 0])],
                [("d", np.zeros((1, 1, 4, 4), np.float32))]),
    "Unsqueeze": ([node("Unsqueeze", ["x", "n"], ["y"])], [("n", np.arange(1000, dtype=I64))]),
}  # fmt: skip


def test_model_that_the_onnx_package_cannot_read(tmp_path):
    # The bodies of operators that Baton lacks are looked up there. Field 26 of a model is about devices: Baton passes over
    # it, `onnx` reads it; the error is Baton's all the same.
    data = model([node("Frob", ["x"], ["y"])]).SerializeToString() + b"\xd2\x01\x06corpus"
    with pytest.raises(Exception, match="Error parsing message"):
        onnx.ModelProto.FromString(data)
    (tmp_path / "m.onnx").write_bytes(data)
    for source in (data, tmp_path / "m.onnx"):
        with pytest.raises(baton.error.UnsupportedError, match="Frob"):
            from_onnx(source)


def test_numbers_from_the_file_are_bounded():
    for name, (nodes, weights) in HOSTILE.items():
        with pytest.raises(baton.Error) as error:
            from_onnx(model(nodes, weights, opset=18), freeze_params=True)
        assert not isinstance(error.value, baton.error.InternalError), (name, error.value)
        assert f"`node_y` ({name})" in str(error.value), (name, error.value)
    with pytest.raises(baton.error.CompileError, match=r"input `x` is a tensor of more than 2\^48 elements"):
        from_onnx(model([node("Relu", ["x"], ["y"])], inputs=[value("x", [BIG, BIG])]))


def test_operands_of_too_low_a_rank_and_attributes_that_hold_nothing():
    zero, none = np.array(0, I64), np.zeros(0, I64)
    body = helper.make_graph([node("Identity", ["c"], ["d"])], "body", [value("i", [], TensorProto.INT64), value("c", [], 9)],
                             [value("d", [], 9)])  # fmt: skip
    empty = node("Constant", [], ["y"])
    empty.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    branch = node("If", ["c"], ["y"])
    for name in ("then_branch", "else_branch"):
        branch.attribute.add(name=name, type=onnx.AttributeProto.GRAPH)
    cases = [
        (node("OneHot", ["i", "n", "v"], ["y"]), {"i": zero, "n": np.array(3, I64), "v": np.float32(1)}),
        (node("Loop", ["n", "c"], ["y"], body=body), {"n": none, "c": np.array(True)}),
        (node("DeformConv", ["x", "w", "x"], ["y"]), {"w": np.zeros(3, np.float32)}),
        (node("ConvTranspose", ["z", "w"], ["y"]), {"z": np.zeros((1, 2, 3), np.float32), "w": np.zeros(2, np.float32)}),
        (node("MaxUnpool", ["w", "i"], ["y"], kernel_shape=[2]), {"w": np.zeros(3, np.float32), "i": zero}),
        (node("Attention", ["z", "w", "w"], ["y"], q_num_heads=1, kv_num_heads=1),
         {"z": np.zeros((1, 2, 3), np.float32), "w": np.zeros(3, np.float32)}),
        (node("TensorScatter", ["x", "w", "i"], ["y"]), {"w": np.zeros(3, np.float32), "i": none}),
        (empty, {}),
        (branch, {"c": np.array(True)}),
    ]  # fmt: skip
    for bad, weights in cases:
        with pytest.raises(baton.Error) as error:
            from_onnx(model([bad], list(weights.items()), opset=24), freeze_params=True)
        assert not isinstance(error.value, baton.error.InternalError) and "node_y" in str(error.value), error.value


AMPLIFY = """
import glob, resource, baton
from baton.relay.frontend import from_onnx
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from_onnx(open("good.onnx", "rb").read())
for path in sorted(glob.glob("*.onnx")):
    before = peak()
    try:
        from_onnx(open(path, "rb").read(), freeze_params=True)
    except baton.Error:
        pass
    print(peak() - before, path)
"""


def test_few_bytes_ask_for_little_memory(tmp_path):
    # 64 MiB and 64 times the file is what a reader may take; these files have some hundred bytes.
    (tmp_path / "good.onnx").write_bytes(DATA)
    for name, (nodes, weights) in HOSTILE.items():
        (tmp_path / f"{name}.onnx").write_bytes(model(nodes, weights, opset=18).SerializeToString())
    # The most that is allowed, over and over: each list is charged to the same budget.
    windows = [node("HannWindow", ["n"], [f"w{i}"]) for i in range(64)]
    windows.append(node("Relu", ["x"], ["y"]))
    (tmp_path / "windows.onnx").write_bytes(model(windows, [("n", np.array(2**20, I64))]).SerializeToString())
    done = limits.run(AMPLIFY, tmp_path)
    assert done.returncode == 0, done.stderr
    growth = {path: int(kib) for kib, path in (line.split() for line in done.stdout.splitlines())}
    assert len(growth) == len(HOSTILE) + 2
    assert max(growth.values()) < 100 << 10, growth


def test_wrong_inputs():
    exe = baton.compile(GOOD)
    for arguments, error, words in (
        ({"z": X}, TypeError, "no input `z`; its inputs are x"),
        ({"x": X.astype(np.float64)}, TypeError, "`x` is float32, float64 was given"),
        ({"x": np.ones((1, 5), np.float32)}, ValueError, r"`x` has shape \(1, 4\), \(1, 5\) was given"),
        ({}, TypeError, "`x` is missing"),
    ):
        with pytest.raises(error, match=words):
            exe(**arguments)


@pytest.fixture(scope="module")
def lib():
    mod, params = from_onnx(GOOD)
    return relay.build(mod, target="llvm", params=params)


def test_wrong_inputs_of_an_executor(lib):
    module = graph_executor.GraphModule(lib["default"](baton.cpu()))
    with pytest.raises(baton.Error, match="`x`: it has not been set"):
        module.run()
    for name, array, words in (
        ("z", X, "no input `z`; it has `x`"),
        ("x", np.ones((1,), np.float32), r"expected float32\[1, 4\], got float32\[1\]"),
        ("x", np.ones((1, 5), np.float32), r"expected float32\[1, 4\], got float32\[1, 5\]"),
    ):
        with pytest.raises(baton.Error, match=words):
            module.set_input(name, array)
    module.set_input("x", X)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), X)


EXPORT = """
import sys, numpy as np, baton
from baton import relay
x = relay.var("x", shape=(100000,))
y = relay.add(x, relay.const(np.arange(100000, dtype="float32")))
lib = relay.build(baton.IRModule.from_expr(relay.Function([x], y)), target="llvm")
try:
    lib.export_library(sys.argv[1] if len(sys.argv) > 1 else {!r})
except baton.Error as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("disk, words", [(500, "cannot write .*; is the disk full?"), (200_000, "cannot write `.*m.so`: ")])
def test_export_to_a_full_disk(tmp_path, disk, words):
    (tmp_path / "m.so").write_bytes(b"precious")
    done = limits.run(EXPORT.format("m.so"), tmp_path, disk=disk, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0 and re.search(words, done.stdout), done.stdout + done.stderr
    # What was there is still there, and nothing else.
    assert [p.name for p in tmp_path.rglob("*")] == ["m.so"] and (tmp_path / "m.so").read_bytes() == b"precious"


def test_export_to_a_read_only_folder(tmp_path, lib):
    (tmp_path / "locked").mkdir(mode=0o500)
    done = limits.run(EXPORT.format("locked/m.so"), tmp_path, modes_hold=True)
    assert done.returncode == 0 and "cannot write `locked/m.so`" in done.stdout, done.stdout + done.stderr
    assert "ermission denied" in done.stdout and not list((tmp_path / "locked").iterdir())
    with pytest.raises(baton.Error, match="its folder does not exist"):
        lib.export_library(tmp_path / "none" / "m.so")
    with pytest.raises(baton.Error, match="is a directory"):
        lib.export_library(tmp_path)


def test_artifact_cut_or_changed_anywhere(tmp_path, lib):
    lib.export_library(tmp_path / "m.so")
    whole = (tmp_path / "m.so").read_bytes()
    cut = tmp_path / "cut.so"
    for size in [*range(0, len(whole), 13), *range(len(whole) - 100, len(whole))]:
        cut.write_bytes(whole[:size])
        with pytest.raises(baton.Error, match=r"cannot load `.*cut.so`: (the file is empty|it is not a compiled|the end of a)"):
            baton.runtime.load_module(cut)
    for at in range(0, len(whole), 97):
        cut.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(baton.Error, match="cannot load `.*cut.so`"):
            baton.runtime.load_module(cut)
    with pytest.raises(baton.Error, match="none.so`"):
        baton.runtime.load_module(tmp_path / "none.so")
    with pytest.raises(baton.Error, match="is a directory"):
        baton.runtime.load_module(tmp_path)


def test_parameters_cut_anywhere(tmp_path):
    whole = relay.save_param_dict({"w": baton.nd.array(np.arange(6, dtype=np.float32).reshape(2, 3)), "b": X})
    for size in range(len(whole)):
        with pytest.raises(baton.error.RuntimeError, match="parameters: .*at byte"):
            relay.load_param_dict(whole[:size])
    assert list(relay.load_param_dict(whole)) == ["w", "b"]


def test_json_cut_anywhere():
    text = baton.ir.save_json(from_onnx(GOOD)[0]).rstrip()
    for size in range(0, len(text), 3):
        with pytest.raises(baton.Error, match="JSON:"):
            baton.ir.load_json(text[:size])
