# SPDX-License-Identifier: Apache-2.0
"""Containers, attributes, functions, arrays, equality and saving as programs of Relay 0.8 use them."""

import copy
import pickle

import numpy as np
import pytest
from building import var

import baton as tvm
from baton import relay, te, tir
from baton.runtime import convert

A, B, X = te.var("a"), te.var("b"), var(2)
equal, hashed = tvm.ir.structural_equal, tvm.ir.structural_hash


def saved(value):
    return tvm.ir.load_json(tvm.ir.save_json(value))


def echo(value):
    """The value after two crossings of the border."""
    return convert(lambda x: x)(value)


def module():
    return tvm.IRModule.from_expr(relay.Function([X], relay.exp(X)))


# ---- Containers


def test_an_array():
    array = convert([1, 2, 3, 4])
    assert isinstance(array, tvm.ir.Array) and isinstance(array, tvm.ir.container.Array) and isinstance(array[0].value, int)
    assert (len(array), array[0], array[-1], list(array[1:]), list(array[::2]), list(array[::-1])) == (4, 1, 4, [2, 3, 4], [1, 3], [4, 3, 2, 1])
    assert 2 in array and 9 not in array and array.index(3) == 2 and str(array) == "[1, 2, 3, 4]" and equal(array, convert([1, 2, 3, 4]))
    for place in (4, -5):
        with pytest.raises(IndexError):
            array[place]
    assert [x.value for x in saved(array)] == [1, 2, 3, 4]
    nested = convert([[1, 2], {"k": [3]}, (1, "a", None)])
    assert isinstance(nested[0], tvm.ir.Array) and nested[0][1] == 2 and nested[1]["k"][0] == 3 and (nested[2][1], nested[2][2]) == ("a", None)
    words = convert(["a", "b"])
    assert "a" in words and tvm.runtime.String("b") in words and "d" not in words


def test_a_map():
    by_var = convert({A: 2, B: 3})
    assert isinstance(by_var, tvm.ir.Map) and isinstance(by_var, tvm.ir.container.Map) and len(by_var) == 2
    assert A in by_var and set(by_var.keys()) == {A, B} and sorted(v.value for v in by_var.values()) == [2, 3] and dict(by_var.items())[B] == 3
    assert by_var.get(te.var("c")) is None and by_var.get(te.var("c"), 7) == 7 and "a: 2" in str(by_var)
    with pytest.raises(KeyError):
        by_var[te.var("z")]
    assert {k.name: v for k, v in saved(by_var).items()} == {"a": 2, "b": 3}
    by_name = convert({"a": 1, "b": [1, 2]})
    assert by_name["a"].value == 1 and list(by_name["b"]) == [1, 2] and "z" not in by_name and list(by_name) == ["a", "b"] and by_name.get("c") is None
    assert saved(by_name)["a"].value == 1
    shared = saved(convert([{"z": tir.Add(x := tir.const(10), tir.const(20)), "x": x}]))
    assert shared[0]["z"].a == shared[0]["x"]


def test_a_string():
    text = tvm.runtime.String("hello")
    assert isinstance(text, str) and text == "hello" and text.startswith("h") and text + "1" == "hello1" and len(text) == 5
    assert hash(text) == hash("hello") and {text: 1}["hello"] == 1 and isinstance(convert("x"), str)
    for again in (tvm.testing.echo(text), saved(text), pickle.loads(pickle.dumps(text)), echo(text)):
        assert again == "hello" and isinstance(again, str)


