# SPDX-License-Identifier: Apache-2.0
"""Modules and helpers that programs for Relay import besides `relay` itself."""

import importlib
import os

import numpy as np
import pytest

import baton as tvm
from baton import relay, te, topi
from baton.relay.dataflow_pattern import is_op, wildcard

V = '#[version = "0.0.5"]\n'


def run(expr_or_func, *args, kind="graph"):
    func = expr_or_func if isinstance(expr_or_func, relay.Function) else relay.Function(relay.analysis.free_vars(expr_or_func), expr_or_func)
    return relay.create_executor(kind, target="llvm").evaluate(func)(*args)


# ---- Diagnostics


@pytest.fixture
def no_renderer():
    yield
    tvm.ir.diagnostics.override_renderer(None)


def test_a_programs_own_renderer(no_renderer):
    found = []

    def render(ctx):
        found.extend(ctx.diagnostics)

    tvm.ir.diagnostics.override_renderer(render)
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse(V + "def @main(%x: int32) -> int32 { %y }")
    (one,) = found
    assert one.level == tvm.ir.diagnostics.DiagnosticLevel.ERROR and "`%y` is not defined" in one.message and one.span.line == 2
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(tvm.TVMError):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.dense(x, relay.var("w", shape=(4, 5)))))
    assert len(found) == 2
    tvm.ir.diagnostics.get_renderer().render(tvm.ir.diagnostics.DiagnosticContext())
    tvm.ir.diagnostics.override_renderer(None)
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.parser.parse(V + "def @main(%x: int32) -> int32 { %y }")
    assert len(found) == 2


def test_a_context_with_its_renderer(capsys):
    diagnostics = tvm.ir.diagnostics
    shown = []
    mod = tvm.IRModule()
    ctx = diagnostics.DiagnosticContext(mod, diagnostics.DiagnosticRenderer(lambda c: shown.extend(d.message for d in c.diagnostics)))
    span = relay.Span(relay.SourceName("file"), 1, 1, 2, 3)
    ctx.emit(diagnostics.Diagnostic(diagnostics.DiagnosticLevel.ERROR, span, "this is wrong"))
    with pytest.raises(tvm.error.DiagnosticError, match="this is wrong"):
        ctx.render()
    assert shown == ["this is wrong"] and ctx.module.same_as(mod)
    diagnostics.get_renderer().render(ctx)
    assert "this is wrong" in capsys.readouterr().err
    assert diagnostics.register_func is tvm.register_func


def test_missing_spans_are_reported(capsys):
    mod = tvm.parser.parse(V + "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")
    assert tvm.parser.SpanCheck()(mod)["main"].body.op.name == "nn.relu" and capsys.readouterr().err == ""
    tvm.parser.SpanCheck()(tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,)))))
    assert "this Call has no span" in capsys.readouterr().err


# ---- Engines


def test_the_te_compiler():
    engine = relay.backend.te_compiler.get()
    engine.clear()
    x = relay.var("x", shape=(10,))

    def make():
        y = relay.add(x, x)
        return relay.Function([x], relay.add(y, relay.exp(x)))

    first = engine.lower(make(), "llvm")
    assert engine.lower(make(), "llvm") is first and len(engine.items()) == 1
    assert engine.lower(make(), "llvm -mcpu=x86-64") is not first
    assert [t.shape[0] for t in first.inputs] == [10] and first.outputs[0].dtype == "float32" and first.prim_fn_var.name_hint in first.prim_funcs
    code = engine.jit(make(), "llvm")
    a, b = tvm.nd.array(np.arange(10, dtype="float32")), tvm.nd.empty((10,), "float32")
    code(a, b)
    np.testing.assert_allclose(b.numpy(), 2 * a.numpy() + np.exp(a.numpy()), rtol=1e-5)
    assert engine.jit(make(), "llvm") is code
    engine.clear()
    assert not engine.items() and relay.backend.compile_engine.get() is engine


