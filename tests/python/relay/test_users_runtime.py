# SPDX-License-Identifier: Apache-2.0
"""Objects, containers, functions, arrays, builds and executors as programs of Relay 0.8 use them."""

import json
import pickle

import numpy as np
import pytest

import baton as tvm
from baton import relay, rpc, runtime, te
from baton.contrib import graph_executor
from baton.relay import vm as rly_vm
from baton.runtime import convert
from baton.runtime import vm as vm_rt


def net():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    return tvm.IRModule.from_expr(relay.Function([x, y], relay.add(relay.nn.relu(x), y)))


X = np.arange(6).reshape(2, 3).astype("float32") - 3
Y = np.ones((2, 3), "float32")
W = np.maximum(X, 0) + Y


def test_array_json_roundtrip():
    a = convert([1, 2, 3])
    b = tvm.ir.load_json(tvm.ir.save_json(a))
    assert [x.value for x in b] == [1, 2, 3]


def test_map_items():
    a = te.var("a")
    b = te.var("b")
    m = convert({a: 2, b: 3})
    assert a in m and len(m) == 2
    d = dict(m.items())
    assert a in d and b in d
    assert set(m.keys()) == {a, b}
    assert sorted(v.value for v in m.values()) == [2, 3]
    assert m.get(te.var("c"), 7) == 7
    assert str(m)
    with pytest.raises(KeyError):
        m[te.var("z")]


def test_str_map():
    m = convert({"a": 2, "b": 3})
    assert "a" in m and dict(m.items())["a"].value == 2
    assert m["a"].value == 2
    m2 = tvm.ir.load_json(tvm.ir.save_json(m))
    assert m2["b"].value == 3


def test_map_save_load():
    a = te.var("a")
    b = te.var("b")
    m = convert({a: 2, b: 3})
    s = tvm.ir.save_json(m)
    assert isinstance(s, str)
    m2 = tvm.ir.load_json(s)
    d = {k.name: v for k, v in m2.items()}
    assert d["b"].value == 3


def test_in_container():
    arr = convert(["a", "b", "c"])
    assert "a" in arr
    assert tvm.runtime.String("a") in arr
    assert "d" not in arr


def test_string():
    s = tvm.runtime.String("xyz")
    assert isinstance(s, tvm.runtime.String)
    assert isinstance(s, str)
    assert s.startswith("xy")
    assert s + "1" == "xyz1"
    y = tvm.testing.echo(s)
    assert isinstance(y, str)
    assert s == y
    x = tvm.ir.load_json(tvm.ir.save_json(y))
    assert x == y
    assert pickle.loads(pickle.dumps(s)) == s
    assert hash(s) == hash("xyz")


def test_adt():
    arr = tvm.nd.array([1, 2, 3])
    fields = [arr, arr]
    y = tvm.runtime.container.ADT(0, fields)
    assert len(y) == 2
    assert isinstance(y, tvm.runtime.container.ADT)
    y[0:1]
    y[-1:]
    tvm.testing.assert_allclose(y[0].numpy(), y[1].numpy())
    z = tvm.runtime.container.tuple_object([arr, arr])
    assert z.tag == 0 and len(z) == 2


def test_shape_tuple():
    from baton.runtime import ShapeTuple

    shape = [1, 2, 3]
    s = ShapeTuple(shape)
    assert len(s) == 3
    assert list(s) == shape
    assert s[0] == 1 and s[-1] == 3
    assert s == ShapeTuple([1, 2, 3]) and s == (1, 2, 3)


def test_make_node():
    x = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert isinstance(x, tvm.tir.IntImm)
    assert x.value == 10
    AA = te.placeholder((10,), name="A")
    assert AA.op.name == "A"
    f = tvm.ir.make_node("FloatImm", dtype="float32", value=2.5, span=None)
    assert f.value == 2.5


def test_make_smap():
    x = tvm.tir.const(10, "int32")
    y = tvm.tir.const(20, "int32")
    z = tvm.tir.Add(x, y)
    smap = convert({"z": z, "x": x})
    json_str = tvm.ir.save_json(convert([smap]))
    arr = tvm.ir.load_json(json_str)
    assert len(arr) == 1
    assert arr[0]["z"].a == arr[0]["x"]
    tvm.ir.assert_structural_equal(arr, [smap], map_free_vars=True)


def test_const_saveload_json():
    x = tvm.tir.const(10, "int32")
    y = tvm.tir.const(10, "int32")
    z = x + y
    z = z + z
    json_str = tvm.ir.save_json(z)
    zz = tvm.ir.load_json(json_str)
    tvm.ir.assert_structural_equal(zz, z, map_free_vars=True)


def test_infinity_json():
    assert np.isinf(tvm.ir.load_json(tvm.ir.save_json(tvm.tir.FloatImm("float32", float("inf")))).value)
    assert np.isnan(tvm.ir.load_json(tvm.ir.save_json(tvm.tir.FloatImm("float32", float("nan")))).value)


