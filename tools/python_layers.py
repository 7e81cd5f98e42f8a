# SPDX-License-Identifier: Apache-2.0
"""The layers of python/baton: which module may import which. `tools/check_layers.py` runs this; standard library only.

Every import counts, at the top of a module or in a function, and so does a text that is the path of a module ("baton.relay" for
`importlib.import_module`), and the name of a global function ("relay.build" for `get_global_func`). Not counted: a package that
gives its own submodules on demand.
"""

import ast
import re

# From the lowest to the highest; a module belongs to the layer with its longest prefix.
LAYERS = [
    ("_ffi", ["baton._core", "baton.error", "baton._ffi"]),
    ("runtime", ["baton.runtime"]),
    ("ir", ["baton.ir"]),
    ("target", ["baton.target"]),
    ("tir", ["baton.tir"]),
    ("arith", ["baton.arith"]),
    ("te", ["baton.te"]),
    ("relay", ["baton.relay"]),
    ("driver", ["baton.driver"]),
    ("rpc", ["baton.rpc"]),
    (
        "tools",
        [
            "baton.cache",
            "baton.capsule",
            "baton.config",
            "baton.contrib",
            "baton.explorer",
            "baton.guard",
            "baton.history",
            "baton.testing",
        ],
    ),
    ("baton", ["baton", "baton.instrument", "baton.transform", "baton.tvm"]),
    ("programs", ["baton.__main__", "baton.cli", "baton.demo", "baton.describe", "baton.exec"]),
]
ORDER = [name for name, _ in LAYERS]
LAYER_OF = {prefix: name for name, prefixes in LAYERS for prefix in prefixes}
# Global functions of C++ by their first word -> the layer that has them. `_ffi` itself, which finds them for all, names any.
NAMESPACES = {
    "node": "ir",
    "transform": "ir",
    "instrument": "ir",
    "diagnostics": "ir",
    "schedule": "te",
    "topi": "relay",
    "parser": "relay",
    "codegen": "driver",
    **{name: name for name in ("ir", "target", "tir", "arith", "te", "relay", "driver")},
}
MODULE_TEXT = re.compile(r"baton(\.\w+)+(:\w+)?")
COMPAT, TABLES, FRONT = "baton.tvm", "baton.tvm.tables", "baton"
# Modules that may ask for old spellings, besides baton/__init__.py: the package of these itself, and what writes stubs of them.
MAY_ASK = (COMPAT, "baton.describe")


def layer_of(module):
    """The layer of a module; None for a package at the top that is in none."""
    found = module
    while "." in found and found not in LAYER_OF:
        found = found.rpartition(".")[0]
    return None if found == FRONT and module != FRONT else LAYER_OF.get(found)


def module_of(path):
    """The module of a file below python/, as (name, whether it is a package)."""
    parts = path.removeprefix("python/").removesuffix(".py").split("/")
    return (".".join(parts[:-1]), True) if parts[-1] == "__init__" else (".".join(parts), False)


def _docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            yield body[0].value


def imports(tree, module, is_package, known):
    """(line, module, whether it is an import or a text that names one) of all that a module asks for."""
    skipped = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "baton":
                    yield node.lineno, alias.name, True
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            if whole.split(".")[0] == "baton":
                for alias in node.names:
                    inner = f"{whole}.{alias.name}"
                    yield node.lineno, inner if inner in known else whole, True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped and MODULE_TEXT.fullmatch(node.value):
            name = node.value.partition(":")[0]
            if name in known:
                yield node.lineno, name, False


def global_functions(tree):
    """(line, name) of the global functions that a module asks for, as far as it has the names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("get_global_func", "_init_api"):
            name = node.args[0].left if isinstance(node.args[0], ast.BinOp) else node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def tables(tree):
    """(paths, NAMES) of the floor's tables: the old paths of modules and packages; by module, the names that it shows and does not have."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("PACKAGES", "MODULES", "NAMES"):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found.get("PACKAGES", {}) | found.get("MODULES", {}), found.get("NAMES", {})


