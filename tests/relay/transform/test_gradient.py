# SPDX-License-Identifier: Apache-2.0
"""AN-016: reverse-mode differentiation, of dataflow and of all of Relay, on the executors that run it."""

import numpy as np
import pytest

import baton
from baton import relay
from baton.relay.op.make import operator
from baton.relay.testing import check_grad, gradient, run_infer_type

F64 = relay.TensorType((), "float64")
MODES = ("first_order", "higher_order")


def run(func, *args, kind="debug", mod=None):
    return relay.create_executor(kind, mod or baton.IRModule()).evaluate(func)(*args)


def numbers(value):
    return [numbers(v) for v in value] if not hasattr(value, "numpy") else value.numpy().tolist()


def flat(value):
    """Compiled dataflow gives the tensors of nested tuples in a row."""
    return [value] if hasattr(value, "numpy") else [y for x in value for y in flat(x)]


def parsed(text, mode="higher_order", name="main"):
    """The gradient of a function of a program, and the module to run it in."""
    mod = relay.parse(text)
    grad = gradient(mod[name], mod, mode=mode)
    return grad, mod


def execute(grad, mod, *args, kind):
    del mod["main"]
    return numbers(run(grad, *args, kind=kind, mod=mod))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["debug", "vm", "graph"])
def test_agrees_on_executors(mode, kind):
    """AN-016 the same numbers from interpreter, virtual machine and (dataflow) compiled graph."""
    if (mode, kind) == ("higher_order", "graph"):
        pytest.skip("closures are no graph")
    x, w = relay.var("x", shape=(3, 4)), relay.var("w", shape=(5, 4))
    f = relay.Function([x, w], relay.sum(relay.nn.log_softmax(relay.nn.relu(relay.nn.dense(x, w)))))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(5, 4)).astype("float32")
    out, da, db = flat(run(gradient(f, mode=mode), a, b, kind=kind))
    y = a @ b.T
    z = np.maximum(y, 0)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    g = (1 - 5 * p) * (y > 0)
    np.testing.assert_allclose(out.numpy(), np.log(p).sum(), rtol=1e-5)
    np.testing.assert_allclose(da.numpy(), g @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(db.numpy(), g.T @ a, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_result_type(mode):
    """The documented form: (result, (a gradient a parameter))."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    t = run_infer_type(gradient(relay.Function([x, y], x * y), mode=mode)).checked_type
    assert baton.ir.structural_equal(
        t, relay.FuncType([x.type_annotation, y.type_annotation], relay.TupleType([x.type_annotation, relay.TupleType([x.type_annotation, y.type_annotation])]))
    )


@pytest.mark.parametrize("mode", MODES)
def test_tuples_in_and_out(mode):
    x = relay.var("x", relay.TupleType([relay.TensorType((2,), "float64"), relay.TensorType((2,), "int32")]))
    a = relay.TupleGetItem(x, 0)
    f = relay.Function([x], relay.Tuple([a * a, relay.TupleGetItem(x, 1), relay.Tuple([relay.exp(a), a])]))
    got = numbers(run(gradient(f, mode=mode), [np.array([1.0, 2.0]), np.array([3, 4], "int32")]))
    grad = got[1][0]
    np.testing.assert_allclose(grad[0], [2 + np.e + 1, 4 + np.e**2 + 1])
    assert grad[1] == [0, 0]


@pytest.mark.parametrize("mode", MODES)
def test_split_and_concatenate_with_unused_parts(mode):
    x = relay.var("x", shape=(6,), dtype="float64")
    parts = relay.split(x, 3, 0)
    f = relay.Function([x], relay.concatenate([parts[2], parts[0] * relay.const(3.0, "float64")], 0))
    assert numbers(run(gradient(f, mode=mode), np.arange(6.0)))[1] == [[3, 3, 0, 0, 1, 1]]


def test_gradient_of_gradient():
    """x ** 3: 3 x ** 2, then 6 x, then 6, each the gradient of the one before."""

    def derivative(f):
        y = relay.var("y", F64)
        return relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(relay.Call(gradient(run_infer_type(f)), [y]), 1), 0))

    x = relay.var("x", F64)
    f = relay.Function([x], x * x * x)
    for want in (12.0, 12.0, 6.0):
        f = derivative(f)
        for kind in ("debug", "vm"):
            assert numbers(run(f, np.array(2.0), kind=kind)) == want


def test_first_order_of_first_order():
    x = relay.var("x", F64)
    f = gradient(relay.Function([x], relay.tanh(x)), mode="first_order")
    y = relay.var("y", F64)
    slope = relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(relay.analysis.bind(f, {f.params[0]: y}).body, 1), 0))
    t = np.tanh(0.3)
    np.testing.assert_allclose(numbers(run(gradient(slope, mode="first_order"), np.array(0.3)))[1][0], -2 * t * (1 - t * t))


PROGRAMS = {
    "branch": ("def @main(%x: float64) -> float64 { if (less(%x, 0f64)) { negative(%x) } else { multiply(%x, %x) } }", [(-2.0, -1.0), (3.0, 6.0)]),
    "closure": (
        """def @main(%x: float64) -> float64 {
        let %f = fn (%y: float64) -> float64 { multiply(%x, %y) };
        add(%f(%x), %f(2f64)) }""",
        [(3.0, 8.0)],
    ),
    "function as a value": (
        """def @main(%x: float64) -> float64 {
        let %twice = fn (%f: fn (float64) -> float64, %y: float64) -> float64 { %f(%f(%y)) };
        %twice(fn (%y: float64) -> float64 { multiply(%y, %y) }, %x) }""",
        [(2.0, 32.0)],
    ),
    "global function as a value": (
        """def @main(%x: float64) -> float64 {
        let %twice = fn (%f: fn (float64) -> float64, %y: float64) -> float64 { %f(%f(%y)) };
        %twice(@square, %x) }
        def @square(%x: float64) -> float64 { multiply(%x, %x) }""",
        [(2.0, 32.0)],
    ),
    "recursion": (
        """def @main(%x: float64) -> float64 {
        let %power = fn (%n: int32, %y: float64) -> float64 {
            if (equal(%n, 0)) { 1f64 } else { multiply(%y, %power(subtract(%n, 1), %y)) } };
        %power(5, %x) }""",
        [(2.0, 80.0)],
    ),
    "global recursion": (
        """def @main(%x: float64) -> float64 { @power(4, %x) }
        def @power(%n: int32, %y: float64) -> float64 {
            if (equal(%n, 0)) { 1f64 } else { multiply(%y, @power(subtract(%n, 1), %y)) } }""",
        [(2.0, 32.0)],
    ),
    "mutual recursion": (
        """def @main(%x: float64) -> float64 { @even(5, %x) }
        def @even(%n: int32, %y: float64) -> float64 { if (equal(%n, 0)) { %y } else { multiply(%y, @odd(subtract(%n, 1), %y)) } }
        def @odd(%n: int32, %y: float64) -> float64 { if (equal(%n, 0)) { %y } else { add(%y, @even(subtract(%n, 1), %y)) } }""",
        None,
    ),
    "reference": (
        """def @main(%x: float64) -> float64 {
        let %r = ref(%x);
        let %_ = ref_write(%r, multiply(ref_read(%r), %x));
        let %_ = ref_write(%r, multiply(ref_read(%r), %x));
        ref_read(%r) }""",
        [(3.0, 27.0)],
    ),
    "tuple": (
        """def @main(%x: float64) -> float64 {
        let %t = (%x, (multiply(%x, %x), 7));
        multiply(%t.0, %t.1.0) }""",
        [(2.0, 12.0)],
    ),
    "list": (
        """type List[A] { Nil, Cons(A, List[A]) }
        def @main(%x: float64) -> float64 { @total(Cons(%x, Cons(multiply(%x, %x), Nil))) }
        def @total(%l: List[float64]) -> float64 { match (%l) { Nil => 0f64, Cons(%h, %t) => add(multiply(%h, %h), @total(%t)) } }""",
        [(2.0, 36.0)],
    ),
    "map": (
        """type List[A] { Nil, Cons(A, List[A]) }
        def @main(%x: float64) -> float64 { @total(@map(fn (%y: float64) -> float64 { multiply(%x, exp(%y)) }, Cons(%x, Cons(0f64, Nil)))) }
        def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Nil => Nil, Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)) } }
        def @total(%l: List[float64]) -> float64 { match (%l) { Nil => 0f64, Cons(%h, %t) => add(%h, @total(%t)) } }""",
        [(1.0, 2 * np.e + 1)],
    ),
}


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_relay(name, kind):
    """AN-016 control flow, closures, references, recursion and data types have gradients."""
    text, points = PROGRAMS[name]
    for x, want in points or [(1.5, None)]:
        grad, mod = parsed(text)
        if want is None:
            main = relay.parse(text)
            ends = [float(relay.create_executor("debug", main).evaluate()(np.array(x + s)).numpy()) for s in (1e-6, -1e-6)]
            want = (ends[0] - ends[1]) / 2e-6
        (got,) = execute(grad, mod, np.array(x), kind=kind)[1]
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    "passes",
    [
        ["ToANormalForm"],
        ["ToGraphNormalForm"],
        ["ToANormalForm", "DeadCodeElimination"],
        ["ToBasicBlockNormalForm"],
        ["LambdaLift"],
        ["FoldConstant"],
        ["SimplifyExpr"],
    ],
)
def test_passes_keep_what_closures_do(passes):
    """Programs full of references mean the same after passes, each of which has something to do here."""
    grad, mod = parsed("""def @main(%x: float64) -> float64 {
        let %unused = add(1, 2);
        let %power = fn (%n: int32, %y: float64) -> float64 {
            if (equal(%n, 0)) { 1f64 } else { multiply(%y, %power(subtract(%n, 1), %y)) } };
        %power(add(2, 3), multiply(%x, 1f64)) }""")
    mod["main"] = grad
    for p in passes:
        before = relay.transform.InferType()(mod)
        mod = getattr(relay.transform, p)()(before)
        assert not mod.same_as(before), p
    for kind in ("debug", "vm"):
        assert numbers(relay.create_executor(kind, mod).evaluate()(np.array(2.0))) == [32.0, [80.0]]


@pytest.mark.parametrize("name, other", [("FirstOrderGradient", "first_order"), ("Gradient", "higher_order")])
def test_as_passes(name, other):
    """By their names, made without arguments, in a pipeline."""
    mod = relay.parse("def @main(%x: float64, %y: float64) -> float64 { multiply(%x, exp(%y)) }")
    mod = baton.transform.Sequential([getattr(relay.transform, name)(), relay.transform.InferType()])(mod)
    assert baton.ir.structural_equal(
        mod["main"], run_infer_type(gradient(relay.parse("def @main(%x: float64, %y: float64) -> float64 { multiply(%x, exp(%y)) }")["main"], mode=other))
    )
    assert numbers(flat(relay.create_executor("vm", mod).evaluate()(np.array(2.0), np.array(0.0)))) == [2.0, 1.0, 2.0]


def test_rule_from_python():
    """relay.op.register_gradient: f(call, grad) gives an adjoint an argument; None is zero."""
    rule = relay.op.get_op_attr("linalg.cofactor", "FPrimalGradient")
    assert rule is None
    cofactor = operator("linalg.cofactor")  # of two by two elements it is linear, and its own adjoint
    x = relay.var("x", shape=(2, 2), dtype="float64")
    f = relay.Function([x], cofactor(x) * x)
    for mode in MODES:
        with pytest.raises(baton.error.CompileError, match="operator `linalg.cofactor` has no gradient: "):
            gradient(f, mode=mode)

    @relay.op.register_gradient("linalg.cofactor")
    def back(call, grad):
        assert call.checked_type.concrete_shape == (2, 2) and call.op.name == "linalg.cofactor"
        return [cofactor(grad)]

    try:
        at = np.array([[1.0, 2.0], [3.0, 4.0]])
        for mode in MODES:
            got = numbers(run(gradient(f, mode=mode), at))
            assert got == [[[4.0, -6.0], [-6.0, 4.0]], [[[8.0, -6.0], [-4.0, 2.0]]]]
        relay.op.register_gradient("linalg.cofactor", lambda call, grad: [grad, grad], level=11)
        with pytest.raises(baton.error.CompileError, match="gives 2 adjoints, the call has 1 arguments"):
            gradient(f)
        relay.op.register_gradient("linalg.cofactor", lambda call, grad: [None], level=12)
        assert numbers(run(gradient(f, mode="first_order"), at))[1] == [[[4.0, -3.0], [-2.0, 1.0]]]
    finally:
        relay.op.reset_attr("linalg.cofactor", "FPrimalGradient")


@pytest.mark.parametrize("mode", MODES)
def test_errors_say_what_and_where(mode):
    """What cannot be differentiated, by name and place, and how to mend it."""

    def refused(text, *says):
        with pytest.raises(baton.error.CompileError) as e:
            mod = relay.transform.InferType()(relay.parse(text))
            gradient(mod["main"], mod, mode=mode)
        for s in says:
            assert s in str(e.value), str(e.value)

    refused(
        "def @main(%x: Tensor[(3), float32]) {\n  random.bernoulli(%x)\n}",
        "operator `random.bernoulli` has no gradient: it draws random numbers",
        "register_gradient(\"random.bernoulli\"",
        ":2:",
    )
    refused("def @main(%f: fn (float32) -> float32, %x: float32) { %f(%x) }", "a parameter has type fn")
    refused("def @main[A](%x: float32, %y: A) { %x }", "type parameters")
    with pytest.raises(baton.error.CompileError, match="free variable `%y`"):
        gradient(relay.Function([relay.var("x", F64)], relay.var("y", F64)), mode=mode)
    with pytest.raises(ValueError, match="higher_order"):
        gradient(relay.Function([], relay.const(1.0)), mode="third_order")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_nothing_to_differentiate_by(mode, kind):
    """Parameters that are not floating, and operands of comparisons, have zeros; no parameter, no gradient."""
    x, i = relay.var("x", shape=(2,)), relay.var("i", shape=(2,), dtype="int32")
    a, n = np.array([1.0, -1.0], "float32"), np.array([3, 4], "int32")

    def grads(params, body, *args):
        return numbers(run(gradient(relay.Function(params, body), mode=mode), *args, kind=kind))

    assert grads([i], relay.negative(i), n) == [[-3, -4], [[0, 0]]]
    assert grads([x, i], relay.less(x, relay.cast(i, "float32")), a, n) == [[True, True], [[0.0, 0.0], [0, 0]]]
    assert grads([x, i], x * relay.cast(relay.less(x, relay.const(0.0)), "float32"), a, n)[1] == [[0.0, 1.0], [0, 0]]
    assert grads([], relay.exp(relay.const(0.0))) == [1.0, []]
    assert grads([], relay.const(1)) == [1, []]
    assert grads([], relay.Tuple([])) == [[], []]


def test_data_types_that_name_tensors_are_refused():
    with pytest.raises(baton.error.CompileError, match="make the tensor's type a parameter of the data type"):
        parsed("""type Box { Full(Tensor[(2), float64]) }
            def @main(%x: Tensor[(2), float64]) -> Tensor[(2), float64] { match (Full(%x)) { Full(%y) => %y } }""")


def test_unknown_extents():
    """Gradients do not need the extents of elementwise operators and broadcasting."""
    x, b = relay.var("x", shape=(relay.Any(), 3), dtype="float64"), relay.var("b", shape=(3,), dtype="float64")
    f = relay.Function([x, b], relay.sum(relay.tanh(x + b), axis=[0]))
    got = numbers(run(gradient(f, mode="first_order"), np.zeros((2, 3)), np.zeros(3), kind="vm"))
    assert got[1] == [[[1.0] * 3] * 2, [2.0] * 3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", ["chain", "wide", "lets"])
def test_depth(mode, shape):
    """A hundred thousand calls in a row, beside each other, and as lets."""
    n = 100_000 if mode == "first_order" else 20_000
    x = relay.var("x", shape=(2,))
    if shape == "wide":
        body = relay.sum(relay.concatenate([relay.negative(x) for _ in range(n)], 0))
    else:
        body = x
        for _ in range(n):
            body = relay.negative(body)
    f = relay.Function([x], body)
    if shape == "lets":
        f = relay.transform.ToANormalForm()(baton.IRModule.from_expr(f))["main"]
    grad = gradient(f, mode=mode)
    assert relay.analysis.count_nodes(grad) < 60 * n


def test_long_chains_run_backwards():
    """The closures that go back nest; they need no deep stack."""
    x = relay.var("x", F64)
    body = x
    for _ in range(3000):
        body = relay.negative(body)
    grad = gradient(relay.Function([x], body))
    for kind in ("debug", "vm"):
        assert numbers(run(grad, np.array(1.5), kind=kind)) == [1.5, [1.0]]


@pytest.mark.parametrize("mode", MODES)
def test_check_grad(mode):
    """The documented help: it passes a right gradient, and finds a wrong one."""
    x, y = relay.var("x", shape=(2, 3), dtype="float64"), relay.var("y", shape=(3,), dtype="float64")
    check_grad(relay.Function([x, y], relay.sin(x) * y), mode=mode, scale=1.0)
    a, b = np.ones((2, 3)), np.arange(3.0)
    check_grad(relay.Function([x, y], relay.power(x, y)), inputs=[a, b], test_inputs=[a], mode=mode, executor_kind="vm")
    i = relay.var("i", shape=(2,), dtype="int64")
    index = np.array([1, 1])
    check_grad(relay.Function([x, i], relay.take(x, i, axis=0)), inputs=[a, index], test_inputs=[a], mode=mode)
    with pytest.raises(ValueError, match="none of the inputs"):
        check_grad(relay.Function([x, y], x * y), inputs=[a, b], test_inputs=[np.ones(3)], mode=mode)
    with pytest.raises(AssertionError):  # a step has no slope
        relay.op.register_gradient("floor", lambda call, grad: [grad], level=11)
        try:
            check_grad(relay.Function([x], relay.floor(x)), inputs=[a * 0.5], mode=mode)
        finally:
            relay.op.reset_attr("floor", "FPrimalGradient")
            relay.op.register_gradient("floor", lambda call, grad: [relay.zeros_like(grad)], level=10)