def test_calibration_data():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    body = relay.exp(relay.nn.relu(relay.nn.dense(x, w)))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    mod = relay.transform.MergeComposite([("ext.dense_relu", pattern)])(tvm.IRModule.from_expr(body))
    mod = relay.transform.InferType()(relay.transform.PartitionGraph()(relay.transform.MergeCompilerRegions()(relay.transform.AnnotateTarget("ext")(mod))))
    given = {p.name_hint: np.random.default_rng(0).standard_normal([int(d) for d in p.type_annotation.shape]).astype("float32") for p in mod["main"].params}
    data = relay.analysis.get_calibration_data(mod, given)
    (var,) = data
    assert "Compiler" in mod[var].attrs
    np.testing.assert_allclose(data[var]["outputs"][0].numpy(), np.maximum(given["x"] @ given["w"].T, 0), rtol=1e-5)
    assert {v.numpy().shape for v in data[var]["inputs"]} == {(2, 3), (4, 3)}


def test_regions_between_annotations():
    begin, end = (relay.op.get(f"annotation.compiler_{word}") for word in ("begin", "end"))
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    b0, b1 = relay.annotation.compiler_begin(x, "t"), relay.annotation.compiler_begin(y, "t")
    total = relay.add(b0, b1)
    e0 = relay.annotation.compiler_end(total, "t")
    b2 = relay.annotation.compiler_begin(e0, "t")
    relu = relay.nn.relu(b2)
    e1 = relay.annotation.compiler_end(relu, "t")
    regions = relay.analysis.AnnotatedRegionSet(relay.Function([x, y], e1), begin, end)
    first, second = regions.get_region(total), regions.get_region(relu)
    assert len(regions) == 2 and regions.get_region(x) is None and first is not second
    assert {n.handle for n in first.nodes} == {n.handle for n in (b0, b1, total, e0)} and second.nodes == [b2, relu, e1]
    assert regions.get_region(b2) is second and [r.handle for r in first.rets] == [e0.handle] and len(first.args) == 2


def test_annotators_for_another_compiler():
    from baton.relay.testing import byoc

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(relay.nn.relu(relay.add(x, y)))))
    mod["main"] = byoc.WhiteListAnnotator(["add", "nn.relu"], "ccompiler").visit(mod["main"])
    parts = relay.transform.PartitionGraph()(mod)
    assert sum("Compiler" in f.attrs for f in parts.functions.values() if f.attrs is not None) == 2
    u = [relay.var(n, shape=(2,)) for n in "abcd"]
    chain = relay.Function(u, relay.multiply(relay.subtract(relay.add(u[0], u[1]), u[2]), u[3]))
    mod = tvm.IRModule.from_expr(byoc.CcompilerAnnotator().visit(chain))
    parts = relay.transform.PartitionGraph()(mod)
    assert len(parts.functions) == 2
    values = [np.array([i + 1, i + 2], "float32") for i in range(4)]
    got = relay.create_executor("graph", parts).evaluate()(*values).numpy()
    np.testing.assert_allclose(got, (values[0] + values[1] - values[2]) * values[3])


# ---- Passes and their helpers


def test_helpers_of_passes():
    from baton.relay.transform import infer_layout_utils, mixed_precision

    out = infer_layout_utils.InferCorrectLayoutOutput(["NCHW", tvm.tir.layout("OIHW")], ["NCHW"], None)
    assert out.input_layouts == ["NCHW", "OIHW"] and out.output_layouts == ["NCHW"] and out.new_attrs is None and list(out) == [["NCHW", "OIHW"], ["NCHW"]]
    call = relay.nn.conv2d(relay.var("x", shape=(1, 1, 3, 3)), relay.var("w", shape=(1, 1, 1, 1)))
    assert mixed_precision.generic_always_op(call, "float16") == [mixed_precision.MIXED_PRECISION_ALWAYS, "float32", "float16"]
    assert mixed_precision.get_generic_out_dtypes(relay.exp(relay.var("x")), "float16") == ["float16", "float16"]
    x = relay.var("x", shape=(1, 8))
    three = [relay.nn.dense(x, relay.var(f"w{i}", shape=(4, 8))) for i in range(3)]
    with tvm.transform.PassContext(opt_level=4):
        mod = relay.transform.BatchingOps()(relay.transform.InferType()(tvm.IRModule.from_expr(relay.Tuple(three))))
    assert "nn.batch_matmul" in relay.analysis.list_op_freqs(mod)