def old_names(tree, module, is_package, names):
    """(line, module, name) of each use of a name that the tables add to a module: imported, or as an attribute of the module."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                if alias.name in names.get(whole, ()):
                    yield node.lineno, whole, alias.name
                bound[alias.asname or alias.name] = f"{whole}.{alias.name}"
        elif isinstance(node, ast.Import):
            bound.update((alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]) for alias in node.names)

    def path_of(node):
        if isinstance(node, ast.Name):
            return bound.get(node.id)
        return f"{inner}.{node.attr}" if isinstance(node, ast.Attribute) and (inner := path_of(node.value)) else None

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names.get(path_of(node.value), ()):
            yield node.lineno, path_of(node.value), node.attr


def cycles(graph):
    """Sets of modules that import each other, by way of others or not (Tarjan's algorithm, with an explicit stack)."""
    index, low, stack, found = {}, {}, [], []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, edges = work[-1]
            below = next(edges, None)
            if below is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
            elif below not in index:
                index[below] = low[below] = len(index)
                stack.append(below)
                work.append((below, iter(sorted(graph[below]))))
            elif below in stack:
                low[node] = min(low[node], index[below])
    return found


def parsed(root, paths):
    """(path of each module, syntax tree of each that has one) of python/baton."""
    files = {module_of(p)[0]: p for p in paths if p.startswith("python/baton/") and p.endswith(".py")}
    trees = {}
    for module, path in files.items():
        try:
            trees[module] = ast.parse((root / path).read_text(encoding="utf-8"))
        except SyntaxError:
            continue  # another rule says so
    return files, trees


def check(root, paths):
    """(path, line, rule, what) of each breach: "python-layer", "python-cycle", "python-compat"."""
    files, trees = parsed(root, paths)
    old, names = tables(trees[TABLES]) if TABLES in trees else ({}, {})
    for path, target in old.items():
        parent, _, last = path.rpartition(".")
        names.setdefault(parent, {})[last] = target
    known = {*files, *old, "baton._core"}
    graph, lines = {module: set() for module in files}, {}
    for module, tree in trees.items():
        path, own = files[module], layer_of(module)
        if own is None:
            yield path, 0, "python-layer", f"`{module}` is in no layer: name it in tools/python_layers.py"
            continue
        for line, name in () if own == ORDER[0] else global_functions(tree):
            theirs = NAMESPACES.get(name.split(".")[0])
            if theirs is not None and ORDER.index(theirs) > ORDER.index(own):
                yield path, line, "python-layer", f"{own} calls the global function {name} of {theirs}"
        is_package = path.endswith("/__init__.py")
        may_ask = module == FRONT or module.startswith(MAY_ASK)
        for line, other, name in () if may_ask else sorted(old_names(tree, module, is_package, names)):
            yield path, line, "python-compat", f"`{other}` has `{name}` by a table of {COMPAT} alone: {names[other][name]}"
        for line, other, is_import in sorted(imports(tree, module, is_package, known)):
            if (other == COMPAT or any(other == path or other.startswith(path + ".") for path in (COMPAT, *old))) and not may_ask:
                yield path, line, "python-compat", f"`{module}` asks for {other}, which is there for programs alone"
            while other not in files and other != "baton._core" and "." in other:
                other = other.rpartition(".")[0]  # a name of a package
            theirs = layer_of(other)
            if theirs is not None and ORDER.index(theirs) > ORDER.index(own):
                yield path, line, "python-layer", f"{own} {'imports' if is_import else 'names'} {other} of {theirs}"
            if is_import and other in graph and other != module:
                graph[module].add(other)
                lines.setdefault((module, other), line)
    for ring in cycles(graph):
        first, inner = ring[0], set(ring)
        line = min(lines[first, other] for other in graph[first] if other in inner)
        yield files[first], line, "python-cycle", f"import each other: {', '.join(ring)}"
