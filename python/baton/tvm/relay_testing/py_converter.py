# SPDX-License-Identifier: Apache-2.0
"""Relay as a Python program: `run_as_python` runs an expression that way, operators by the interpreter. For tests: it is slow, and a
second implementation of control flow, data types, references and closures."""

import ast
import re

from ... import relay
from ...driver.relay_build import create_executor
from ...ir import GlobalVar, IRModule, Op, TensorType, TupleType
from ...relay.backend.interpreter import ConstructorValue, RefValue
from ...relay.expr_functor import ExprFunctor
from ...runtime import NDArray, tuple_object


class _Ref:
    """A reference while the program runs."""

    def __init__(self, value):
        self.value = value


class _Data:
    """A value of a data type while the program runs."""

    def __init__(self, constructor, fields):
        self.constructor, self.fields = constructor, fields


def _type_of(value):
    if isinstance(value, tuple):
        return TupleType([_type_of(v) for v in value])
    if isinstance(value, NDArray):
        return TensorType(value.shape, value.dtype)
    raise TypeError(f"an operator takes tensors and tuples of them, not {type(value).__name__}")


def _outside(value):
    """A value in the interpreter's form."""
    if isinstance(value, tuple):
        return tuple_object([_outside(v) for v in value])
    if isinstance(value, _Ref):
        return RefValue(_outside(value.value))
    if isinstance(value, _Data):
        return ConstructorValue(value.constructor.tag, [_outside(f) for f in value.fields], value.constructor)
    return value


def _inside(value):
    """An operator's result in the program's form."""
    return value if isinstance(value, NDArray) else tuple(_inside(v) for v in value)


