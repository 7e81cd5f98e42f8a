# SPDX-License-Identifier: Apache-2.0
"""The benchmarks count, compare and judge rightly; figures themselves are not tested."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))

import engines  # noqa: E402
import flops  # noqa: E402
import latency  # noqa: E402
import memory  # noqa: E402
import models  # noqa: E402
import narrow  # noqa: E402
import open_shapes  # noqa: E402
import shipped  # noqa: E402
import shipped_files  # noqa: E402


def test_flops_of_known_networks():
    counted = {name: flops.count_flops(models.load(name).path, models.load(name).shape) for name in ("light_resnet50", "mlp")}
    assert counted["mlp"] == 2 * (784 * 512 + 512 * 512 + 512 * 10)
    # The figure in the literature for ResNet-50 at 224x224 is 4.1 (strides in the 3x3) or 3.9 (in the 1x1) billion
    # multiply-adds.
    assert 7.5e9 < counted["light_resnet50"] < 8.3e9


def test_flops_of_minilm():
    model = models.load("minilm")
    hidden, inner, seq, layers = 384, 1536, 128, 6
    per_layer = seq * (4 * hidden * hidden + 2 * hidden * inner) + 2 * seq * seq * hidden
    assert flops.count_flops(model.path, model.shape) == 2 * layers * per_layer


def test_grouped_convolution(tmp_path):
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=2)], "g",
        [info("x", TensorProto.FLOAT, ["n", 4, 8, 8]), info("w", TensorProto.FLOAT, [6, 2, 3, 3])],
        [info("y", TensorProto.FLOAT, ["n", 6, 6, 6])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "g.onnx")
    assert flops.count_flops(tmp_path / "g.onnx", {"x": (3, 4, 8, 8)}) == 2 * 3 * 6 * 6 * 6 * 2 * 3 * 3
    assert flops.count_flops(tmp_path / "g.onnx", {}) is None


def test_difference():
    a = np.array([1.0, -4.0], np.float32)
    assert engines.difference([a], [a]) == 0
    assert engines.difference([a + np.float32(0.4)], [a]) == pytest.approx(0.1)
    assert np.isnan(engines.difference([a * np.nan], [a]))
    assert engines.difference([a[:1]], [a]) == np.inf
    assert np.isnan(engines.difference([a * np.nan, a], [a, a]))  # a good output does not hide a bad one


def test_bars(capsys):
    good = {"ratio_median": 1.0, "ratio_min": 1.0, "difference": 1e-6, "engines": {"baton": {"median_ms": 0.05}}}
    assert latency.judge([{"model": name, **good} for name in (*models.HEADLINE, "opchain")]) == []
    assert len(latency.judge([{**good, "model": "minilm", "ratio_median": 1.7}])) == 2  # the mean and the worst
    assert len(latency.judge([{**good, "model": "mlp", "difference": float("nan")}])) == 1
    assert len(latency.judge([{**good, "model": "opchain", "engines": {"baton": {"median_ms": 0.07}}}])) == 1
    assert "geometric mean" in capsys.readouterr().out


def test_memory_judges_by_its_bars():
    good = {"MB": 64.0, "peak": 1.2, "artifact": 1.0, "private": 0.05, "ort": 2.0}
    assert memory.missed(good) == []
    assert memory.missed({**good, "peak": 1.4, "artifact": 2.5}) == ["peak", "artifact"]


def test_selection():
    assert models.selection("mlp, headline,mlp") == ["mlp", *models.HEADLINE]
    assert len(models.selection("light")) == 9
    with pytest.raises(SystemExit, match="no model `resnet51`"):
        models.load("resnet51")


@pytest.mark.parametrize("name", ["resnet50", "squeezenet"])
def test_random_weights_are_fair_and_stay_in_range(name):
    ort = pytest.importorskip("onnxruntime")
    model = models.load(name)
    graph = onnx.load(model.path).graph
    assert not any(node.op_type == "ConstantOfShape" for node in graph.node)
    # Weights that are inputs, too, would keep ONNX Runtime from folding them.
    assert [value.name for value in graph.input] == list(model.inputs)
    out = ort.InferenceSession(str(model.path), providers=["CPUExecutionProvider"]).run(None, model.inputs)[0]
    assert np.isfinite(out).all() and 0 < out.std() and out.max() < 0.5  # a softmax of 0 and 1 would hide differences


def test_missing_library_is_said(tmp_path):
    out = subprocess.run([sys.executable, str(BENCH / "size.py"), str(tmp_path / "none.so")], capture_output=True, text=True)
    assert out.returncode == 1 and "./dev build" in out.stderr
    (tmp_path / "foreign.so").write_bytes(b"not ELF")
    out = subprocess.run([sys.executable, str(BENCH / "size.py"), str(tmp_path / "foreign.so")], capture_output=True, text=True)
    assert out.returncode == 1 and "Traceback" not in out.stderr


def test_bench_of_passes_prints_every_row_and_judges():
    import passes

    def fake():
        yield "x", 3.0, "us", 2.0

    done = subprocess.run([sys.executable, str(BENCH / "passes.py"), "inference", "--check"], capture_output=True, text=True)
    assert done.returncode == 0 and "% of after every pass" in done.stdout, done.stderr
    assert subprocess.run([sys.executable, str(BENCH / "passes.py"), "nothing"], capture_output=True).returncode == 2
    passes.BENCHES["fake"] = fake
    before = sys.argv
    try:
        sys.argv = ["passes.py", "fake", "--check"]
        assert passes.main() == 1
        sys.argv = ["passes.py", "fake"]
        assert passes.main() == 0
    finally:
        sys.argv = before
        del passes.BENCHES["fake"]


def test_ffi_judges_by_its_bars():
    """PF-006: a call's cost is measured beside its peers; a missed bar is said, a peer that is not there is left out."""
    import ffi

    good = {"3 ints": {"baton": 20.0, "apache-tvm-ffi": 116.0, "nanobind": 22.0}, "iterate 10,000": {"baton": 4.0, "list": 4.0}}
    assert ffi.judge(good) == []
    bad = {"3 ints": {"baton": 60.0, "apache-tvm-ffi": 116.0}, "field": {"baton": float("nan"), "apache-tvm-ffi": 80.0}}
    assert [line.split(":")[0] for line in ffi.judge(bad)] == ["3 ints", "field"]
    run = ffi.timer("f(a)", f=abs, a=-1)
    assert 0 < run(80) < 1e6
    assert set(ffi.BARS) >= {"0 ints", "string", "object", "C++ to C++", "C++ to Python"}


