# SPDX-License-Identifier: Apache-2.0
"""Relations between types, and the solver of type inference on its own."""

import pytest

import baton as tvm
from baton import relay
from baton.relay import analysis


def make_rel(name, args, num_inputs=None, attrs=None):
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation." + name)
    return relay.ty.TypeRelation(func, args, len(args) - 1 if num_inputs is None else num_inputs, attrs)


@pytest.fixture
def solver():
    made = analysis._ffi_api._test_type_solver()
    for name in ("Solve", "Unify", "Resolve", "AddConstraint"):
        setattr(made, name, made(name))

    def gen_type(name, args, out=None):
        out = out or relay.ty.IncompleteType()
        made.AddConstraint(make_rel(name, args + [out]))
        return out

    made.gen_type = gen_type
    return made


def test_a_relation_is_a_type():
    a, b = relay.TensorType((2, 3)), relay.TensorType((3,))
    rel = make_rel("Broadcast", [a, b, a])
    assert rel.func.name == "tvm.relay.type_relation.Broadcast" and rel.num_inputs == 2 and len(rel.args) == 3 and rel.attrs is None
    assert isinstance(rel, tvm.ir.TypeConstraint) and relay.TypeRelation is type(rel)
    back = tvm.ir.load_json(tvm.ir.save_json(rel))
    assert tvm.ir.structural_equal(back, rel, True)
    func = relay.FuncType([a, b], a, [], [make_rel("Broadcast", [a, b, a])])
    assert func.type_constraints[0].args[0] == a

    class Renamed(relay.TypeMutator):
        def visit_tensor_type(self, tt):
            return relay.TensorType(tt.shape, "int8")

    assert [t.dtype for t in Renamed().visit(make_rel("Identity", [a, b])).args] == ["int8", "int8"]


def test_relations_are_solved_in_whatever_order(solver):
    t0, t1 = relay.TensorType((10, 20)), relay.TensorType((10, 1))
    out, later = relay.IncompleteType(), relay.IncompleteType()
    solver.gen_type("Identity", [later], out)  # waits for what follows
    solver.gen_type("Broadcast", [t0, t1], later)
    compared = solver.gen_type("BroadcastComp", [out, t0])
    assert solver.Solve()
    assert solver.Resolve(out) == t0
    assert solver.Resolve(compared) == relay.TensorType((10, 20), "bool")


def test_what_lacks_an_input_is_not_solved(solver):
    solver.gen_type("Identity", [relay.IncompleteType()])
    assert not solver.Solve()


def test_unify(solver):
    variable = relay.IncompleteType()
    left = relay.TupleType([variable, relay.TensorType((2,), "int32")])
    right = relay.TupleType([relay.TensorType((1,), "float32"), relay.TensorType((2,), "int32")])
    assert solver.Unify(left, right) == right
    assert solver.Resolve(variable) == right.fields[0]
    with pytest.raises(tvm.TVMError, match="cannot be unified"):
        solver.Unify(relay.TensorType((1,)), relay.TensorType((2,)))


def test_misuse_is_an_error(solver):
    with pytest.raises(ValueError, match="no `Guess`"):
        solver("Guess")
    with pytest.raises(ValueError, match="asked by a solver"):
        tvm.get_global_func("tvm.relay.type_relation.Identity")([relay.TensorType((1,))] * 2, 1, None, None)
    solver.AddConstraint(make_rel("Identity", [relay.TensorType((1,))], 1))
    with pytest.raises(tvm.TVMError, match="between 1 inputs and a result"):
        solver.Solve()
