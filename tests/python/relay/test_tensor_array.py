# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors of one shape: `relay.prelude.StaticTensorArrayOps`."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.prelude import Prelude, StaticTensorArrayOps

A, B = np.arange(6, dtype="float32").reshape(2, 3), np.full((2, 3), 7, "float32")
C = np.random.default_rng(0).standard_normal((3, 2, 3)).astype("float32")


class Case:
    """A module with the functions for one shape, and a list of two tensors."""

    def __init__(self, shape=(2, 3)):
        self.mod = tvm.IRModule()
        self.prelude = Prelude(self.mod)
        self.ops = StaticTensorArrayOps(self.prelude, "float32", shape)
        self.ops.register()
        self.a, self.b, self.c = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3)), relay.var("c", shape=(3, 2, 3))

    def call(self, name, *args):
        return self.ops.get_global_var(name)(*args)

    def tensor(self, data):
        return self.ops.get_ctor("tensor_constructor")(data)

    def pair(self):
        array = self.call("tensor_array", relay.const(2))
        array = self.call("tensor_array_write", array, relay.const(0), self.tensor(self.a))
        return self.call("tensor_array_write", array, relay.const(1), self.tensor(self.b))

    def data(self, tensor, shape):
        other = StaticTensorArrayOps(self.prelude, "float32", shape)
        other.register()
        return other.get_global_var("tensor_get_data")(tensor)


ANY = relay.Any()
ROWS = {
    "read": (lambda t: t.data(t.call("tensor_array_read", t.pair(), relay.const(1)), (2, 3)), B),
    "stack": (lambda t: t.data(t.call("tensor_array_stack", t.pair()), (ANY, 2, 3)), np.stack([A, B])),
    "gather": (lambda t: t.data(t.call("tensor_array_gather", t.pair(), relay.const([1, 0, 1])), (ANY, 2, 3)), np.stack([B, A, B])),
    "unstack": (lambda t: t.data(t.call("tensor_array_read", t.call("tensor_array_unstack", t.c), relay.const(2)), (2, 3)), C[2]),
    "scatter": (
        lambda t: t.data(
            t.call("tensor_array_stack", t.call("tensor_array_scatter", t.pair(), relay.const([1, 0]), t.call("tensor_array_unstack", t.c))), (ANY, 2, 3)
        ),
        np.stack([C[1], C[0]]),
    ),
    "concatenate": (lambda t: t.data(t.call("tensor_concatenate", t.tensor(t.a), t.tensor(t.b)), (4, 3)), np.concatenate([A, B])),
    "take": (lambda t: t.data(t.call("tensor_take", t.tensor(t.a), relay.const(1), relay.const(2)), (ANY, 3)), A[1:2]),
    "expand_dims": (lambda t: t.data(t.call("tensor_expand_dims", t.tensor(t.a)), (1, 2, 3)), A[None]),
}


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("name", list(ROWS))
def test_functions(name, kind):
    case = Case()
    make, want = ROWS[name]
    case.mod["main"] = relay.Function([case.a, case.b, case.c], make(case))
    found = relay.create_executor(kind, mod=case.mod, device=tvm.cpu(), target="llvm").evaluate()(A, B, C)
    tvm.testing.assert_allclose(found.numpy(), want)


def test_names_and_types():
    case = Case()
    assert case.ops.get_name("tensor_t") == "static_tensor_float32_2_3_t" and case.ops.get_name("tensor_array") == "tensor_array_float32_2_3"
    assert StaticTensorArrayOps(case.prelude, "int32", (ANY, 2)).get_name("tensor_t") == "static_tensor_int32_any_2_t"
    assert StaticTensorArrayOps(case.prelude, "int32", ()).get_name("tensor_array") == "tensor_array_int32_scalar"
    count = len(case.mod)
    case.ops.register()
    assert len(case.mod) == count, "twice is once"
    typed = relay.transform.InferType()(case.mod)
    assert typed[case.ops.get_name("tensor_array_stack")].ret_type == typed.get_global_type_var("static_tensor_float32_any_2_3_t")()
    with pytest.raises(tvm.TVMError, match="tensor_array_float32_5"):
        StaticTensorArrayOps(case.prelude, "float32", (5,)).get_global_var("tensor_array")


_EVERY = {"tensor_array", "tensor_array_read", "tensor_array_write", "tensor_array_unstack", "tensor_get_data", "tensor_expand_dims"}
_KNOWN = {"tensor_array_stack", "tensor_array_gather", "tensor_array_scatter"}
_PARTS = {"tensor_take", "tensor_concatenate", "tensor_array_concat", "tensor_array_split"}