def test_a_value_of_a_data_type():
    array = tvm.nd.array([1, 2, 3])
    value = tvm.runtime.container.ADT(43, [array, [2, 3]])
    assert (value.tag, len(value), value[-1].numpy().tolist()) == (43, 2, [2, 3]) and value[0].numpy().tolist() == [1, 2, 3]
    assert [len(value[0:1]), len(value[-1:])] == [1, 1]
    pair = tvm.runtime.container.tuple_object([value, array])
    assert isinstance(pair, tvm.runtime.container.ADT) and (pair.tag, len(pair), pair[0].tag) == (0, 2, 43)
    assert not isinstance(array, tvm.runtime.container.ADT)
    result = relay.create_executor("vm").evaluate(relay.Function([], relay.Tuple([relay.const(1), relay.const(2)])))()
    assert isinstance(result, tvm.runtime.container.ADT) and [int(x.numpy()) for x in result] == [1, 2]


def test_a_shape():
    shape = tvm.runtime.ShapeTuple([1, 2, 3])
    assert (len(shape), list(shape), shape[0], shape[-1]) == (3, [1, 2, 3], 1, 3) and shape == tvm.runtime.ShapeTuple([1, 2, 3]) and shape == (1, 2, 3)
    with pytest.raises(IndexError):
        shape[3]


def test_a_range():
    for given, want in ((tvm.ir.Range(1, 5), (1, 4)), (tvm.ir.Range(10), (0, 10)), (tvm.ir.Range.from_min_extent(2, 3), (2, 3))):
        assert (given.min.value, given.extent.value) == want


# ---- Attributes


def test_make_node():
    literal = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert isinstance(literal, tir.IntImm) and literal.value == 10 and tvm.ir.make_node("FloatImm", dtype="float32", value=2.5, span=None).value == 2.5
    a = te.placeholder((10,), name="A")
    tensor = tvm.ir.make_node("Tensor", shape=a.shape, dtype=a.dtype, op=a.op, value_index=0)
    assert tensor == a and tensor.op.same_as(a.op) and (tensor.op.name, tensor.value_index) == ("A", 0)
    conv = {"strides": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, "channels": None, "kernel_size": None, "data_layout": "NCHW",
            "kernel_layout": "OIHW", "out_layout": "", "out_dtype": ""}  # fmt: skip
    assert tvm.ir.make_node("relay.attrs.Conv2DAttrs", **conv).data_layout == "NCHW"
    with pytest.raises(tvm.error.TVMError):
        tvm.ir.make_node("nope.node")


@pytest.mark.parametrize("given, word", [({"unknown_key": 1, "name": "x"}, "unknown"), ({"axis": 100, "name": "x"}, "axis"), ({}, "name"),
                                         ({"name": "x", "stride": 1}, "stride")])  # fmt: skip
def test_attributes_that_are_wrong(given, word):
    with pytest.raises((AttributeError, tvm.error.TVMError), match=word):
        tvm.ir.make_node("attrs.TestAttrs", **given)


def test_attributes_of_tests():
    @tvm.register_func("house.add_one", override=True)
    def add_one(x):
        return x + 1

    func = saved(tvm.ir.EnvFunc.get("house.add_one"))
    assert func.name == "house.add_one" and func(3) == func.func(3) == 4
    attrs = saved(tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=func))
    assert (attrs.name, attrs.axis, [p.value for p in attrs.padding], attrs.func(10)) == ("xx", 10, [3, 4], 11)
    assert equal(attrs, saved(attrs)) and not equal(attrs, tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4, 1)))


def test_attributes_by_name():
    made = saved(tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0)))
    assert made.x.value == made["x"].value == 1 and made.y.value == 10 and made.name == "xyz" and made.padding[0].value == 0 and "x" in made.keys()

    def attrs(**values):
        return tvm.ir.make_node("DictAttrs", **values)

    assert equal(attrs(x=1, y=[10, 20]), attrs(y=[10, 20], x=1)) and hashed(attrs(x=1, y=10)) == hashed(attrs(y=10, x=1))
    assert not equal(attrs(x=1, y=20), attrs(y=10, x=1))
    func = relay.Function([], relay.const(1)).with_attr("a", 1).with_attr({"b": "s", "c": [1, 2]})
    found = func.attrs
    assert (found["a"], found.b, [int(v) for v in found["c"]]) == (1, "s", [1, 2]) and set(found.keys()) == {"a", "b", "c"} and "z" not in found
    assert dict(found.items())["b"] == found.get_str("b") == "s" and found.get_int("a") == 1
    assert set(func.without_attr("a").attrs.keys()) == {"b", "c"}


