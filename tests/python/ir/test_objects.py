# SPDX-License-Identifier: Apache-2.0
"""Classes made from reflection, fields, modules, equality, JSON (IR, RF, AT)."""

import pickle

import numpy as np
import pytest

import baton as tvm
from baton import relay


@pytest.fixture
def call():
    x = relay.var("x", shape=(2, 3))
    return relay.nn.bias_add(x, relay.var("b", shape=(3,)), axis=1)


def test_fields_are_attributes(call):  # IR-001, RF-004, RF-007
    assert call.op.name == "nn.bias_add" and len(call.args) == 2 and call.args[0].name_hint == "x"
    assert call.args[0].type_annotation.shape == [2, 3] or [int(d) for d in call.args[0].type_annotation.shape] == [2, 3]
    assert {"op", "args", "attrs", "type_args", "span"} <= set(dir(call))
    with pytest.raises(AttributeError, match="`relay.Call` has no attribute `opp`; it has .*args"):
        _ = call.opp
    with pytest.raises(AttributeError, match="objects are immutable"):
        call.op = None
    assert relay.Call.op.__doc__.startswith("RelayExpr: ") and relay.Call.args.__name__ == "args"


def test_field_of_another_class_is_refused(call):
    with pytest.raises(TypeError, match="field `var` of `relay.Let` was asked of a `relay.Call`"):
        relay.Let.var.__get__(call)
    with pytest.raises(TypeError, match="was asked of a int"):
        relay.Let.var.__get__(5)


def test_classes_without_a_line_of_python():  # RF-005, RF-017
    clip = relay.clip(relay.var("x"), 0, 1).attrs
    assert type(clip).__name__ == "ClipAttrs" and isinstance(clip, tvm.ir.Attrs) and type(clip).__doc__
    assert clip.a_min == 0.0 and clip["a_max"] == 1.0 and "a_min" in clip and dict(clip.items())["a_max"] == 1.0


def test_attrs_by_key():  # AT-016, RF-018
    attrs = tvm.ir.make_node("relay.attrs.BiasAddAttrs", axis=2)
    assert attrs.axis == 2 and attrs.get_int("axis") == 2 and attrs.get("nothing") is None
    with pytest.raises(AttributeError, match="it has axis"):
        tvm.ir.make_node("relay.attrs.BiasAddAttrs", axes=2)
    with pytest.raises(TypeError, match="axis"):
        tvm.ir.make_node("relay.attrs.BiasAddAttrs", axis="two")
    with pytest.raises(TypeError, match="no type with key"):
        tvm.ir.make_node("relay.attrs.NoSuchAttrs")


def test_construction_by_field():
    with pytest.raises(TypeError, match="needs the field `combiner`"):
        tvm._ffi.generated_class("tir.Reduce")("int64")
    with pytest.raises(TypeError, match="abstract"):
        tvm.ir.BaseExpr()
    span = tvm.ir.Span("file", 1, 2, 3, 4)
    assert (span.source_name.name, span.line, span.end_line, span.column, span.end_column) == ("file", 1, 2, 3, 4)
    assert relay.var("x", span=span).span.same_as(span)
    with pytest.raises(TypeError, match="has no field `nothing`"):
        tvm.ir.SourceName(nothing=1)
    with pytest.raises(TypeError, match="twice"):
        tvm.ir.SourceName("a", name="b")


def test_types():  # IR-006
    t = relay.TensorType((10,), "float32")
    assert t.dtype == "float32" and t.concrete_shape == (10,) and t == relay.TensorType((10,)) != relay.TensorType((11,))
    assert hash(t) == hash(relay.TensorType((10,)))
    a = relay.TypeVar("a")
    f = relay.FuncType([a, t], a, [a])
    assert f.ret_type.same_as(a) and f.type_params == [a] and len(f.arg_types) == 2
    assert relay.TupleType([t, f]).fields[0] == t and relay.scalar_type("int32").shape == []
    assert relay.RefType(t).value == t and relay.IncompleteType() != relay.IncompleteType()
    dynamic = relay.TensorType((relay.Any(), 3))
    assert relay.ty.is_dynamic(dynamic) and not relay.ty.is_dynamic(t) and relay.ty.type_has_any(dynamic)
    with pytest.raises(TypeError):
        _ = dynamic.concrete_shape


