# SPDX-License-Identifier: Apache-2.0
"""Regions of a program as graphs in Relay's JSON schema, for accelerators that read it: `nodes`, `arg_nodes`, `heads`, `node_row_ptr`."""

import json

from .. import error as errors
from ..ir import Op, TensorType, TupleType
from ..relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from ..relay.function import Function
from ..tir import IntImm


def graph_of(func):
    """(the graph as text, its constants in the order of their nodes) of a Relay function with inferred types.

    A call of an operator is a node of kind `kernel` with its attributes as texts; a call of a composite is one node of the composite's name,
    with the attributes of the calls in it and their constants behind its arguments. Raises UnsupportedError for other programs.
    """
    writer = _Writer()
    for p in func.params:
        writer.values[p] = writer.add("input", p.name_hint, _tensors(p.checked_type, p.name_hint), [])
    heads = writer.entries(func.body)
    args = [i for i, node in enumerate(writer.nodes) if node["op"] != "kernel"]
    rows = [0]
    for node in writer.nodes:
        rows.append(rows[-1] + len(node["attrs"]["shape"][0]))
    text = json.dumps({"nodes": writer.nodes, "arg_nodes": args, "heads": heads, "node_row_ptr": rows})
    return text, writer.constants


def _tensors(kind, what):
    kinds = list(kind.fields) if isinstance(kind, TupleType) else [kind]
    for t in kinds:
        if not isinstance(t, TensorType) or not all(isinstance(d, (int, IntImm)) for d in t.shape):
            raise errors.UnsupportedError(f"`{what}` is of type {t}; accelerators that read JSON take tensors of known shapes")
    return kinds


def _texts(value):
    """An attribute as texts; None has none."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
        return [t for v in value for t in _texts(v)]
    return [str(int(value)) if isinstance(value, bool) else str(value)]


def _attributes(calls):
    """Attributes of calls as the schema has them; of one that several have, the first."""
    out = {}
    for call in calls:
        if call.attrs is not None:
            for key in call.attrs.keys():
                out.setdefault(str(key), [_texts(call.attrs[key])])
    return out


class _Writer:
    def __init__(self):
        self.nodes, self.constants, self.values = [], [], {}

    def add(self, op, name, kinds, inputs, **attrs):
        """Entries of a new node's outputs."""
        own = {"dtype": [[str(t.dtype) for t in kinds]], "shape": [[[int(d) for d in t.shape] for t in kinds]]}
        node = {"op": op, "name": str(name), "attrs": {**attrs, **own}}
        if op == "kernel":
            node["inputs"] = inputs
            node["attrs"].update(num_inputs=str(len(inputs)), num_outputs=str(len(kinds)))
        self.nodes.append(node)
        return [[len(self.nodes) - 1, i, 0] for i in range(len(kinds))]

    def entries(self, expr):
        """Entries of an expression's value, which tuples may have several of; chains may be long."""
        work = [(expr, False)]
        while work:
            e, ready = work.pop()
            if e in self.values:
                continue
            if not ready:
                work.append((e, True))
                work.extend((child, False) for child in reversed(self.children(e)))
            else:
                self.values[e] = self.made(e)
        return self.values[expr]

    def children(self, e):
        if isinstance(e, Call):
            return list(e.args)
        if isinstance(e, Tuple):
            return list(e.fields)
        if isinstance(e, TupleGetItem):
            return [e.tuple_value]
        if isinstance(e, Let):
            return [e.value, e.body] if e.var in self.values else [e.value]
        return []

    def made(self, e):
        if isinstance(e, Constant):
            self.constants.append(e.data)
            return self.add("const", f"const_{len(self.constants) - 1}", _tensors(e.checked_type, "a constant"), [])
        if isinstance(e, Tuple):
            return [x for f in e.fields for x in self.values[f]]
        if isinstance(e, TupleGetItem):
            return [self.values[e.tuple_value][e.index]]
        if isinstance(e, Let):
            self.values[e.var] = self.values[e.value]
            return self.entries(e.body)
        if isinstance(e, Call):
            inputs = [x for a in e.args for x in self.values[a]]
            if isinstance(e.op, Op):
                return self.add("kernel", e.op.name, _tensors(e.checked_type, e.op.name), inputs, **_attributes([e]))
            if isinstance(e.op, Function) and e.op.attrs and "Composite" in e.op.attrs.keys():
                return self.composite(e, inputs)
        raise errors.UnsupportedError(f"an accelerator that reads JSON takes calls of operators and of composites, not {type(e).__name__} {_name_of(e)}")

    def composite(self, call, inputs):
        name = str(call.op.attrs["Composite"])
        calls, constants, seen, work = [], [], set(), [call.op.body]
        while work:
            e = work.pop()
            if e in seen:
                continue
            seen.add(e)
            if isinstance(e, Constant):
                constants.append(e)
            elif isinstance(e, Call):
                calls.append(e)
            work.extend(reversed(self.children(e)))
        inputs = inputs + [x for c in reversed(constants) for x in self.entries(c)]
        return self.add("kernel", name, _tensors(call.checked_type, name), inputs, **_attributes(calls))


def _name_of(e):
    return f"`{e.name_hint}`" if isinstance(e, Var) else ""


__all__ = ["graph_of"]