@pytest.mark.parametrize("name", ["resnet50", "squeezenet", "mobilenet_v2"])
def test_open_image_models_are_the_static_ones(name):
    ort = pytest.importorskip("onnxruntime")
    model = models.load(name)
    static, opened = (ort.InferenceSession(str(path)) for path in (model.path, models.open_file(model)))
    assert opened.get_inputs()[0].shape == ["batch", 3, "height", "width"]
    np.testing.assert_allclose(opened.run(None, model.inputs)[0], static.run(None, model.inputs)[0], rtol=1e-4, atol=1e-6)
    ((key, x),) = model.inputs.items()
    assert opened.run(None, {key: x[:, :, :161, :203].repeat(2, 0)})[0].shape[:2] == (2, 1000)


def test_open_shapes():
    assert len(open_shapes.LENGTHS) == 40 and {1, 2, 7, 13, 509} <= set(open_shapes.LENGTHS)
    case = open_shapes.Case("mobilenet_v2", full=True)
    assert {sizes[0] for sizes in case.shapes} == set(range(1, 9)) and case.largest() == {"batch": 8, "height": 320, "width": 320}
    assert [x.shape for x in case.feed((2, 161, 203)).values()] == [(2, 3, 161, 203)]
    text = open_shapes.Case("minilm", full=True)
    assert {sizes[0] for sizes in text.shapes} == set(range(1, 17)) and all(x.shape == (3, 5) for x in text.feed((3, 5)).values())
    assert open_shapes.missed(case, [("time", 1.2, 1.1), ("ratio", 1.0, 1.0), ("none", float("nan"), 1.0)]) == [
        "mobilenet_v2: time 1.20, the bar is 1.10",
        "mobilenet_v2: none nan, the bar is 1.00",
    ]


def test_files_of_packages_are_listed_by_hash():
    packages = shipped_files.PACKAGES
    files = [file for package in packages for file in package.files]
    assert len(packages) >= 10 and len(files) >= 20 and len({file.sha256 for file in files}) == len(files)
    for part in (*packages, *files):
        assert len(part.sha256) == 64 and set(part.sha256) <= set("0123456789abcdef")
    assert all(file.shapes and all(shape.keys() == file.shapes[0].keys() for shape in file.shapes) for file in files)
    with pytest.raises(SystemExit, match="packages: silero-vad"):
        shipped.chosen(["no such file"])


