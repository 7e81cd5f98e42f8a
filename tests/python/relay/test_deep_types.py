# SPDX-License-Identifier: Apache-2.0
"""Types that are as deep as their programs: inference, and verification, look at each part of them a few times, not once a level."""

import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func

INFER, CHECK = get_global_func("relay.analysis.InferModuleTypes"), get_global_func("transform.CheckProperty")
WORK = get_global_func("relay.analysis.type_work")
F32 = relay.TensorType((2,), "float32")


def chain(n, of=F32):
    """[of, fn () -> of, fn () -> fn () -> of, ...], each a part of the next."""
    types = [of]
    for _ in range(n):
        types.append(relay.FuncType([], types[-1]))
    return types


def main(body, *params, ret=None):
    return tvm.IRModule({"main": relay.Function([*params], body, ret)})


def literals(n):
    x = relay.Var("x", F32)
    e = x
    for _ in range(n):
        e = relay.Function([], e)
    return main(e, x)


def stated(n):
    x, types = relay.Var("x", F32), chain(n)
    e = x
    for t in types[:-1]:
        e = relay.Function([], e, t)
    return main(e, x, ret=types[-1])


def lifted(n):
    """A global function a level, which is what LambdaLift leaves."""
    return get_global_func("transform.GetPass")("LambdaLift")(INFER(literals(n)))


def globals_of(types):
    names = [relay.GlobalVar(f"f{i}") for i in range(len(types))]
    x = relay.Var("x", F32)
    made = {names[0]: relay.Function([x], x, F32)}
    for i in range(1, len(types)):
        x = relay.Var("x", F32)
        made[names[i]] = relay.Function([x], relay.Function([], relay.Call(names[i - 1], [x]), types[i - 1]), types[i])
    return tvm.IRModule(made)


def bound(n, values, variables):
    x, names = relay.Var("x", F32), [relay.Var(f"f{i}", t) for i, t in enumerate(variables)]
    body = names[-1]
    for i in range(n - 1, -1, -1):
        body = relay.Let(names[i], relay.Function([], names[i - 1] if i else x, values[i]), body)
    return main(body, x)


def applied(n):
    """What a parameter is follows from the call."""
    x = relay.Var("x", F32)
    e = x
    for i in range(n):
        y = relay.Var(f"y{i}")
        e = relay.Call(relay.Function([y], relay.Function([], y)), [e])
    return main(e, x)


def polymorphic(n):
    a, same, x = relay.TypeVar("A"), relay.GlobalVar("same"), relay.Var("x", F32)
    p, e = relay.Var("p", a), x
    for _ in range(n):
        e = relay.Call(same, [relay.Function([], e)])
    return tvm.IRModule({same: relay.Function([p], p, a, [a]), relay.GlobalVar("main"): relay.Function([x], e)})


def generic(n):
    """Functions with type parameters within each other."""
    x = relay.Var("x", F32)
    e = x
    for i in range(n):
        e = relay.Function([], e, None, [relay.TypeVar(f"A{i}")])
    return main(e, x)


def references(n):
    x = relay.Var("x", F32)
    e = x
    for _ in range(n):
        e = relay.RefCreate(e)
    for _ in range(n // 2):
        e = relay.RefRead(e)
    return main(e, x)


def data(n):
    made = relay.fromtext('#[version = "0.0.5"]\ntype Maybe[A] { None, Some(A) }\ndef @main(%x: Tensor[(2), float32]) { Some(%x) }\n')
    some, x = made["main"].body.op, relay.Var("x", F32)
    e = x
    for _ in range(n):
        e = relay.Call(some, [e])
    made["main"] = relay.Function([x], e)
    return made


def recursive(n):
    x, c, names = relay.Var("x", F32), relay.var("c", shape=(), dtype="bool"), [relay.Var(f"f{i}") for i in range(n)]
    body = names[-1]
    for i in range(n - 1, -1, -1):
        body = relay.Let(names[i], relay.Function([], relay.If(c, names[i - 1] if i else x, relay.Call(names[i], []))), body)
    return main(body, x, c)


def returning_tuples(n):
    """What a function returns is checked before it says so."""
    x, names = relay.Var("x", F32), [relay.Var(f"f{i}") for i in range(n)]
    body = names[-1]
    for i in range(n - 1, -1, -1):
        body = relay.Let(names[i], relay.Function([], relay.Tuple([relay.Call(names[i - 1], []), x]) if i else x), body)
    return main(body, x)


def globals_returning_tuples(n):
    x, names = relay.Var("x", F32), [relay.GlobalVar(f"f{i}") for i in range(n)]
    made = {names[0]: relay.Function([x], x)}
    for i in range(1, n):
        x = relay.Var("x", F32)
        made[names[i]] = relay.Function([x], relay.Tuple([relay.Call(names[i - 1], [x]), x]))
    return tvm.IRModule(made)


def tuples(n):
    """Each twice in the next: written down, the type would be of size 2 ** n."""
    x = relay.Var("x", F32)
    e = x
    for _ in range(n):
        e = relay.Tuple([e, e])
    return main(e, x)


ANY = relay.TensorType((relay.Any(),), "float32")
SHAPES = {
    "literals": literals,
    "stated": stated,
    "lifted": lifted,
    "globals": lambda n: globals_of([None] * n),
    "globals that say their types": lambda n: globals_of(chain(n)),
    "lets": lambda n: bound(n, [None] * n, [None] * n),
    "lets that say their types": lambda n: bound(n, chain(n), chain(n + 1)[1:]),
    "lets of dynamic shapes": lambda n: bound(n, chain(n), chain(n, ANY)[1:]),
    "applied": applied,
    "polymorphic": polymorphic,
    "generic": generic,
    "references": references,
    "data": data,
    "recursive": recursive,
    "tuples": tuples,
    "returning tuples": returning_tuples,
    "globals returning tuples": globals_returning_tuples,
}


def work(run):
    before = int(WORK())
    out = run()
    return int(WORK()) - before, out


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_of_types_is_linear(shape):
    steps = {}
    for n in (400, 4_000):
        mod = SHAPES[shape](n)
        infer, typed = work(lambda mod=mod: INFER(mod))
        check, wrong = work(lambda typed=typed: CHECK("WellTyped", typed))
        copy = tvm.ir.load_json(tvm.ir.save_json(typed))
        again, wrong_copy = work(lambda copy=copy: CHECK("WellTyped", copy))
        assert not wrong and not wrong_copy and INFER(typed).same_as(typed)
        steps[n] = infer, check, again
    assert all(t > 0 for t in steps[4_000]), "types that no pass reads are not checked"
    assert all(ten <= 11 * one + 100 for one, ten in zip(steps[400], steps[4_000], strict=True)), steps


def test_a_type_that_differs_far_within_is_found():
    """What was found equal once does not hide what is not."""
    types, others = chain(50), chain(50, relay.TensorType((3,), "float32"))
    assert INFER(globals_of(types))["f49"].ret_type == types[49]
    with pytest.raises(tvm.CompileError, match=r"declared to return .*Tensor\[\(3\), float32\]"):
        INFER(globals_of(types[:49] + others[49:]))
