# SPDX-License-Identifier: Apache-2.0
"""Gradients of the operators of all rows, beside differences in float64: along a random direction, of a random sum of results."""

import zlib

import numpy as np
import pytest
from cases import Case, Make, Value, call, evaluate, make
from test_complete import operators, rows

import baton
from baton import relay

FLOATS = ("float16", "float32", "float64", "bfloat16")
# Where an operator is smooth, if that is not everywhere.
DOMAINS = {
    "sqrt": (0.1, 3),
    "rsqrt": (0.1, 3),
    "log": (0.1, 3),
    "log2": (0.1, 3),
    "log10": (0.1, 3),
    "log1p": (-0.5, 3),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "acosh": (1.1, 3),
    "atanh": (-0.9, 0.9),
}
# Operators with one decomposition for lowering and another for gradients.
TWO_FORMS = {"nn.contrib_recurrence"}
# Rows about a place where the operator has a kink, or with floating operands that are whole numbers by nature.
KINKS = (
    "floor_divide-value",
    "mod-value",
    "floor_mod-value",
    "nn.lp_normalize-value",
    "nn.max_pool_with_indices-value",
    "sequence_mask-float16",
    "image.crop_and_resize-float32",
    "image.crop_and_resize-uint8",
    "image.crop_and_resize-images",
    "topk-value[3,1000]",  # a step of differences exchanges values that lie so close
    "sort-value[3,1000]",
)


def rule_of(name):
    """ "rule", "form" for a decomposition that is there for gradients, "reason"; "decompose" for one that lowering uses too."""
    facts = facts_of(name)
    if facts["gradient"] == "decomposition":
        return "decompose" if facts["decomposed"] and name not in TWO_FORMS else "form"
    return str(facts["gradient"]) or ("reason" if facts["no_gradient"] else "")


def facts_of(name):
    return dict(baton.get_global_func("relay.op.Describe")(baton.ir.Op.get(name)).items())


def floating(i):
    if isinstance(i, list):
        return any(map(floating, i))
    if isinstance(i, Value):
        return str(i.array.dtype) in FLOATS
    return isinstance(i, Make) and i.dtype in FLOATS


def differentiable():
    """A row and choice of attributes for each operator that takes floating numbers and has a rule."""
    for case in rows():
        if not isinstance(case, Case) or not any(map(floating, case.inputs)) or rule_of(case.op) not in ("rule", "form") or not case.compiled:
            continue
        for param in case.rows():
            if not param.id.startswith(KINKS):
                yield param


def widened(i, rng, domain=None):
    """An input in float64, of few digits, so that differences keep theirs."""
    if isinstance(i, list):
        return [widened(x, rng, domain) for x in i]
    if isinstance(i, Make) and i.dtype in FLOATS:
        return make(rng, "float64", i.shape, *(domain or (i.low, i.high)))
    a = i(rng)
    return a.astype("float64") if str(a.dtype) in FLOATS else a


def loss(expr, t, rng):
    """A random sum of an expression's floating parts; None if it has none."""
    parts = []

    def walk(e, t):
        if hasattr(t, "fields"):
            for k, f in enumerate(t.fields):
                walk(relay.TupleGetItem(e, k), f)
        elif str(t.dtype) in FLOATS:
            weight = rng.uniform(0.5, 1.5, [int(d) for d in t.shape])
            parts.append(relay.sum(relay.cast(e, "float64") * relay.const(weight, "float64")))

    walk(expr, t)
    total = None
    for p in parts:
        total = p if total is None else total + p
    return total


# The operand that is a condition: what is 0 is false, and next to it nothing is.
CONDITION = {"where": 0}


def flat(arrays):
    return [y for x in arrays for y in (flat(x) if isinstance(x, list) else [x])]


