# SPDX-License-Identifier: Apache-2.0
"""The part of a buffer that a statement touches."""

from .._core import convert
from .._ffi import register_func
from ..ir import Range
from ..tir import BufferLoad, BufferStore, For, LetStmt
from ..tir.stmt_functor import _parts
from .analyzer import Analyzer
from .int_set import IntervalSet


def domain_touched(stmt, buffer, consider_loads=True, consider_stores=True):
    """The smallest Range of each dimension of `buffer` that the loads, or the stores, or both, of a statement are known to keep within."""
    found, analyzer = [], Analyzer()
    todo = [(stmt, {})]
    while todo:
        node, domains = todo.pop()
        wanted = isinstance(node, BufferLoad) and consider_loads or isinstance(node, BufferStore) and consider_stores
        if wanted and node.buffer.same_as(buffer):
            found.append([analyzer.int_set(i, domains) for i in node.indices])
        inner = domains
        if isinstance(node, For):
            low, high = (analyzer.int_set(e, domains) for e in (node.min, node.min + node.extent - 1))
            inner = {**domains, node.loop_var: IntervalSet(low.min_value, high.max_value)}
        elif isinstance(node, LetStmt):
            inner = {**domains, node.var: analyzer.int_set(node.value, domains)}
        todo += [(part, inner) for part in _parts(node)]
    return convert([_joined(sets, analyzer) for sets in zip(*found, strict=True)])


def _joined(sets, analyzer):
    from ..tir import op

    low, high = sets[0].min_value, sets[0].max_value
    for s in sets[1:]:
        low, high = op.min(low, s.min_value), op.max(high, s.max_value)
    low, high = analyzer.simplify(low), analyzer.simplify(high)
    return Range.from_min_extent(low, analyzer.simplify(high - low + 1))


register_func("arith.DomainTouched", domain_touched, override=True)

__all__ = ["domain_touched"]
