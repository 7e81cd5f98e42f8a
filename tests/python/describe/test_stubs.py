# SPDX-License-Identifier: Apache-2.0
"""Stubs: complete, up to date, and of use to a type checker and an editor."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import baton
from baton import _core
from baton._ffi import get_global_func
from baton.describe import model

HERE = Path(__file__).parent
TREE = Path(baton.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("stubs")
    in_new_process(out, "1")  # names that other tests asked for are not in this one's modules
    return out


def in_new_process(folder, seed):
    done = subprocess.run(
        [sys.executable, "-m", "baton.describe", "stubs", "--out", folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def modules(folder):
    """Module name -> what its stub says."""
    out = {}
    for path in folder.rglob("*.pyi"):
        parts = path.relative_to(folder).with_suffix("").parts
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return out


def definition(modules, module, name, seen=()):
    """(module, node) of a class or function, imports followed; None if the stubs have none."""
    if (module, name) in seen or module not in modules:
        return None
    for node in modules[module].body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return module, node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name and isinstance(node.value, ast.Name):
            return definition(modules, module, node.value.id, (*seen, (module, name)))
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            found = definition(modules, node.module, name, (*seen, (module, name)))
            if found:
                return found
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.asname == name:
                    origin = module if node.level else node.module
                    return definition(modules, origin, alias.name, (*seen, (module, name))) or (origin, alias)
    return None


def members(modules, module, node):
    """Name -> node of what a class and its bases have."""
    out = {}
    for base in node.bases:
        text = ast.unparse(base).split("[")[0]
        home, _, name = text.rpartition(".")
        found = definition(modules, home or module, name)
        if found and isinstance(found[1], ast.ClassDef):
            out |= members(modules, *found)
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            out[item.name] = item
        elif isinstance(item, ast.AnnAssign):
            out[item.target.id] = item
        elif isinstance(item, ast.Assign):
            out[item.targets[0].id] = item
    return out


def test_every_public_attribute_of_every_class(modules):
    """RF-007: what `dir` gives of an object of each type, the stubs have."""
    types = model.node_types()
    assert len(types) > 250
    missing = []
    for key, node in types.items():
        found = definition(modules, node.module, node.name)
        assert found and isinstance(found[1], ast.ClassDef), f"{key} has no class in the stub of {node.module}"
        have = members(modules, *found)
        missing += [f"{key}.{n}" for n in {*model.attribute_names(node.cls), *(f.name for f in node.fields)} if model.is_identifier(n) and n not in have]
    assert not missing


def test_fields_have_docstrings_and_types(modules):
    """Editors show what a field means."""
    found = members(modules, *definition(modules, "baton.relay", "Let"))
    assert ast.get_docstring(found["var"]) == dict((n, doc) for n, _, doc, *_ in _core.describe_type("relay.Let")[2])["var"]
    assert ast.unparse(found["var"].returns) in ("Var", "baton.relay.expr.Var")
    found = members(modules, *definition(modules, "baton.relay", "Call"))
    assert ast.unparse(found["args"].returns) == "baton.runtime.Array[baton.ir.expr.RelayExpr]"
    without = []
    for key, node in model.node_types().items():
        module, stub = definition(modules, node.module, node.name)
        if not ast.get_docstring(stub):
            without.append(key)
        have = members(modules, module, stub)
        without += [f"{key}.{f.name}" for f in node.fields if f.doc and model.is_identifier(f.name) and not ast.get_docstring(have[f.name])]
    assert not without


def test_constructors_take_what_the_table_says(modules):
    found = members(modules, *definition(modules, "baton.relay.op.op_attrs", "Conv2DAttrs"))["__init__"]
    names = [a.arg for a in found.args.args]
    assert names == ["self", *(f.name for f in model.node_types()["relay.attrs.Conv2DAttrs"].arguments())]


def test_every_operator(modules):
    """By the place that programs call it at, with its parameters and its docstring."""
    for name in model.operators():
        group, _, last = name.removeprefix("relay.op.").rpartition(".")
        if not all(model.is_identifier(part) for part in name.split(".")):
            continue
        found = definition(modules, "baton.relay.op" + ("." + group if group else ""), last)
        assert found, name
        if isinstance(found[1], ast.FunctionDef):
            assert ast.get_docstring(found[1]), name
    conv = definition(modules, "baton.relay.nn", "conv2d")[1]
    assert [a.arg for a in conv.args.args][:4] == ["data", "weight", "strides", "padding"]


def test_every_pass(modules):
    # Passes that tests of this process register are in no stub.
    baton.register_func("relay._transform.TestOfStubs", lambda: None, override=True)
    ask = "from baton.describe import model; print(*model.passes(), sep='\\n')"
    names = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    missing = [n for n in names if not definition(modules, *model.pass_function(n))]
    assert "FuseOps" in names and "TestOfStubs" not in names and not missing
    fuse = definition(modules, "baton.relay.transform", "FuseOps")[1]
    assert ast.unparse(fuse.returns) == "baton.ir.transform.Pass"


def test_functions_of_cpp_with_their_signatures(modules):
    found = definition(modules, "baton.ir._ffi_api", "Module_ContainGlobalVar")[1]
    assert ast.unparse(found.returns) == "bool" and get_global_func("ir.Module_ContainGlobalVar").signature in ast.get_docstring(found)


def test_stubs_in_the_tree_are_up_to_date(folder):
    """`./dev stubs` writes them beside the Python files; they are not kept in the repository."""
    if not (TREE / "__init__.pyi").exists():
        pytest.skip("this checkout has none; ./dev stubs writes them")
    stale = [p for p in folder.rglob("*.pyi") if (TREE.parent / p.relative_to(folder)).read_text(encoding="utf-8") != p.read_text(encoding="utf-8")]
    extra = [p for p in TREE.rglob("*.pyi") if not (folder / p.relative_to(TREE.parent)).exists()]
    assert not stale and not extra, "run ./dev stubs"


def test_text_is_the_same_in_every_process(folder, tmp_path):
    in_new_process(tmp_path, "2")
    for path in folder.rglob("*.pyi"):
        assert (tmp_path / path.relative_to(folder)).read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), path.name


def check(program, stubs, cache):
    """Lines with an error, by mypy."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", cache, "--no-error-summary", "--show-absolute-path", "--hide-error-context", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(stubs), "PYTHONPATH": ""},
    )
    assert done.returncode in (0, 1), done.stderr
    assert all(line.startswith(str(program)) for line in done.stdout.splitlines()), done.stdout
    return {int(m[1]) for m in re.finditer(r"\.py:(\d+): error", done.stdout)}, done.stdout


