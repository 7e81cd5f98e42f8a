# SPDX-License-Identifier: Apache-2.0
"""Reads of expressions."""

from ..ir import make_node
from ..tir.stmt_functor import post_order_visit


def loads(exprs):
    """The elements of tensors that expressions read, once each."""
    found = []

    def visit(node):
        if node.type_key == "tir.ProducerLoad":
            found.append(node)

    for e in exprs:
        post_order_visit(e, visit)
    return found


def parts(body):
    """Expressions of a body: for a reduction its sources and its condition."""
    out = []
    for e in body:
        if e.type_key == "tir.Reduce":
            out += [*e.source, *([e.condition] if e.condition is not None else [])]
        else:
            out.append(e)
    return out


def tensors_read(body):
    """Tensors that the expressions of a body read, in order, once each."""
    out = []
    for load in loads(parts(body)):
        if not any(load.producer == t for t in out):
            out.append(load.producer)
    return out


def reduce_of(combiner, source, axis, condition, value_index=0):
    """A reduction as an expression."""
    return make_node(
        "tir.Reduce", dtype=str(source[value_index].dtype), combiner=combiner, source=source, axis=axis, condition=condition, value_index=value_index
    )
