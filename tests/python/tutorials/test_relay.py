# SPDX-License-Identifier: Apache-2.0
"""Introductions to Relay: passes, instruments, passes of one's own, a quick start, importing, graph networks, and what is not there."""

from collections import namedtuple

import numpy as np
import pytest

import baton as tvm
from baton import relay, tir
from baton.contrib import graph_executor, utils

RNG = np.random.default_rng(4)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def example():
    """A convolution and sums with constants, some of them twice."""
    shape = (1, 64, 54, 54)
    c = relay.const(np.ones(shape, "float32"))
    weight, x = relay.var("weight", shape=(64, 64, 3, 3)), relay.var("x", relay.TensorType((1, 64, 56, 56), "float32"))
    conv = relay.nn.conv2d(x, weight)
    y = relay.multiply(relay.add(c, c), relay.const(2, "float32"))
    y = relay.add(conv, y)
    z, z1 = relay.add(y, c), relay.add(y, c)
    return relay.Function([x, weight], relay.add(z, z1))


def calls(mod, name):
    return relay.analysis.list_op_freqs(mod).get(name, 0)


def test_passes():
    mod = tvm.IRModule.from_expr(example())
    fold_const = relay.transform.FoldConstant()
    folded = fold_const(mod)
    assert calls(folded, "multiply") == 0 and calls(mod, "multiply") == 1
    fewer = relay.transform.EliminateCommonSubexpr()(folded)
    assert calls(fewer, "add") == calls(folded, "add") - 1
    relay.transform.FuseOps(fuse_opt_level=0)(fewer)
    assert "Primitive" in str(relay.transform.FuseOps(fuse_opt_level=2)(fewer))

    seq = tvm.transform.Sequential([relay.transform.FoldConstant(), relay.transform.EliminateCommonSubexpr(), relay.transform.FuseOps(fuse_opt_level=2)])
    plain = seq(mod)
    with tvm.transform.PassContext(opt_level=3):
        best = seq(mod)
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
        without = seq(mod)
    # EliminateCommonSubexpr has level 3, PassContext 2 by default.
    assert calls(plain, "add") == calls(without, "add") == calls(best, "add") + 1
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm"):
        tvm.ir.assert_structural_equal(seq(mod), best)


def test_prints_between_passes(capsys):
    seq = tvm.transform.Sequential([relay.transform.FoldConstant(), tvm.transform.PrintIR(), relay.transform.EliminateCommonSubexpr()])

    @tvm.instrument.pass_instrument
    class PrintIR:
        """Prints the name of each pass."""

        def run_before_pass(self, mod, info):
            print("Running pass:", info.name)

    with tvm.transform.PassContext(opt_level=3, instruments=[PrintIR()]):
        seq(tvm.IRModule.from_expr(example()))
    out = capsys.readouterr().out
    assert "Running pass: FoldConstant" in out and "Running pass: EliminateCommonSubexpr" in out and "def @main" in out


def test_a_pass_of_ones_own():
    @relay.transform.function_pass(opt_level=1)
    class CustomPipeline:
        """Multiplies constants."""

        def __init__(self, multiplier):
            self.multiplier = multiplier

        def transform_function(self, func, mod, ctx):
            obj = self

            class ReplaceConstant(relay.ExprMutator):
                def visit_constant(self, c):
                    return relay.multiply(obj.multiplier, c)

            return ReplaceConstant().visit(func)

    mod = tvm.IRModule.from_expr(example())
    custom_pass = CustomPipeline(multiplier=relay.const(3, "float32"))
    assert custom_pass.info.name == "CustomPipeline" and custom_pass.info.opt_level == 1
    assert calls(custom_pass(mod), "multiply") > calls(mod, "multiply")