def test_inputs_of_files_of_packages():
    file = shipped_files.File("a/b.onnx", "", (), {"sr": 16000, "ids": (3, 5)})
    feed = file.feed(
        {"sr": (), "ids": (2, 9), "x": (4,), "mask": (50,)},
        {"sr": np.dtype("int64"), "ids": np.dtype("int32"), "x": np.dtype("float32"), "mask": np.dtype("bool")},
    )
    assert file.name == "b" and feed["sr"] == 16000 and set(feed["ids"].flat) == {3, 4} and feed["mask"].any() and not feed["mask"].all()
    assert feed["x"].dtype == np.float32 and (np.abs(feed["x"]) <= 1).all()


def test_shipped_judges_agreement_and_times(capsys):
    x = np.array([1.0, 2.0])
    assert shipped.distance([x], [x]) == 0 and shipped.distance([x], [x[:1]]) == np.inf and shipped.distance([x * np.nan], [x]) != 0
    assert shipped.distance([x * 1e-7], [x * 2e-7]) < 1e-4  # small beside what a model's outputs are
    runs = [shipped.Run(package, package.files[0], None) for package in shipped_files.PACKAGES[:2]]
    runs[0].ratios, runs[1].ratios = {"peer": 1.3, "open": 1.2}, {"peer": 0.5}
    assert [line.partition(":")[2] for line in shipped.judge(runs)] == [" over ONNX Runtime 1.30, the bar is 1.2", " open over static 1.20, the bar is 1.1"]
    runs[1].agrees("it", [x], [x, x])
    assert runs[1].faults == ["it: 1 results, ONNX Runtime has 2"] and "2 files" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cnn", "mlp", "embedding", "lstm"])
def test_graphs_of_onnx_runtimes_tools_agree(name, capsys):
    pytest.importorskip("onnxruntime")
    import tools_graphs

    assert tools_graphs.main(["--only", name, "--check"]) == 0, capsys.readouterr().out


def test_a_graph_that_differs_is_told():
    import tools_graphs

    assert tools_graphs.differs([np.zeros(3)], [np.ones(3)]) == 1
    assert tools_graphs.differs([np.zeros(3)], [np.zeros(4)]) == tools_graphs.differs([], [np.zeros(3)]) == np.inf


def test_the_table_of_the_front_page(tmp_path, monkeypatch):
    """Ratios above 1 are of slower peers; the table stands between its markers, and nothing else moves."""
    import readme

    page = f"# head\n\n{readme.BEGIN}\nold\n{readme.END}\n\ntail\n"
    (tmp_path / "README.md").write_text(page, encoding="utf-8")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    text = readme.table({"mlp": {"baton": 2.0, "onnxruntime": 3.0}}, ["onnxruntime"], 2)
    assert "| three dense layers | 2.00 ms | 1.50 |" in text and "2 threads" in text and "ONNX Runtime" in text
    readme.write(text)
    written = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert written.startswith("# head\n") and written.endswith("\n\ntail\n") and "old" not in written and text in written
    (tmp_path / "README.md").write_text("no markers")
    with pytest.raises(SystemExit, match="no place between"):
        readme.write(text)
    front = (BENCH.parent / "README.md").read_text(encoding="utf-8")
    assert "| Baton |" in front.partition(readme.BEGIN)[2].partition(readme.END)[0], "python bench/readme.py --write"


def test_networks_of_bytes_are_quantized_between_layers():
    """`narrow.py` compares what ONNX Runtime's tools make of a network: a scale a channel, and bytes from one layer to the next."""
    rng = np.random.default_rng(0)
    info, weights = narrow._info, {name: rng.standard_normal((8, 8, 3, 3)).astype(np.float32) for name in "uw"}
    nodes = [
        onnx.helper.make_node("Conv", ["x", "u"], ["a"], pads=[1] * 4),
        onnx.helper.make_node("Relu", ["a"], ["b"]),
        onnx.helper.make_node("Conv", ["b", "w"], ["c"], pads=[1] * 4),
        onnx.helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    wide = narrow._model(nodes, [info("x", "FLOAT", [1, 8, 5, 5])], [info("y", "FLOAT", [1, 8, 5, 5])], weights)
    inputs = {"x": rng.standard_normal((1, 8, 5, 5), np.float32)}
    small = narrow.quantized(wide, inputs)
    made = {value: node for node in small.graph.node for value in node.output}
    for node in small.graph.node:
        if node.op_type in ("Conv", "Add"):
            assert {made[value].op_type for value in node.input} == {"DequantizeLinear"}, node.name
            assert [user.op_type for user in small.graph.node if node.output[0] in user.input] == ["QuantizeLinear"], node.name
    scales = {t.name: onnx.numpy_helper.to_array(t) for t in small.graph.initializer}
    assert [scales[made[n.input[1]].input[1]].shape for n in small.graph.node if n.op_type == "Conv"] == [(8,), (8,)]