def check(case, attrs):
    rng = np.random.default_rng(zlib.crc32(case.op.encode()) + 1)
    arrays = [widened(i, rng, DOMAINS.get(case.op)) for i in case.inputs]
    attrs = {k: "float64" if k in ("out_dtype", "dtype") and v in FLOATS else v for k, v in attrs.items()}
    if any(not np.all(np.isfinite(a)) for a in flat(arrays) if a.dtype == np.float64):
        pytest.skip("special values have no gradient to compare")
    expr, variables, values = call(case.op, arrays, attrs, case.constant)
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(variables, expr)))
    total = loss(expr, mod["main"].body.checked_type, rng)
    smooth = [i for i, v in enumerate(values) if v.dtype == "float64" and np.prod(v.shape) > 0 and i != CONDITION.get(case.op)]
    if total is None or not smooth:
        pytest.skip("nothing floating")
    func = relay.Function(variables, total)
    values = [v.numpy() for v in values]
    if not np.isfinite(evaluate(func, values)[0]):
        pytest.skip("the result is not finite")
    try:
        grad = relay.transform.gradient(func, mode="first_order")
    except baton.error.CompileError as e:
        assert f"[gradient of {case.op}] it has " in str(e) or f"[gradient of {case.op}] an " in str(e), str(e)
        pytest.skip("the rule says that it does not take these attributes")
    grads = evaluate(grad, values)[1:]
    steps = [rng.uniform(-1, 1, v.shape) if i in smooth else None for i, v in enumerate(values)]
    want, last = None, None
    for eps in (1e-6, 1e-5):
        ends = [evaluate(func, [v + s * eps * d if d is not None else v for v, d in zip(values, steps, strict=True)])[0] for s in (1, -1)]
        want = float(ends[0] - ends[1]) / (2 * eps)
        given = sum(float(np.sum(g * d)) for g, d in zip(grads, steps, strict=True) if d is not None)
        last = abs(given - want), 1e-6 + 2e-5 * max(abs(want), abs(float(ends[0])) * 1e-2)
        if last[0] <= last[1]:
            break
    else:
        raise AssertionError(f"gradient of {case.op} along a direction is {given}, differences give {want}")
    for g, v in zip(grads, values, strict=True):
        assert g.shape == v.shape and g.dtype == v.dtype


PARAMS = list(differentiable())


@pytest.mark.parametrize("case, attrs", PARAMS)
def test_gradient_agrees_with_differences(case, attrs):
    """AN-016 differentiation is a pass."""
    check(case, attrs)


ACTIVATIONS = ("sigmoid", "tanh", "relu", "affine", "scaledtanh", "hardsigmoid", "softsign", "leakyrelu", "thresholdedrelu", "elu", "softplus")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_recurrent_layers(name):
    inputs = (Make("float64", shape, -1, 1) for shape in ((4, 3, 10), (10, 10), (3, 10)))
    attrs = {"cell": "rnn", "functions": [name], "alpha": [0.5], "beta": [0.25]}
    check(Case("nn.contrib_recurrence", None, *inputs), attrs)


def test_every_operator_has_a_gradient_or_a_reason():
    """Of those that give floating numbers from floating numbers; the others have no adjoints to pass on."""
    makes = {case.op for case in rows() if isinstance(case, Case) and any(map(floating, case.inputs))}
    missing = {n for n in operators() & makes if not rule_of(n) and gives_floating(n)}
    assert not missing, f"neither rule nor reason: {', '.join(sorted(missing))}"


def test_the_description_says_how_an_operator_is_differentiated():
    """The slot in the definition, which is what the attribute reads."""
    rule, form, none, open_ = (facts_of(n) for n in ("nn.softmax", "nn.layer_norm", "random.normal", "less"))
    assert (rule["gradient"], form["gradient"], none["gradient"], open_["gradient"]) == ("rule", "decomposition", "", "")
    assert [str(f["no_gradient"]) for f in (rule, form, none, open_)] == ["", "", "it draws random numbers", ""]
    assert facts_of("nn.batch_norm")["gradient"] == "decomposition", "that of lowering serves gradients too"
    assert facts_of("qnn.quantize")["no_gradient"] == "its result is whole numbers"
    of = {n: facts_of(n) for n in operators()}
    assert sum(f["gradient"] == "rule" for f in of.values()) > 150 and sum(f["gradient"] == "decomposition" for f in of.values()) > 40
    assert not [n for n, f in of.items() if f["gradient"] and f["no_gradient"]]


