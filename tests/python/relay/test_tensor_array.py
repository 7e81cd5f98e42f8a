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
    "scatter": (lambda t: t.data(t.call("tensor_array_stack", t.call("tensor_array_scatter", t.pair(), relay.const([1, 0]), t.call("tensor_array_unstack", t.c))),
                                 (ANY, 2, 3)), np.stack([C[1], C[0]])),
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


@pytest.mark.parametrize("shape", [(), (ANY,), (ANY, 3), (1,)], ids=str)
def test_other_shapes_are_well_typed(shape):
    relay.transform.InferType()(Case(shape).mod)