def test_instruments():
    mod, params = relay.testing.resnet.get_workload(num_layers=18, batch_size=1, image_shape=(3, 32, 32))
    timing_inst = tvm.ir.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timing_inst]):
        relay_mod = relay.transform.InferType()(mod)
        relay_mod = relay.transform.FuseOps()(relay_mod)
        profiles = timing_inst.render()
    assert "InferType" in profiles and "FuseOps" in profiles

    cur_pass_ctx = tvm.transform.PassContext.current()
    cur_pass_ctx.override_instruments([timing_inst])
    relay.transform.InferType()(mod)
    assert "InferType" in timing_inst.render()
    cur_pass_ctx.override_instruments([])

    @tvm.instrument.pass_instrument
    class RelayCallNodeDiffer:
        """How a pass changes the number of calls."""

        def __init__(self):
            self._op_diff, self._op_cnt_before_stack = [], []

        def enter_pass_ctx(self):
            self._op_diff = []

        def exit_pass_ctx(self):
            assert not self._op_cnt_before_stack

        def run_before_pass(self, mod, info):
            self._op_cnt_before_stack.append((info.name, self._count_nodes(mod)))

        def run_after_pass(self, mod, info):
            name_before, before = self._op_cnt_before_stack.pop()
            assert name_before == info.name
            self._op_diff.append((info.name, len(self._count_nodes(mod)) - len(before)))

        def get_pass_to_op_diff(self):
            return self._op_diff

        @staticmethod
        def _count_nodes(mod):
            ret = []
            relay.analysis.post_order_visit(mod["main"], lambda n: ret.append(n) if isinstance(n, relay.expr.Call) else None)
            return ret

    call_node_inst = RelayCallNodeDiffer()
    passes = tvm.transform.Sequential([relay.transform.FoldConstant(), relay.transform.SimplifyInference(), relay.transform.FuseOps()])
    with tvm.transform.PassContext(opt_level=3, instruments=[call_node_inst]):
        passes(mod)
    assert "SimplifyInference" in dict(call_node_inst.get_pass_to_op_diff()) and params


def test_instruments_that_fail():
    mod = tvm.IRModule.from_expr(example())

    @tvm.instrument.pass_instrument
    class PassBadCtx:
        """Raises where the context is entered."""

        def __init__(self, bad_enter):
            self.bad_enter = bad_enter

        def enter_pass_ctx(self):
            if self.bad_enter:
                raise RuntimeError("bad enter")

        def run_before_pass(self, mod, info):
            if not self.bad_enter:
                raise RuntimeError("bad before")

    for bad, text in ((True, "bad enter"), (False, "bad before")):
        with pytest.raises(RuntimeError, match=text), tvm.transform.PassContext(instruments=[PassBadCtx(bad)]):
            relay.transform.InferType()(mod)
    relay.transform.InferType()(mod)


def test_quick_start():
    mod, params = relay.testing.resnet.get_workload(num_layers=8, batch_size=1, image_shape=(3, 28, 28))
    assert "nn.conv2d" in mod.astext(show_meta_data=False)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=tvm.target.Target("llvm"), params=params)
    dev = tvm.cpu()
    module = graph_executor.GraphModule(lib["default"](dev))
    data = RNG.uniform(-1, 1, size=(1, 3, 28, 28)).astype("float32")
    module.set_input("data", data)
    module.run()
    out = module.get_output(0, tvm.nd.empty((1, 1000))).numpy()
    temp = utils.tempdir()
    path_lib = temp.relpath("deploy_lib.tar")
    lib.export_library(path_lib)
    assert temp.listdir() == ["deploy_lib.tar"]
    module = graph_executor.GraphModule(tvm.runtime.load_module(path_lib)["default"](dev))
    module.run(data=tvm.nd.array(data))
    tvm.testing.assert_allclose(module.get_output(0).numpy(), out, atol=1e-5)


@pytest.mark.parametrize(("num_layers", "convolutions"), [(8, 10), (14, 16), (164, 166)])
def test_networks_for_small_images(num_layers, convolutions):
    net = relay.testing.resnet.get_net(1, 10, num_layers, (3, 28, 28))
    assert calls(tvm.IRModule.from_expr(net), "nn.conv2d") == convolutions
    with pytest.raises(ValueError, match="up to 28 rows"):
        relay.testing.resnet.get_net(1, 10, 18, (3, 28, 28))