def test_pickle_expr():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], relay.nn.relu(x))
    g = pickle.loads(pickle.dumps(f))
    assert tvm.ir.structural_equal(f, g)


def test_env_func():
    @tvm.register_func("n5.env_func")
    def t(x):
        return x + 1

    tvm.get_global_func("n5.env_func")
    x = tvm.ir.EnvFunc.get("n5.env_func")
    assert x.name == "n5.env_func"
    y = tvm.ir.load_json(tvm.ir.save_json(x))
    assert y.name == x.name
    assert y(1) == 2
    assert y.func(1) == 2


def test_dir_object():
    x = te.var("x")
    assert "name" in dir(x) and "dtype" in dir(x)
    with pytest.raises(AttributeError):
        _ = x.nothing_here


def test_attribute_error_message():
    x = relay.var("x")
    with pytest.raises(AttributeError) as e:
        _ = x.foo
    assert "foo" in str(e.value)


def test_same_as():
    x = relay.var("x")
    y = relay.Tuple([x, x])
    assert y[0].same_as(y[1]) and y.fields[0].same_as(x)
    assert not relay.const(1).same_as(relay.const(1))


def test_structural_equal_paths():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert not tvm.ir.structural_equal(x, y)
    assert tvm.ir.structural_equal(x, y, map_free_vars=True)
    assert tvm.ir.structural_equal(relay.Function([x], x), relay.Function([y], y))
    assert tvm.ir.structural_hash(relay.Function([x], x)) == tvm.ir.structural_hash(relay.Function([y], y))
    assert tvm.ir.structural_hash(x, map_free_vars=True) == tvm.ir.structural_hash(y, map_free_vars=True)
    with pytest.raises(ValueError):
        tvm.ir.assert_structural_equal(relay.Function([x], x), relay.Function([x], relay.nn.relu(x)))


def test_object_is_unhashable_rules():
    x = relay.var("x")
    d = {x: 1}
    assert d[x] == 1 and relay.var("x") not in d
    gv = relay.GlobalVar("f")
    assert {gv: 1}[gv] == 1


def test_register_object():
    # a new node class in Python for a known key
    from baton.ir import Node
    from baton.runtime import Object

    assert issubclass(Node, Object)
    assert isinstance(relay.const(1), Node)


def test_packed_func_object():
    def myfunc(*args):
        assert tuple(args) == (10, 2.5, "x")
        return "ok"

    f = convert(myfunc)
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f(10, 2.5, "x") == "ok"
    assert convert(f) is f or isinstance(convert(f), tvm.runtime.PackedFunc)


def test_global_registry():
    @tvm.register_func("n5.reg")
    def f(x):
        return x

    names = tvm._ffi.registry.list_global_func_names()
    assert "n5.reg" in names
    with pytest.raises(ValueError):
        tvm.get_global_func("n5.nope")
    assert tvm.get_global_func("n5.nope", True) is None
    assert tvm.get_global_func("n5.nope", allow_missing=True) is None
    with pytest.raises((tvm.TVMError, ValueError)):
        tvm.register_func("n5.reg", lambda x: x)
    tvm.register_func("n5.reg", lambda x: x + 1, override=True)
    assert tvm.get_global_func("n5.reg")(1) == 2
    tvm._ffi.register_func("n5.reg2", lambda: 3)
    assert tvm.get_global_func("n5.reg2")() == 3


def test_remove_global_func():
    tvm.register_func("n5.rm", lambda: 1)
    tvm._ffi.registry.remove_global_func("n5.rm")
    assert tvm.get_global_func("n5.rm", True) is None


def test_convert_none_bytes_device():
    convert(lambda *a: a)
    assert convert(None) is None

    def byte(x):
        assert isinstance(x, bytearray) or isinstance(x, bytes)
        assert bytes(x) == b"hello"
        return x

    g = convert(byte)
    g(bytearray(b"hello"))

    def dev(d):
        assert isinstance(d, tvm.runtime.Device)
        assert d.device_type == 1 and d.device_id == 3
        return d

    r = convert(dev)(tvm.cpu(3))
    assert r.device_id == 3


def test_rvalue_ref():
    def callback(x, expected):
        return x

    f = convert(callback)

    def check0():
        x = tvm.tir.Var("x", "int32")
        assert f(x, 2) is not None
        return f(x._move(), 1)

    assert check0().name == "x"


def test_numpy_scalar_args():
    f = convert(lambda x: x + 1)
    assert f(np.int32(5)) == 6
    assert f(np.float32(0.5)) == 1.5
    assert f(True) in (2, 1 + 1)


def test_error_from_callback():
    def bad():
        raise ValueError("n5 boom")

    f = convert(bad)
    with pytest.raises(ValueError, match="n5 boom"):
        f()
    with pytest.raises(tvm.TVMError):
        f()


def test_init_api():
    assert isinstance(tvm.__version__, str)
    assert tvm._ffi.base.__version__ == tvm.__version__
    assert callable(tvm._ffi._init_api)
    assert tvm.runtime._ffi_api is not None and tvm.ir._ffi_api is not None


