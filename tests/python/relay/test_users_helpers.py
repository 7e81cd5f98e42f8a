# SPDX-License-Identifier: Apache-2.0
"""Compilers of others, helpers for tests and files, as programs of 0.8 use them."""

import os

import numpy as np

import baton as tvm
import baton.testing
from baton import relay, te, tir
from baton.relay import transform


def test_own_table():
    from baton.relay.dataflow_pattern import is_op, wildcard
    from baton.relay.op.contrib import get_pattern_table, register_pattern_table

    @register_pattern_table('p6t')
    def tbl():
        return [('p6t.add_relu', is_op('nn.relu')(is_op('add')(wildcard(), wildcard())))]

    assert get_pattern_table('p6t')[0][0] == 'p6t.add_relu'


def test_annot_merge():
    x, w = (relay.var('x', shape=(1, 3, 8, 8)), relay.var('w', shape=(4, 3, 3, 3)))
    f = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    m = tvm.IRModule.from_expr(relay.Function([x, w], f))
    m = transform.MergeComposite(relay.op.contrib.get_pattern_table('dnnl'))(transform.InferType()(m))
    m = transform.PartitionGraph()(transform.MergeCompilerRegions()(transform.AnnotateTarget(['dnnl'])(m)))
    assert any(('dnnl' in v.name_hint for v in m.get_global_vars()))
    relay.build(m, 'llvm')


def test_testing_helpers():
    tvm.testing.assert_allclose(np.ones(2), np.ones(2), rtol=1e-05)
    e = tvm.testing.enabled_targets()
    assert e[0][0] == 'llvm'
    assert tvm.testing.device_enabled('llvm')
    assert not tvm.testing.device_enabled('cuda')
    assert tvm.testing.echo(3) == 3
    assert tvm.testing.test_wrap_callback
    assert tvm.testing.test_raise_error_callback

    @tvm.testing.requires_llvm
    def f():
        pass

    @tvm.testing.uses_gpu
    def g():
        pass

    @tvm.testing.requires_gpu
    def h():
        pass

    @tvm.testing.requires_package('numpy')
    def k():
        pass

    @tvm.testing.parametrize_targets('llvm', 'cuda')
    def q(target, dev):
        pass

    tvm.testing.identity_after(1, 0.0)


def test_object_use():
    r = tvm.testing.object_use_count(te.var('x'))
    assert r >= 1


def test_contrib():
    from baton.contrib.pickle_memoize import memoize

    @memoize('p6.mem', save_at_exit=False)
    def f(a):
        return a + 1

    assert f(1) == 2
    from baton.contrib import tar, utils

    d = utils.tempdir()
    open(d.relpath('a'), 'w').write('x')
    assert d.listdir() == ['a']
    assert os.path.isdir(d.temp_dir)
    tar.tar(d.relpath('t.tar'), [d.relpath('a')])
    tar.untar(d.relpath('t.tar'), d.relpath('out'))
    found = utils.filelock(d.relpath('lk'))
    with found:
        pass
    d.remove()
    from baton.contrib.popen_pool import PopenWorker

    w = PopenWorker()
    w.send(abs, [-3])
    assert w.recv() == 3
    w.kill()


def test_sparse_nd():
    from baton.contrib import sparse as s

    a = s.array(np.array([[0, 1.0], [2, 0]], 'float32'), tvm.cpu())
    assert a.shape == (2, 2)
    assert (a.asnumpy() == [[0, 1], [2, 0]]).all()
    assert a.dtype == 'float32'
    p = s.placeholder((te.var('m'), te.var('n')), nonzeros=te.var('nz'), name='A')
    assert p.stype == 'csr'
    assert p.data is not None


def test_op_attrs_mod():
    from baton.relay.op import op_attrs

    assert op_attrs.Conv2DAttrs
    assert op_attrs.BatchNormAttrs
    assert op_attrs.StridedSliceAttrs
    x = relay.var('x', shape=(2, 3))
    c = relay.nn.dense(x, relay.var('w', shape=(4, 3)))
    assert isinstance(c.attrs, op_attrs.DenseAttrs)


def test_transform_infer_layout():
    from baton.relay.transform.infer_layout_utils import InferCorrectLayoutOutput

    o = InferCorrectLayoutOutput([tir.layout('NCHW')], [tir.layout('NCHW')], tvm.ir.make_node('DictAttrs', a=1))
    assert o


def test_backend_utils():
    from baton.relay.backend import utils

    assert utils.mangle_module_name('m') == 'tvmgen_m'
    from baton.relay.backend.name_transforms import to_c_function_style

    assert to_c_function_style('TVM_Woof_Ab') == 'TVMWoofAb'


def test_a_program_for_tensorrt():
    from baton.relay.op.contrib.tensorrt import is_tensorrt_runtime_enabled, partition_for_tensorrt

    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))))
    made, settings = partition_for_tensorrt(mod, {"w": np.ones((4, 3, 3, 3), "float32")})
    assert not is_tensorrt_runtime_enabled() and [v.name_hint for v in made.get_global_vars() if "tensorrt" in v.name_hint]
    with tvm.transform.PassContext(opt_level=3, config={"relay.ext.tensorrt.options": settings}) as ctx:
        assert ctx.config["relay.ext.tensorrt.options"]["use_implicit_batch"]
        lib = relay.build(made, "llvm")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.ones((1, 3, 8, 8), "float32"))
    assert (run.get_output(0).numpy() == 27).all()


def test_a_program_for_arm_compute_lib():
    from baton.relay.op.contrib.arm_compute_lib import arm_compute_lib_pattern_table, is_arm_compute_runtime_enabled, partition_for_arm_compute_lib

    x, w = relay.var("x", shape=(1, 8, 8, 3)), relay.var("w", shape=(3, 3, 3, 4))
    conv = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, data_layout="NHWC", kernel_layout="HWIO")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(relay.nn.relu(conv))))
    made = partition_for_arm_compute_lib(mod, {"w": np.ones((3, 3, 3, 4), "float32")})
    (region,) = [made[v] for v in made.get_global_vars() if v.name_hint != "main"]
    assert not is_arm_compute_runtime_enabled() and region.attrs["Compiler"] == "arm_compute_lib"
    assert region.body.op.attrs["Composite"] == arm_compute_lib_pattern_table()[0][0] == "arm_compute_lib.conv2d"
    got = relay.create_executor("graph", mod=made).evaluate()(np.ones((1, 8, 8, 3), "float32"))
    assert np.allclose(got.numpy(), np.tanh(27))
