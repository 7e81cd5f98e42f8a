# SPDX-License-Identifier: Apache-2.0
"""Files that Relay's users saved: the published graph-of-nodes form is read (RF-009, issue 4 point 3)."""

import base64
import json
import struct

import numpy as np
import pytest

import baton as tvm
from baton import relay


class Graph:
    """Writes that form: each node a type key and its fields as text, references as numbers of nodes, 0 is null."""

    def __init__(self):
        self.nodes, self.arrays = [{"type_key": ""}], []

    def add(self, key, **attrs):
        self.nodes.append({"type_key": key, "attrs": {k: str(v) for k, v in attrs.items()}})
        return len(self.nodes) - 1

    def node(self, **members):
        self.nodes.append(members)
        return len(self.nodes) - 1

    def array(self, *items):
        return self.node(type_key="Array", data=list(items))

    def string(self, text):
        return self.node(type_key="runtime.String", repr_str=text)

    def op(self, name):
        return self.node(type_key="Op", repr_str=name)

    def int(self, value, dtype="int32"):
        return self.add("IntImm", dtype=dtype, span=0, value=value)

    def type(self, shape, dtype="float32"):
        return self.add("relay.TensorType", dtype=dtype, shape=self.array(*[self.int(d) for d in shape]), span=0)

    def var(self, name, shape):
        return self.add(
            "relay.Var", _checked_type_=0, span=0, type_annotation=self.type(shape), vid=self.add("relay.Id", name_hint=self.string(name)), virtual_device_=0
        )

    def constant(self, value):
        kind = {"f": 2, "i": 0, "u": 1}[value.dtype.kind]
        head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, value.ndim, kind, value.dtype.itemsize * 8, 1)
        body = struct.pack(f"<{value.ndim}q", *value.shape) + struct.pack("<q", value.nbytes) + value.tobytes()
        self.arrays.append(base64.b64encode(head + body).decode())
        return self.add("relay.Constant", _checked_type_=0, data=len(self.arrays) - 1, span=0)

    def call(self, op, args, attrs=0):
        return self.add("relay.Call", _checked_type_=0, args=self.array(*args), attrs=attrs, op=self.op(op), span=0, type_args=self.array())

    def function(self, params, body):
        return self.add("relay.Function", _checked_type_=0, attrs=0, body=body, params=self.array(*params), ret_type=0, span=0, type_params=self.array())

    def text(self, root):
        return json.dumps({"root": root, "nodes": self.nodes, "b64ndarrays": self.arrays, "attrs": {"tvm_version": "0.8.0"}})


def test_function_with_constant_and_attributes():
    g = Graph()
    x = g.var("x", (1, 8, 6, 6))
    weight = np.arange(4 * 8 * 3 * 3, dtype="float32").reshape(4, 8, 3, 3)
    conv = g.add(
        "relay.attrs.Conv2DAttrs",
        strides=g.array(g.int(1), g.int(1)),
        padding=g.array(*[g.int(1)] * 4),
        dilation=g.array(g.int(1), g.int(1)),
        groups=1,
        channels=g.int(4),
        kernel_size=g.array(g.int(3), g.int(3)),
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
        auto_scheduler_rewritten_layout="",
    )
    body = g.call("nn.relu", [g.call("nn.conv2d", [x, g.constant(weight)], conv)])
    f = tvm.ir.load_json(g.text(g.function([x], body)))
    v = relay.var("x", shape=(1, 8, 6, 6))
    want = relay.Function([v], relay.nn.relu(relay.nn.conv2d(v, relay.const(weight), padding=(1, 1, 1, 1), channels=4, kernel_size=(3, 3))))
    tvm.ir.assert_structural_equal(f, want)
    assert f.body.args[0].args[1].data.numpy().tobytes() == weight.tobytes()
    assert relay.transform.InferType()(tvm.IRModule.from_expr(f))["main"].ret_type.concrete_shape == (1, 4, 6, 6)


def test_module_with_maps_and_sharing():
    g = Graph()
    x = g.var("x", (2,))
    y = g.call("exp", [x])
    f = g.function([x], g.call("add", [y, y]))
    main = g.add("GlobalVar", _checked_type_=0, name_hint=g.string("main"), span=0)
    mod = g.add(
        "IRModule",
        attrs=0,
        functions=g.node(type_key="Map", data=[main, f]),
        global_var_map_=g.node(type_key="Map", keys=["main"], data=[main]),
        global_type_var_map_=g.node(type_key="Map"),
        source_map=0,
        type_definitions=g.node(type_key="Map"),
    )
    loaded = tvm.ir.load_json(g.text(mod))
    body = loaded["main"].body
    assert body.args[0].same_as(body.args[1]) and loaded.get_global_var("main").name_hint == "main"
    v = relay.var("x", shape=(2,))
    e = relay.exp(v)
    tvm.ir.assert_structural_equal(loaded, tvm.IRModule.from_expr(relay.Function([v], relay.add(e, e))))


def test_nodes_in_any_order_and_a_hundred_thousand_deep():
    g = Graph()
    root = g.add("relay.Function", _checked_type_=0, attrs=0, body=0, params=0, ret_type=0, span=0, type_params=0)
    x = g.var("x", (2,))
    e, op, none = x, g.op("negative"), g.array()
    for _ in range(100_000):
        e = g.add("relay.Call", _checked_type_=0, args=g.array(e), attrs=0, op=op, span=0, type_args=none)
    g.nodes[root]["attrs"].update(body=str(e), params=str(g.array(x)))
    assert tvm.ir.load_json(g.text(root)).body.op.name == "negative"


