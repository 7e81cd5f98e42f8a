# SPDX-License-Identifier: Apache-2.0
"""Short forms in which the tests of this folder say programs, run passes over them and read the results."""

import re

import baton as tvm
from baton import relay
from baton.relay.testing import run_opt_pass

VERSION = '#[version = "0.0.5"]\n'


def var(*shape, name="x", dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def tensor(*shape, dtype="float32"):
    return relay.TensorType(shape, dtype)


def function(body):
    """The function of the free variables of `body`."""
    return relay.Function(relay.analysis.free_vars(body), body)


def typed(expr):
    return optimized(expr, relay.transform.InferType())


def optimized(expr, *passes):
    """`expr`, a function or another expression, after each of the passes, whatever their levels."""
    for one in passes:
        expr = run_opt_pass(expr, one)
    return expr


def assert_same(got, wanted):
    """Asserts that two expressions are equal, up to names of variables, once both have types."""
    tvm.ir.assert_structural_equal(typed(got), typed(wanted), map_free_vars=True)


def parsed(text):
    """The module of `text`, in which `T[2,3]` is a type of float32 and `T[2,3]:int8` one of int8."""
    return tvm.parser.parse(VERSION + _types(text))


def program(params, body):
    """The function of parameters such as `x[2,3] w[3]:int8` and a body, where types may be short as in `parsed`."""
    listed = ", ".join("%" + p.replace("[", ": T[") for p in params.split())
    return tvm.parser.parse_expr(_types(f"fn ({listed}) {{ {body} }}"))


def variables(params):
    """Variables said as in `program`."""
    return list(program(params, "()").params)


def _types(text):
    def type_of(found):
        extents = "".join(e + ", " for e in found[1].split(",") if e)
        return f"Tensor[({extents[:-1] if extents.count(',') == 1 else extents[:-2]}), {found[2] or 'float32'}]"

    return re.sub(r"\bT\[([^\]]*)\](?::(\w+))?", type_of, text)


def visited(expr, kind=object):
    """The nodes of a kind in post-order."""
    found = []
    relay.analysis.post_order_visit(expr, lambda e: found.append(e) if isinstance(e, kind) else None)
    return found


def calls(expr, name=None):
    """The calls of operators in post-order, or those of one."""
    return [c for c in visited(expr, relay.Call) if isinstance(c.op, tvm.ir.Op) and name in (None, c.op.name)]


def names(expr):
    return [c.op.name for c in calls(expr)]


def kernels(expr):
    """The fused functions."""
    return [f for f in visited(expr, relay.Function) if f.attrs and "Primitive" in f.attrs.keys()]


def evaluated(program, *args, kind="debug", **options):
    """The result, or the list of results, of a function, expression or module in NumPy."""
    if not isinstance(program, tvm.IRModule):
        program = tvm.IRModule.from_expr(program if isinstance(program, relay.Function) else function(program))
    return numbers(relay.create_executor(kind, mod=program, device=tvm.cpu(), target="llvm").evaluate()(*args, **options))


def numbers(value):
    return value.numpy() if isinstance(value, tvm.nd.NDArray) else [numbers(v) for v in value]
