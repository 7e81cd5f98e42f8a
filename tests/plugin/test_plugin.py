# SPDX-License-Identifier: Apache-2.0
"""A library of node types and a pass, built out of tree against an installation, used from Python (RF-005, OB-021, PI-067)."""

import subprocess
import sys
from pathlib import Path

import pytest

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
def test_plugin(library, name):
    done = subprocess.run([sys.executable, "-c", PROGRAM + PARTS[name], str(library)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
