# SPDX-License-Identifier: Apache-2.0
"""Finds tests that cannot fail: `python tests/tools/weak_tests.py [PATH...]` prints them, `test_weak_tests.py` wants none.

A test checks something if it, or a function of its file that it calls, has an assert or a raise, calls what is named after checking
(`assert_allclose`, `pytest.raises`, `check`, ...), or calls a fixture or a function of another file whose checks its name does not tell:
those are listed in CHECKED, with what checks.
"""

import ast
import sys
from pathlib import Path

CHECKING = ("assert", "raises", "warns", "fail", "check", "expect")
COMPARISONS = ("structural_equal", "array_equal", "allclose")
CHECKED = {}


def _name(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _checks(function, helpers, seen=()):
    for node in ast.walk(function):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return True
        if isinstance(node, ast.Call):
            name = _name(node)
            if any(word in name for word in CHECKING) or any(k.arg == "check" and getattr(k.value, "value", False) for k in node.keywords):
                return True
            if name in helpers and name not in seen and helpers[name] is not function and _checks(helpers[name], helpers, (*seen, name)):
                return True
    return False


def _same(a, b):
    return ast.dump(a) == ast.dump(b)


def _makes(expression):
    """Whether evaluating it twice may give two things: a test of equal hashes, or of repeatable results, asks for that."""
    return any(isinstance(n, (ast.Call, ast.BinOp)) for n in ast.walk(expression))


def _always(test):
    """Why what is asserted always holds; None if it may not."""
    if isinstance(test, (ast.Tuple, ast.List, ast.Dict)) and (getattr(test, "elts", None) or getattr(test, "keys", None)):
        return "a display that is not empty"
    if isinstance(test, (ast.Lambda, ast.GeneratorExp)) or isinstance(test, ast.Constant) and test.value:
        return "something that is always true"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        if why := next((why for value in test.values if (why := _always(value))), None):
            return why
    pair = None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is, ast.LtE, ast.GtE)):
        pair = test.left, test.comparators[0]
        if isinstance(test.ops[0], ast.GtE) and isinstance(pair[0], ast.Call) and _name(pair[0]) == "len" and getattr(pair[1], "value", 1) == 0:
            return "a length that is not negative"
    elif isinstance(test, ast.Call) and _name(test) in COMPARISONS and len(test.args) > 1:
        pair = test.args[:2]
    if pair and _same(*pair) and not _makes(pair[0]):
        return "a value that is compared with itself"
    return None


def _broad(handler):
    """Whether an `except` takes any exception."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in ("Exception", "BaseException") for kind in kinds)


def weak(text):
    """[(line, what is wrong)] of the text of a file of tests."""
    tree, found = ast.parse(text), []
    helpers = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    raising = {n for w in ast.walk(tree) if isinstance(w, ast.With) and any("raises" in ast.dump(i.context_expr) for i in w.items) for n in ast.walk(w)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name not in CHECKED and not _checks(node, helpers):
            found.append((node.lineno, f"{node.name} checks nothing"))
        elif isinstance(node, ast.Assert) and (why := _always(node.test)):
            found.append((node.lineno, f"asserts {why}"))
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and "assert" in _name(node.value)
            and len(node.value.args) > 1
            and _same(*node.value.args[:2])
            and not _makes(node.value.args[0])
            and node not in raising
        ):
            found.append((node.lineno, "asserts a value that is compared with itself"))
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and any(
            isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and any(isinstance(v, ast.Constant) and v.value for v in test.values)
            for each in node.generators
            for test in each.ifs
        ):
            found.append((node.lineno, "asks for a condition that always holds"))
        elif isinstance(node, ast.ExceptHandler) and _broad(node):
            if any(isinstance(n, ast.Call) and _name(n) == "skip" for n in ast.walk(node)):
                found.append((node.lineno, "skips on any exception"))
            elif all(isinstance(n, (ast.Pass, ast.Continue)) for n in node.body):
                found.append((node.lineno, "passes over any exception"))
        elif (
            isinstance(node, ast.If)
            and any(isinstance(n, ast.Call) and _name(n) in ("hasattr", "list_op_names") for n in ast.walk(node.test))
            and not node.orelse
            and any(isinstance(n, ast.Assert) or isinstance(n, ast.Call) and _name(n) == "skip" for n in ast.walk(node))
        ):
            found.append((node.lineno, "checks only what is there: say what must be"))
        elif (
            isinstance(node, ast.Call)
            and _name(node) == "raises"
            and len(node.args) == 1
            and not node.keywords
            and getattr(node.args[0], "id", "") in ("Exception", "BaseException")
        ):
            found.append((node.lineno, "expects any exception: say which, or what it says"))
    return sorted(found)


def main(paths):
    """Prints what is found; the exit status says whether there is any."""
    files = [f for p in paths for f in (sorted(p.rglob("*.py")) if p.is_dir() else [p])]
    lines = [f"{f}:{line}: {what}" for f in files for line, what in weak(f.read_text(encoding="utf-8"))]
    print("\n".join(lines) or "none")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main([Path(p) for p in sys.argv[1:]] or [Path(__file__).parents[1]]))