def test_module():  # IR-003, IR-004, IR-005
    empty = tvm.IRModule()
    assert len(empty) == 0 and empty.get_global_vars() == [] and bool(empty)
    x = relay.var("x", shape=(3,))
    f, g = relay.Function([x], relay.abs(x)), relay.Function([x], relay.log(x))
    mod = tvm.IRModule({relay.GlobalVar("f"): f, "g": g})
    assert mod["f"].same_as(f) and mod[mod.get_global_var("g")].same_as(g) and "f" in mod and "h" not in mod
    other = tvm.IRModule({"f": g})
    mod.update(other)
    assert mod["f"].same_as(g)
    mod["h"] = relay.abs(x)
    assert isinstance(mod["h"], relay.Function) and mod["h"].params == [x]
    copy = mod.shallow_copy()
    del copy["h"]
    assert "h" in mod and "h" not in copy
    with pytest.raises(tvm.Error, match="nothing.*f.*g"):
        mod.get_global_var("nothing")
    assert mod.with_attr("a", 1).get_attr("a") == 1 and mod.get_attr("a") is None
    assert [v.name_hint for v in mod] == ["f", "g", "h"]
    assert tvm.IRModule.from_expr(relay.abs(x))["main"].params == [x]


def test_function_attributes():  # IR-014
    x = relay.var("x")
    f = relay.Function([x], x).with_attr("SkipOptimization", 1).with_attr({"a": "b", "c": [1, 2]})
    assert f.get_attr("SkipOptimization") == 1 and f.has_attr("a") and not f.has_attr("b") and f.attrs["c"] == [1, 2]
    assert f.attrs.a == "b" and f.get_attr("zzz", 5) == 5
    assert relay.Function([x], x, attrs={"k": 1}).get_attr("k") == 1
    with pytest.raises(AttributeError, match="has no attribute `zzz`"):
        _ = f.attrs.zzz


def test_equality_and_hash(call):  # RF-014, RF-015
    def f(name, op=relay.abs):
        x = relay.var(name, shape=(3,))
        return relay.Function([x], op(x))

    assert tvm.ir.structural_equal(f("x"), f("y")) and tvm.ir.structural_hash(f("x")) == tvm.ir.structural_hash(f("y"))
    assert not tvm.ir.structural_equal(f("x"), f("x", relay.log))
    with pytest.raises(ValueError, match="body"):
        tvm.ir.assert_structural_equal(f("x"), f("x", relay.log))
    tvm.ir.assert_structural_equal(f("x"), f("y"))
    a, b = relay.var("a"), relay.var("a")
    assert not tvm.ir.structural_equal(a, b) and tvm.ir.structural_equal(a, b, map_free_vars=True)
    assert tvm.ir.structural_equal([1, 2], [1, 2]) and tvm.ir.structural_equal("a", "a") and not tvm.ir.structural_equal(1, 2)


def test_json_and_pickle(call):  # RF-008, RF-009, RF-010, RF-011
    data = np.random.default_rng(0).random((2, 2)).astype("float32")
    f = relay.Function(relay.analysis.free_vars(call), relay.add(call, relay.const(data)))
    again = tvm.ir.load_json(tvm.ir.save_json(f))
    tvm.ir.assert_structural_equal(f, again)
    assert isinstance(again, relay.Function)
    tvm.ir.assert_structural_equal(f, pickle.loads(pickle.dumps(f)))
    shared = tvm.ir.load_json(tvm.ir.save_json(relay.Tuple([call, call])))
    assert shared.fields[0].same_as(shared.fields[1])
    text = tvm.ir.save_json(f)
    for broken in ("", "{", "[]", text[:-5], text.replace("relay.Call", "relay.Cull")):
        with pytest.raises(tvm.Error):
            tvm.ir.load_json(broken)


