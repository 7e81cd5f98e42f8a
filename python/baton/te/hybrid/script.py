# SPDX-License-Identifier: Apache-2.0
"""Scripts: a function of Python, read as loops over buffers."""

import ast
import functools
import inspect
import operator
import textwrap

from ... import tir
from ...error import UnsupportedError
from ...ir import PrimExpr
from ...tir import BufferLoad, BufferStore, decl_buffer, ir_builder
from ..operation import extern
from ..tensor import Tensor
from . import emulation

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b if _literal(a) and _literal(b) else tir.floordiv(*_alike(a, b)),
    ast.Mod: lambda a, b: a % b if _literal(a) and _literal(b) else tir.floormod(*_alike(a, b)),
    ast.Pow: lambda a, b: a**b if _literal(a) and _literal(b) else tir.power(*_alike(a, b)),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Div: lambda a, b: a / b if _literal(a) and _literal(b) else tir.div(*_alike(a, b)),
}
_COMPARE = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne}
_NODES = {ast.Lt: tir.LT, ast.LtE: tir.LE, ast.Gt: tir.GT, ast.GtE: tir.GE, ast.Eq: tir.EQ, ast.NotEq: tir.NE}
_LOOPS = {"range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorize", "unroll": "unroll"}
_MATH = ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "round", "power", "popcount", "floor", "ceil", "abs")
_MISSING = object()


def _literal(value):
    return isinstance(value, (bool, int, float))


def _alike(a, b):
    """Two operands as expressions of one dtype: a number takes that of the other, the smaller integer that of the larger."""
    if _literal(a):
        return tir.const(a, str(b.dtype)), b
    if _literal(b):
        return a, tir.const(b, str(a.dtype))
    if str(a.dtype) != str(b.dtype) and str(a.dtype).startswith("int") and str(b.dtype).startswith("int"):
        wide = max(str(a.dtype), str(b.dtype), key=lambda t: int(t[3:]))
        return a.astype(wide), b.astype(wide)
    return a, b


def _plain(value):
    """Literals of TIR as Python's."""
    return value.value if isinstance(value, PrimExpr) and hasattr(value, "value") else value


class _Scalar:
    """A variable of a script: memory for one value."""

    def __init__(self, buffer):
        self.buffer = buffer