def test_transposed_weights():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, [1, 0])))
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((2, 3)).astype("float32"), rng.standard_normal((3, 4)).astype("float32")
    made, params = relay.data_dep_optimization.simplify_fc_transpose.convert(func, {"w": tvm.nd.array(weight)})
    assert set(params) == {"w.T"} and [p.name_hint for p in made.params] == ["x", "w.T"] and "transpose" not in relay.analysis.list_op_freqs(made)
    np.testing.assert_allclose(run(made, data, params["w.T"]).numpy(), data @ weight, rtol=1e-5)


@pytest.mark.parametrize("blocks", [(1, 1), (2, 3)], ids=str)
def test_sparse_weights(blocks):
    x, w = relay.var("x", shape=(5, 6)), relay.var("w", shape=(4, 6))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    rng = np.random.default_rng(0)
    weight, data = np.zeros((4, 6), "float32"), rng.standard_normal((5, 6)).astype("float32")
    weight[0:2, 3:6] = rng.standard_normal((2, 3))
    made, params = relay.data_dep_optimization.bsr_dense.convert(func, {"w": tvm.nd.array(weight)}, blocks, 0.5)
    assert set(params) == {"w.data", "w.indices", "w.indptr"} and params["w.data"].shape[1:] == (blocks if blocks != (1, 1) else ())
    got = run(made, *[data if p.name_hint == "x" else params[p.name_hint] for p in made.params]).numpy()
    np.testing.assert_allclose(got, np.maximum(data @ weight.T, 0), rtol=1e-5, atol=1e-6)
    same, kept = relay.data_dep_optimization.bsr_dense.convert(func, {"w": tvm.nd.array(weight)}, blocks, 0.9)
    assert set(kept) == {"w"} and "nn.dense" in relay.analysis.list_op_freqs(same)


def test_sparse_operators():
    dense = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]], "float32")
    sparse, x = tvm.contrib.sparse.array(dense), np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(sparse.numpy(), dense)
    parts = (sparse.data.numpy(), sparse.indices.numpy(), sparse.indptr.numpy())
    a = relay.var("a", shape=(2, 3))
    np.testing.assert_allclose(run(relay.nn.sparse_dense(a, parts), x).numpy(), x @ dense.T)
    np.testing.assert_allclose(run(relay.nn.sparse_dense(a, parts, sparse_lhs=True), x).numpy(), dense @ x.T)
    b = relay.var("b", shape=(3, 3))
    np.testing.assert_allclose(run(relay.nn.sparse_add(b, parts), np.ones((3, 3), "float32")).numpy(), 1 + dense)
    data, indices, indptr = run(relay.Function([], relay.nn.sparse_transpose(parts).astuple()))
    again = tvm.contrib.sparse.array((data, indices, indptr), shape=(3, 3))
    np.testing.assert_array_equal(again.numpy(), dense.T)
    A, B = tvm.contrib.sparse.placeholder((3, 3), 3, "float32", name="A"), te.placeholder((3, 2), name="B")
    f = tvm.build([A.data, A.indices, A.indptr, B, topi.sparse.csrmm(A, B)], target="llvm")
    out = tvm.nd.empty((3, 2), "float32")
    f(sparse.data, sparse.indices, sparse.indptr, tvm.nd.array(x.T.copy()), out)
    np.testing.assert_allclose(out.numpy(), dense @ x.T)


