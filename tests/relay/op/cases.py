# SPDX-License-Identifier: Apache-2.0
"""Rows of tests of operators: what an operator computes, beside NumPy's word for it.

    Case("nn.leaky_relu", lambda x, alpha: np.where(x > 0, x, alpha * x), f32(2, 3), alpha=each(0.0, 0.2), special=True)

A row checks the inferred type, the value by the interpreter and compiled (for this machine and for the levels v2, v3 and v4 of x86-64
that it runs), constant folding (bit for bit), and round trips of text and
JSON. `special=True` adds NaN, infinities, signed zeros, an empty and a rank-0 tensor: for elementwise operators. `dynamic=True` infers
and runs the call with every extent of its inputs unknown, too; `dynamic="R2"` says that requirement R2 then fails.
"""

import itertools
import platform
import types
import zlib

import numpy as np
import pytest

import baton
from baton import relay
from baton.relay.op.make import operator

try:
    import ml_dtypes

    bfloat16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:  # the rows that need it are left out
    bfloat16 = None


class Make:
    """An input: an array of a dtype and shape, made from a seed. `low`, `high`: bounds of its values."""

    def __init__(self, dtype, shape, low=None, high=None):
        self.dtype, self.shape, self.low, self.high = dtype, tuple(shape), low, high

    def __call__(self, rng):
        return make(rng, self.dtype, self.shape, self.low, self.high)

    def within(self, low, high):
        return Make(self.dtype, self.shape, low, high)

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


def make(rng, dtype, shape, low=None, high=None):
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    t = bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    if t == bfloat16 or t.kind == "f":
        low, high = (-3.0 if low is None else low), (3.0 if high is None else high)
        return np.asarray(rng.uniform(low, high, shape)).astype(t)
    info = np.iinfo(t)
    low, high = (max(info.min, -20) if low is None else low), (min(info.max, 20) if high is None else high)
    return np.asarray(rng.integers(low, high, shape, endpoint=True)).astype(t)


def _maker(dtype):
    return lambda *shape: Make(dtype, shape)


f32, f64, f16, bf16 = _maker("float32"), _maker("float64"), _maker("float16"), _maker("bfloat16")
i64, i32, i16, i8 = _maker("int64"), _maker("int32"), _maker("int16"), _maker("int8")
u64, u32, u8, boolean = _maker("uint64"), _maker("uint32"), _maker("uint8"), _maker("bool")


class Value:
    """An input that is this array."""

    def __init__(self, array, dtype=None):
        self.array = np.asarray(array, dtype=dtype)

    def __call__(self, rng):
        return self.array

    def __repr__(self):
        return f"value{list(self.array.shape)}"


class _Each(tuple):
    pass


def each(*values):
    """An attribute that is tried with each of these values."""
    return _Each(values)


def _label(maker):
    # A plain function shows its address, which differs between the processes that share the tests.
    return maker.__name__ if isinstance(maker, types.FunctionType) else repr(maker)


class Case:
    """A row. `inputs` are makers; a list of them is a tuple argument. `value` gives the result from arrays and attributes."""

    def __init__(self, op, value, *inputs, rtol=None, atol=0.0, special=False, compiled=True, fold=True, constant=(), name="", dynamic=None, **attrs):
        self.op, self.value, self.inputs, self.special = op, value, inputs, special
        self.rtol, self.atol, self.compiled, self.fold, self.constant, self.name = rtol, atol, compiled, fold, set(constant), name
        self.attrs, self.dynamic = attrs, dynamic

    def rows(self):
        keys = [k for k, v in self.attrs.items() if isinstance(v, _Each)]
        for choice in itertools.product(*(self.attrs[k] for k in keys)):
            attrs = {**self.attrs, **dict(zip(keys, choice, strict=True))}
            label = "-".join([self.op, self.name, *map(_label, self.inputs), *(f"{k}={v}" for k, v in attrs.items())])
            yield pytest.param(self, attrs, id=label.replace(" ", "").replace("--", "-")[:150])


def table(*rows, dynamic=None):
    """`test_rows = table(Case(...), ...)` gives a test for each row and choice of attributes. `dynamic`: of rows that do not say."""
    rows = list(rows)
    for row in rows:
        row.dynamic = dynamic if row.dynamic is None else row.dynamic

    @pytest.mark.parametrize("case, attrs", [p for c in rows for p in c.rows()])
    def test(case, attrs):
        check(case, attrs)

    test.rows = list(rows)
    return test


def _levels():
    """Targets of the x86-64 levels that this machine runs, each without instructions that the next one has. The host may have more."""
    host = set(baton.target.Target("llvm").features)
    targets = [baton.target.Target(f"llvm -mcpu=x86-64-v{n}") for n in (2, 3, 4)] if platform.machine() == "x86_64" else []
    return [t for t in targets if set(t.features) <= host]


LEVELS = _levels()


