# SPDX-License-Identifier: Apache-2.0
"""Regions of a program between annotations."""

from ..relay.analysis import post_order_visit
from ..relay.expr import Call


class AnnotatedRegion:
    """The expressions between annotations that begin and end it, these included: `nodes`, the ends (`rets`) and the begins (`args`)."""

    def __init__(self, number):
        self.id, self.nodes, self.args, self.rets = number, [], [], []

    @property
    def target(self):
        """The compiler that the annotations name; "" for those that name none."""
        return str(getattr((self.args or self.rets)[0].attrs, "compiler", "")) if self.args or self.rets else ""

    ins = property(lambda self: self.args)
    outs = property(lambda self: self.rets)

    def __contains__(self, expr):
        return any(expr.same_as(node) for node in self.nodes)


class AnnotatedRegionSet:
    """The regions between two operators, in order of the program.

    regions = relay.analysis.AnnotatedRegionSet(func, relay.op.get("annotation.compiler_begin"), relay.op.get("annotation.compiler_end"))
    regions.get_region(call).nodes
    """

    def __init__(self, expr, region_begin_op, region_end_op):
        self._region = {}  # address of a node -> its region
        self._made = 0

        def visit(node):
            is_call = isinstance(node, Call)
            if is_call and node.op == region_begin_op:
                self._add(self._new(), node).args.append(node)
                return
            if is_call and node.op == region_end_op:
                region = self._region.get(node.args[0].handle)
                if region is not None:
                    self._add(region, node).rets.append(node)
                return
            inputs = [self._region[x.handle] for x in self._inputs(node) if self._is_inside(x, region_end_op)]
            if inputs:
                self._add(self._merged(inputs), node)

        post_order_visit(expr, visit)

    @staticmethod
    def _inputs(node):
        for name in ("args", "fields"):
            yield from getattr(node, name, None) or ()
        for name in ("tuple_value", "cond", "true_branch", "false_branch", "value", "body", "data"):
            x = getattr(node, name, None)
            if hasattr(x, "checked_type_") or hasattr(x, "span"):
                yield x

    def _is_inside(self, expr, end):
        return expr.handle in self._region and not (isinstance(expr, Call) and expr.op == end)

    def _new(self):
        self._made += 1
        return AnnotatedRegion(self._made - 1)

    def _add(self, region, node):
        region.nodes.append(node)
        self._region[node.handle] = region
        return region

    def _merged(self, regions):
        first, *others = dict.fromkeys(regions)
        for other in others:
            for node in other.nodes:
                self._add(first, node)
            first.args += other.args
            first.rets += other.rets
        return first

    def __iter__(self):
        return iter(sorted(dict.fromkeys(self._region.values()), key=lambda region: region.id))

    def __len__(self):
        return len(list(iter(self)))

    def get_region(self, expr):
        """The region of an expression; None if it is in none."""
        return self._region.get(expr.handle)


__all__ = ["AnnotatedRegion", "AnnotatedRegionSet"]
