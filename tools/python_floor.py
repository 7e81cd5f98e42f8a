# SPDX-License-Identifier: Apache-2.0
"""The floor of python/baton: `baton.tvm` has what serves programs written for Relay, and the rest of the package works without it.

`tools/check_layers.py` runs this; standard library only. `tools/floor.txt` counts what is left to move: hooks by text that a lower layer answers from a
higher one, and functions `__getattr__` of modules outside the floor. A number may only fall.
"""

import ast

import python_layers

FLOOR, FRONT = "baton.tvm", "baton"
LEFT = "tools/floor.txt"
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Outside python/baton/tvm (rule `floor`): `__getattr__` of modules, and hooks by text that a higher layer answers, in the file that declares them. A
# number may only fall: `python3 tools/check_layers.py --names` lowers it.
"""
# Attributes of `sys` by which a module changes how others are imported.
IMPORT_HOOKS = {"meta_path", "path_hooks"}


def of_floor(module):
    """Whether the module belongs to the floor."""
    return module == FLOOR or module.startswith(FLOOR + ".")


def _named(call):
    """The text that is the first argument of a call, or None."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _calls(tree, *names):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in names]


def _answers(tree):
    """(line, hook, module that answers) of the tables that a module gives to `answer`."""
    for call in _calls(tree, "answer", "_answer"):
        if call.args and isinstance(call.args[0], ast.Dict):
            for key, value in zip(call.args[0].keys, call.args[0].values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield value.lineno, key.value, str(value.value).partition(":")[0]


def _is_higher(module, than):
    theirs, own = python_layers.layer_of(module), python_layers.layer_of(than)
    return None not in (theirs, own) and python_layers.ORDER.index(theirs) > python_layers.ORDER.index(own)


def counted(files, trees):
    """(what, path) -> lines: what `tools/floor.txt` counts. `files` has the path of each module, `trees` its syntax tree."""
    answers = {hook: module for tree in trees.values() for _, hook, module in _answers(tree)}
    found = {}
    for module, tree in trees.items():
        if of_floor(module):
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
                found.setdefault(("getattr", files[module]), []).append(node.lineno)
        for call in _calls(tree, "Hook"):
            if _is_higher(answers.get(_named(call), module), module):
                found.setdefault(("hook", files[module]), []).append(call.lineno)
    return found


def read_left(root):
    """(what, path) -> how many are left, by `tools/floor.txt`."""
    file, rows = root / LEFT, {}
    for row in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        if row.strip() and not row.startswith("#"):
            number, what, path = row.split()
            rows[what, path] = int(number)
    return rows


def written(rows):
    """The text of `tools/floor.txt` for rows (what, path) -> number."""
    return HEAD + "".join(f"{number:3} {what:7} {path}\n" for (what, path), number in sorted(rows.items()) if number)


def lower(root, paths):
    """Lowers the numbers of `tools/floor.txt` to what is there; none rises."""
    left, found = read_left(root), counted(*python_layers.parsed(root, paths))
    if left:
        (root / LEFT).write_text(written({row: min(number, len(found.get(row, ()))) for row, number in left.items()}), encoding="utf-8")


def check(root, paths):
    """(path, line, "floor", what) of each breach."""
    files, trees = python_layers.parsed(root, paths)
    loads = []
    for module, tree in sorted(trees.items()):
        if of_floor(module):
            continue
        is_package = files[module].endswith("/__init__.py")
        known = {*files, FLOOR}
        for line, other, is_import in sorted(python_layers.imports(tree, module, is_package, known)):
            if of_floor(other):
                if module == FRONT and is_import:
                    loads.append(line)
                elif not module.startswith(python_layers.MAY_ASK):
                    yield files[module], line, "floor", f"`{module}` asks for {other}: the floor is loaded by baton/__init__.py alone"
        for line, hook, answering in _answers(tree):
            if of_floor(answering):
                yield files[module], line, "floor", f"the hook `{hook}` is answered by the floor ({answering})"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in IMPORT_HOOKS and getattr(node.value, "id", "") == "sys":
                yield files[module], node.lineno, "floor", f"sys.{node.attr}: import hooks belong to {FLOOR}"
    yield from ((files[FRONT], line, "floor", "the floor is loaded by one line") for line in loads[1:])
    left = read_left(root)
    found = counted(files, trees)
    for row in sorted({*left, *found}):
        what, path = row
        lines, most = found.get(row, []), left.get(row, 0)
        yield from ((path, line, "floor", f"{what} outside the floor ({LEFT} allows {most} in this file)") for line in lines[most:])
        if len(lines) < most:
            yield LEFT, 0, "floor", f"{path} has {len(lines)} of {what} left: python3 tools/check_layers.py --names"
