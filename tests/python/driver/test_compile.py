# SPDX-License-Identifier: Apache-2.0
"""`baton.compile` takes a model in every form, `baton.load` what it saved; and the way that Relay's users know."""

import threading
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("baton._core", reason="the extension is not built")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import baton  # noqa: E402

W, B = np.arange(12, dtype=np.float32).reshape(4, 3) / 10, np.float32([1, -1, 0])
X = np.float32([[1, 2, 3, 4], [-1, 0, 0.5, 2]])
TEXT = "def @main(%x: Tensor[(2, 4), float32]) {\n  nn.relu(subtract(%x, 1f))\n}\n"


def proto(batch=2, outputs=1):
    """y = relu(x @ W + B), and z = x @ W where two outputs are asked for."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    outs = [info("y", TensorProto.FLOAT, [batch, 3]), info("z", TensorProto.FLOAT, [batch, 3])][:outputs]
    weights = [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [batch, 4])], outs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def want(x):
    return np.maximum(x @ W + B, 0)


@pytest.fixture
def file(tmp_path):
    onnx.save(proto(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("form", ["path", "str", "bytes", "bytearray", "proto"])
def test_onnx_in_every_form(file, form):
    source = {"path": file, "str": str(file), "bytes": file.read_bytes(), "bytearray": bytearray(file.read_bytes())}
    model = baton.compile(source.get(form) or proto())
    np.testing.assert_allclose(model(X).numpy(), want(X), rtol=1e-6)
    assert str(model.inputs[0]) == "x float32[2, 4]" and str(model.outputs[0]) == "y float32[2, 3]"


@pytest.mark.parametrize("form", ["text", "file", "module", "function"])
def test_relay_in_every_form(tmp_path, form):
    (tmp_path / "m.relay").write_text(TEXT)
    module = baton.relay.parse('#[version = "0.0.5"]\n' + TEXT)
    source = {"text": TEXT, "file": tmp_path / "m.relay", "module": module, "function": module["main"]}[form]
    np.testing.assert_array_equal(baton.compile(source)(X).numpy(), np.maximum(X - 1, 0))


def test_what_is_no_model(tmp_path):
    with pytest.raises(TypeError, match="not int"):
        baton.compile(3)
    with pytest.raises(baton.error.RuntimeError, match="directory"):
        baton.compile(tmp_path)
    with pytest.raises(baton.Error, match="none.onnx"):
        baton.compile(tmp_path / "none.onnx")
    with pytest.raises(baton.error.CompileError):
        baton.compile(b"")
    (tmp_path / "bad.relay").write_bytes(b"def @main() {\xff}")
    with pytest.raises(baton.error.CompileError, match="UTF-8"):
        baton.compile(tmp_path / "bad.relay")


def test_open_dimension():
    model = baton.compile(proto(batch="n"))
    assert model.dynamic and str(model.inputs[0]) == "x float32[n, 4]"
    for rows in (1, 3, 1, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 4), dtype=np.float32)
        np.testing.assert_allclose(model(x).numpy(), want(x), rtol=1e-5)
    with pytest.raises(ValueError, match=r"\(n, 4\), \(2, 5\) was given"):
        model(np.ones((2, 5), np.float32))


def test_shape_given():
    model = baton.compile(proto(batch="n"), shape={"x": (2, 4)})
    assert not model.dynamic and str(model.outputs[0]) == "y float32[2, 3]"
    np.testing.assert_allclose(model(X).numpy(), want(X), rtol=1e-6)
    for shape, words in (
        ({"y": (1,)}, "no input `y`"),
        ({"x": (2, 5)}, r"does not take \(2, 5\)"),
        ({"x": (2,)}, "take"),
    ):
        with pytest.raises(ValueError, match=words):
            baton.compile(proto(batch="n"), shape=shape)


def test_open_dimension_in_relay():
    model = baton.compile(TEXT.replace("(2, 4)", "(?, 4)"))
    assert model.dynamic
    np.testing.assert_array_equal(model(X[:1]).numpy(), np.maximum(X[:1] - 1, 0))


def test_two_outputs():
    y, z = baton.compile(proto(outputs=2))(X)
    np.testing.assert_allclose(y.numpy(), want(X), rtol=1e-6)
    np.testing.assert_allclose(z.numpy(), X @ W, rtol=1e-6)


def test_results_are_not_overwritten():
    model = baton.compile(proto())
    first = model(X)
    kept = first.numpy()
    for _ in range(5):
        model(-X)
    np.testing.assert_array_equal(first.numpy(), kept)


def test_inputs_of_every_layout():
    model = baton.compile(proto())
    wide = np.zeros((2, 9), np.float32)[:, 1:9:2]
    wide[:] = X
    odd = np.empty(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(2, 4)  # not aligned to 4 bytes
    odd[:] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    for x in (np.asfortranarray(X), wide, odd, frozen, baton.nd.array(X), X[::-1][::-1]):
        np.testing.assert_allclose(model(x).numpy(), want(X), rtol=1e-6)
    with pytest.raises(TypeError, match="float64 was given"):
        model(X.astype(np.float64))
    with pytest.raises(ValueError, match=r"\(4, 2\) was given"):
        model(X.T)


def test_dlpack_out():
    out = baton.compile(proto())(X)
    np.testing.assert_allclose(np.from_dlpack(out), want(X), rtol=1e-6)
    assert np.shares_memory(np.from_dlpack(out), np.asarray(out))


def test_save_and_load(tmp_path):
    model = baton.compile(proto())
    model.save(tmp_path / "m.so")
    again = baton.load(tmp_path / "m.so")
    assert again.inputs == model.inputs and again.outputs == model.outputs
    np.testing.assert_array_equal(again(X).numpy(), model(X).numpy())
    assert again.artifact == str(tmp_path / "m.so") and model.artifact is None
    assert again.describe()["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 4]}]
    with pytest.raises(baton.Error):
        model.save(tmp_path / "none" / "m.so")
    assert [p.name for p in tmp_path.iterdir()] == ["m.so"]


def test_text_of_the_stages():
    model = baton.compile(proto())
    for kind, word in (("relay", "def @main"), ("tir", "for "), ("llvm", "define"), ("asm", ".text")):
        assert word in model.source(kind)
    with pytest.raises(baton.error.UnsupportedError, match="verilog"):
        model.source("verilog")


def test_many_threads():
    model, wrong = baton.compile(proto(batch="n")), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.standard_normal((int(rng.integers(1, 4)), 4), dtype=np.float32)
            if not np.allclose(model(x).numpy(), want(x), rtol=1e-5, atol=1e-6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_wrong_target_and_options():
    with pytest.raises(ValueError, match="zilog80"):
        baton.compile(proto(), target="zilog80")
    with pytest.raises(baton.Error, match="relay.FuseOps.max_depth"):
        baton.compile(proto(), config={"relay.FuseOps.max_deth": 1})
    np.testing.assert_allclose(baton.compile(proto(), opt_level=0)(X).numpy(), want(X), rtol=1e-6)


def test_the_way_of_relay(file):
    from baton import relay
    from baton.contrib import graph_executor

    mod, params = relay.frontend.from_onnx(onnx.load(file))
    with baton.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    model = graph_executor.GraphModule(lib["default"](baton.cpu()))
    model.set_input("x", X)
    model.run()
    np.testing.assert_allclose(model.get_output(0).numpy(), want(X), rtol=1e-6)


def test_library_prints_nothing(file, capfd):
    baton.compile(file)(X)
    assert capfd.readouterr() == ("", "")


def test_loading_needs_no_compiler(file, tmp_path):
    import subprocess
    import sys

    baton.compile(file).save(tmp_path / "m.so")
    code = "import baton; baton.load('m.so'); print('libLLVM' in open('/proc/self/maps').read())"
    path = str(Path(baton.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": path})
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    "options, bits", [("v3 -mattr=+avx512f", 256), ("v3 -mattr=+avx512f,+avx512bw", 256), ("v4 -mattr=-avx512vl", 256), ("v3 -mattr=+avx512f,+avx512vl", 512)]
)
def test_avx512_wants_its_short_vectors(options, bits):
    """LLVM selects no instruction for masks of 8 lanes without avx512vl: vectors have 256 bits then, as without AVX-512."""
    target = f"llvm -mcpu=x86-64-{options}"
    assert baton.get_global_func("target.VectorBits")(baton.target.Target(target)) == bits
    text = """def @main(%x: Tensor[(7, 37), float32], %y: Tensor[(7, 37), float32]) {
  sum(multiply(nn.softmax(maximum(%x, %y)), exp(where(less(%x, %y), %x, %y))), axis=[1])
}"""
    model = baton.compile(text, target=target)
    if bits == 256:
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((2, 7, 37)).astype("float32")
        np.testing.assert_allclose(model(x, y).numpy(), baton.compile(text)(x, y).numpy(), rtol=1e-5)


def test_numbers_are_tensors_of_rank_0():
    model = baton.compile("""#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %scale: Tensor[(), float32], %shift: Tensor[(), int64]) { add(multiply(%x, %scale), cast(%shift, dtype="float32")) }
""")
    x = np.array([1, 2], "float32")
    for scale, shift in ((2, 3), (2.0, True), (np.float32(2), np.int64(3)), (np.array(2, "float32"), 3)):
        np.testing.assert_array_equal(model(x, scale, shift).numpy(), x * 2 + int(shift))
    np.testing.assert_array_equal(model(x=x, scale=2, shift=3).numpy(), [5, 7])
    with pytest.raises(TypeError, match="`scale` is float32, float64 was given"):
        model(x, np.float64(2), 3)
    with pytest.raises(ValueError, match="input 2 `shift`: expected a tensor, got float"):
        model(x, np.array(2, "float32"), 3.5)