def test_the_attribute_is_the_slot():
    """FPrimalGradient reads the definition's rule; one that a program registers stands before it, and can be taken away."""
    x = relay.var("x", shape=(2,), dtype="float64")
    at = np.array([1.0, -2.0])
    built_in = relay.op.get_op_attr("negative", "FPrimalGradient")
    call = relay.transform.InferType()(baton.IRModule.from_expr(relay.negative(x)))["main"].body
    assert baton.ir.structural_equal(built_in(call, x)[0], relay.negative(x), map_free_vars=True)
    f = relay.Function([x], relay.negative(x))

    def slope():
        return evaluate(relay.transform.gradient(f, mode="first_order"), [at])[1].tolist()

    assert slope() == [-1.0, -1.0]
    try:
        relay.op.register_gradient("negative", lambda call, grad: [grad * relay.const(3.0, "float64")])
        assert slope() == [3.0, 3.0] and facts_of("negative")["gradient"] == "rule"
        relay.op.reset_attr("negative", "FPrimalGradient")
        assert relay.op.get_op_attr("negative", "FPrimalGradient") is None and facts_of("negative")["gradient"] == ""
        with pytest.raises(baton.error.CompileError, match="operator `negative` has no gradient"):
            slope()
    finally:
        relay.op.register_gradient("negative", built_in)
    assert slope() == [-1.0, -1.0]


def gives_floating(name):
    for case in rows():
        if isinstance(case, Case) and case.op == name and any(map(floating, case.inputs)):
            rng = np.random.default_rng(0)
            param = next(case.rows())
            attrs = param.values[1]
            arrays = [widened(i, rng) for i in case.inputs]
            try:
                expr, variables, _ = call(case.op, arrays, attrs, case.constant)
                t = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(variables, expr)))["main"].body.checked_type
            except baton.error.CompileError:
                continue
            types = t.fields if hasattr(t, "fields") else [t]
            if any(str(f.dtype) in FLOATS for f in types):
                return True
    return False


def test_every_rule_was_tried():
    """Each operator that takes floating numbers and has a rule has a row that differences were taken of."""
    tried = {p.values[0].op for p in PARAMS}
    have = {case.op for case in rows() if isinstance(case, Case) and any(map(floating, case.inputs)) and rule_of(case.op) in ("rule", "form")}
    left = {n for n in have - tried - {"floor_divide"} if not n.startswith("dyn.")}
    assert not left, f"no row whose gradient is tried: {', '.join(sorted(left))}"


def test_shapes_as_operands():
    """dyn.reshape and its like, by the virtual machine: the operator with a static shape has the same gradient."""
    x = relay.var("x", shape=(2, 1, 3), dtype="float64")
    s = relay.var("s", shape=(3,), dtype="int64")
    a = relay.var("a", shape=(1,), dtype="int64")
    at = np.arange(6.0).reshape(2, 1, 3)
    for op, operand, value, scale in (
        ("dyn.reshape", s, [3, 2, 1], 1),
        ("dyn.broadcast_to", s, [2, 4, 3], 4),
        ("dyn.squeeze", a, [1], 1),
        ("dyn.expand_dims", a, [1], 1),
    ):
        y = call_dynamic(op, x, operand)
        grad = relay.transform.gradient(relay.Function([x, operand], relay.exp(y)), mode="first_order")
        got = evaluate(grad, [at, np.array(value)], "vm")[1]
        np.testing.assert_allclose(got, scale * np.exp(at))


def call_dynamic(op, x, operand):
    from baton.relay.op.make import operator

    return operator(op)(x, operand)