def test_operators():  # IR-013
    add = tvm.ir.Op.get("add")
    assert add.same_as(relay.op.get("add")) and add == tvm.ir.Op.get("add")
    assert add.get_attr("TOpPattern") == relay.op.OpPattern.BROADCAST and add.get_attr("nothing") is None
    with pytest.raises(tvm.Error, match="nn.conv2d|nn.relu"):
        tvm.ir.Op.get("nn.rellu")
    tvm.ir.register_op_attr("add", "test.attr", 5)
    assert add.get_attr("test.attr") == 5
    add.reset_attr("test.attr")
    assert not add.has_attr("test.attr")

    @tvm.ir.register_op_attr("add", "test.func")
    def f(x):
        return x

    assert add.get_attr("test.func")(3) == 3 and f(4) == 4
    with relay.testing.TempOpAttr("add", "test.func", 1):
        assert add.get_attr("test.func") == 1
    assert add.get_attr("test.func")(3) == 3
    with pytest.raises(TypeError, match="Op.get"):
        tvm.ir.Op()
    assert "add" in relay.op.list_op_names()


def test_text_of_everything(call):  # RF-016
    head, x = '#[version = "0.0.5"]\n', "free_var %x: Tensor[(2, 3), float32];\n"
    info = tvm.transform.PassInfo(1, "a", ["FoldConstant"])
    for value, text in [
        (call, f"{head}{x}free_var %b: Tensor[(3), float32];\nnn.bias_add(%x, %b)\n"),
        (call.op, "nn.bias_add"),
        (tvm.ir.make_node("relay.attrs.BiasAddAttrs", axis=2), "relay.attrs.BiasAddAttrs(axis=2)"),
        (call.args[0], f"{head}{x}%x\n"),
        (relay.TensorType((3,)), "Tensor[(3), float32]"),
        (tvm.IRModule(), head),
        (tvm.IRModule.from_expr(relay.const(1)), f"{head}def @main() {{\n  1\n}}\n"),
        (relay.const(1.5), f"{head}1.5f\n"),
    ]:
        assert repr(value) == str(value) == text
    assert repr(info) == str(info) and str(info).startswith('transform.PassInfo(opt_level=1, name="a", required=["FoldConstant"]')
    assert str(tvm.transform.PassContext(opt_level=3)).startswith("transform.PassContext(opt_level=3, required_pass=[], ")


def test_objects_from_cpp_without_importing_relay():
    import subprocess
    import sys

    code = """
import baton
relu = baton.get_global_func("ir.GetOp")("nn.relu")
assert type(relu).__module__ == "baton.ir.op", type(relu)
x = baton.ir.make_node("relay.Var", vid=baton.ir.make_node("relay.Id", name_hint="x"), type_annotation=None)
assert x.name_hint == "x" and (x + x).op.name == "add"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_target():
    t = tvm.target.Target("llvm -mcpu=skylake")
    assert t.kind == "llvm" and t.kind.name == "llvm" and t.mcpu == "skylake" and "skylake" in str(t)
    assert tvm.target.Target({"kind": "llvm", "mcpu": "skylake"}) == t == tvm.target.Target(t)
    with t:
        assert tvm.target.Target.current() == t
        with tvm.target.Target("llvm"):
            assert tvm.target.Target.current() != t
    assert tvm.target.Target.current() is None
    with pytest.raises(ValueError, match="no target"):
        tvm.target.Target.current(allow_none=False)
    with pytest.raises(tvm.Error, match="llvmm"):
        tvm.target.Target("llvmm")


def test_env_func():
    """A global function as a node: called, compared, saved and loaded by its name."""
    tvm.register_func("test_objects.double", lambda x: 2 * x, override=True)
    f = tvm.ir.EnvFunc.get("test_objects.double")
    assert isinstance(f, tvm.ir.EnvFunc) and f.name == "test_objects.double" and f(4) == 8
    back = tvm.ir.load_json(tvm.ir.save_json(f))
    assert tvm.ir.structural_equal(f, back) and back(3) == 6 and back.func(1) == 2
    # It stands for the name: a function registered anew is called from then on.
    tvm.register_func("test_objects.double", lambda x: x + x + 1, override=True)
    assert f(4) == 9
    with pytest.raises(ValueError, match="test_objects.nobody"):
        tvm.ir.EnvFunc.get("test_objects.nobody")
