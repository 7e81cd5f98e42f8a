# SPDX-License-Identifier: Apache-2.0
"""Random PrimFuncs, and what the interpreter makes of them: for tests that passes keep the meaning."""

import random

import numpy as np

import baton
from baton import tir
from baton._ffi import get_global_func

_EXTENTS = (1, 2, 3, 4, 8)


class Maker:
    """A random PrimFunc: loops of every kind, conditions, bindings, allocations, marks, reads and writes within bounds. With `loose`,
    allocations are larger than what is used of them, which begins somewhere within."""

    def __init__(self, seed, serial=False, loose=False):
        self.random = random.Random(seed)
        self.serial = serial
        self.loose = loose
        self.used = {}  # name: (extents, begins) of the part of a buffer that is used
        self.n = tir.Var("n", "int64")
        self.buffers = [self.buffer(f"P{i}", dtype) for i, dtype in enumerate(("float32", "float32", "int64", "int32"))]
        self.count = 0

    def buffer(self, name, dtype, scope=""):
        shape = [self.random.choice(_EXTENTS) for _ in range(self.random.choice((1, 1, 2)))]
        made = tir.Buffer(shape, dtype, name, scope)
        return made

    def extents(self, buffer):
        return self.used[buffer.name][0] if buffer.name in self.used else list(buffer.shape)

    def at(self, buffer, index):
        """The place of the used part's `index`."""
        begins = self.used[buffer.name][1] if buffer.name in self.used else [None] * len(index)
        return [i if b is None else tir.Add(i, b) for i, b in zip(index, begins, strict=True)]

    def loosened(self, buffer, loops):
        extents, begins, shape = [int(d) for d in buffer.shape], [], []
        for d in extents:
            least, slack = self.random.randint(0, 2), self.random.randint(0, 2)
            begin = tir.const(least, "int64")
            if loops and self.random.random() < 0.6:
                begin = tir.Add(tir.FloorMod(self.random.choice(loops), tir.const(4, "int64")), begin)
                least += 3
            begins.append(begin)
            shape.append(d + least + slack)
        self.used[buffer.name] = [tir.const(d, "int64") for d in extents], begins
        return tir.Buffer(shape, buffer.dtype, buffer.name, buffer.scope())

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def func(self):
        body = self.block([], list(self.buffers), 4)
        return tir.PrimFunc([*self.buffers, self.n], body).with_attr("global_symbol", "f")

    # ---- Expressions. `loops` are (variable, least, most).

    def index(self, loops, depth=2):
        pick = self.random.random()
        if depth == 0 or pick < 0.35 or not loops:
            if loops and pick < 0.3:
                return self.random.choice(loops)
            value = self.random.randint(-3, 9)
            return tir.const(value, "int64")
        a, b = self.index(loops, depth - 1), self.index(loops, depth - 1)
        op = self.random.choice(("+", "-", "*", "//", "%", "min", "max", "select"))
        k = tir.const(self.random.randint(1, 5), "int64")
        if op == "+":
            return tir.Add(a, b)
        if op == "-":
            return tir.Sub(a, b)
        if op == "*":
            return tir.Mul(a, k)
        if op == "//":
            return tir.FloorDiv(a, k)
        if op == "%":
            return tir.FloorMod(a, k)
        if op == "select":
            return tir.Select(tir.LT(a, k), a, b)
        return tir.Min(a, b) if op == "min" else tir.Max(a, b)

    def place(self, buffer, loops):
        """An index within the buffer: whatever comes out, modulo the extent; now and then as it is, where loops are short enough."""
        return self.at(buffer, [tir.FloorMod(self.index(loops), d) for d in self.extents(buffer)])

    def value(self, dtype, loops, buffers, depth=3):
        pick = self.random.random()
        same = [b for b in buffers if b.dtype == dtype]
        if depth == 0 or pick < 0.2:
            return tir.const(self.random.randint(-4, 4), dtype)
        if pick < 0.5 and same:
            b = self.random.choice(same)
            return tir.BufferLoad(b, self.place(b, loops))
        if pick < 0.58:
            return tir.Cast(dtype, self.index(loops)) if dtype != "int64" else self.index(loops)
        a, b = (self.value(dtype, loops, buffers, depth - 1) for _ in range(2))
        if pick < 0.66:
            return tir.Select(self.condition(loops, buffers, depth - 1), a, b)
        if pick < 0.72:
            return tir.if_then_else(self.condition(loops, buffers, depth - 1), a, b)
        if pick < 0.78:
            var = tir.Var(self.fresh("x"), dtype)
            return tir.Let(var, a, tir.Add(var, b))
        node = self.random.choice((tir.Add, tir.Sub, tir.Min, tir.Max) if dtype == "float32" else (tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max))
        return node(a, b)

    def condition(self, loops, buffers, depth=1):
        compare = self.random.choice((tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE))
        pick = self.random.random()
        if pick < 0.2 and depth > 0:
            both = self.random.choice((tir.And, tir.Or))
            return both(self.condition(loops, buffers, depth - 1), self.condition(loops, buffers, depth - 1))
        if pick < 0.3:
            return compare(self.n, tir.const(self.random.randint(0, 5), "int64"))
        if pick < 0.6:
            return compare(self.value("float32", loops, buffers, 1), tir.const(1.0))
        return compare(self.index(loops), tir.const(self.random.randint(-1, 6), "int64"))

    # ---- Statements

    def block(self, loops, buffers, depth):
        return self.joined([self.statement(loops, buffers, depth) for _ in range(self.random.randint(1, 3))])

    @staticmethod
    def joined(statements):
        return statements[0] if len(statements) == 1 else tir.SeqStmt(statements)

    def store(self, loops, buffers):
        b = self.random.choice(buffers)
        return tir.BufferStore(b, self.value(b.dtype, loops, buffers), self.place(b, loops))

    def statement(self, loops, buffers, depth):
        pick = self.random.random()
        if depth == 0 or pick < 0.25:
            return self.store(loops, buffers)
        if pick < 0.6:
            kind = 0 if self.serial else self.random.choice((0, 0, 2, 3))
            if kind == 2:
                return self.vectorised(loops, buffers)
            if self.random.random() < 0.15:
                return self.doubled(loops, buffers, depth)
            begin = tir.const(self.random.choice((0, 0, 1, -2)), "int64")
            extent = self.n if kind == 0 and self.random.random() < 0.2 else tir.const(self.random.choice(_EXTENTS), "int64")
            var = tir.Var(self.fresh("i"), "int64")
            return tir.For(var, begin, extent, kind, self.block([*loops, var], buffers, depth - 1))
        if pick < 0.75:
            other = self.block(loops, buffers, depth - 1) if self.random.random() < 0.5 else None
            return tir.IfThenElse(self.condition(loops, buffers), self.block(loops, buffers, depth - 1), other)
        if pick < 0.83:
            var = tir.Var(self.fresh("k"), "int64")
            return tir.LetStmt(var, self.index(loops), self.block([*loops, var], buffers, depth - 1))
        if pick < 0.88:
            return tir.AttrStmt(None, "mark", tir.const(1, "int64"), self.block(loops, buffers, depth - 1))
        if pick < 0.92:
            return tir.AssertStmt(tir.LT(self.n, tir.const(100, "int64")), "n is large", self.block(loops, buffers, depth - 1))
        return self.allocation(loops, buffers, depth)

    def doubled(self, loops, buffers, depth):
        """A loop that fills memory of its own in each round, under the mark of double buffers."""
        var = tir.Var(self.fresh("d"), "int64")
        begin, extent = tir.const(self.random.choice((0, 2)), "int64"), self.random.choice((self.n, tir.const(self.random.choice(_EXTENTS), "int64")))
        return tir.For(var, begin, extent, 0, self.allocation([*loops, var], buffers, depth, mark=True))

    def vectorised(self, loops, buffers):
        """A loop whose iterations are independent, as its mark promises: each has its own element of one buffer."""
        own = self.random.choice(buffers)
        others = [b for b in buffers if not b.same_as(own)]
        var = tir.Var(self.fresh("v"), "int64")
        at = self.at(own, [*(tir.FloorMod(self.index(loops), d) for d in self.extents(own)[:-1]), var])

        def store():
            value = self.value(own.dtype, [*loops, var], others)
            if self.random.random() < 0.5:
                value = tir.Add(tir.BufferLoad(own, at), value)
            return tir.BufferStore(own, value, at)

        body = store()
        if self.random.random() < 0.5:
            asked = tir.LT(tir.BufferLoad(own, at), tir.const(1, own.dtype))
            condition = asked if self.random.random() < 0.5 else self.condition([*loops, var], others)
            body = tir.IfThenElse(condition, tir.SeqStmt([store(), store()]), store() if self.random.random() < 0.5 else None)
        if self.random.random() < 0.3:
            body = tir.SeqStmt([body, store()])
        return tir.For(var, tir.const(0, "int64"), self.extents(own)[-1], 2, body)

    def allocation(self, loops, buffers, depth, mark=False):
        """New memory: filled first, so that no pass can show what was there before."""
        made = self.buffer(self.fresh("t"), self.random.choice(("float32", "int64")), self.random.choice(("", "local")))
        if self.loose:
            made = self.loosened(made, loops)
        index = [tir.Var(self.fresh("f"), "int64") for _ in made.shape]
        fill = tir.BufferStore(made, self.value(made.dtype, [*loops, *index], buffers, 2), self.at(made, index))
        for var, extent in zip(reversed(index), reversed(self.extents(made)), strict=True):
            fill = tir.For(var, tir.const(0, "int64"), extent, 0, fill)
        if mark:
            fill = tir.AttrStmt(made.data, "double_buffer_scope", tir.const(1, "int64"), fill)
        return tir.Allocate(made, self.joined([fill, self.block(loops, [*buffers, made], depth - 1)]))


def arguments(func, n, seed=0):
    """Arrays for a function of `Maker`."""
    rng, out = np.random.default_rng(seed), []
    for p in list(func.params)[:-1]:
        buffer = func.buffer_map[p]
        shape = [int(d) for d in buffer.shape]
        out.append(rng.integers(-4, 5, shape).astype(buffer.dtype))
    return [*out, np.asarray([n], "int64")]


def interpret(func, args, threads="together", mod=None):
    """What the arrays hold afterwards; the text of the error where it fails. `threads` of a block run "together", "apart" or "apart backwards";
    functions of `mod` can be called."""
    arrays = [baton.nd.array(a.copy()) for a in args]
    try:
        get_global_func("tir.Interpret")(func, arrays, threads, mod)
    except baton.error.BatonError as error:
        return str(error)
    return [a.numpy() for a in arrays]
