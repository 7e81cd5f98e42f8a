# SPDX-License-Identifier: Apache-2.0
"""Where programs differ, hashes that outlive a process, and places that do not leak (RF-009, RF-014, RF-015)."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.ir import assert_structural_equal, get_first_structural_mismatch, load_json, save_json, structural_hash

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  let %y = add(%x, %x);
  nn.relu(%y)
}
"""


def test_the_first_difference():  # RF-015
    a, b = tvm.parser.parse(TEXT), tvm.parser.parse(TEXT.replace("add(%x, %x)", "add(%x, 1f)"))
    assert get_first_structural_mismatch(a, a) is None
    found = get_first_structural_mismatch(a, b)
    left, right = found
    assert str(left) == str(right) == ".functions[@main].body.value.args[1]"
    assert found.lhs == "%x" and found.rhs.startswith("relay.Constant") and str(found).endswith("%x against " + found.rhs)
    with pytest.raises(ValueError, match=r"\.functions\[@main\]\.body\.value\.args\[1\]: %x against"):
        assert_structural_equal(a, b)
    x, y = relay.var("x"), relay.var("y")
    assert get_first_structural_mismatch(x, y) is not None and get_first_structural_mismatch(x, y, map_free_vars=True) is None


def test_source_and_name_keep_their_order():
    with pytest.raises(tvm.Error, match="model.relay:1"):
        tvm.parser.parse("def @main(", "model.relay")
    with pytest.raises(tvm.Error, match="model.relay:1"):
        relay.fromtext("def @main(", "model.relay")
    assert tvm.parser.parse(TEXT, "model.relay")["main"].body.span.source_name.name == "model.relay"


def test_places_do_not_leak_into_metadata():
    """Two parses of one program under two paths print and save the same bytes, with neither path nor text in them."""

    def mod(path):
        m = tvm.parser.parse(TEXT, path)
        # A big constant goes into the metadata, and an attribute that text has no form for.
        x = m["main"].params[0]
        c = relay.Constant(tvm.nd.array(np.ones((2, 3), "float32")))
        f = relay.Function([x], relay.add(m["main"].body, c))
        return tvm.IRModule({"main": f.with_attr("other", m["main"].body)})

    one, two = mod("/srv/a/model.relay"), mod("/opt/b/model.relay")
    assert "#[metadata]" in one.astext() and "srv" not in one.astext() and "let %y" not in one.astext().split("#[metadata]")[1]
    assert one.astext() == two.astext()
    text = save_json(one)
    assert text == save_json(two) and "srv" not in text and "let %y" not in text
    assert_structural_equal(load_json(text), one)
    assert load_json(text)["main"].body.args[0].span.source_name.name == "model.relay"


def test_hashes_in_other_processes_and_threads():  # RF-014
    mod = tvm.parser.parse(TEXT)
    here = structural_hash(mod)
    program = (
        "import baton; t = open(0).read(); m = baton.parser.parse(t); "
        "print(baton.ir.structural_hash(m), hash(baton.ir.save_json(m)) and baton.ir.save_json(m).count('relay.Call'))"
    )
    for seed in ("0", "1234"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=TEXT,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "BATON_NUM_THREADS": "1" if seed == "0" else "2"},
        )
        assert done.stdout.split() == [str(here), "2"]
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(structural_hash(tvm.parser.parse(TEXT)))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [here] * 8


def test_sharing_that_is_exponential_as_a_tree():
    def make():
        x = relay.var("x", shape=(2,))
        e = x
        for _ in range(2000):
            e = relay.add(e, e)
        return relay.Function([x], e)

    a, b = make(), make()
    assert structural_hash(a) == structural_hash(b)
    assert_structural_equal(a, b)
    assert_structural_equal(load_json(save_json(a)), a)


def test_infer_type_writes_what_functions_return():
    mod = tvm.parser.parse(TEXT)
    typed = relay.transform.InferType()(mod)
    assert "->" not in mod.astext() and typed["main"].ret_type == relay.TensorType((2, 3))
    assert relay.transform.InferType()(typed).same_as(typed)
    x = relay.var("x", shape=(3,))
    inner = relay.Function([x], relay.abs(x))
    y = relay.var("y", shape=(3,))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([y], inner(y))))["main"]
    assert typed.body.op.ret_type == relay.TensorType((3,)) and "->" not in inner.astext()


def test_objects_print_explore_and_change():  # RF-006, RF-012
    call = relay.add(relay.var("x", shape=(2,)), relay.const(1.0))
    assert "add(%x" in str(call) and set(dir(call)) >= {"op", "args", "attrs"}
    again = relay.Call(call.op, [call.args[1], call.args[0]], call.attrs)
    assert again.args[0].same_as(call.args[1]) and again.args[1].same_as(call.args[0])