def evaluate(func, args, kind="debug", target="llvm"):
    mod = baton.IRModule.from_expr(func)
    out = relay.create_executor(kind, mod, target=target).evaluate()(*args)
    return [x.numpy() for x in _flat(out)]


def _flat(value):
    if hasattr(value, "numpy"):
        return [value]
    return [y for x in value for y in _flat(x)]


def _types(t):
    return [t] if hasattr(t, "shape") else [y for f in t.fields for y in _types(f)]


def _dtype_name(a):
    return "bfloat16" if bfloat16 is not None and a.dtype == bfloat16 else str(a.dtype)


def call(op, args, attrs, constant=(), dims=lambda n: n):
    """The operator on variables (or constants) like the arrays: (expression, variables, their values). `dims`: what stands for an extent."""
    variables, values = [], []

    def expr(a, fixed):
        if isinstance(a, list):
            return relay.Tuple([expr(x, fixed) for x in a])
        a = baton.nd.array(a)
        if fixed:
            return relay.Constant(a)
        v = relay.var(f"x{len(variables)}", shape=[dims(n) for n in a.shape], dtype=a.dtype)
        variables.append(v)
        values.append(a)
        return v

    inputs = [expr(a, i in constant) for i, a in enumerate(args)]
    return _call(op, inputs, attrs), variables, values


def symbolic_call(op, args, attrs, constant=()):
    """As `call`, with a variable for each extent above 1: the same for equal extents."""
    sizes = {}
    expr, variables, values = call(op, args, attrs, constant, dims=lambda n: n if n < 2 else sizes.setdefault(n, baton.tir.Var(f"n{n}", "int64")))
    return expr, variables, values


def _call(op, inputs, attrs):
    f = operator(op)
    if f.inputs and len(inputs) <= len(f.inputs):
        return f(**{p.name: x for p, x in zip(f.inputs, inputs, strict=False)}, **attrs)  # in the operator's order, Relay's function may have another
    return f(*inputs, **attrs) if f.inputs or not inputs else f.make(inputs, attrs)  # one that takes any inputs names none


def agree(got, want, rtol, atol, what):
    assert len(got) == len(want), f"{what}: {len(got)} results, {len(want)} wanted"
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape, f"{what}: shape {g.shape}, {w.shape} wanted"
        assert _dtype_name(g) == _dtype_name(w), f"{what}: dtype {g.dtype}, {w.dtype} wanted"
        if w.dtype.kind in "fV" or w.dtype == bfloat16:
            tol = rtol if rtol is not None else {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}[_dtype_name(w)]
            np.testing.assert_allclose(g.astype("float64"), w.astype("float64"), rtol=tol, atol=atol, err_msg=what)
            zero = (w == 0) & (g == 0)
            same = np.signbit(g.astype("float64")) == np.signbit(w.astype("float64"))
            assert np.all(same | ~zero) or atol > 0, f"{what}: signs of zeros differ"
        else:
            np.testing.assert_array_equal(g, w, err_msg=what)


def check(case, attrs):
    rng = np.random.default_rng(zlib.crc32(case.op.encode()))

    def draw(i):
        return [draw(x) for x in i] if isinstance(i, list) else i(rng)

    _check(case, attrs, [draw(i) for i in case.inputs], "random")
    if case.special:
        for what, arrays in special_inputs(case.inputs, rng):
            _check(case, attrs, arrays, what)


def special_inputs(makers, rng):
    """Inputs of special values, without elements, and of rank 0."""

    def of(shape):
        return [make(rng, m.dtype, shape, m.low, m.high) for m in makers]

    yield "empty", of((0, 3))
    yield "scalar", of(())
    if all(m.dtype in ("float32", "float64", "float16", "bfloat16") for m in makers):
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, -2.5, 3.5])
        grids = np.meshgrid(*[values] * len(makers), indexing="ij")
        yield "special values", [g.reshape(-1).astype(m(rng).dtype) for g, m in zip(grids, makers, strict=True)]
    elif all(m.dtype.startswith(("int", "uint")) for m in makers):
        lists = [np.array([np.iinfo(m.dtype).min, np.iinfo(m.dtype).max, 0, 1, 2], dtype=m.dtype) for m in makers]
        yield "extreme values", [g.reshape(-1) for g in np.meshgrid(*lists, indexing="ij")]


def _agree_types(mod, want, what):
    for t, w in zip(_types(mod["main"].body.checked_type), want, strict=True):
        w = np.asarray(w)
        assert str(t.dtype) == _dtype_name(w), f"{what}: inferred dtype {t.dtype}, {w.dtype} wanted"
        shape = [getattr(d, "value", None) for d in t.shape]
        assert len(shape) == w.ndim and all(s is None or s == n for s, n in zip(shape, w.shape, strict=True)), (
            f"{what}: inferred shape {shape}, {w.shape} wanted"
        )


