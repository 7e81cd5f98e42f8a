# SPDX-License-Identifier: Apache-2.0
"""Operators' rules for the elements of short tensors say what the operators compute, and nothing about what is not known."""

import numpy as np
import pytest

import baton
from baton import relay

known_elements = baton._ffi.get_global_func("relay.analysis.known_elements")
has_elements = baton._ffi.get_global_func("relay.op.has_elements")

TRIALS = 24
LENGTHS = [0, 1, 2, 5]


class Draw:
    """Random operands: constants, variables, and vectors of which a part is constant."""

    def __init__(self, seed, kinds):
        self.rng, self.kinds, self.given = np.random.default_rng(seed), kinds, []

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def value(self, n, dtype):
        if dtype == "bool":
            return self.rng.integers(0, 2, n).astype(bool)
        return self.rng.integers(-4, 5, n).astype(dtype)

    def leaf(self, n, dtype, kind):
        value = self.value(() if n is None else n, dtype)
        value = np.asarray(value, dtype)
        if kind == "constant":
            return relay.const(value, dtype)
        self.given.append(value)
        return relay.var(f"v{len(self.given)}", shape=value.shape, dtype=dtype)

    def __call__(self, n=None, dtype="int64"):
        kind = self.pick(self.kinds)
        if kind == "part" and n is not None:
            return relay.concatenate([self.leaf(1, dtype, "constant"), self.leaf(n - 1, dtype, "variable")], 0) if n > 1 else self.leaf(n, dtype, "variable")
        return self.leaf(n, dtype, "variable" if kind == "part" else kind)

    def pair(self):
        """Lengths that broadcast."""
        n = self.pick(LENGTHS)
        return [(n, n), (n, 1), (1, n), (n, None), (None, n)][self.rng.integers(5)]


def binary(f, dtypes=("int64", "int32")):
    def make(draw):
        dtype = draw.pick(dtypes)
        m, n = draw.pair()
        return f(draw(m, dtype), draw(n, dtype))

    return make


def where(draw):
    m, n = draw.pair()
    return relay.where(draw(draw.pick([m, None]), "bool"), draw(m), draw(n))


def take(draw):
    n = draw.pick([1, 3, 5])
    return relay.take(draw(n), draw(draw.pick([None, 2])), axis=0, mode=draw.pick(["clip", "wrap", "negative"]))


def strided_slice(draw):
    begin, end = (int(draw.rng.integers(-6, 7)) for _ in range(2))
    return relay.strided_slice(draw(draw.pick(LENGTHS)), [begin], [end], [draw.pick([1, 2, 9, -1])])


def reduction(f, lengths=(1, 2, 5)):
    return lambda draw: f(draw(draw.pick(lengths), draw.pick(["int64", "int32"])), keepdims=draw.pick([False, True]))


def any_tensor(draw):
    shape = tuple(int(d) for d in draw.rng.integers(0, 4, draw.rng.integers(0, 4)))
    draw.given.append(np.zeros(shape, "float32"))
    return relay.var(f"v{len(draw.given)}", shape=shape, dtype="float32")


