# SPDX-License-Identifier: Apache-2.0
"""Graphs that Relay saved before 0.8: nodes as they stand in the file, what is read."""

import json

import pytest

import baton as tvm
from baton import relay, tir


def read(*nodes, root=1):
    """The root of a file of version 0.6; node 0 is the empty one."""
    return tvm.ir.load_json(json.dumps({"root": root, "nodes": [{"type_key": ""}, *nodes], "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))


def node(key, **attrs):
    return {"type_key": key, "attrs": attrs}


def integer(value):
    return node("IntImm", dtype="int32", value=str(value))


NAME = node("Variable", dtype="int32", name="in0")
ARRAY, SHAPE = {"type_key": "Array"}, {"type_key": "Array", "data": [5, 6]}
VAR = [node("relay.Var", _checked_type_="0", span="0", type_annotation="0", vid="2"), node("relay.Id", name_hint="a3"),
       node("relay.TensorType", dtype="float32", shape="4", span="0"), SHAPE, integer(16), integer(8)]  # fmt: skip
FUNC = [node("relay.FuncType", arg_types="2", ret_type="3", span="0", type_constraints="6", type_params="5"), ARRAY,
        node("relay.TupleType", fields="4", span="0"), ARRAY, ARRAY, ARRAY]  # fmt: skip
MAP = [
    {"type_key": "StrMap", "keys": ["z", "x"], "data": [2, 3]},
    integer(2),
    node("Max", a="4", b="2", dtype="int32"),
    node("Variable", dtype="int32", name="x"),
]
FILES = {
    "a variable of types": ([node("relay.TypeVar", kind="0", span="0", var="2"), NAME], tvm.ir.TypeVar, lambda t: t.name_hint == "in0"),
    "a global variable of types": ([node("relay.GlobalTypeVar", kind="0", span="0", var="2"), NAME], tvm.ir.GlobalTypeVar, lambda t: t.name_hint == "in0"),
    "a variable": (VAR, relay.Var, lambda v: v.name_hint == "a3"),
    "an unknown type": ([node("relay.IncompleteType", kind="0", span="0")], tvm.ir.IncompleteType, lambda t: t.kind == 0),
    "a type of functions": (FUNC, tvm.ir.FuncType, lambda f: f.ret_type == tvm.ir.TupleType([]) and len(f.arg_types) == 0),
    "a global variable": ([node("relay.GlobalVar", _checked_type_="0", name_hint="x", span="0")], tvm.ir.GlobalVar, lambda g: g.name_hint == "x"),
    "an operator": ([{"type_key": "relay.Op", "global_key": "nn.conv2d"}], tvm.ir.Op, lambda op: op == relay.op.get("nn.conv2d")),
    "a variable of loops": ([node("Variable", dtype="int32", name="x", span="0")], tir.Var, lambda v: (v.name, v.dtype) == ("x", "int32")),
    "a map by name": (MAP, tvm.ir.Map, lambda m: m["z"].value == 2 and isinstance(m["x"], tir.Max) and m["x"].b == m["z"]),
    "a tuple of types": ([node("relay.TupleType", fields="2", span="0"), {"type_key": "Array", "data": []}], tvm.ir.TupleType, lambda t: len(t.fields) == 0),
}


@pytest.mark.parametrize("nodes, kind, holds", FILES.values(), ids=FILES)
def test_file(nodes, kind, holds):
    found = read(*nodes)
    assert isinstance(found, kind) and holds(found)


def test_another_root():
    assert read(*VAR, root=3) == relay.TensorType((16, 8), "float32")