class _Script:
    """Reads one function for given arguments."""

    def __init__(self, function, definition, known):
        self.function, self.definition, self.known = function, definition, known
        self.builder = ir_builder.create()
        self.outputs, self.results, self.reads = [], None, 0
        self.stored = {}
        for node in ast.walk(definition):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []:
                if isinstance(target, ast.Name):
                    self.stored[target.id] = self.stored.get(target.id, 0) + 1

    def fail(self, node, what):
        line = self.definition.lineno + getattr(node, "lineno", 1) - 1
        raise UnsupportedError(f"te.hybrid.script `{self.function.__name__}`, line {line}: {what}")

    # Statements

    def run(self, statements):
        """Reads statements; statements after a `return` are not read."""
        for s in statements:
            getattr(self, type(s).__name__, self.other)(s)

    def other(self, node):
        self.fail(node, f"a script has no `{type(node).__name__}`")

    def Pass(self, node):  # noqa: N802
        """Nothing."""

    def Expr(self, node):  # noqa: N802
        """A doc string, or a call."""
        if not isinstance(node.value, ast.Constant):
            self.builder.emit(self.value(node.value))

    def Assert(self, node):  # noqa: N802
        """Checks what is known now, the rest when the program comes to it."""
        test, said = self.value(node.test), self.value(node.msg) if node.msg is not None else ast.unparse(node.test)
        if isinstance(test, PrimExpr):
            self.builder.emit(lambda body: tir.AssertStmt(test, tir.StringImm(str(said)), body))
        elif not test:
            raise AssertionError(said)

    def Return(self, node):  # noqa: N802
        """The results."""
        found = self.value(node.value)
        self.results = list(found) if isinstance(found, (list, tuple)) else [found]
        for r in self.results:
            if not any(r is out for out in self.outputs):
                self.fail(node, "a script returns what output_tensor gave")

    def Assign(self, node):  # noqa: N802
        """A buffer, a variable, or an element."""
        if len(node.targets) != 1:
            self.fail(node, "one target at a time")
        self.put(node.targets[0], node.value)

    def put(self, target, source):
        """Assigns what an expression gives."""
        if isinstance(target, ast.Tuple):
            if not isinstance(source, ast.Tuple) or len(source.elts) != len(target.elts):
                self.fail(target, "so many targets as values")
            for t, v in zip(target.elts, source.elts, strict=True):
                self.put(t, v)
            return
        reads = self.reads
        value = self.value(source)
        self.store(target, value, pure=self.reads == reads)

    def AugAssign(self, node):  # noqa: N802
        """`x += y`."""
        before = self.value(ast.copy_location(ast.fix_missing_locations(_as_load(node.target)), node))
        self.store(node.target, self.binary(node, node.op, before, self.value(node.value)), pure=False)

    def store(self, target, value, pure):
        """Puts a value where it belongs. pure: nothing that changes was read for it."""
        if isinstance(target, ast.Subscript):
            buffer = self.value(target.value)
            return self.write(target, buffer, self.index(target.slice), value)
        if not isinstance(target, ast.Name):
            self.fail(target, "a target is a name or an element")
        known = self.known.get(target.id)
        if isinstance(known, _Scalar):
            return self.write(target, known.buffer, [0], value)
        computed = isinstance(value, PrimExpr) or _literal(value)
        if not computed or (pure and self.stored.get(target.id, 0) == 1):
            self.known[target.id] = value
            return None
        dtype = str(value.dtype) if isinstance(value, PrimExpr) else "float32" if isinstance(value, float) else "int32"
        self.known[target.id] = _Scalar(self.builder.allocate(dtype, (1,), target.id).buffer)
        return self.write(target, self.known[target.id].buffer, [0], value)

    def write(self, node, buffer, index, value):
        """Stores one element."""
        if not hasattr(buffer, "shape"):
            self.fail(node, "what is indexed is not a tensor")
        value = tir.const(value, str(buffer.dtype)) if _literal(value) else value
        if str(value.dtype) != str(buffer.dtype):
            value = value.astype(str(buffer.dtype))
        self.builder.emit(BufferStore(buffer, value, self.places(node, buffer, index)))

    def places(self, node, buffer, index):
        """Indices, one for each dimension."""
        if len(index) != len(buffer.shape):
            self.fail(node, f"`{buffer.name}` has {len(buffer.shape)} dimensions, got {len(index)} indices")
        return [tir.op.convert(i) for i in index]

    def For(self, node):  # noqa: N802
        """A loop, or with const_range one copy of the body for each value."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not isinstance(node.target, ast.Name):
            self.fail(node, "a loop is over range, serial, parallel, vectorize, unroll or const_range")
        bounds, kind = [_plain(self.value(a)) for a in call.args], call.func.id
        begin, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        stepped = len(bounds) == 3 and bounds[2] != 1
        if kind == "const_range" or (stepped and all(isinstance(b, int) for b in bounds)):
            for i in range(*bounds):
                self.known[node.target.id] = i
                self.run(node.body)
            return
        if kind not in _LOOPS or stepped:
            self.fail(node, f"no loop over `{ast.unparse(call)}`: there are range, serial, parallel, vectorize, unroll and const_range, by steps of 1")
        older = self.known.get(node.target.id, _MISSING)
        with self.builder.for_range(begin, end, node.target.id, kind=_LOOPS[kind]) as i:
            self.known[node.target.id] = i
            self.scoped(node.body)
        if older is not _MISSING:
            self.known[node.target.id] = older

    def scoped(self, body):
        """Statements whose new variables end with them."""
        before = dict(self.known)
        self.run(body)
        for name in [n for n in self.known if n not in before]:
            del self.known[name]

    def If(self, node):  # noqa: N802
        """A branch; of a condition that is known now the branch alone."""
        condition = self.value(node.test)
        if not isinstance(condition, PrimExpr):
            self.run(node.body if condition else node.orelse)
            return
        with self.builder.if_scope(condition):
            self.scoped(node.body)
        if node.orelse:
            with self.builder.else_scope():
                self.scoped(node.orelse)

    # Expressions

    def value(self, node):
        """Returns the value of an expression: numbers, expressions of TIR, buffers, tuples."""
        kind = type(node)
        if kind is ast.Constant:
            return node.value
        if kind is ast.Name:
            return self.name(node)
        if kind in (ast.Tuple, ast.List):
            return [self.value(x) for x in node.elts]
        if kind is ast.Attribute:
            of = self.value(node.value)
            return [_plain(d) for d in of.shape] if node.attr == "shape" else str(of.dtype) if node.attr == "dtype" else getattr(of, node.attr)
        if kind is ast.Subscript:
            return self.element(node)
        if kind is ast.BinOp:
            return self.binary(node, node.op, self.value(node.left), self.value(node.right))
        if kind is ast.UnaryOp:
            of = self.value(node.operand)
            if isinstance(node.op, ast.Not):
                return tir.Not(of) if isinstance(of, PrimExpr) else not of
            return -of if isinstance(node.op, ast.USub) else of
        if kind is ast.BoolOp:
            return self.both(node)
        if kind is ast.Compare:
            return self.compare(node)
        if kind is ast.IfExp:
            condition = self.value(node.test)
            if not isinstance(condition, PrimExpr):
                return self.value(node.body if condition else node.orelse)
            a, b = self.value(node.body), self.value(node.orelse)
            return tir.if_then_else(condition, *(_alike(a, b) if isinstance(a, PrimExpr) or isinstance(b, PrimExpr) else (a, b)))
        if kind is ast.Call:
            return self.call(node)
        return self.other(node)

    def name(self, node):
        found = self.known.get(node.id, _MISSING)
        if found is _MISSING:
            self.fail(node, f"`{node.id}` is not known here")
        if isinstance(found, _Scalar):
            self.reads += 1
            return BufferLoad(found.buffer, [tir.op.convert(0)])
        return _plain(found)

    def index(self, node):
        found = self.value(node)
        return found if isinstance(found, list) else [found]

    def element(self, node):
        of, index = self.value(node.value), self.index(node.slice)
        if isinstance(of, (list, tuple)):
            at = _plain(index[0])
            if not isinstance(at, int):
                self.fail(node, "the index of a tuple is a number")
            return _plain(of[at])
        self.reads += 1
        return BufferLoad(of, self.places(node, of, index))

    def binary(self, node, kind, a, b):
        if type(kind) not in _BINARY:
            self.fail(node, f"no operator `{type(kind).__name__}`")
        if isinstance(a, PrimExpr) and isinstance(b, PrimExpr):
            a, b = _alike(a, b)
        return _BINARY[type(kind)](a, b)

    def both(self, node):
        values = [self.value(v) for v in node.values]
        is_and = isinstance(node.op, ast.And)
        open_ones = [v for v in values if isinstance(v, PrimExpr)]
        known = [bool(v) for v in values if not isinstance(v, PrimExpr)]
        if any(v != is_and for v in known):
            return not is_and
        if not open_ones:
            return is_and
        return functools.reduce(tir.And if is_and else tir.Or, open_ones)

    def compare(self, node):
        made, left = [], self.value(node.left)
        for kind, right in zip(node.ops, map(self.value, node.comparators), strict=True):
            if isinstance(left, PrimExpr) or isinstance(right, PrimExpr):
                made.append(_NODES[type(kind)](*_alike(left, right)))
            elif not _COMPARE[type(kind)](left, right):
                return False
            left = right
        return functools.reduce(tir.And, made) if made else True

    def call(self, node):
        if not isinstance(node.func, ast.Name) or node.func.id in self.known:
            function = self.value(node.func)
            return function(*[self.value(a) for a in node.args], **{k.arg: self.value(k.value) for k in node.keywords})
        name, args = node.func.id, [self.value(a) for a in node.args]
        given = {k.arg: self.value(k.value) for k in node.keywords}
        if name in ("output_tensor", "allocate"):
            return self.memory(name, *args, **given)
        if name in ("min", "max"):
            if all(map(_literal, args)):
                return (min if name == "min" else max)(args)
            return functools.reduce(lambda a, b: getattr(tir, name)(*_alike(a, b)), args)
        if name in _MATH:
            return getattr(tir, name)(*(tir.const(float(a), "float32") if _literal(a) else a for a in args))
        if name.rstrip("0123456789") in ("int", "uint", "float") and name[-1].isdigit():
            return tir.const(args[0], name) if _literal(args[0]) else args[0].astype(name)
        simple = {
            "len": len,
            "likely": lambda x: x,
            "ceil_div": lambda a, b: (a + b - 1) // b if _literal(a) else tir.floordiv(a + (b - 1), tir.const(b, str(a.dtype))),
        }
        if name not in simple:
            self.fail(node, f"a script has no function `{name}`")
        return simple[name](*args)

    def memory(self, name, shape, dtype="float32", scope=""):
        """New memory: of a result, or of the script's own."""
        shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        if name == "allocate":
            return self.builder.allocate(dtype, shape, "local").buffer
        self.outputs.append(decl_buffer(shape, dtype, f"out{len(self.outputs)}"))
        return self.outputs[-1]


