# SPDX-License-Identifier: Apache-2.0
"""The graph of a fused function and where its values lie, as programs of Relay's graph executor read them.

Such a program looks for names, shapes and storage. The compiler plans memory itself, kernel by kernel: this plan is told, not run.
"""

import bisect
import json
import re

from ...ir import Op
from ...runtime.data_type import DataType
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function
from ..ty import TensorType, TupleType

# A block of memory serves a value if it is at most so many times larger or smaller.
_REACH = 16
_VIEW = 3  # the value of `TValues` of operators that number the elements of a tensor in another way


class UnsupportedGraph(ValueError):
    """The function is more than a graph of calls and tuples of tensors whose shapes are known."""


class StorageInfo:
    """Where the tensors of a value lie: lists, an entry a tensor. Sizes are in bytes, of what one tensor needs."""

    def __init__(self, storage_ids, sizes, device_type):
        self.storage_ids, self.storage_sizes = storage_ids, sizes
        self.storage_sizes_in_bytes = sizes
        self.device_types = [device_type] * len(sizes)


def tensors_of(kind):
    """The types of the tensors in a value of a type."""
    if isinstance(kind, TupleType):
        return [t for field in kind.fields for t in tensors_of(field)]
    if not isinstance(kind, TensorType) or not all(isinstance(d, int) or hasattr(d, "value") for d in kind.shape):
        raise UnsupportedGraph("a value is not a tensor, or its shape is not known")
    return [kind]


def _bytes(kind):
    dtype = DataType(str(kind.dtype))
    size = (dtype.bits * dtype.lanes + 7) // 8
    for d in kind.shape:
        size *= int(d)
    return size


def operators_of(call):
    """Returns the callee of a call: an operator or a global function, or the operators of a fused function, in order."""
    if not isinstance(call.op, Function):
        return [call.op]
    return [c.op for c in in_order(call.op.body) if isinstance(c, Call) and isinstance(c.op, Op)]


def in_order(root):
    """The calls, tuples, variables and constants of an expression, arguments first; what is within functions is not among them."""
    done, out, work = set(), [], [(root, False)]
    while work:
        expr, ready = work.pop()
        if ready:
            out.append(expr)
            continue
        if expr.handle in done:
            continue
        done.add(expr.handle)
        if isinstance(expr, Call):
            below = list(expr.args)
        elif isinstance(expr, Tuple):
            below = list(expr.fields)
        elif isinstance(expr, TupleGetItem):
            below = [expr.tuple_value]
        elif isinstance(expr, (Var, Constant)):
            below = []
        else:
            raise UnsupportedGraph(f"a {type(expr).__name__} is not a node of a graph")
        work.append((expr, True))
        work.extend((e, False) for e in reversed(below))
    return out


def entries_of(expr, known, node):
    """The tensors of an expression as (node, number of the output); `known` has those of what it is made of, by handle."""
    if isinstance(expr, Tuple):
        return [e for field in expr.fields for e in known[field.handle]]
    if isinstance(expr, TupleGetItem):
        kinds = expr.tuple_value.checked_type.fields
        first = sum(len(tensors_of(t)) for t in kinds[: expr.index])
        return known[expr.tuple_value.handle][first : first + len(tensors_of(kinds[expr.index]))]
    return [(node, i) for i in range(len(tensors_of(expr.checked_type)))]


class _Block:
    def __init__(self, number, size):
        self.number, self.size, self.users = number, size, 0


