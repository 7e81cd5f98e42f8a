# SPDX-License-Identifier: Apache-2.0
"""The text of a script for the loops of a schedule."""

import re

from ...error import UnsupportedError
from ...tir import ForKind, IntImm, Var
from ..schedule import schedule_to_prim_func
from ..tensor import Tensor

_INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
          "And": "and", "Or": "or", "Div": "/"}  # fmt: skip
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>"}
_LOOPS = {ForKind.SERIAL: "range", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize", ForKind.UNROLLED: "unroll"}
_CALLS = {"pow": "power", "fabs": "abs"} | {n: n for n in "exp log sqrt rsqrt tanh sigmoid round popcount floor ceil abs likely".split()}


class _Writer:
    """Writes one function; each variable and buffer has its own name."""

    def __init__(self):
        self.lines, self.names, self.used, self.depth = [], {}, set(), 1

    def name_of(self, thing, wish):
        """The name of a variable or a pointer, by its handle."""
        if thing.handle not in self.names:
            name = wish = re.sub(r"\W", "_", str(wish)) or "x"
            count = 0
            while name in self.used:
                count += 1
                name = f"{wish}_{count}"
            self.used.add(name)
            self.names[thing.handle] = name
        return self.names[thing.handle]

    def line(self, text):
        """A line of the body."""
        self.lines.append("    " * self.depth + text)

    def block(self, stmt):
        """A statement within the one before."""
        self.depth += 1
        before = len(self.lines)
        self.stmt(stmt)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def stmt(self, s):
        """A statement."""
        kind = s.type_key.rpartition(".")[2]
        write = getattr(self, f"write_{kind}", None)
        if write is None:
            raise UnsupportedError(f"te.hybrid.build: a script has no statement tir.{kind}")
        write(s)

    def write_SeqStmt(self, s):  # noqa: N802
        """Statements in order."""
        for one in s.seq:
            self.stmt(one)

    def write_For(self, s):  # noqa: N802
        """A loop."""
        name, begin = self.name_of(s.loop_var, s.loop_var.name), self.expr(s.min)
        bounds = self.expr(s.extent) if begin == "0" else f"{begin}, {self.expr(s.min + s.extent)}"
        self.line(f"for {name} in {_LOOPS[ForKind(int(s.kind))]}({bounds}):")
        self.block(s.body)

    def write_BufferStore(self, s):  # noqa: N802
        """An element."""
        self.line(f"{self.access(s)} = {self.expr(s.value)}")

    def write_IfThenElse(self, s):  # noqa: N802
        """A branch."""
        self.line(f"if {self.expr(s.condition)}:")
        self.block(s.then_case)
        if s.else_case is not None:
            self.line("else:")
            self.block(s.else_case)

    def write_LetStmt(self, s):  # noqa: N802
        """A variable."""
        self.line(f"{self.name_of(s.var, s.var.name)} = {self.expr(s.value)}")
        self.stmt(s.body)

    def write_Allocate(self, s):  # noqa: N802
        """Memory."""
        name = self.name_of(s.buffer.data, s.buffer.name)
        self.line(f"{name} = allocate({self.shape(s.buffer.shape)}, '{s.buffer.dtype}', 'local')")
        self.stmt(s.body)

    def write_AttrStmt(self, s):  # noqa: N802
        """A mark, which scripts do not have: the statement within."""
        self.stmt(s.body)

    def write_Evaluate(self, s):  # noqa: N802
        """A value that is used nowhere; calls with effects are not written."""
        if not isinstance(s.value, IntImm):
            raise UnsupportedError(f"te.hybrid.build: a script has no call {s.value}")

    def access(self, node):
        """`A[i, j]`; the one element of a scalar is `A[0]`."""
        indices = ", ".join(map(self.expr, node.indices)) or "0"
        return f"{self.name_of(node.buffer.data, node.buffer.name)}[{indices}]"

    def shape(self, shape):
        """`(3, n)`."""
        dims = [self.expr(d) for d in shape] or ["1"]
        return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"

    def expr(self, e):
        """An expression, in parentheses where it has parts."""
        kind = e.type_key.rpartition(".")[2]
        if kind in ("Var", "SizeVar"):
            return self.name_of(e, e.name)
        if kind == "IntImm":
            return str(int(e.value)) if str(e.dtype) in ("int32", "int64") else str(bool(e.value)) if str(e.dtype) == "bool" else f"{e.dtype}({e.value})"
        if kind == "FloatImm":
            return f"{e.dtype}({e.value!r})"
        if kind in _INFIX:
            return f"({self.expr(e.a)} {_INFIX[kind]} {self.expr(e.b)})"
        if kind in ("Min", "Max"):
            return f"{kind.lower()}({self.expr(e.a)}, {self.expr(e.b)})"
        if kind == "Not":
            return f"(not {self.expr(e.a)})"
        if kind == "Cast":
            return f"{e.dtype}({self.expr(e.value)})"
        if kind == "Select":
            return f"({self.expr(e.true_value)} if {self.expr(e.condition)} else {self.expr(e.false_value)})"
        if kind == "BufferLoad":
            return self.access(e)
        if kind == "Call":
            return self.call(e)
        raise UnsupportedError(f"te.hybrid.build: a script has no expression tir.{kind}")

    def call(self, e):
        """A call of an intrinsic."""
        name = str(getattr(e.op, "name", "")).removeprefix("tir.")
        args = [self.expr(a) for a in e.args] if name in _CALLS or name in _BITS or name == "if_then_else" else []
        if name == "if_then_else":
            return f"({args[1]} if {args[0]} else {args[2]})"
        if name in _BITS:
            return f"({args[0]} {_BITS[name]} {args[1]})"
        if name not in _CALLS:
            raise UnsupportedError(f"te.hybrid.build: a script has no function `{name or e.op}`")
        return f"{_CALLS[name]}({', '.join(args)})"


def written(sch, inputs, outputs, name):
    """The text of a script that computes `outputs` of `inputs` as a schedule says."""
    func = schedule_to_prim_func(sch, [*inputs, *outputs], name, [None] * (len(inputs) + len(outputs)))
    writer = _Writer()
    params, made = [], []
    for given, param in zip([*inputs, *outputs], func.params, strict=False):
        if not isinstance(given, Tensor):
            params.append(writer.name_of(given if isinstance(given, Var) else param, param.name))
            continue
        buffer = func.buffer_map[param]
        label = writer.name_of(buffer.data, buffer.name)
        if len(params) < len(inputs):
            params.append(label)
            for axis, extent in enumerate(buffer.shape):
                if isinstance(extent, Var) and extent.handle not in writer.names and not any(extent.same_as(x) for x in inputs):
                    writer.line(f"{writer.name_of(extent, extent.name)} = {label}.shape[{axis}]")
        else:
            made.append(label)
            writer.line(f"{label} = output_tensor({writer.shape(buffer.shape)}, '{buffer.dtype}')")
    writer.stmt(func.body)
    writer.line(f"return {', '.join(made)}")
    return "\n".join([f"def {name}({', '.join(params)}):", *writer.lines, ""])


__all__ = ["written"]