@pytest.mark.slow
def test_a_type_checker(folder, tmp_path):
    """A right program passes, a wrong one is told where; the stubs themselves are sound."""
    pytest.importorskip("mypy")
    found, text = check(HERE / "programs" / "good.py", folder, tmp_path)
    assert not found, text
    program = HERE / "programs" / "bad.py"
    wrong = {i for i, line in enumerate(program.read_text(encoding="utf-8").splitlines(), 1) if "# wrong" in line}
    found, text = check(program, folder, tmp_path)
    assert found == wrong, text
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path, "baton"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_right_program_runs():
    """What the type checker takes is what Baton takes."""
    done = subprocess.run([sys.executable, HERE / "programs" / "good.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words, read, taken",
    [
        ("int", "int", "_t.SupportsInt"),
        ("runtime.String", "str", "str"),
        (
            "Array<Map<str, Array<int>>>",
            "baton.runtime.Array[baton.runtime.Map[str, baton.runtime.Array[int]]]",
            "_t.Sequence[_t.Mapping[str, _t.Sequence[_t.SupportsInt]]]",
        ),
        ("Array<str>", "baton.runtime.Array[str]", "list[str] | tuple[str, ...] | baton.runtime.Array[str]"),
        ("relay.Let", "baton.relay.expr.Let", "baton.relay.expr.Let"),
        ("nobody.Knows", "_t.Any", "_t.Any"),
    ],
)
def test_types_of_values(words, read, taken):
    from baton.describe.stubs import value_type

    assert (value_type(words), value_type(words, taken=True)) == (read, taken)