class MemoryPlan:
    """Storage of the values of a function: a value gives its memory back behind its last use, and another takes it if that is not far too
    large or small for it. Arguments, constants and results keep theirs.

    expr_to_storage_info: expression -> StorageInfo.
    """

    def __init__(self, func, device_type=1):
        self._blocks, self._free, self._of = [], [], {}
        self.expr_to_storage_info = {}
        nodes = [*func.params, *(e for e in in_order(func.body) if not any(e.same_as(p) for p in func.params))]
        entries, uses = {}, {}
        for expr in nodes:
            entries[expr.handle] = entries_of(expr, entries, expr.handle)
            for key in [e for arg in expr.args for e in entries[arg.handle]] if isinstance(expr, Call) else []:
                uses[key] = uses.get(key, 0) + 1
        kept = {*entries[func.body.handle], *(e for n in nodes if isinstance(n, (Var, Constant)) for e in entries[n.handle])}
        for expr in nodes:
            if not isinstance(expr, (Tuple, TupleGetItem)):
                self._place(expr, entries, uses, kept)
        for expr in nodes:
            numbers = [self._of[key].number for key in entries[expr.handle]]
            self.expr_to_storage_info[expr] = StorageInfo(numbers, [_bytes(t) for t in tensors_of(expr.checked_type)], device_type)

    def _place(self, expr, entries, uses, kept):
        """Finds memory for what an expression gives, and gives back what it reads as the last."""
        own = entries[expr.handle]
        read = [self._of[key] for arg in expr.args for key in entries[arg.handle]] if isinstance(expr, Call) else []
        shared = read[0] if read and len(own) == 1 and is_view(expr) else None
        for key, kind in zip(own, tensors_of(expr.checked_type), strict=True):
            block = shared or (self._take(_bytes(kind)) if read or isinstance(expr, Call) else self._new(_bytes(kind)))
            block.users += uses.get(key, 0) + (key in kept)
            self._of[key] = block
        for block in [self._of[key] for key in own]:
            self._give_back(block)
        for block in read:
            block.users -= 1
            self._give_back(block)

    def _new(self, size):
        self._blocks.append(_Block(len(self._blocks), size))
        return self._blocks[-1]

    def _take(self, size):
        if size == 0 or not self._free:
            return self._new(size)
        sizes = [b.size for b in self._free]
        middle, low, high = bisect.bisect_left(sizes, size), bisect.bisect_left(sizes, size // _REACH), bisect.bisect_right(sizes, size * _REACH)
        # The smallest one that is large enough, else the largest one, which grows.
        at = middle if middle < high else middle - 1 if middle > low else None
        if at is None:
            return self._new(size)
        block = self._free.pop(at)
        block.size = max(block.size, size)
        return block

    def _give_back(self, block):
        if block.users == 0 and block not in self._free:
            bisect.insort(self._free, block, key=lambda b: b.size)

    @property
    def total_bytes(self):
        """Memory of all blocks."""
        return sum(b.size for b in self._blocks)


def is_view(call):
    """Whether a call gives its argument in another shape, and computes nothing."""
    called = operators_of(call)
    return bool(called) and all(isinstance(op, Op) and op.get_attr("TValues") == _VIEW for op in called)


def graph_json(func, mod_name="default"):
    """A fused function as JSON of a graph executor, and its constants by the names of their nodes."""
    nodes, shapes, dtypes, storage, rows, entries, params = [], [], [], [], [0], {}, {}
    plan, counts = MemoryPlan(func), {}

    def add(expr, node):
        kinds = tensors_of(expr.checked_type)
        entries[expr.handle] = entries_of(expr, entries, len(nodes))
        nodes.append(node)
        shapes.extend([int(d) for d in t.shape] for t in kinds)
        dtypes.extend(str(t.dtype) for t in kinds)
        storage.extend(plan.expr_to_storage_info[expr].storage_ids)
        rows.append(len(shapes))

    for param in func.params:
        add(param, {"op": "null", "name": param.name_hint, "inputs": []})
    for expr in in_order(func.body):
        if isinstance(expr, Var):
            if expr.handle not in entries:
                raise UnsupportedGraph(f"{expr.name_hint} is not a parameter of the function")
        elif isinstance(expr, Constant):
            name = f"p{len(params)}"
            params[name] = expr.data
            add(expr, {"op": "null", "name": name, "inputs": []})
        elif isinstance(expr, (Tuple, TupleGetItem)):
            entries[expr.handle] = entries_of(expr, entries, None)
        else:
            inputs = [[*e, 0] for arg in expr.args for e in entries[arg.handle]]
            words = "_".join(getattr(op, "name", None) or op.name_hint for op in operators_of(expr))
            name = f"tvmgen_{mod_name}_fused_{re.sub(r'[^A-Za-z0-9_]', '_', words)}"[:80]
            counts[name] = counts.get(name, -1) + 1
            name = f"{name}_{counts[name]}" if counts[name] else name
            attrs = {"func_name": name, "num_inputs": str(len(inputs)), "num_outputs": str(len(tensors_of(expr.checked_type))), "flatten_data": "0"}
            if is_view(expr):
                name, attrs["func_name"] = "reshape_nop", "__nop"
            add(expr, {"op": "tvm_op", "name": name, "attrs": attrs, "inputs": inputs})
    graph = {
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(nodes) if node["op"] == "null"],
        "heads": [[*e, 0] for e in entries[func.body.handle]],
        "attrs": {
            "dltype": ["list_str", dtypes],
            "device_index": ["list_int", [1] * len(shapes)],
            "storage_id": ["list_int", storage],
            "shape": ["list_shape", shapes],
        },
        "node_row_ptr": rows,
    }
    return json.dumps(graph, indent=2), params


__all__ = ["MemoryPlan", "StorageInfo", "UnsupportedGraph", "graph_json"]
