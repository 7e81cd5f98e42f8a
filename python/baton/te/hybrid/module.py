# SPDX-License-Identifier: Apache-2.0
"""Scripts as text: what a schedule computes, written as a script, which can be kept in a file."""

import ast
import itertools
import linecache
from pathlib import Path

from .script import script
from .writer import written

_numbers = itertools.count()


class HybridModule:
    """A script of a text or a file. Called as a script is: of tensors it gives tensors, of arrays it runs in Python.

    module = te.hybrid.build(s, [A, B], [C])
    print(module.get_source())
    module.save("sum.py")
    """

    def __init__(self, src=None, name=None):
        self.src_ = self.name = self.func_ = None
        if src is not None:
            self._read(src, name)

    def __call__(self, *args):
        if self.func_ is None:
            raise RuntimeError("the module has no script yet; load(path) reads one")
        return self.func_(*args)

    def get_source(self):
        """The text."""
        return self.src_

    def save(self, path):
        """Writes the text to a file, whose name ends in ".py"."""
        path = str(path)
        Path(path if path.endswith(".py") else path + ".py").write_text(self.src_)

    def load(self, path):
        """Reads a file with one function."""
        self._read(Path(path).read_text(), None)

    def _read(self, src, name):
        functions = [f.name for f in ast.parse(src).body if isinstance(f, ast.FunctionDef)]
        if not functions or (name or functions[-1]) not in functions:
            raise ValueError(f"the text has no function{f' `{name}`' if name else ''}; it has {', '.join(functions) or 'none'}")
        self.src_, self.name = src, name or functions[-1]
        # `script` asks for the function's text, which `inspect` finds by the name of the file.
        place = f"<hybrid script {next(_numbers)}>"
        linecache.cache[place] = (len(src), None, src.splitlines(keepends=True), place)
        known = {"tvm": _Decorators, "te": _Decorators.te, "script": lambda f: f}
        exec(compile(src, place, "exec"), known)  # noqa: S102 - a script is a program of the caller
        self.func_ = script(known[self.name])


class _Decorators:
    """Stands for the package in `@tvm.te.hybrid.script` of a file."""

    class te:  # noqa: N801
        """Stands for `te`."""

        class hybrid:  # noqa: N801
            """Stands for `te.hybrid`."""

            script = staticmethod(lambda f: f)


def build(sch, inputs, outputs, name="hybrid_func"):
    """Returns a schedule's computation as a HybridModule: a script of `inputs`, tensors and variables of sizes, that returns `outputs`."""
    return HybridModule(written(sch, list(inputs), list(outputs), name), name)


__all__ = ["HybridModule", "build"]
