# SPDX-License-Identifier: Apache-2.0
"""Reads what tir.PrimFunc prints, for golden files of passes over PrimFuncs (`tests/**/*.tir`).

A view of a buffer (a flat one of a parameter, one of a workspace) prints by a name of its own and does not say whose memory it has, so a
text with views cannot be read; what passes take as it is written can.
"""

import re

from baton import IRModule, tir
from baton._ffi import get_global_func
from baton.ir import GlobalVar, structural_equal
from baton.target import Target

_TOKEN = re.compile(
    r"""\s*(?:(//[^\n]*)|("(?:[^"\\]|\\.)*")|(\d+\.\d+(?:e[+-]?\d+)?f?|\d+e[+-]?\d+f?|\d+f?)|([A-Za-z_][\w.]*)|(//|==|!=|<=|>=|[-+*/%<>=()\[\]{},:@]))"""
)
_SPACE = re.compile(r"\s*")
_DTYPE = re.compile(r"(?:(?:int|uint|float|bfloat)\d+|bool)(?:x\d+)?$|handle$")
_BINARY = {"or": (1, "Or"), "and": (2, "And"), "==": (4, "EQ"), "!=": (4, "NE"), "<": (4, "LT"), "<=": (4, "LE"), ">": (4, "GT"), ">=": (4, "GE"),
           "+": (5, "Add"), "-": (5, "Sub"), "*": (6, "Mul"), "//": (6, "FloorDiv"), "%": (6, "FloorMod"), "/": (6, "Div")}  # fmt: skip
_CALL_LIKE = {"truncdiv": tir.Div, "truncmod": tir.Mod, "min": tir.Min, "max": tir.Max, "select": tir.Select}
_KINDS = {"parallel": 1, "vectorized": 2, "unrolled": 3}
_BOOLS = {"isnan", "isinf", "isfinite"}
_EFFECTS = {"masked_store", "prefetch", "memcpy", "tvm_storage_sync", "tvm_thread_allreduce"}
_HANDLES = {"ptr_offset", "load_handle", "address_of"}


class TextError(ValueError):
    """What is no text of PrimFuncs, and in which line."""


def parse(text):
    """The module of a text of PrimFuncs."""
    reader = _Reader(text)
    functions = {}
    while reader.kind != "end":
        func = reader.function()
        functions[GlobalVar(str(func.attrs["global_symbol"]))] = func
    return IRModule(functions)


def text(module):
    """The text of all PrimFuncs of a module, in order of their names."""
    named = sorted(((var.name_hint, func) for var, func in module.functions.items()), key=lambda item: item[0])
    return "\n".join(get_global_func("tir.AsText")(func) for _, func in named)


def reads_back(module):
    """Whether a module's text says all of it: None if it is equal, the text's own module if not."""
    again = parse(text(module))
    # Sizes that are no parameters are free variables, which the text makes anew.
    return again if str(get_global_func("node.StructuralDifference")(module, again, True)) else None


