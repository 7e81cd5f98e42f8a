# SPDX-License-Identifier: Apache-2.0
"""A library of node types and a pass, built out of tree against an installation, used from Python (RF-005, OB-021, PI-067)."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import baton

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def out(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not (ROOT / "build" / "build.ninja").exists():
        pytest.fail("no build; run ./dev build")
    prefix, build = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("gadget")
    out("cmake", "--install", ROOT / "build", "--prefix", prefix)
    out("cmake", "-S", HERE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    out("cmake", "--build", build)
    return build / "gadget.so"


PROGRAM = '''
import pickle, sys
import baton as tvm
from baton import relay
from baton._ffi import get_global_func
import ctypes
ctypes.CDLL(sys.argv[1])
from baton.ir import load_json, make_node, save_json, structural_equal, structural_hash

def error(run):
    try:
        run()
    except Exception as e:
        return type(e).__name__ + ": " + str(e)
    raise AssertionError("no error")
'''

PARTS = {
    "RF-005 a new node type is visible in Python: attributes, dir, print": '''
x = relay.var("x", shape=(2,))
g = make_node("gadget.Gadget", label="lever", size=3, parts=[relay.abs(x)])
assert (g.label, g.size, g.weight, g.dtype, g.type) == ("lever", 3, 0.5, "float32", None)
assert {"label", "size", "weight", "dtype", "parts", "type"} <= set(dir(g))
assert g.parts[0].op.name == "abs"
assert str(g).startswith("gadget.Gadget(label=") and "lever" in str(g) and "abs" in str(g), str(g)
assert type(g).__doc__.startswith("Something that Baton does not know.")
assert "How large it is" in type(g).size.__doc__
assert "at least 1" in error(lambda: make_node("gadget.Gadget", label="a", size=0))
assert "has no field" in error(lambda: make_node("gadget.Gadget", lable="a"))
assert "AttributeError" in error(lambda: g.colour)
''',
    "RF-005 it saves, loads and compares": '''
x = relay.var("x", shape=(2,))
g = make_node("gadget.Gadget", label="lever", size=3, parts=[x, x], type=relay.TensorType((2,)))
back = load_json(save_json(g))
assert type(back) is type(g) and back.parts[0].same_as(back.parts[1]) and back.type == g.type
assert structural_equal(back, g, True) and structural_hash(back, True) == structural_hash(g, True)
other = make_node("gadget.Gadget", label="lever", size=4, parts=[x, x], type=relay.TensorType((2,)))
assert not structural_equal(g, other) and structural_hash(g) != structural_hash(other)
assert ".size: 3 against 4" in error(lambda: tvm.ir.assert_structural_equal(g, other))
assert structural_equal(pickle.loads(pickle.dumps(g)), g, True)
text = '{"format": "baton", "version": 1, "nodes": [{"type": "gadget.Binder"}], "root": [0]}'
assert "`gadget.Binder` needs the field `var`" in error(lambda: load_json(text))
''',
    "RF-005 help, constructor, stubs: nothing of Baton names it": '''
import ast, inspect, pydoc, re
from baton.describe import write_stubs
cls = type(make_node("gadget.Gadget", label="lever"))
assert (cls.__module__, cls.__name__) == ("gadget", "Gadget")
text = re.sub("\\x08.", "", pydoc.render_doc(cls))
assert "Something that Baton does not know." in text and "How large it is, in elements." in text
assert cls("crank", 4).size == 4 and cls(label="crank", parts=[]).label == "crank"
assert "lable" in error(lambda: cls(lable="crank"))
[name] = write_stubs(sys.argv[2], "gadget")
stub = open(sys.argv[2] + "/" + name).read()
classes = {c.name: c for c in ast.parse(stub).body if isinstance(c, ast.ClassDef)}
assert {"Gadget", "Binder", "TensorLike", "Opaque"} <= set(classes)
gadget = {f.name: f for f in classes["Gadget"].body if isinstance(f, ast.FunctionDef)}
assert ast.get_docstring(gadget["size"]) == "How large it is, in elements. At least 1."
assert ast.unparse(gadget["parts"].returns) == "baton.runtime.Array[baton.ir.expr.RelayExpr]", ast.unparse(gadget["parts"].returns)
assert [a.arg for a in gadget["__init__"].args.args] == ["self", "label", "size", "weight", "dtype", "parts", "type"]
assert ast.get_docstring(classes["Gadget"]) == "Something that Baton does not know."
''',
    "RF-005 its reference pages": '''
from baton.describe.pages import write_pages
assert "type-gadget.md" in write_pages(sys.argv[2], "gadget")
page = open(sys.argv[2] + "/type-gadget.md").read()
entry = page.split("## `gadget.Gadget`")[1].split("## `")[0]
assert "Something that Baton does not know." in entry and "Python: [`gadget.Gadget`]" in entry
assert "| `size` | `int` | `1` | at least 1 | How large it is, in elements. |" in entry, entry
assert "## `gadget.attrs.StretchAttrs`" in page
from baton.describe import passes
assert passes()["SwapAdds"][0].startswith("add(x, y) becomes add(y, x)")
''',
    "RF-005 what it binds compares up to renaming": '''
def binder(name):
    v = relay.var(name, shape=(2,))
    return make_node("gadget.Binder", var=v, body=relay.add(v, v))
assert structural_equal(binder("a"), binder("b")) and structural_hash(binder("a")) == structural_hash(binder("b"))
''',
    "RF-001 a class that states its members in VisitAttrs": '''
t = make_node("gadget.TensorLike", shape=[2, 3], dtype="int8", value_index=1, note="n")
assert [int(d) for d in t.shape] == [2, 3] and (t.dtype, t.op, t.value_index, t.note) == ("int8", None, 1, "n")
assert {"shape", "dtype", "op", "value_index"} <= set(dir(t))
assert structural_equal(load_json(save_json(t)), t)
assert structural_hash(t) == structural_hash(make_node("gadget.TensorLike", shape=[2, 3], dtype="int8", value_index=1, note="n"))
assert "TypeError" in error(lambda: make_node("gadget.TensorLike", shape=["x"]))
''',
    "RF-013 what a type does not support is an error": '''
o, p = make_node("gadget.Opaque", value=1), make_node("gadget.Opaque", value=1)
assert "gadget.Opaque" in error(lambda: structural_equal(o, p))
assert "gadget.Opaque" in error(lambda: structural_hash(o))
assert o.value == 1
''',
    "AT-016 attributes of its own": '''
a = make_node("gadget.attrs.StretchAttrs", axes=[1])
assert a.factor == 2.0 and list(a.axes) == [1] and isinstance(a, tvm.ir.Attrs)
assert "needs the field `axes`" in error(lambda: make_node("gadget.attrs.StretchAttrs"))
assert structural_equal(load_json(save_json(a)), a)
''',
    "OB-021 a library that is loaded later gets consistent type indices": '''
index = get_global_func("gadget.TypeIndex")
g = make_node("gadget.Gadget", label="lever")
assert get_global_func("gadget.Describe")(g) == "lever of 1"
assert index("gadget.Gadget") > 32 and len({index(k) for k in ("gadget.Gadget", "gadget.Binder", "relay.Call", "Attrs")}) == 4
assert "gadget.Gadget" in error(lambda: get_global_func("gadget.Describe")(relay.var("x")))
''',
    "PI-067 its pass is one like all others": '''
x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.add(x, y)))
swap = relay.transform.SwapAdds()
assert swap.info.name == "SwapAdds"
body = swap(mod)["main"].body
assert body.args[0].name_hint == "y"

@relay.transform.function_pass(opt_level=0, required=["SwapAdds"])
def nothing(f, mod, ctx):
    return f
# What is required runs before: the sequence asks for it by name.
assert tvm.transform.Sequential([nothing])(mod)["main"].body.args[0].name_hint == "y"
''',
}


@pytest.mark.parametrize("name", PARTS)
def test_plugin(library, name, tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM + PARTS[name], str(library), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_verbs_load_it(library, tmp_path):
    """PI-067: its pass in the pipelines of the command line."""
    (tmp_path / "in.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: float32, %y: float32) { add(%x, %y) }\n')
    text = out(sys.executable, "-m", "baton", "opt", tmp_path / "in.relay", "--load", library, "--passes", "InferType,SwapAdds")
    assert "add(%y, %x)" in text


USES = """
import gadget
g = gadget.Gadget(label="lever", size=3)
n: int = g.size
"""


@pytest.mark.slow
def test_a_type_checker_knows_its_classes(library, tmp_path):
    """RF-005: its stubs come from `python -m baton.describe`, and its own package is three lines."""
    pytest.importorskip("mypy")
    out(sys.executable, "-m", "baton.describe", "stubs", "--load", library, "--package", "gadget", "--out", tmp_path)
    package = tmp_path / "gadget" / "__init__.py"
    package.write_text(
        f"import ctypes\nfrom baton._ffi import attach_classes, load_compiler\nload_compiler()\nctypes.CDLL({str(library)!r})\n"
        "attach_classes(__name__, 'gadget.')\n"
    )
    out(sys.executable, "-m", "baton.describe", "stubs", "--out", tmp_path)
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(USES)
    wrong.write_text(USES.replace("size=3", "length=3").replace("int", "str"))
    env = {**os.environ, "MYPYPATH": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(baton.__file__).parents[1])])}
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    done = run([sys.executable, right])
    assert done.returncode == 0, done.stderr
    done = run([sys.executable, "-m", "mypy", right])
    assert done.returncode == 0, done.stdout
    done = run([sys.executable, "-m", "mypy", wrong])
    assert 'wrong.py:3: error: Unexpected keyword argument "length"' in done.stdout and "wrong.py:4: error" in done.stdout