def test_simulated_quantization_of_tensors():
    A = te.placeholder((4,), name="A")
    s, z = te.placeholder((), name="s"), te.placeholder((), name="z", dtype="int32")
    Q = topi.nn.qnn.simulated_quantize(A, "int8", s, z)
    D = topi.nn.qnn.simulated_dequantize(Q, "int8", s, z)
    f = tvm.build([A, s, z, D], target="llvm")
    out = tvm.nd.empty((4,), "float32")
    f(tvm.nd.array(np.array([0.1, 0.26, -3, 1000], "float32")), tvm.nd.array(np.float32(0.5)), tvm.nd.array(np.int32(0)), out)
    np.testing.assert_allclose(out.numpy(), [0, 0.5, -3, 63.5])


# ---- Contributions


def test_downloads(tmp_path, monkeypatch):
    from baton.contrib.download import download, download_testdata

    source = tmp_path / "source.txt"
    source.write_text("text")
    download(source.as_uri(), tmp_path / "a" / "copy.txt")
    assert (tmp_path / "a" / "copy.txt").read_text() == "text"
    monkeypatch.setenv("TEST_DATA_ROOT_PATH", str(tmp_path / "data"))
    path = download_testdata(source.as_uri(), "t.txt", module=["x", "y"])
    assert path == str(tmp_path / "data" / "x" / "y" / "t.txt") and os.path.exists(path)
    source.write_text("other")
    download_testdata(source.as_uri(), "t.txt", module=["x", "y"])
    assert (tmp_path / "data" / "x" / "y" / "t.txt").read_text() == "text"
    with pytest.raises(OSError):
        download((tmp_path / "none").as_uri(), tmp_path / "b", retries=0)


def test_compilers_of_the_system(tmp_path, monkeypatch):
    from baton.contrib import clang, ndk

    if not clang.find_clang(required=False):
        with pytest.raises(RuntimeError, match="clang was not found"):
            clang.create_llvm("int f() { return 1; }")
    else:
        assert "define" in clang.create_llvm('extern "C" int f() { return 1; }')
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    with pytest.raises(RuntimeError, match="TVM_NDK_CC"):
        ndk.create_shared(str(tmp_path / "a.so"), [])


def test_blas_by_name():
    from baton.contrib import cblas, mkl

    A, B = te.placeholder((2, 3), name="A"), te.placeholder((4, 3), name="B")
    f = tvm.build([A, B, cblas.matmul(A, B, transb=True)], target="llvm")
    x, y = np.ones((2, 3), "float32"), np.full((4, 3), 2, "float32")
    out = tvm.nd.empty((2, 4), "float32")
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y.T)
    assert mkl is cblas


def test_executors_that_are_not_there():
    from baton.contrib import pipeline_executor
    from baton.contrib.cuda_graph import cuda_graph_executor

    assert not pipeline_executor.pipeline_executor_enabled()
    with pytest.raises(tvm.error.UnsupportedError, match="pipeline"):
        pipeline_executor.build({})
    lib = relay.build(tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,)))), "llvm")
    with pytest.raises(tvm.error.UnsupportedError, match="NVIDIA"):
        cuda_graph_executor.create("", lib, tvm.cuda())
    model = cuda_graph_executor.GraphModuleCudaGraph(lib["default"](tvm.cpu()))
    model.set_input("x", np.zeros(2, "float32"))
    model.run_cuda_graph()
    assert model.get_output(0).numpy().tolist() == [1, 1]


def test_facts_of_the_build():
    info = tvm.support.libinfo()
    assert info["USE_LLVM"] == "ON" and info["USE_CUDA"] == "OFF" and info["LLVM_VERSION"].count(".") == 2
    module = tvm.support.FrontendTestModule("run")
    module.add_function("run", lambda x: x + 1)
    assert module["run"](2) == 3 and module(2) == 3