def test_attributes_of_an_operator():
    attrs = relay.nn.conv2d(relay.var("x"), relay.var("w"), channels=4, kernel_size=(3, 3), padding=(1, 1)).attrs
    names = {"strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout", "kernel_layout", "out_layout", "out_dtype"}
    assert isinstance(attrs, tvm.ir.Attrs) and isinstance(attrs, relay.op.op_attrs.Conv2DAttrs) and set(attrs.keys()) >= names
    for found in (attrs, saved(attrs)):
        assert equal(found, attrs) and (found["strides"][0], found.get_int("groups"), found.get_str("data_layout"), found.channels) == (1, 1, "NCHW", 4)
        assert found.kernel_size[0] == 3 and found["padding"][0] == 1 and found.get_int_tuple("padding")[0] == 1 and found.get_int_tuple("strides") == (1, 1)
    assert {k: attrs[k] for k in attrs.keys()}["kernel_layout"] == "OIHW" and names <= {f.name for f in attrs.list_field_info()}
    with pytest.raises((AttributeError, KeyError)):
        attrs["foo"]


# ---- Objects


def test_an_object():
    x, y = relay.var("x"), relay.var("x")
    assert isinstance(x, tvm.runtime.Object) and isinstance(x, tvm.Object) and isinstance(x, tvm.ir.Node) and issubclass(tvm.ir.Node, tvm.Object)
    assert x.same_as(x) and x != y and hash(x) == hash(x) and {x: 1}[x] == 1 and y not in {x: 1} and "x" in repr(x)
    g = relay.GlobalVar("f")
    assert {g: 1}[g] == 1 and not relay.const(1).same_as(relay.const(1)) and relay.const(1) != relay.const(1)
    pair = relay.Tuple([x, x])
    assert pair[0].same_as(pair[1]) and pair.fields[0].same_as(x)


def test_fields_of_an_object():
    x, call = te.var("x", "int32"), relay.exp(X)
    assert {"name", "dtype"} <= set(dir(x)) and {"op", "args", "attrs", "type_args", "span", "checked_type"} <= set(dir(call))
    assert x.name == "x" and x.handle is not None
    with pytest.raises(AttributeError, match="nope"):
        _ = x.nope
    with pytest.raises((AttributeError, TypeError)):
        x.name = "y"


EXPRESSIONS = {
    "shared nodes": convert([A, ten := tir.const(10) + A, A * ten]),
    "a sum of literals": (z := tir.const(10) + tir.const(10)) + z,
    "an infinity": tir.FloatImm("float32", float("inf")),
    "a function": relay.Function([X], relay.nn.relu(X)),
    "a module": module(),
    "a span": tvm.ir.Span(tvm.ir.SourceName("a"), 1, 2, 3, 4),
}


@pytest.mark.parametrize("value", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_values_are_saved_and_copied(value):
    for again in (saved(value), pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value), echo(value)):
        tvm.ir.assert_structural_equal(again, value, map_free_vars=True)


def test_saved_values_keep_their_parts():
    found = saved(EXPRESSIONS["shared nodes"])
    assert found[0].same_as(found[2].a) and isinstance(found[1], tir.Add) and found[2].b.same_as(found[1])
    assert np.isnan(saved(tir.FloatImm("float32", float("nan"))).value) and saved(EXPRESSIONS["a span"]).source_name.name == "a"


# ---- Equality: two values, whether they are equal