PROGRAMS = {
    "add": binary(relay.add),
    "subtract": binary(relay.subtract),
    "multiply": binary(relay.multiply),
    "divide": binary(relay.divide),
    "floor_divide": binary(relay.floor_divide),
    "mod": binary(relay.mod),
    "floor_mod": binary(relay.floor_mod),
    "maximum": binary(relay.maximum),
    "minimum": binary(relay.minimum),
    "equal": binary(relay.equal, ("int64", "bool")),
    "not_equal": binary(relay.not_equal, ("int64", "bool")),
    "less": binary(relay.less),
    "less_equal": binary(relay.less_equal),
    "greater": binary(relay.greater),
    "greater_equal": binary(relay.greater_equal),
    "logical_and": binary(relay.logical_and, ("bool",)),
    "logical_or": binary(relay.logical_or, ("bool",)),
    "where": where,
    "take": take,
    "strided_slice": strided_slice,
    "sum": reduction(relay.sum, LENGTHS),
    "prod": reduction(relay.prod, LENGTHS),
    "max": reduction(relay.max),
    "min": reduction(relay.min),
    "cast": lambda draw: relay.cast(draw(draw.pick(LENGTHS), draw.pick(["int64", "bool"])), draw.pick(["int8", "int32", "bool"])),
    "reshape": lambda draw: relay.reshape(draw(draw.pick([1, 4])), [-1]),
    "expand_dims": lambda draw: relay.expand_dims(draw(), 0),
    "squeeze": lambda draw: relay.squeeze(draw(1)),
    "copy": lambda draw: relay.copy(draw(3)),
    "identity": lambda draw: relay.Call(relay.op.get("identity"), [draw(3)]),
    "concatenate": lambda draw: relay.concatenate([draw(draw.pick(LENGTHS)) for _ in range(3)], 0),
    "stack": lambda draw: relay.stack([draw() for _ in range(3)], 0),
    "shape_of": lambda draw: relay.shape_of(any_tensor(draw), "int64"),
    "ndarray_size": lambda draw: relay.ndarray_size(any_tensor(draw), "int64"),
}
# What a rule may leave open though all operands are literals: a step backwards, an index that counts from the end or is out of range.
MAY_BE_OPEN = {"take", "strided_slice"}


def typed(expr):
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(relay.analysis.free_vars(expr), expr)))
    return mod, mod["main"].body


def elements(expr):
    found = known_elements(typed(expr)[1])
    return None if found is None else [None if e is None else getattr(e, "value", e) for e in found]


def test_each_rule_has_a_program_here():
    named = {n for n in baton.ir.Op.list_op_names() if has_elements(baton.ir.Op.get(n))}
    assert named == set(PROGRAMS)


@pytest.mark.parametrize("kinds", [["constant"], ["constant", "variable", "part"]], ids=["known", "open"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_known_elements_are_those_that_are_computed(name, kinds):
    for seed in range(TRIALS):
        draw = Draw(seed, kinds)
        expr = PROGRAMS[name](draw)
        mod, body = typed(expr)
        values = {f"v{i + 1}": v for i, v in enumerate(draw.given)}
        args = [values[p.name_hint] for p in mod["main"].params]
        computed = relay.create_executor("debug", mod).evaluate()(*args).numpy().reshape(-1).tolist()
        found = elements(expr)
        assert found is not None and len(found) == len(computed), (name, seed)
        wrong = [(k, c) for k, c in zip(found, computed, strict=True) if k is not None and int(k) != int(c)]
        assert not wrong, (name, seed, str(expr), found, computed)
        if kinds == ["constant"] and name not in MAY_BE_OPEN:
            assert None not in found, (name, seed, str(expr))


def test_an_operand_that_is_not_known_leaves_the_others_known():
    v = relay.var("v", shape=(2,), dtype="int64")
    joined = relay.concatenate([v, relay.const(np.array([7, 8]))], 0)
    assert elements(joined) == [None, None, 7, 8]
    assert elements(relay.add(joined, relay.const(np.int64(1)))) == [None, None, 8, 9]
    assert elements(relay.take(joined, relay.const(np.int64(2)), axis=0)) == [7]
    assert elements(relay.prod(joined)) == [None]


def test_where_of_an_open_condition():
    """Two that are equal need no condition; else the element is not known, or an expression of the condition."""
    c = relay.var("c", shape=(2,), dtype="bool")
    a, b = (relay.const(np.array(v)) for v in ([1, 2], [1, 3]))
    assert elements(relay.where(c, a, b)) == [1, None]
    n = relay.var("x", shape=(baton.tir.SizeVar("n", "int64"),), dtype="float32")
    is_one = relay.equal(relay.shape_of(n, "int64"), relay.const(np.array([1])))
    assert [str(e) for e in elements(relay.where(is_one, relay.const(np.array([5])), relay.const(np.array([6]))))] == ["select((n: int64 == 1), 5, 6)"]
    assert elements(relay.where(is_one, relay.const(np.array([5])), relay.const(np.array([5])))) == [5]