def test_archives(tmp_path):
    from baton.contrib.tar import tar, untar

    (tmp_path / "one").write_text("1")
    tar(str(tmp_path / "all.tar"), [str(tmp_path / "one")])
    untar(str(tmp_path / "all.tar"), str(tmp_path / "out"))
    assert (tmp_path / "out" / "one").read_text() == "1"
    import tarfile

    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        archive.add(tmp_path / "one", arcname="../two")
    with pytest.raises((ValueError, tarfile.TarError)):
        untar(str(tmp_path / "evil.tar"), str(tmp_path / "out"))
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    "path",
    [
        "baton.relay.testing:Prelude",
        "baton.relay.op.contrib:get_pattern_table",
        "baton.contrib.graph_runtime:GraphModule",
        "baton.relay.backend.te_compiler:TECompiler",
        "baton.contrib.dlpack:to_pytorch_func",
        "baton.topi.sparse:csrmv",
        "baton.relay.backend.te_compiler:lower_to_primfunc",
        "baton.contrib.cuda_graph.cuda_graph_executor:create",
    ],
)
def test_names(path):
    module, _, name = path.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    found = tvm
    for word in module.split(".")[1:]:
        found = getattr(found, word)
    assert found is importlib.import_module(module)


# ---- Executors and runtimes


@pytest.mark.parametrize(
    ("cls", "name", "option", "options"),
    [
        (
            "Executor",
            "aot",
            "unpacked-api",
            {
                "unpacked-api": "Bool",
                "link-params": "Bool",
                "interface-api": "String",
                "workspace-byte-alignment": "IntImm",
                "constant-byte-alignment": "IntImm",
            },
        ),
        ("Executor", "graph", "link-params", {"link-params": "Bool"}),
        ("Runtime", "cpp", "system-lib", {"system-lib": "Bool"}),
        ("Runtime", "crt", "system-lib", {"system-lib": "Bool"}),
        ("Runtime", "c", "system-lib", {"system-lib": "Bool"}),
    ],
)
def test_executors_and_runtimes(cls, name, option, options):
    make = getattr(relay.backend, cls)
    one = make(name, {option: True})
    assert one.name == name and option in one and "woof" not in one and one[option] and dict(one.attrs) == {option: True}
    assert one == make(name, {option: 1}) != make(name) and hash(one) == hash(make(name, {option: True})) and name in repr(one)
    assert name in make.list_registered() and make.list_registered_options(name) == options == make.list_registered_options(one)
    for other, kind in options.items():
        if other != option:
            assert one[other] is (False if kind == "Bool" else None)
    with pytest.raises(tvm.error.TVMError, match='"woof" is not available'):
        one["woof"]
    for call, message in (
        (lambda: make("woof"), f'{cls} "woof" is not defined'),
        (lambda: make.list_registered_options("woof"), "woof"),
        (lambda: make(name, {"woof": 1}), f'Attribute "woof" is not available on this {cls}'),
        (lambda: make(name, {option: "text"}), f'Attribute "{option}" should have type "IntImm" but instead found "runtime.String"'),
    ):
        for kind in (tvm.TVMError, ValueError):
            with pytest.raises(kind, match=message):
                call()


def test_building_with_an_executor_and_a_runtime():
    mod = tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    lib = relay.build(mod, "llvm", executor=relay.backend.Executor("graph", {"link-params": True}), runtime=relay.backend.Runtime("cpp", {"system-lib": True}))
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.zeros(2, "float32"))
    assert run.get_output(0).numpy().tolist() == [1, 1]


# ---- Importers of a program's own, helpers of topi