v, w, t, s = relay.var("v"), relay.var("w"), relay.TypeVar("t"), relay.TypeVar("s")
Y, T = var(2, name="y"), relay.TensorType
EQUAL = [
    (relay.const(1), relay.const(1), True),
    (relay.const(1), relay.const(2), False),
    (relay.const(1), relay.const(1, "int64"), False),
    (X, Y, False),
    (relay.Function([X], relay.exp(X)), relay.Function([Y], relay.exp(Y)), True),
    (relay.Function([X], relay.exp(X)), relay.Function([X], relay.log(X)), False),
    (relay.Function([X], (e := relay.exp(X)) + e), relay.Function([X], relay.exp(X) + relay.exp(X)), False),
    (relay.Let(v, relay.const(1), v), relay.Let(w, relay.const(1), w), True),
    (relay.Let(v, relay.const(1), v), relay.Let(v, relay.const(2), v), False),
    (relay.If(v, v, v), relay.If(v, v, v), True),
    (relay.TupleGetItem(v, 0), relay.TupleGetItem(v, 1), False),
    (relay.RefCreate(v), relay.RefCreate(v), True),
    (relay.op.get("add"), relay.op.get("subtract"), False),
    (relay.nn.conv2d(v, v), relay.nn.conv2d(v, v, strides=(1, 1)), True),
    (relay.nn.conv2d(v, v, padding=(1, 1)), relay.nn.conv2d(v, v, padding=(1, 1)), True),
    (relay.nn.conv2d(v, v, padding=(1, 1)), relay.nn.conv2d(v, v), False),
    (relay.Match(relay.const(1), [relay.Clause(relay.PatternVar(v), v)]), relay.Match(relay.const(1), [relay.Clause(relay.PatternVar(w), w)]), True),
    (T((1, 2)), T((1, 2)), True),
    (T((1, 2)), T((1, 3)), False),
    (relay.TupleType([]), relay.TupleType([]), True),
    (relay.TupleType([T((1,))]), relay.TupleType([]), False),
    (relay.FuncType([], T(())), relay.FuncType([], T(())), True),
    (relay.FuncType([t], t, [t]), relay.FuncType([s], s, [s]), True),
    (relay.FuncType([t], t, [t]), relay.FuncType([s], relay.TypeVar("q"), []), False),
    (t, s, False),
    (module(), module(), True),
]


@pytest.mark.parametrize("one, other, want", EQUAL)
def test_equality(one, other, want):
    assert equal(one, other) == equal(other, one) == want and isinstance(hashed(one), int)
    assert not want or hashed(one) == hashed(other)
    if isinstance(one, relay.Type):
        assert (one == other) == want and not one == 3
    if want:
        tvm.ir.assert_structural_equal(one, other)
    else:
        with pytest.raises(ValueError):
            tvm.ir.assert_structural_equal(one, other)


def test_equality_up_to_names():
    assert equal(X, Y, map_free_vars=True) and hashed(X, map_free_vars=True) == hashed(Y, map_free_vars=True)


# ---- Functions


def test_a_function():
    count = convert(lambda *a: len(a))
    assert isinstance(count, tvm.runtime.PackedFunc) and (count(), count(1, "x", None), count(*range(20))) == (0, 3, 20)
    assert convert(count)(1) == 1 and convert(lambda: None)() is None
    with pytest.raises(TypeError):
        count(a=1)
    assert convert(lambda g, x: g(x) + 1)(lambda x: x * 2, 3) == 7
    assert convert(lambda: convert(lambda y: y + 1))()(1) == 2 and list(convert(lambda *xs: list(xs))(1, 2)) == [1, 2]
    assert list(convert(lambda a, d: (a[1], d["k"]))([1, 2], {"k": "v"})) == [2, "v"]


CROSS = [10, "s", None, 2.5, True, tvm.cpu(3), b"bb", bytearray(b"ab"), tvm.runtime.String("x"), np.int32(5), np.float32(0.5)]


@pytest.mark.parametrize("value", CROSS, ids=repr)
def test_values_that_cross_the_border(value):
    seen = []
    got = convert(lambda x: seen.append(x) or x)(value)
    assert got == value == seen[0]
    if isinstance(value, (bytes, bytearray)):
        assert bytes(got) == bytes(value)