def mutated(change):
    g = Graph()
    x = g.var("x", (2,))
    f = g.function([x], g.call("add", [x, g.constant(np.ones(2, "float32"))]))
    file = json.loads(g.text(f))
    call = next(n for n in file["nodes"] if n["type_key"] == "relay.Call")
    change(file, call)
    return json.dumps(file)


@pytest.mark.parametrize(
    "what, change, message",
    [
        ("cycle", lambda f, c: f["nodes"].__setitem__(int(c["attrs"]["args"]), {"type_key": "Array", "data": [f["nodes"].index(c)]}), "contains itself"),
        ("no such node", lambda f, c: c["attrs"].update(op="999"), "no node 999"),
        ("negative", lambda f, c: c["attrs"].update(op="-1"), "no node -1"),
        ("no number", lambda f, c: c["attrs"].update(op="x"), "must be the number of a node"),
        ("wrong kind", lambda f, c: c["attrs"].update(args=c["attrs"]["op"]), "expected Array"),
        ("hole", lambda f, c: c["attrs"].update(op="0"), "needs the field `op`"),
        ("unknown field", lambda f, c: c["attrs"].update(colour="red"), "no field `colour`"),
        ("unknown type", lambda f, c: c.update(type_key="relay.Nope"), "no type `relay.Nope`"),
        ("unknown operator", lambda f, c: next(n for n in f["nodes"] if n["type_key"] == "Op").update(repr_str="no.such"), "no operator"),
        ("root", lambda f, c: f.update(root=10**6), "no node"),
        ("base64", lambda f, c: f.update(b64ndarrays=["???"]), "base64"),
        ("array", lambda f, c: f.update(b64ndarrays=[f["b64ndarrays"][0][:-8]]), "elements|size"),
        ("no arrays", lambda f, c: f.update(b64ndarrays=[]), "no array 0"),
    ],
)  # RF-011
def test_broken(what, change, message):
    with pytest.raises(tvm.Error, match=message):
        tvm.ir.load_json(mutated(change))


def test_cut_anywhere_is_an_error():
    text = mutated(lambda f, c: None)
    tvm.ir.load_json(text)
    for i in range(0, len(text), 7):
        with pytest.raises(tvm.Error):
            tvm.ir.load_json(text[:i])


def test_a_saved_type_that_is_wrong_is_not_believed():
    """The nodes carry what inference found when they were saved; here one says (3,) of an addition of (2,)."""

    def lie(file, call):
        file["nodes"] += [{"type_key": "Array", "data": [1]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "3"}}]
        n = len(file["nodes"])
        file["nodes"][n - 2]["data"] = [n - 1]
        file["nodes"].append({"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": str(n - 2), "span": "0"}})
        call["attrs"].update(_checked_type_=str(n))

    f = tvm.ir.load_json(mutated(lie))
    assert relay.transform.InferType()(tvm.IRModule.from_expr(f))["main"].body.checked_type.concrete_shape == (2,)


# ---- Files of 0.6: types of the IR stand below relay, operators are known by a key, names are texts


def old(text, **changes):
    file = json.loads(text)
    for node in file["nodes"]:
        key = node["type_key"]
        if "repr_str" in node and key == "Op":
            node["type_key"], node["global_key"] = "relay.Op", node.pop("repr_str")
        elif key in ("IRModule", "GlobalVar", "TypeVar", "GlobalTypeVar", "FuncType", "TupleType"):
            node["type_key"] = {"IRModule": "relay.Module"}.get(key, "relay." + key)
        attrs = node.get("attrs", {})
        if "name_hint" in attrs:
            attrs["name_hint"] = file["nodes"][int(attrs["name_hint"])]["repr_str"]
        attrs.pop("virtual_device_", None)
    file["attrs"]["tvm_version"] = "0.6.0"
    return json.dumps(file)


def test_a_module_of_0_6():
    g = Graph()
    x = g.var("x", (2,))
    f = g.function([x], g.call("add", [x, g.constant(np.ones(2, "float32"))]))
    main = g.add("GlobalVar", _checked_type_=0, name_hint=g.string("main"), span=0)
    mod = g.add(
        "IRModule",
        functions=g.node(type_key="Map", data=[main, f]),
        global_var_map_=g.node(type_key="StrMap", keys=["main"], data=[main]),
        global_type_var_map_=g.node(type_key="StrMap"),
        type_definitions=g.node(type_key="Map"),
    )
    loaded = tvm.ir.load_json(old(g.text(mod)))
    v = relay.var("x", shape=(2,))
    tvm.ir.assert_structural_equal(loaded, tvm.IRModule.from_expr(relay.Function([v], v + relay.const(np.ones(2, "float32")))))
    assert loaded["main"].params[0].name_hint == "x"


def test_variables_of_types_and_sizes_of_0_6():
    g = Graph()
    var = g.add("TypeVar", kind=0, span=0, var=g.add("Variable", dtype="int32", name="in0"))
    loaded = tvm.ir.load_json(old(g.text(var)))
    assert isinstance(loaded, relay.TypeVar) and loaded.name_hint == "in0"
    size = tvm.ir.load_json(old(g.text(g.add("Variable", dtype="int32", name="n"))))
    assert isinstance(size, tvm.tir.Var) and size.name_hint == "n" and str(size.dtype) == "int32"
    whole = g.add("relay.FuncType", arg_types=g.array(g.type((3,))), ret_type=g.type((3,)), type_params=g.array(), type_constraints=g.array(), span=0)
    assert tvm.ir.load_json(old(g.text(whole))) == relay.FuncType([relay.TensorType((3,))], relay.TensorType((3,)))