def test_helpers_of_importers():
    from baton.relay.frontend.common import AttrCvt, ExprTable, Renamer, StrAttrsDict, get_relay_op, infer_value

    x = relay.var("x", shape=(2, 3))
    assert get_relay_op("relu") is relay.nn.relu and get_relay_op("exp") is relay.exp
    with pytest.raises(tvm.error.OpNotImplemented):
        get_relay_op("no_such")
    assert Renamer("relu")([x], {}).op.name == "nn.relu"
    leaky = AttrCvt("leaky_relu", transforms={"slope": ("alpha", 0.01)}, ignores=["verbose"], excludes=["bad"])
    assert leaky([x], {"slope": 0.5, "verbose": 1}).attrs.alpha == 0.5 and leaky([x], {}).attrs.alpha == 0.01
    with pytest.raises(NotImplementedError, match="bad"):
        leaky([x], {"bad": 1})
    attrs = StrAttrsDict({"a": "1", "b": "(2, 3)", "c": "True", "d": "1.5"})
    assert (attrs.get_int("a"), attrs.get_int_tuple("b"), attrs.get_bool("c"), attrs.get_float("d"), attrs.get_int("e", 7)) == (1, (2, 3), True, 1.5, 7)
    with pytest.raises(AttributeError, match="`z`"):
        attrs.get_str("z")
    table = ExprTable()
    made = table.new_const(np.ones((2, 3), "float32"))
    table.set_expr("y", x)
    assert table.has_expr("y") and table.get_expr(made.name_hint) is made
    value = infer_value(relay.add(x, made), {"x": np.ones((2, 3), "float32"), **table.params})
    assert (value.numpy() == 2).all()


def test_helpers_of_topi():
    u = topi.utils
    assert u.get_max_power2_factor(24) == 8 and u.get_max_power2_factor(24, 8) == 4 and u.equal_const_int(tvm.tir.IntImm("int32", 3), 3)
    assert u.is_empty_shape((2, 0)) and u.get_shape((1, 2, 3, 4), "NCHW", "NHWC") == (1, 3, 4, 2)
    assert u.ravel_index((1, 2), (3, 4)) == 6 and u.unravel_index(6, (3, 4)) == [1, 2] and int(u.simplify(tvm.tir.IntImm("int32", 2) + 3)) == 5
    assert topi.nn.utils.get_pad_tuple(1, (3, 3)) == (1, 1, 1, 1) and topi.nn.utils.get_pad_tuple("SAME", (3, 5)) == (1, 2, 1, 2)
    A = te.placeholder((4,), name="A")
    B = topi.add(topi.exp(A), u.const_vector(np.arange(4, dtype="float32")))
    s = topi.generic.schedule_injective([B])
    f = tvm.build(s, [A, B], "llvm")
    out = tvm.nd.empty((4,), "float32")
    f(tvm.nd.array(np.zeros(4, "float32")), out)
    assert out.numpy().tolist() == [1, 2, 3, 4]
    assert topi.image.resize2d(te.placeholder((1, 1, 2, 2)), (4, 4)).shape[2] == 4 and topi.x86.schedule_softmax(topi.nn.softmax(te.placeholder((2, 3))))
    want = topi.testing.dense(np.ones((2, 3), "float32"), -np.ones((4, 3), "float32"), np.ones(4, "float32"), use_bias=True, use_relu=True)
    assert want.shape == (2, 4) and (want == 0).all()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: relay.testing.vgg.get_workload(1, num_classes=7, image_shape=(3, 32, 32)), (1, 7)),
        (lambda: relay.testing.vgg.get_workload(1, num_classes=7, image_shape=(3, 32, 32), num_layers=16, batch_norm=True), (1, 7)),
        (lambda: relay.testing.resnet_3d.get_workload(1, num_classes=5, image_shape=(3, 4, 40, 40)), (1, 5)),
    ],
    ids=["vgg11", "vgg16", "resnet_3d"],
)
def test_more_networks(make, shape):
    mod, params = make()
    assert mod["main"].ret_type.concrete_shape == shape and {p.name_hint for p in mod["main"].params} == {"data", *params}


CALLS = []