def test_objects_that_cross_the_border():
    x = te.var("x")
    assert echo(x).same_as(x) and echo([x])[0].same_as(x) and echo({"a": x})["a"].same_as(x) and echo((1, 2))[1] == 2 and echo(tvm.ir.Range(0, 3)).extent == 3
    assert isinstance(echo(lambda x: x), tvm.runtime.PackedFunc)
    array = tvm.nd.array(np.ones((2, 3)))
    seen = []
    assert convert(lambda a: seen.append((type(a).__name__, a.shape)) or a)(array).numpy().sum() == 6 and seen == [("NDArray", (2, 3))]
    keep = convert(lambda x, n: x)
    assert keep(tir.Var("y", "int32")._move(), 1).name == "y"


def test_values_that_are_converted():
    assert [convert(x) for x in (True, 1.5, "a", None, tvm.cpu(0))] == [True, 1.5, "a", None, tvm.cpu(0)] and convert(10).value == 10
    with pytest.raises((ValueError, TypeError)):
        convert(object())


@pytest.mark.parametrize("error", [KeyError, ValueError])
def test_an_error_of_a_callback(error):
    def fails():
        raise error("its text")

    for call in (convert(fails), convert(lambda: convert(fails)())):
        for kind in (error, tvm.TVMError):
            with pytest.raises(kind, match="its text"):
                call()
    assert tvm.TVMError is tvm.error.TVMError and issubclass(tvm.error.DiagnosticError, tvm._ffi.base.TVMError)


def test_registered_functions():
    from baton._ffi import registry

    @tvm.register_func("house.f", override=True)
    def f(x):
        return x * 2

    @tvm.register_func
    def house_bare(x):
        return x

    assert tvm.get_global_func("house.f")(4) == 8 and "house.f" in registry.list_global_func_names() and tvm.get_global_func("house_bare")(3) == 3
    with pytest.raises((tvm.TVMError, ValueError)):
        tvm.register_func("house.f", lambda x: x)
    tvm.register_func("house.f", lambda x: x + 1, override=True)
    assert tvm.get_global_func("house.f")(1) == 2 and isinstance(tvm._ffi.get_global_func("house.f"), tvm.runtime.PackedFunc)
    for name in ("house.f", "house_bare"):
        registry.remove_global_func(name)
        assert tvm.get_global_func(name, True) is None and tvm.get_global_func(name, allow_missing=True) is None
        with pytest.raises(ValueError):
            tvm.get_global_func(name)
    tvm._ffi.register_func("house.again", lambda: 3, override=True)
    assert tvm.get_global_func("house.again")() == 3


# ---- Arrays


def test_an_array_of_numbers():
    x = np.random.default_rng(0).random((3, 4), "float32")
    a, b = tvm.nd.array(x), tvm.nd.empty((3, 4))
    assert not a.copyto(tvm.cpu(0)).same_as(a) and (a.copyto(b).numpy() == x).all() and (a.copyto(tvm.cpu(0)).numpy() == x).all()
    b[:] = 0
    assert (b.numpy() == 0).all() and (b.copyfrom(x).asnumpy() == x).all() and (tvm.nd.array(a).numpy() == x).all()
    assert a._create_view((4, 3)).shape == (4, 3) and a.handle is not None and tvm.nd.numpyasarray(x)[0] is not None and tvm.nd.cpu(0) == tvm.cpu()
    for again in (tvm.nd.from_dlpack(a.to_dlpack()), tvm.nd.from_dlpack(a)):
        assert (again.numpy() == x).all()
    with pytest.raises(ValueError):
        a.copyfrom(np.zeros((2, 2), "float32"))


ARRAYS = [
    ([[1, 2], [3, 4]], (2, 2), "int64"),
    (np.arange(3), (3,), "int64"),
    (np.array(1.0), (), "float64"),
    (np.zeros((0, 3), "float32"), (0, 3), "float32"),
    (np.arange(6).reshape(2, 3)[:, ::2], (2, 2), "int64"),
    (np.ones(2, bool), (2,), "bool"),
    (np.ones(2, "float16"), (2,), "float16"),
]


