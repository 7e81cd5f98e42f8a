# SPDX-License-Identifier: Apache-2.0
"""Traversal of PrimFuncs."""

from .. import _core
from .._core import Array, Map, Object
from . import _ffi_api, op


def substitute(node, vmap):
    """A statement or expression with variables replaced. A value of another integer width is converted to the variable's."""
    return _ffi_api.Substitute(node, {var: _as_wide_as(value, var) for var, value in dict(vmap.items()).items()})


def _as_wide_as(value, var):
    if isinstance(value, (int, float)):
        return op.const(value, var.dtype)
    narrow = getattr(value, "dtype", var.dtype)
    if narrow == var.dtype or not narrow.startswith("int") or not var.dtype.startswith("int"):
        return value
    return op.const(value.value, var.dtype) if value.type_key == "IntImm" else op.cast(var.dtype, value)


def ir_transform(stmt, preorder, postorder, only_enable=None):
    """Rewrites a statement by functions.

    `preorder(node)` is called before the children are visited: its result replaces the node and is not visited; None continues with
    the children. `postorder(node)` gets the rebuilt node, and returns a replacement, or None to keep it. Either may be None.
    `only_enable`: type keys, as ["tir.For"], of the nodes that they are called for; all by default.
    """
    return _ffi_api.IRTransform(stmt, preorder, postorder, list(only_enable or []))


def _parts(node):
    described = _core.describe_type(node.type_key)
    for name, _, _, flags, _ in described[2] if described else ():
        if flags & 4:  # not part of the value
            continue
        value = node._field(name)
        for x in value if isinstance(value, Array) else (value.values() if isinstance(value, Map) else (value,)):
            if isinstance(x, Object):
                yield x


def post_order_visit(stmt, fvisit):
    """Calls `fvisit` on each statement and expression, children first, once for each node."""
    from ..ir import PrimExpr
    from .stmt import Stmt

    seen, stack = set(), [(stmt, False)]
    while stack:
        node, done = stack.pop()
        if done:
            fvisit(node)
        elif node.handle not in seen:
            seen.add(node.handle)
            stack.append((node, True))
            stack += [(p, False) for p in reversed([p for p in _parts(node) if isinstance(p, (Stmt, PrimExpr))])]