def test_functions_have_no_structure():  # RF-013
    f, g = tvm.runtime.convert(lambda: 1), tvm.runtime.convert(lambda: 2)
    with pytest.raises(TypeError, match="have no structural"):
        tvm.ir.structural_equal(f, g)
    with pytest.raises(TypeError, match="have no structural hash"):
        structural_hash(f)


def let_of(kind, value=1.0):
    x = relay.Var("x", kind)
    return relay.Let(x, relay.const(value), x)


def shared_sum(kind=None):
    x = relay.Var("x", kind or relay.TensorType((2,), "float32"))
    y = relay.add(x, x)
    return relay.multiply(y, y)


def copied_sum():
    x = relay.Var("x", relay.TensorType((2,), "float32"))
    return relay.multiply(relay.add(x, x), relay.add(x, x))


def closed(expr):
    return relay.Function(relay.analysis.free_vars(expr), expr)


def type_data(field):
    header, t = relay.GlobalTypeVar("Box"), relay.TypeVar("t")
    return relay.TypeData(header, [t], [relay.Constructor("box", [field or t], header)])


def projections(shared):
    t = relay.Var("t", relay.TupleType([relay.TensorType((2,), "float32")] * 2))
    first = relay.TupleGetItem(t, 0)
    return relay.Function([t], relay.add(first, first if shared else relay.TupleGetItem(t, 0)))


def attrs_of(keys):
    # One expression as value of each key: entries are visited in an order that does not depend on how they were entered.
    x = relay.Var("x")
    exprs = {k: relay.negative(relay.abs(x)) for k in "ab"}
    return relay.Function([x], x).with_attr({k: exprs[k] for k in keys})


F2, F3, TV = relay.TensorType((2,), "float32"), relay.TensorType((3,), "float32"), relay.TypeVar("t")
VARS = {n: relay.Var(n) for n in "xy"}
CASES = {
    "annotations of a let": (lambda: let_of(F2), lambda: let_of(F3), False, False),
    "an annotation and none": (lambda: let_of(None), lambda: let_of(F2), False, False),
    "the same annotation": (lambda: let_of(F2), lambda: let_of(F2), True, True),
    "a subexpression used twice, and two": (lambda: closed(shared_sum()), lambda: closed(copied_sum()), False, False),
    "the same with free variables": (shared_sum, copied_sum, False, False),
    "free variables that correspond": (shared_sum, shared_sum, False, True),
    "free variables of two types": (shared_sum, lambda: shared_sum(F3), False, False),
    "free variables of one name": (lambda: relay.Var("x"), lambda: relay.Var("x"), False, True),
    "one free variable": (lambda: relay.abs(VARS["x"]), lambda: relay.abs(VARS["x"]), True, True),
    "variables in another order": (lambda: VARS["x"] - VARS["y"], lambda: VARS["y"] - VARS["x"], False, True),
    "one variable for two": (lambda: VARS["x"] - VARS["y"], lambda: VARS["x"] - VARS["x"], False, False),
    "projections are values": (lambda: projections(True), lambda: projections(False), True, True),
    "fields of constructors": (lambda: type_data(None), lambda: type_data(F2), False, False),
    "data types": (lambda: type_data(None), lambda: type_data(None), True, True),
    "free type variables": (lambda: relay.TypeVar("t"), lambda: relay.TypeVar("t"), False, True),
    "free type variables of two kinds": (lambda: relay.TypeVar("t"), lambda: relay.TypeVar("t", relay.TypeKind.ShapeVar), False, False),
    "a type of free variables": (lambda: relay.TupleType([TV, TV]), lambda: relay.TupleType([TV, relay.TypeVar("t")]), False, False),
    "numbers": (lambda: relay.const(1.0), lambda: relay.const(2.0), False, False),
    "attributes that are one in float32": (
        lambda: relay.nn.leaky_relu(VARS["x"], alpha=0.1),
        lambda: relay.nn.leaky_relu(VARS["x"], alpha=float(np.float32(0.1))),
        True,
        True,
    ),
    "entries in another order": (lambda: attrs_of("ab"), lambda: attrs_of("ba"), True, True),
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_hashes_are_equal_where_values_are(name, mapped):
    left, right, *equal = CASES[name]
    a, b = left(), right()
    assert tvm.ir.structural_equal(a, b, mapped) == tvm.ir.structural_equal(b, a, mapped) == equal[mapped]
    assert (structural_hash(a, mapped) == structural_hash(b, mapped)) == equal[mapped]


def test_inference_in_place_keeps_hashes_of_lets():
    def mod():
        x, y = relay.var("x", shape=(2,)), relay.var("y")
        return tvm.IRModule.from_expr(relay.Function([x], relay.Let(y, x + x, y * y)))

    here = mod()
    before = structural_hash(here)
    relay.transform.InferType()(here)
    assert structural_hash(here) == before == structural_hash(mod())