@pytest.mark.parametrize("value, shape, dtype", ARRAYS, ids=lambda v: str(v).replace("\n", ""))
def test_arrays_of_values(value, shape, dtype):
    made = tvm.nd.array(value, tvm.cpu())
    assert (made.shape, str(made.dtype), made.numpy().tolist()) == (shape, dtype, np.asarray(value).tolist())
    assert (tvm.nd.empty(shape, dtype, tvm.cpu(0)).shape, str(tvm.nd.empty(shape, dtype).dtype)) == (shape, dtype) and "NDArray" in repr(made)


def test_arrays_that_are_wrong():
    with pytest.raises((ValueError, tvm.TVMError)):
        tvm.nd.empty((2,), "nope")
    with pytest.raises((ValueError, TypeError, tvm.TVMError)):
        tvm.nd.array(np.array(["a"]))


def test_a_data_type():
    d = tvm.DataType("float32x4")
    assert (d.bits, d.lanes, d.type_code) == (32, 4, tvm.runtime.DataTypeCode.FLOAT) and d == "float32x4" and str(d) == "float32x4"
    assert tvm.DataType("handle").bits == 64 and tvm.runtime.DataTypeCode.UINT == 1 and str(tvm.DataType("bool")) == "bool"
    for wrong in ("float32q", "foo"):
        with pytest.raises(ValueError):
            tvm.DataType(wrong)


@pytest.mark.parametrize(("name", "number"), [("vpi", 9), ("ext_dev", 12), ("webgpu", 15), ("hexagon", 16), ("mtl", 8)])
def test_devices_by_name(name, number):
    assert getattr(tvm, name)(1).device_type == number and getattr(tvm.nd, name)().device_id == 0
    assert getattr(tvm.runtime, name)().device_type == number


def test_facts_of_the_library():
    import baton._ffi.base as base

    assert tvm.__version__ == base.__version__ and base.py_str(b"x") == "x" and base.c_str("x").value == b"x" and base.string_types == (str,)
    assert tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("cuda") and tvm.support.libinfo()["LLVM_VERSION"]
    assert callable(tvm._ffi._init_api) and tvm.runtime._ffi_api.__name__ and tvm.ir._ffi_api.__name__


def test_time_of_a_function():
    a = te.placeholder((4,))
    b = te.compute((4,), lambda i: a[i])
    made = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    result = made.time_evaluator(made.entry_name, tvm.cpu(), number=2, repeat=2, min_repeat_ms=0)(tvm.nd.empty((4,)), tvm.nd.empty((4,)))
    assert isinstance(result, tvm.runtime.module.BenchmarkResult) and len(result.results) == 2 and "mean" in str(result)


# ---- Modules


def test_functions_of_a_module():
    mod = module()
    view = mod.functions
    assert [k.name_hint for k in view.keys()] == ["main"] and view[mod.get_global_var("main")].same_as(mod["main"]) and mod.get_global_var("main") in view
    copied = tvm.IRModule(mod.functions, mod.type_definitions)
    copied["g"] = relay.Function([], relay.const(1))
    assert (len(mod.functions), len(copied.functions.items())) == (1, 2) and copied.get_global_var("g").name_hint == "g"
    func = mod["main"]
    mod["main"] = relay.Function(func.params, relay.log(func.body))
    assert mod["main"].body.op.name == "log"
    mod.update_func(mod.get_global_var("main"), func)
    assert mod["main"].same_as(func) and tvm.IRModule.from_expr(func)["main"].same_as(func)
    marked = mod.with_attr("k", "v")
    assert marked.get_attr("k") == marked.attrs["k"] == "v"
    with pytest.raises(IndexError):
        mod.get_global_vars()[9]
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        tvm.IRModule({"f": 3})
