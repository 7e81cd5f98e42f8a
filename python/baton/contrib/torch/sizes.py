# SPDX-License-Identifier: Apache-2.0
"""Sizes of PyTorch as extents of Relay: numbers stay numbers, symbols of SymPy become size variables."""

from __future__ import annotations

import functools
import operator
import re

from ... import tir
from ...error import UnsupportedError


class Sizes:
    """The symbols of one program. Equal symbols are one variable, whose name is `rename` of PyTorch's."""

    def __init__(self):
        self.variables: dict = {}
        self.names: dict[str, str] = {}
        self.readable: set = set()  # formulas that are extents of inputs, or inputs

    def variable(self, symbol):
        """The size variable of a symbol, or of a formula that an input has where none has its symbols."""
        found = self.variables.get(symbol)
        if found is None:
            name = self.names.get(str(symbol), re.sub(r"\W+", "_", str(symbol)).strip("_"))
            found = self.variables[symbol] = tir.SizeVar(name, "int64")
        return found

    def extent(self, size):
        """A size, an int or a SymInt, as an extent: an int or an expression of TIR."""
        if isinstance(size, int):
            return int(size)
        expr = expression(size)
        return int(expr) if expr.is_Integer else self._convert(expr)

    def extents(self, sizes):
        """Sizes as extents."""
        return [self.extent(s) for s in sizes]

    def _convert(self, e):
        if e.is_Integer:
            return tir.IntImm("int64", int(e))
        if e.is_Symbol or e in self.readable and not e.free_symbols <= self.readable:
            return self.variable(e)
        kind = type(e).__name__
        args = [self._convert(a) for a in e.args] if kind != "Pow" else []
        if e.is_Add:
            return functools.reduce(operator.add, args)
        if e.is_Mul:
            return functools.reduce(operator.mul, args)
        if kind == "Pow" and e.args[1].is_Integer and int(e.args[1]) > 0:
            return functools.reduce(operator.mul, [self._convert(e.args[0])] * int(e.args[1]))
        if kind in ("FloorDiv", "CleanDiv", "IntTrueDiv"):
            return tir.floordiv(*args)
        if kind == "CeilDiv":
            return tir.floordiv(args[0] + args[1] - 1, args[1])
        if kind in ("Mod", "PythonMod"):
            return tir.floormod(*args)
        if kind == "ModularIndexing":
            return tir.floormod(tir.floordiv(args[0], args[1]), args[2])
        if kind == "Max":
            return functools.reduce(tir.max, args)
        if kind == "Min":
            return functools.reduce(tir.min, args)
        if kind == "Identity":
            return args[0]
        raise UnsupportedError(f"the size `{e}` is no formula that an extent can hold")


def expression(size):
    """The SymPy expression of an int or a SymInt."""
    import sympy

    return size.node.expr if hasattr(size, "node") else sympy.Integer(int(size))


def known(size) -> bool:
    """Whether a size is a number; a size with a symbol in it never is, whatever PyTorch supposes of it."""
    return isinstance(size, int) or bool(expression(size).is_Integer)


def is_one(size) -> bool:
    """Whether a size is the number 1."""
    return known(size) and int(size) == 1


def same(a, b) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return bool((expression(a) - expression(b)).expand() == 0)


def product(sizes):
    """The product of sizes; 1 of none."""
    return functools.reduce(operator.mul, sizes, 1)