def test_values_that_are_computed_once():
    from baton.contrib.pickle_memoize import memoize

    CALLS.clear()

    @memoize("test_values")
    def add(a, b=1):
        CALLS.append(a)
        return a + b

    assert [add(1), add(1), add(1, b=2), add(2)] == [2, 2, 3, 3] and CALLS == [1, 1, 2]


def computed(out, *inputs):
    """The value of a tensor of te for arrays, one for each placeholder."""
    places = [te.placeholder(x.shape, str(x.dtype), name=f"p{i}") for i, x in enumerate(inputs)]
    made = out(*places)
    got = tvm.nd.empty(tuple(int(d) for d in made.shape), made.dtype)
    tvm.build(topi.testing.get_injective_schedule("llvm")([made]), [*places, made], "llvm")(*map(tvm.nd.array, inputs), got)
    return got.numpy()


def test_convolutions_by_layout():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 4, 6, 6)).astype("float32"), rng.standard_normal((8, 4, 3, 3)).astype("float32")
    want, p = topi.testing.conv2d_nchw_python(x, w, 1, 1), topi.nn
    np.testing.assert_allclose(
        computed(lambda a, b: p.conv2d_hwcn(a, b, 1, 1, 1), x.transpose(2, 3, 1, 0).copy(), w.transpose(2, 3, 1, 0).copy()),
        want.transpose(2, 3, 1, 0),
        rtol=1e-4,
        atol=1e-5,
    )
    one = rng.standard_normal((4, 1, 3, 3)).astype("float32")
    want = topi.testing.depthwise_conv2d_python_nchw(x, one, 1, (1, 1))
    np.testing.assert_allclose(
        computed(lambda a, b: p.depthwise_conv2d_nhwc(a, b, 1, 1, 1), x.transpose(0, 2, 3, 1).copy(), one.transpose(2, 3, 0, 1).copy()),
        want.transpose(0, 2, 3, 1),
        rtol=1e-4,
        atol=1e-5,
    )
    x1, w1 = rng.standard_normal((1, 4, 9)).astype("float32"), rng.standard_normal((3, 4, 3)).astype("float32")
    want = topi.testing.conv1d_ncw_python(x1, w1, 1, 0, 1)
    np.testing.assert_allclose(computed(lambda a, b: p.conv1d_ncw(a, b), x1, w1), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        computed(lambda a, b: p.conv1d_nwc(a, b), x1.transpose(0, 2, 1).copy(), w1.transpose(2, 1, 0).copy()), want.transpose(0, 2, 1), rtol=1e-4, atol=1e-5
    )
    compute, schedule = topi.testing.get_conv2d_nchw_implement("llvm")
    assert compute is p.conv2d_nchw and callable(schedule)


def test_more_of_topi():
    x = np.arange(6, dtype="int32").reshape(2, 3) - 3
    two = np.full((1,), 2, "int32")
    assert (computed(topi.floordiv, x, two) == x // 2).all() and (computed(topi.floormod, x, two) == x % 2).all()
    assert (computed(lambda a: topi.collapse_sum(a, (1, 3)), x) == x.sum(0, keepdims=True)).all()
    assert [int(d) for d in topi.expand_like(te.placeholder((3,)), te.placeholder((2, 3)), 0).shape] == [2, 3]
    assert topi.testing.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2 and topi.testing.dispatch("cuda", {"generic": 1, "cpu": 2}) == 1


def test_files_and_programs(tmp_path):
    from baton.contrib import cc, utils

    with utils.filelock(str(tmp_path / "lock")) as lock:
        assert lock is not None
    assert utils.is_source_path("a.cc") and not utils.is_source_path("a.o") and utils.which("no-such-program-at-all") is None
    assert (cc.create_shared.get_target_triple() or "-").count("-") >= 1
    if cc.get_cc():
        (tmp_path / "a.cc").write_text('extern "C" int one() { return 1; }')
        cc.create_shared(str(tmp_path / "a.so"), str(tmp_path / "a.cc"))
        assert (tmp_path / "a.so").exists()