class _Reader:
    def __init__(self, source):
        self.source, self.at, self.names = source, 0, {}
        self.advance()

    # ---- Tokens

    def advance(self):
        # A comment has a space behind its `//`, a division has none.
        while True:
            self.at = _SPACE.match(self.source, self.at).end()
            if not self.source.startswith("// ", self.at):
                break
            self.at = (self.source + "\n").index("\n", self.at)
        if self.at >= len(self.source):
            self.kind, self.word = "end", ""
            return
        if self.source.startswith("//", self.at):
            self.kind, self.word, self.at = "sign", "//", self.at + 2
            return
        match = _TOKEN.match(self.source, self.at)
        if not match:
            self.fail(f"unexpected {self.source[self.at]!r}")
        _, string, number, name, sign = match.groups()
        self.kind = "string" if string else "number" if number else "name" if name else "sign"
        self.word = string or number or name or sign
        self.at = match.end()

    def fail(self, message):
        raise TextError(f"line {self.source.count(chr(10), 0, self.at) + 1}: {message}")

    def accept(self, word):
        if self.word != word or self.kind == "string":
            return False
        self.advance()
        return True

    def expect(self, word):
        if not self.accept(word):
            self.fail(f"expected `{word}`, got `{self.word}`")

    def name(self):
        if self.kind != "name":
            self.fail(f"expected a name, got `{self.word}`")
        word = self.word
        self.advance()
        return word

    def list_until(self, end, item):
        found = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(item())
        return found

    # ---- Functions

    def function(self):
        self.names, parameters = {}, []
        self.expect("def")
        self.expect("@")
        symbol = self.name()
        self.expect("(")
        buffers = {}
        for name, kind in self.list_until(")", self.parameter):
            if isinstance(kind, tir.Buffer):
                var = tir.Var(name, "handle")
                buffers[var] = kind
            else:
                # A size that a shape before it named already.
                var = self.names.get(name) if name in self.names else tir.Var(name, kind)
                self.names[name] = var
            parameters.append(var)
        attrs = {"global_symbol": symbol}
        if self.accept("attrs"):
            self.expect("(")
            for key, value in self.list_until(")", self.attribute):
                attrs[key] = value
        self.expect("{")
        return tir.PrimFunc(parameters, self.block(), buffer_map=buffers, attrs=attrs)

    def attribute(self):
        key = self.name()
        self.expect("=")
        word, kind = self.word, self.kind
        self.advance()
        if key == "target":
            return key, Target(word[1:-1])
        return key, word[1:-1] if kind == "string" else float(word) if "." in word else int(word)

    def parameter(self):
        name = self.name()
        self.expect(":")
        if self.word == "Buffer":
            return name, self.buffer(name)
        return name, self.name()

    def buffer(self, name):
        self.expect("Buffer")
        self.expect("[")
        self.expect("(")
        shape = self.list_until(")", self.extent)
        self.expect(",")
        dtype = self.name()
        scope = self.name() if self.accept(",") else ""
        self.expect("]")
        made = tir.Buffer(shape, dtype, name.split(".")[0], scope)
        self.names[name], self.names[name + ".data"] = made, made.data
        return made

    def extent(self):
        if self.kind == "name" and self.word not in self.names and not _DTYPE.match(self.word):
            self.names[self.word] = tir.SizeVar(self.word, "int64")
        return self.expr()

    # ---- Statements

    def block(self):
        """Statements up to the closing brace."""
        found = []
        while not self.accept("}"):
            found.append(self.statement())
        return self.joined(found)

    @staticmethod
    def joined(statements):
        body = None
        for s in reversed(statements):
            if callable(s):
                body = s(body if body is not None else tir.SeqStmt([]))
            elif body is None:
                body = s
            else:
                body = tir.SeqStmt([s, *(body.seq if isinstance(body, tir.SeqStmt) else [body])])
        return tir.SeqStmt([]) if body is None else body

    def statement(self):
        if self.accept("pass"):
            return tir.SeqStmt([])
        if self.accept("for"):
            return self.loop()
        if self.accept("if"):
            self.expect("(")
            condition = self.expr()
            self.expect(")")
            self.expect("{")
            then = self.block()
            other = self.block() if self.accept("else") and self.accept("{") else None
            return tir.IfThenElse(condition, then, other)
        if self.accept("while"):
            self.expect("(")
            condition = self.expr()
            self.expect(")")
            self.expect("{")
            return tir.While(condition, self.block())
        if self.accept("allocate"):
            name = self.name()
            self.expect(":")
            made = self.buffer(name)
            return lambda body: tir.Allocate(made, body)
        if self.accept("let"):
            name = self.name()
            self.expect(":")
            dtype = self.name()
            self.expect("=")
            value = self.expr()
            var = self.names[name] = tir.Var(name, dtype)
            return lambda body: tir.LetStmt(var, value, body)
        if self.accept("attr"):
            key = self.word[1:-1]
            self.advance()
            node = None
            if self.accept("of"):
                text, word = self.kind == "string", self.word[1:-1] if self.kind == "string" else self.name()
                if text:
                    self.advance()
                node = tir.StringImm(word) if text else self.names[word] if word in self.names else self.names.setdefault(word, tir.Var(word, "int64"))
            self.expect("=")
            value = self.expr()
            self.expect("{")
            return tir.AttrStmt(node, key, value, self.block())
        if self.accept("assert"):
            condition = self.expr()
            self.expect(",")
            message = self.expr()
            return lambda body: tir.AssertStmt(condition, message, body)
        value = self.expr()
        if self.accept("="):
            return tir.BufferStore(value.buffer, self.expr(), value.indices)
        return tir.Evaluate(value)

    def loop(self):
        name = self.name()
        self.expect("in")
        kind = _KINDS[self.name()] if self.word in _KINDS else 0
        self.expect("[")
        begin = self.expr()
        self.expect(",")
        end = self.expr()
        self.expect(")")
        annotations = {}
        while self.word != "{":
            key, value = self.attribute()
            annotations[key] = value
        self.expect("{")
        var = self.names[name] = tir.Var(name, "int64")
        if isinstance(begin, tir.IntImm) and (begin.value == 0 or isinstance(end, tir.IntImm)):
            extent = tir.const(end.value - begin.value, "int64") if isinstance(end, tir.IntImm) else end
        elif isinstance(end, tir.Add) and structural_equal(end.a, begin):
            extent = end.b
        else:
            self.fail("where a loop begins its end must say: [b, b + n)")
        return tir.For(var, begin, extent, kind, self.block(), annotations=annotations)

    # ---- Expressions

    def expr(self, least=0):
        left = self.prefix()
        while True:
            if self.word == ":" and least <= 6:
                self.advance()
                left = tir.Ramp(left, tir.const(1, "int64"), int(self.word))
                self.advance()
                continue
            if self.kind == "string" or self.word not in _BINARY or _BINARY[self.word][0] < max(least, 1):
                return left
            level, node = _BINARY[self.word]
            self.advance()
            left = getattr(tir, node)(left, self.expr(level + 1))

    def prefix(self):
        kind, word = self.kind, self.word
        self.advance()
        if kind == "number":
            if word.endswith("f"):
                return tir.FloatImm("float32", float(word[:-1]))
            return tir.const(int(word), "int64") if word.isdigit() else tir.FloatImm("float64", float(word))
        if kind == "string":
            return tir.StringImm(word[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\"))
        if word == "-":
            value = self.prefix()
            return type(value)(value.dtype, -value.value)
        if word == "(":
            value = self.expr()
            self.expect(")")
            return value
        if word == "not":
            return tir.Not(self.expr(8))
        if word in ("True", "False"):
            return tir.const(word == "True")
        if word in ("inff", "nanf"):
            return tir.FloatImm("float32", float(word[:-1]))
        if word == "let":
            name = self.name()
            self.expect("=")
            value = self.expr(1)
            self.expect("in")
            var = self.names[name] = tir.Var(name, value.dtype)
            return tir.Let(var, value, self.expr())
        if word == "@":
            callee = self.name()
            self.expect("(")
            return tir.Call("int32", GlobalVar(callee), self.list_until(")", self.expr))
        if kind != "name":
            self.fail(f"expected an expression, got `{word}`")
        if self.accept("["):
            return tir.BufferLoad(self.known(word), self.list_until("]", self.expr))
        if self.word == "(" or (self.word == "<" and word.startswith(("call_", "reinterpret"))):
            return self.call(word)
        return self.known(word)

    def known(self, word):
        if word not in self.names:
            self.fail(f"`{word}` is not bound here")
        return self.names[word]

    def call(self, word):
        dtype = None
        if self.accept("<"):
            dtype = self.name()
            self.expect(">")
        self.expect("(")
        if _DTYPE.match(word):
            if self.kind == "number" and (word.startswith(("int", "uint")) or "." in self.word or not word.startswith("float32")):
                literal = self.expr()
                self.expect(")")
                if isinstance(literal, (tir.IntImm, tir.FloatImm)) and "x" not in word:
                    return (tir.IntImm if word.startswith(("int", "uint")) else tir.FloatImm)(word, literal.value)
                return tir.Cast(word, literal)
            value = self.expr()
            self.expect(")")
            if isinstance(value, tir.IntImm) and value.value < 0 and word.startswith("int"):
                return tir.IntImm(word, value.value)
            return tir.Cast(word, value)
        if re.match(r"x\d+$", word):
            (value,) = self.list_until(")", self.expr)
            return tir.Broadcast(value, int(word[1:]))
        args = self.list_until(")", self.expr)
        if word in _CALL_LIKE:
            return _CALL_LIKE[word](*args)
        if word == "ramp":
            return tir.Ramp(args[0], args[1], args[2].value)
        if word == "call_extern":
            return tir.call_extern(dtype, args[0].value, *args[1:])
        build = get_global_func("tir.op." + word, allow_missing=True)
        return build(*args) if build else tir.Call(dtype or self.result(word, args), "tir." + word, args)

    @staticmethod
    def result(word, args):
        if word in _HANDLES:
            return "handle"
        if word in _BOOLS:
            return "bool" + (args[0].dtype[args[0].dtype.index("x") :] if "x" in args[0].dtype else "")
        if word.startswith("vector_"):
            return args[0].dtype.split("x")[0]
        return args[1].dtype if word == "if_then_else" else "int32" if word in _EFFECTS else args[0].dtype
