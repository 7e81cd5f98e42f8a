# SPDX-License-Identifier: Apache-2.0
"""Normal forms and passes that move functions: what they keep, over generated programs (AN)."""

import numpy as np
import pytest
from programs import program, strip

import baton as tvm
from baton import relay

_HEAD = '#[version = "0.0.5"]\n'
_PASSES = [
    "ToANormalForm",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
    "LambdaLift",
    "Inline",
    "EtaExpand",
    "DefuseOps",
    "DeadCodeElimination",
    "FoldConstant",
    "EliminateCommonSubexpr",
    "InferType",
]
# References, data types, effects in all places.
_MORE = [
    "def @main(%x: float32, %y: float32, %z: float32) { let %r = ref(%x); let %f = fn (%a: float32) -> float32 {"
    " let %u = ref_write(%r, add(ref_read(%r), %a)); ref_read(%r) }; (%f(%y), %f(%z), ref_read(%r)) }",
    "def @main(%x: float32, %y: float32, %z: float32) { let %r = ref(%x);"
    " %0 = ref_read(%r); let %u = ref_write(%r, %y); if (less(%x, %z)) { add(%0, ref_read(%r)) } else { subtract(%0, ref_read(%r)) } }",
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "def @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%h, %t) => add(%h, @sum(%t)), Nil => 0f } }\n"
    "def @main(%x: float32, %y: float32, %z: float32) { @sum(Cons(%x, Cons(multiply(%y, %z), Nil))) }",
    "def @main(%x: float32, %y: float32, %z: float32) { %0 = negative(%x); let %f = fn (%a: float32) -> fn (float32) -> float32 {"
    " fn (%b: float32) -> float32 { add(multiply(%a, %0), add(%b, %z)) } }; add(%f(%x)(%y), %0) }",
]


def _typed(text):
    return relay.transform.InferType()(relay.parse(_HEAD + text))


def _make(name):
    return relay.transform.EtaExpand(True, True) if name == "EtaExpand" else getattr(relay.transform, name)()


def _values(v):
    return [v.numpy()] if isinstance(v, tvm.nd.NDArray) else [a for x in v for a in _values(x)]


def _run(mod):
    shape = [p.type_annotation.concrete_shape for p in mod["main"].params]
    args = [np.linspace(k - 2, k, int(np.prod(s))).astype("float32").reshape(s) for k, s in enumerate(shape, 1)]
    return _values(relay.create_executor("debug", mod=mod).evaluate()(*args))


@pytest.mark.parametrize("seed", [*range(25), *(-1 - i for i in range(len(_MORE)))])
def test_meaning_is_kept(seed):  # AN-004, AN-018
    typed = _typed(strip(program(seed)) if seed >= 0 else _MORE[-1 - seed])
    want = _run(typed)
    for name in _PASSES:
        with tvm.transform.PassContext(opt_level=3):
            made = relay.transform.InferType()(_make(name)(typed))
        assert relay.analysis.well_formed(made), name
        tvm.ir.assert_structural_equal(relay.parse(made.astext()), made)
        for a, b in zip(want, _run(made), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("seed", [*range(100, 125), *(-1 - i for i in range(len(_MORE)))])
def test_forms(seed):  # AN-005: all bound, sharing and order kept, the same again
    typed = _typed(strip(program(seed)) if seed >= 0 else _MORE[-1 - seed])
    for name in ("ToANormalForm", "ToBasicBlockNormalForm"):
        made = relay.transform.InferType()(_make(name)(typed))
        for func in made.functions.values():
            assert relay.analysis.check_basic_block_normal_form(func)
        assert _make(name)(made).same_as(made), name
    anf = relay.transform.ToANormalForm()(typed)
    kinds = (relay.Var, relay.Constant, relay.GlobalVar, relay.Constructor, tvm.ir.Op)

    def check(e):
        parts = list(e.args) if isinstance(e, relay.Call) else list(e.fields) if isinstance(e, relay.Tuple) else []
        assert all(isinstance(p, kinds) or p == relay.Tuple([]) for p in parts)

    for func in anf.functions.values():
        relay.analysis.post_order_visit(func, check)


def test_sharing_is_kept():  # AN-005
    x = relay.var("x", shape=(2,))
    e = x
    for _ in range(60):
        e = relay.add(e, e)
    plain = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], e)))
    mod = relay.transform.ToANormalForm()(plain)
    assert relay.analysis.list_op_freqs(mod) == {"add": 60}
    graph = relay.transform.ToGraphNormalForm()(mod)
    tvm.ir.assert_structural_equal(graph["main"], plain["main"])


def test_lambda_lift_leaves_no_closures_but_their_makers():  # AN-008
    lifted = relay.transform.LambdaLift()(_typed(_MORE[3]))
    for func in lifted.functions.values():
        body = func.body if func.attrs is not None and func.attrs.get("Closure") else func
        inner = []
        relay.analysis.post_order_visit(body.body, lambda e, inner=inner: inner.append(e) if isinstance(e, relay.Function) else None)
        assert not inner


@pytest.mark.parametrize("name", _PASSES)
def test_names_and_infos(name):  # AN-001, AN-019
    made = _make(name)
    assert made.info.name == name and tvm._ffi.get_global_func("relay._transform." + name)
    assert made.info.opt_level in range(4)


def test_deep_forms():
    x = relay.var("x", shape=())
    e = x
    for _ in range(50_000):
        e = relay.add(e, x)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], e)))
    anf = relay.transform.ToANormalForm()(mod)
    tvm.ir.assert_structural_equal(relay.transform.ToGraphNormalForm()(anf), mod)
    assert relay.transform.ToBasicBlockNormalForm()(mod).same_as(mod)