def _as_load(target):
    copied = ast.parse(ast.unparse(target), mode="eval").body
    return copied


def _compiled(function, definition, args, kwargs):
    """The tensors that a script computes of tensors and numbers."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    closure = inspect.getclosurevars(function)
    known = {**closure.globals, **closure.nonlocals}
    tensors, buffers = [], []

    def taken(name, value):
        if isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
            return [taken(f"{name}{i}", v) for i, v in enumerate(value)]
        if not isinstance(value, Tensor):
            return value
        for tensor, buffer in zip(tensors, buffers, strict=True):
            if tensor.same_as(value):
                return buffer
        tensors.append(value)
        buffers.append(decl_buffer(list(value.shape), str(value.dtype), name))
        return buffers[-1]

    known.update({name: taken(name, value) for name, value in bound.arguments.items()})
    script = _Script(function, definition, known)
    script.run(definition.body)
    if not script.results:
        script.fail(definition, "a script returns what output_tensor gave")
    body = script.builder.get()
    made = extern(
        [list(b.shape) for b in script.results],
        tensors,
        lambda ins, outs: body,
        name=function.__name__,
        dtype=[str(b.dtype) for b in script.results],
        in_buffers=buffers,
        out_buffers=script.results,
        attrs={"script": 1},
    )
    return made


def _holds_tensor(values):
    return any(isinstance(v, Tensor) or (isinstance(v, (list, tuple)) or type(v).__name__ == "Array") and _holds_tensor(v) for v in values)


def script(pyfunc):
    """Makes a function one that computes tensors by loops. Within it: `output_tensor(shape, dtype)`, `allocate(shape, dtype)`, loops over
    `range`, `serial`, `parallel`, `vectorize`, `unroll` and (as one copy of the body for each value) `const_range`, branches, variables, elements
    of tensors, arithmetic, min, max, exp, log, sqrt, rsqrt, tanh, sigmoid, power, round, popcount, casts as `int32(x)`, `len`, `likely`."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(pyfunc))).body[0]

    @functools.wraps(pyfunc)
    def call(*args, **kwargs):
        values = [*args, *kwargs.values()]
        if _holds_tensor(values) or any(isinstance(v, PrimExpr) for v in values):
            return _compiled(pyfunc, definition, args, kwargs)
        return emulation.run(pyfunc, inspect.signature(pyfunc).bind(*args, **kwargs).args)

    return call


def decorate(func, fwrapped):
    """A function that calls `fwrapped(func, ...)`."""
    return functools.wraps(func)(lambda *args, **kwargs: fwrapped(func, *args, **kwargs))


__all__ = ["decorate", "script"]