class PythonConverter(ExprFunctor):
    """Writes the statements of a Python function; visiting an expression gives the Python expression of its value."""

    def __init__(self, mod, target="llvm"):
        super().__init__()
        self.mod, self.target = mod, target
        self.lines, self.depth = [], 0
        self.names, self.taken = {}, set()
        self.constants, self.calls, self.globals = [], [], {}

    def fresh(self, hint):
        """A fresh name."""
        base = re.sub(r"\W", "_", hint) or "x"
        base = "v_" + base
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return name

    def emit(self, text):
        """A statement."""
        self.lines.append("    " * self.depth + text)

    def visit(self, expr):
        # Values computed within a branch or a function are known there alone: `memo_map` is restored at its end.
        if expr in self.memo_map:
            return self.memo_map[expr]
        found = super().visit(expr)
        self.memo_map[expr] = found
        return found

    def block(self, write):
        """Statements one level deeper, and their value."""
        kept = dict(self.memo_map)
        self.depth += 1
        write()
        self.depth -= 1
        self.memo_map = kept

    def hold(self, text, hint="t"):
        """A name for a value, computed here."""
        name = self.fresh(hint)
        self.emit(f"{name} = {text}")
        return name

    def bind(self, var):
        """The Python name of a variable."""
        return self.names.setdefault(var, None) or self._name(var)

    def _name(self, var):
        self.names[var] = name = self.fresh(var.name_hint)
        return name

    def define(self, name, func):
        """A Python function for one of Relay."""
        params = ", ".join(self.bind(p) for p in func.params)
        self.emit(f"def {name}({params}):")
        self.block(lambda: self.emit(f"return {self.visit(func.body)}"))

    def visit_var(self, var):
        return self.bind(var)

    def visit_global_var(self, gvar):
        if gvar not in self.globals:
            self.globals[gvar] = self.fresh(gvar.name_hint)
        return self.globals[gvar]

    def visit_constant(self, const):
        self.constants.append(const.data)
        return f"constants[{len(self.constants) - 1}]"

    def visit_op(self, op):
        raise NotImplementedError(f"the operator `{op.name}` as a value")

    def visit_constructor(self, constructor):
        self.constants.append(constructor)
        return f"constructor_function(constants[{len(self.constants) - 1}])"

    def visit_tuple(self, tup):
        fields = [self.visit(f) for f in tup.fields]
        return self.hold(f"({''.join(f + ', ' for f in fields)})")

    def visit_tuple_getitem(self, item):
        return self.hold(f"{self.visit(item.tuple_value)}[{item.index}]")

    def visit_if(self, branch):
        name = self.fresh("if")
        self.emit(f"if truth({self.visit(branch.cond)}):")
        self.block(lambda: self.emit(f"{name} = {self.visit(branch.true_branch)}"))
        self.emit("else:")
        self.block(lambda: self.emit(f"{name} = {self.visit(branch.false_branch)}"))
        return name

    def visit_let(self, let):
        while isinstance(let, relay.Let):
            if isinstance(let.value, relay.Function):
                self.define(self.bind(let.var), let.value)  # the function may call itself
            else:
                value = self.visit(let.value)
                self.emit(f"{self.bind(let.var)} = {value}")
            let = let.body
        return self.visit(let)

    def visit_function(self, func):
        name = self.fresh("function")
        self.define(name, func)
        return name

    def visit_call(self, call):
        arguments = ", ".join(self.visit(a) for a in call.args)
        if isinstance(call.op, Op):
            self.calls.append(call)
            return self.hold(f"run({len(self.calls) - 1}, {arguments})" if arguments else f"run({len(self.calls) - 1})")
        if isinstance(call.op, relay.adt.Constructor):
            self.constants.append(call.op)
            return self.hold(f"data(constants[{len(self.constants) - 1}], [{arguments}])")
        return self.hold(f"{self.visit(call.op)}({arguments})")

    def visit_ref_create(self, ref):
        return self.hold(f"ref({self.visit(ref.value)})")

    def visit_ref_read(self, ref):
        return self.hold(f"{self.visit(ref.ref)}.value")

    def visit_ref_write(self, ref):
        target, value = self.visit(ref.ref), self.visit(ref.value)
        self.emit(f"{target}.value = {value}")
        return "()"

    def visit_match(self, match):
        value, name = self.hold(self.visit(match.data)), self.fresh("match")
        word = "if"
        for clause in match.clauses:
            tests, bindings = [], []
            self.pattern(clause.lhs, value, tests, bindings)
            self.emit(f"{word} {' and '.join(tests) or 'True'}:")

            def write(clause=clause, bindings=bindings):
                for var, part in bindings:
                    self.emit(f"{self.bind(var)} = {part}")
                self.emit(f"{name} = {self.visit(clause.rhs)}")

            self.block(write)
            word = "elif"
        self.emit("else:" if word == "elif" else "if True:")
        self.block(lambda: self.emit("raise ValueError('no clause of the match fits')"))
        return name

    def pattern(self, pattern, value, tests, bindings):
        """The condition under which a pattern matches, and its bindings."""
        if isinstance(pattern, relay.PatternVar):
            bindings.append((pattern.var, value))
        elif isinstance(pattern, relay.PatternConstructor):
            tests.append(f"{value}.constructor.tag == {pattern.constructor.tag}")
            for i, part in enumerate(pattern.patterns):
                self.pattern(part, f"{value}.fields[{i}]", tests, bindings)
        elif isinstance(pattern, relay.PatternTuple):
            for i, part in enumerate(pattern.patterns):
                self.pattern(part, f"{value}[{i}]", tests, bindings)

    def convert(self, expr):
        """The source of a program that defines `result`: the functions of the module that the expression reaches, then it."""
        self.emit("def main():")
        self.block(lambda: self.emit(f"return {self.visit(expr)}"))
        done = set()
        while len(done) < len(self.globals):
            for gvar in [g for g in self.globals if g not in done]:
                done.add(gvar)
                self.define(self.globals[gvar], self.mod[gvar])
        self.emit("result = main()")
        return "\n".join(self.lines) + "\n"

    def environment(self):
        """The names that the program uses."""
        kept = {}

        def run(index, *args):
            call = self.calls[index]
            types = [_type_of(a) for a in args]
            key = (index, str(types))
            if key not in kept:
                params = [relay.Var(f"p{i}", t) for i, t in enumerate(types)]
                body = relay.Call(call.op, params, call.attrs, call._field("type_args"))
                kept[key] = create_executor("debug", mod=IRModule(), target=self.target).evaluate(relay.Function(params, body))
            return _inside(kept[key](*(_outside(a) for a in args)))

        return {
            "constants": self.constants,
            "run": run,
            "ref": _Ref,
            "data": _Data,
            "truth": lambda x: bool(x.numpy()),
            "constructor_function": lambda c: lambda *fields: _Data(c, list(fields)),
        }


def to_python(expr, mod=None, target="llvm"):
    """The Python program of an expression, as `ast` has it."""
    return ast.parse(PythonConverter(mod or IRModule(), target).convert(expr))


def run_as_python(expr, mod=None, target="llvm"):
    """The value of an expression, computed as a Python program: an NDArray, a tuple as an Array, a ConstructorValue, a RefValue, or a
    Python function for one of Relay."""
    converter = PythonConverter(mod or IRModule(), target)
    names = {}
    source = converter.convert(expr)
    names.update(converter.environment())
    exec(compile(source, "<relay as Python>", "exec"), names)
    return _outside(names["result"])


__all__ = ["GlobalVar", "PythonConverter", "run_as_python", "to_python"]