def _check_dynamic(case, attrs, arrays, want, what):
    expr, variables, values = call(case.op, arrays, attrs, case.constant, dims=lambda n: relay.Any())
    func = relay.Function(variables, expr)
    if isinstance(case.dynamic, str):
        with pytest.raises(baton.error.CompileError) as e:
            relay.transform.InferType()(baton.IRModule.from_expr(func))
        assert f"[{case.op} {case.dynamic}]" in str(e.value), str(e.value)
        return
    _agree_types(relay.transform.InferType()(baton.IRModule.from_expr(func)), want, what)
    for kind, how in (("debug", "interpreted"), ("vm", "on the virtual machine")):
        agree(evaluate(func, values, kind), want, case.rtol, case.atol, f"{case.op} {what}, {how}")


def _check(case, attrs, arrays, what):
    with np.errstate(all="ignore"):
        want = case.value(*arrays, **attrs)
    want = list(want) if isinstance(want, (tuple, list)) else [want]
    expr, variables, values = call(case.op, arrays, attrs, case.constant)
    func = relay.Function(variables, expr)
    mod = relay.transform.InferType()(baton.IRModule.from_expr(func))
    _agree_types(mod, want, what)
    got = evaluate(func, values)
    agree(got, want, case.rtol, case.atol, f"{case.op} {what}, interpreted")
    if case.compiled:
        agree(evaluate(func, values, "graph"), want, case.rtol, case.atol, f"{case.op} {what}, compiled")
        for target in LEVELS:
            agree(evaluate(func, values, "graph", target), want, case.rtol, case.atol, f"{case.op} {what}, compiled for {target}")
    if case.fold:
        fixed, _, _ = call(case.op, arrays, attrs, range(len(arrays)))
        folded = relay.transform.FoldConstant()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([], fixed))))
        parts = folded["main"].body
        parts = list(parts.fields) if isinstance(parts, relay.Tuple) else [parts]
        assert all(isinstance(p, relay.Constant) for p in parts), f"{what}: not folded: {folded}"
        for p, g in zip(parts, got, strict=True):
            assert p.data.numpy().tobytes() == g.tobytes(), f"{what}: folding gives another value than evaluation"
    if what == "random":
        if case.dynamic:
            _check_dynamic(case, attrs, arrays, want, "with unknown extents")
        _come_back(mod, text=not case.constant)


def _of_types(inputs):
    """Expressions of inputs (see Reject), and the variables in them."""
    variables = []

    def expr(t):
        if isinstance(t, list):
            return relay.Tuple([expr(x) for x in t])
        if isinstance(t, np.ndarray):
            return relay.const(t)
        if callable(t):
            return t()
        shape, dtype = t
        variables.append(relay.var(f"x{len(variables)}", relay.TensorType(shape, dtype)))
        return variables[-1]

    return [expr(t) for t in inputs], variables


def _inferred(row):
    args, variables = _of_types(row.inputs)
    body = _call(row.op, args, row.attrs)
    return relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(variables, body)))


def _come_back(mod, text=True):
    if text:
        text = mod.astext()
        assert baton.ir.structural_equal(relay.parse(text), mod), f"text does not come back:\n{text}"
    assert baton.ir.structural_equal(baton.ir.load_json(baton.ir.save_json(mod)), mod), "JSON does not come back"


class Typed:
    """A call without a value of its own: the text of its type, and inputs as those of Reject."""

    def __init__(self, op, type, *inputs, **attrs):
        self.op, self.type, self.inputs, self.attrs = op, type, inputs, attrs


def typed(*rows):
    """`test_types = typed(Typed(...), ...)`: each row has its type, and comes back from text and JSON."""

    @pytest.mark.parametrize("row", [pytest.param(r, id=f"{r.op}-{i}") for i, r in enumerate(rows)])
    def test(row):
        mod = _inferred(row)
        assert str(mod["main"].body.checked_type).removeprefix('#[version = "0.0.5"]\n') == row.type
        _come_back(mod)

    test.rows = list(rows)
    return test


class Reject:
    """A call that breaks a requirement: `rule` is "R1" and the like; `inputs` are types as (shape, dtype), lists of them, arrays, or
    functions that make an expression."""

    def __init__(self, op, rule, *inputs, says="", **attrs):
        self.op, self.rule, self.inputs, self.says, self.attrs = op, rule, inputs, says, attrs


def rejects(*rows):
    """`test_rejects = rejects(Reject(...), ...)`: each row gives an error that names operator and requirement."""

    @pytest.mark.parametrize("row", [pytest.param(r, id=f"{r.op}-{r.rule}-{i}") for i, r in enumerate(rows)])
    def test(row):
        with pytest.raises(baton.error.CompileError) as e:
            _inferred(row)
        text = str(e.value)
        assert f"[{row.op} {row.rule}]" in text, text
        assert row.says in text, text

    test.rows = list(rows)
    return test