@pytest.mark.parametrize(
    "shape, functions",
    [((), _EVERY | _KNOWN), *((shape, _EVERY | _KNOWN | _PARTS) for shape in ((ANY,), (ANY, 3), (1,)))],
    ids=["()", "(?)", "(?, 3)", "(1)"],
)
def test_functions_of_other_shapes(shape, functions):
    """Which there are, and what they compute: two tensors in, read back, with a dimension more, and where it goes stacked or joined."""
    mod = tvm.IRModule()
    ops = StaticTensorArrayOps(Prelude(mod), "float32", shape)
    ops.register()
    for name in sorted(_EVERY | _KNOWN | _PARTS):
        if name in functions:
            ops.get_global_var(name)
        else:
            with pytest.raises(ValueError, match=ops.get_name(name)):
                ops.get_global_var(name)

    def call(name, *args):
        return ops.get_global_var(name)(*args)

    def data(tensor, of):
        other = StaticTensorArrayOps(ops.prelude, "float32", of)
        other.register()
        return other.get_global_var("tensor_get_data")(tensor)

    sizes = [2 if isinstance(d, relay.Any) else d for d in shape]
    a, b = (np.random.default_rng(k).standard_normal(sizes).astype("float32") for k in (1, 2))
    x, y = relay.var("x", shape=shape), relay.var("y", shape=shape)
    full = ops.get_ctor("tensor_constructor")
    pair = call("tensor_array_write", call("tensor_array", relay.const(2)), relay.const(0), full(x))
    pair = call("tensor_array_write", pair, relay.const(1), full(y))
    found = [(data(call("tensor_array_read", pair, relay.const(k)), shape), want) for k, want in enumerate((a, b))]
    found.append((data(call("tensor_expand_dims", call("tensor_array_read", pair, relay.const(1))), (1, *shape)), b[None]))
    if "tensor_array_stack" in functions:
        found.append((data(call("tensor_array_stack", pair), (ANY, *shape)), np.stack([a, b])))
        found.append((data(call("tensor_array_gather", pair, relay.const([1, 1, 0])), (ANY, *shape)), np.stack([b, b, a])))
    if "tensor_concatenate" in functions:
        rows = 2 * shape[0] if isinstance(shape[0], int) else ANY
        found.append((data(call("tensor_concatenate", full(x), full(y)), (rows, *shape[1:])), np.concatenate([a, b])))
        found.append((data(call("tensor_take", full(x), relay.const(0), relay.const(1)), (ANY, *shape[1:])), a[:1]))
    mod["main"] = relay.Function([x, y], relay.Tuple([value for value, _ in found]))
    results = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(a, b)
    for got, (_, want) in zip(results, found, strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


# ---- Tensors of any shape


def some(case, *values):
    """A list of tensors of the prelude."""
    p = case.prelude
    array = p.nil()
    for value in reversed(values):
        array = p.cons(p.get_tensor_ctor("tensor2", "float32")(value), array)
    return array


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize(
    ("make", "rank", "want"),
    [
        (lambda c, f: f("tensor_array_read")(some(c, c.a, c.b), relay.const(1)), 2, B),
        (lambda c, f: f("tensor_array_stack")(some(c, c.a, c.b)), 3, np.stack([A, B])),
        (lambda c, f: f("tensor_array_concat")(some(c, c.a, c.b)), 2, np.concatenate([A, B])),
        (lambda c, f: f("tensor_array_gather")(some(c, c.a, c.b), relay.const([1, 0, 1])), 3, np.stack([B, A, B])),
        (lambda c, f: f("tensor_array_stack")(f("tensor_array_unstack_tensor3")(c.c)), 3, C),
        (
            lambda c, f: f("tensor_array_stack")(f("tensor_array_scatter")(some(c, c.a, c.b), relay.const([1, 0]), f("tensor_array_unstack_tensor3")(c.c))),
            3,
            np.stack([C[1], C[0]]),
        ),
        (
            lambda c, f: f("tensor_array_read")(
                f("tensor_array_split")(f("tensor_array")(relay.const(2)), c.prelude.get_tensor_ctor("tensor3", "float32")(c.c), relay.const([1, 2])),
                relay.const(1),
            ),
            3,
            C[1:3],
        ),
        (lambda c, f: f("tensor_take")(c.prelude.get_tensor_ctor("tensor2", "float32")(c.a), relay.const(1), relay.const(2)), 2, A[1:2]),
        (
            lambda c, f: f("tensor_array_read")(
                f("tensor_array_write")(f("tensor_array")(relay.const(3)), relay.const(2), c.prelude.get_tensor_ctor("tensor2", "float32")(c.a)), relay.const(2)
            ),
            2,
            A,
        ),
    ],
    ids=["read", "stack", "concat", "gather", "unstack", "scatter", "split", "take", "write"],
)
def test_tensors_of_any_shape(make, rank, want, kind):
    case = Case()
    found = make(case, lambda name: case.prelude.get_global_var(name, "float32"))
    case.mod["main"] = relay.Function([case.a, case.b, case.c], found)
    value = relay.create_executor(kind, mod=case.mod, device=tvm.cpu(), target="llvm").evaluate()(A, B, C)
    if kind == "debug":
        assert value.constructor.name_hint == f"tensor{rank}_float32"
    tvm.testing.assert_allclose(value.fields[0].numpy() if hasattr(value, "fields") else value[0].numpy(), want)


def test_names_by_dtype_and_shape():
    p = Prelude(tvm.IRModule())
    assert p.get_name("tensor_t", "int8") == "tensor_int8_t" and p.get_name("tensor_array", "int8") == "tensor_array_int8"
    assert p.get_type("tensor_t", "int8").name_hint == "tensor_int8_t" and p.get_ctor("tensor_t", "tensor0", "int8").name_hint == "tensor0_int8"
    assert p.get_name_static("tensor_t", "float32", (2, 3)) == "static_tensor_float32_2_3_t"
    assert p.get_global_var_static("tensor_array_read", "float32", (2, 3)).name_hint == "tensor_array_read_float32_2_3"
    assert p.get_type_static("tensor_t", "float32", (2,)).name_hint == "static_tensor_float32_2_t"
    assert p.get_ctor_static("tensor_t", "tensor_nil", "float32", (2,)).same_as(p.get_tensor_ctor_static("tensor_nil", "float32", (2,)))
    before = len(p.mod)
    relay.prelude.TensorArrayOps(p, "int8").register()
    assert len(p.mod) == before


@pytest.mark.parametrize("name", ["core.rly", "nn.rly", "prelude.rly", "gradient.rly"])
def test_files_of_the_standard_library(name):
    mod = tvm.IRModule()
    mod.import_from_std(name)
    mod.import_from_std(name)
    relay.transform.InferType()(mod)
    assert (len(mod) > 0) == (name in ("prelude.rly", "gradient.rly"))