def test_list_object_key():
    import baton._ffi.base as b

    assert b.py_str(b"x") == "x" and b.string_types == (str,)
    assert b.c_str("x").value == b"x"


def test_nd_numpyasarray():
    n = tvm.nd.numpyasarray(np.ones((2,), "float32"))
    assert n is not None


def test_dtype():
    d = tvm.DataType("float32x4")
    assert d.bits == 32 and d.lanes == 4 and d.type_code == 2
    assert d == "float32x4" and str(d) == "float32x4"
    assert tvm.DataType("handle").bits == 64
    assert tvm.runtime.DataTypeCode.FLOAT == 2 and tvm.runtime.DataTypeCode.UINT == 1
    assert str(tvm.DataType("bool")) == "bool"
    with pytest.raises(ValueError):
        tvm.DataType("float32q")
    with pytest.raises(ValueError):
        tvm.DataType("foo")


def test_attrs_keys():
    x = relay.nn.conv2d(relay.var("x"), relay.var("w"), channels=4, kernel_size=(3, 3))
    a = x.attrs
    assert set(a.keys()) >= {"strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout", "kernel_layout", "out_layout", "out_dtype"}
    assert a["strides"][0] == 1 and a.get_int("groups") == 1 and a.get_str("data_layout") == "NCHW"
    assert a.get_int_tuple("strides") == (1, 1)
    assert a.channels == 4
    with pytest.raises((AttributeError, KeyError)):
        a["foo"]
    assert {k: a[k] for k in a.keys()}["kernel_layout"] == "OIHW"
    fields = a.list_field_info()
    assert any(f.name == "strides" for f in fields)
    assert isinstance(a, tvm.ir.Attrs)
    assert isinstance(a, relay.op.op_attrs.Conv2DAttrs)


def test_build_triple():
    g, lib, p = relay.build(net(), "llvm")
    assert isinstance(g, str) and "nodes" in json.loads(g) and "arg_nodes" in json.loads(g) and "heads" in json.loads(g) and "node_row_ptr" in json.loads(g)
    m = graph_executor.create(g, lib, tvm.cpu(0))
    m.run(x=X, y=Y)
    assert np.allclose(m.get_output(0).numpy(), W)
    m.load_params(runtime.save_param_dict(p))


def test_build_attrs():
    lib = relay.build(net(), target="llvm", params={"y": tvm.nd.array(Y)}, mod_name="n5")
    assert lib.get_graph_json() and isinstance(lib.get_params(), dict) and lib.get_lib() is not None and lib.libmod_name == "n5"
    assert lib.target is not None and lib.graph_json and lib.params is not None and lib.lib is not None
    m = graph_executor.GraphModule(lib["n5"](tvm.cpu()))
    m.run(x=X)
    assert np.allclose(m.get_output(0).numpy(), W)
    assert lib.function_metadata is not None
    assert lib.ir_mod is not None and list(iter(lib))


def test_vm_dynamic():
    x = relay.var("x", shape=(relay.Any(), 3))
    ex = rly_vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    v = vm_rt.VirtualMachine(ex, tvm.cpu())
    for n in (1, 4):
        assert v.run(np.zeros((n, 3), "float32")).shape == (n, 3)
    r = relay.create_executor("vm", mod=tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))).evaluate()(np.zeros((2, 3), "float32"))
    assert r.shape == (2, 3)


def test_rpc_server():
    @tvm.register_func("n5.rpc.addone")
    def addone(x):
        return x + 1

    server = rpc.Server(key="x1")
    c = rpc.connect("127.0.0.1", server.port, key="x1")
    f = c.get_function("n5.rpc.addone")
    assert f(10) == 11
    server.terminate()


def test_executor_factory():
    from baton.relay.backend import Executor, Runtime

    e = Executor("graph", {"link-params": True})
    r = Runtime("cpp")
    lib = relay.build(net(), "llvm", executor=e, runtime=r)
    assert lib
    from baton.relay.backend.executor_factory import GraphExecutorFactoryModule

    assert isinstance(lib, GraphExecutorFactoryModule)


def test_build_fn_input():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.exp(x))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib = relay.build(f, "llvm")
        assert lib
    with pytest.raises((ValueError, TypeError, tvm.TVMError)):
        relay.build(3, "llvm")


def test_params_api():
    from baton.relay import param_dict

    assert param_dict.save_param_dict and param_dict.load_param_dict


def test_time_evaluator_graph():
    lib = relay.build(net(), "llvm")
    d = tvm.cpu(0)
    m = graph_executor.GraphModule(lib["default"](d))
    m.set_input("x", X)
    m.set_input("y", Y)
    ft = m.module.time_evaluator("run", d, repeat=3, min_repeat_ms=1)
    p = np.array(ft().results) * 1000
    assert p.shape == (3,) and np.mean(p) > 0