def test_from_onnx(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weight = f32(4, 3, 3, 3)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["1", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])],
        "net",
        [helper.make_tensor_value_info("1", 1, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", 1, [1, 4, 8, 8])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), tmp_path / "net.onnx")
    x = f32(1, 3, 8, 8)
    mod, params = relay.frontend.from_onnx(onnx.load(tmp_path / "net.onnx"), {"1": x.shape})
    with tvm.transform.PassContext(opt_level=1):
        run = relay.build_module.create_executor("graph", mod, tvm.cpu(0), "llvm", params).evaluate()
    want = tvm.topi.testing.conv2d_nchw_python(x, weight, 1, 1).clip(0)
    tvm.testing.assert_allclose(run(tvm.nd.array(x)).numpy(), want, rtol=1e-3, atol=1e-4)


def test_a_graph_network():
    nodes, features, hidden, classes = 10, 6, 4, 3
    dense = (RNG.random((nodes, nodes)) < 0.3).astype("float32")
    sparse = pytest.importorskip("scipy.sparse")
    csr = sparse.csr_matrix(dense)
    adjacency = namedtuple("Adjacency", ["data", "indices", "indptr"])(*(relay.Constant(tvm.nd.array(a)) for a in (csr.data, csr.indices, csr.indptr)))

    def layer(x, name, units, activation=None):
        weight = relay.var(f"{name}.weight", shape=(units, widths[name]))
        x = relay.nn.dense(x, weight)
        x = relay.transpose(relay.nn.sparse_dense(relay.transpose(x), adjacency))
        return x if activation is None else activation(x)

    widths = {"first": features, "second": hidden}
    feats = relay.var("infeats", shape=(nodes, features))
    output = layer(layer(feats, "first", hidden, relay.nn.relu), "second", classes)
    func = relay.Function(relay.analysis.free_vars(output), output)
    mod = tvm.IRModule()
    mod["main"] = func
    values = {"infeats": f32(nodes, features), "first.weight": f32(hidden, features), "second.weight": f32(classes, hidden)}
    with tvm.transform.PassContext(opt_level=0):
        lib = relay.build(mod, "llvm", params={k: v for k, v in values.items() if k != "infeats"})
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    m.set_input("infeats", values["infeats"])
    m.run()
    h = np.maximum(dense @ (values["infeats"] @ values["first.weight"].T), 0)
    tvm.testing.assert_allclose(m.get_output(0).numpy(), dense @ (h @ values["second.weight"].T), rtol=1e-3, atol=1e-4)


def test_loops_changed_by_hand():
    """A pass over the statements of a function, in the way that `tvm.build` takes."""
    n = tir.const(128, "int32")
    a, b = tvm.te.placeholder((n,), name="a"), tvm.te.placeholder((n,), name="b")
    c = tvm.te.compute((n,), lambda i: a[i] + b[i], name="c")
    s = tvm.te.create_schedule(c.op)
    found = []

    def find_width8(op):
        if isinstance(op, tir.For) and isinstance(op.extent, tir.IntImm) and op.extent.value % 8 == 0:
            found.append(op)

    tir.stmt_functor.post_order_visit(tvm.lower(s, [a, b, c])["main"].body, find_width8)
    assert len(found) == 1


def test_datatypes_of_ones_own():
    with pytest.raises(tvm.error.UnsupportedError, match="target.datatype.register is not there: dtypes are those of"):
        tvm.target.datatype.register("myfloat", 150)


def test_code_generators_of_ones_own():
    """Functions of another compiler are told apart, and compiled here: a generator called `relay.ext.NAME` is not asked."""
    x = relay.var("x", shape=(2, 2))
    sub = relay.Function([x], relay.nn.relu(x)).with_attr("Compiler", "tutorial_missing").with_attr("global_symbol", "tutorial_0").with_attr("Primitive", 1)
    y = relay.var("y", shape=(2, 2))
    mod = tvm.IRModule()
    gv = relay.GlobalVar("tutorial_0")
    mod[gv] = sub
    mod["main"] = relay.Function([y], gv(y))
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(y=np.array([[-1, 2], [3, -4]], "float32"))
    assert module.get_output(0).numpy().tolist() == [[0, 2], [3, 0]]


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda: relay.frontend.from_keras(None), "from_onnx"),
        (lambda: tvm.auto_scheduler.SearchTask(), "needs no tuning"),
        (lambda: tvm.micro.generate_project(), "machines"),
    ],
)
def test_what_is_not_there_says_what_to_use(use, instead):
    with pytest.raises(tvm.error.UnsupportedError, match=instead):
        use()
