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
    solver.gen_type("Broadcast", [relay.IncompleteType(), relay.TensorType((2,))])
    assert not solver.Solve()


def test_identity_is_of_whatever_types(solver):
    t1, t2, t3 = (relay.IncompleteType() for _ in range(3))
    one, two = relay.TupleType([t1, t2]), relay.TupleType([t1, t3])
    made1, made2 = solver.gen_type("Identity", [one]), solver.gen_type("Identity", [two])
    solver.gen_type("Identity", [made1], made2)
    assert solver.Solve()
    # Fields that become known later are known in what was solved before.
    first, second = relay.TensorType((10, 20)), relay.TensorType((10, 1, 1))
    solver.gen_type("Identity", [t1], first)
    solver.gen_type("Identity", [t2], second)
    assert solver.Solve()
    whole = relay.TupleType([first, second])
    assert all(solver.Resolve(t) == whole for t in (made1, made2, one, two)) and solver.Resolve(t3) == second


A, B, C, D = (relay.TypeVar(n) for n in "abcd")


def func(args, ret, params):
    return relay.FuncType(args, ret, params)


def pair(*fields):
    return relay.TupleType(list(fields))


@pytest.mark.parametrize(
    "left, right, unified",
    [
        (func([A, B], C, [A, B, C]), func([A, A], A, [A]), func([A, A], A, [A])),
        (func([A], A, [A]), func([B], C, [B, C]), func([A], A, [A])),
        (func([A], A, [A]), func([pair()], pair(), []), func([pair()], pair(), [])),
        (func([A], B, [A, B]), func([B], A, [A, B]), func([A], B, [A, B])),
        (func([A, pair(B, C)], pair(A, B, C), [A, B, C]), func([A, pair(B, C)], pair(A, B, C), [C, A, B]), func([A, pair(B, C)], pair(A, B, C), [A, B, C])),
        (func([A, func([B], C, [])], A, [A, B, C]), func([C, func([A], D, [])], C, [D, C, A]), func([A, func([B], C, [])], A, [A, B, C])),
        # The inner function binds its parameters anew.
        (func([func([A, B], C, [A, B, C])], C, [C]), func([func([A, A], A, [A])], B, [B]), func([func([A, B], C, [A, B, C])], C, [C])),
        (func([func([A], A, [A])], A, [A]), func([func([B], B, [B])], A, [A]), func([func([A], A, [A])], A, [A])),
    ],
)
def test_unify_quantified_functions(solver, left, right, unified):
    assert solver.Unify(left, right) == unified


@pytest.mark.parametrize(
    "left, right",
    [
        (func([A, B], B, [A, B]), func([A, A], A, [A, B])),  # one type parameter for two
        (func([A, B], C, [A, B, C]), func([A], A, [A])),
        (func([A], A, [A]), func([pair()], relay.TensorType((1,)), [])),
        (A, B),
        (relay.GlobalTypeVar("g"), relay.GlobalTypeVar("h")),
        (relay.TypeCall(relay.GlobalTypeVar("g"), [A]), relay.TypeCall(relay.GlobalTypeVar("g"), [B])),
        (pair(A), pair()),
    ],
)
def test_what_cannot_be_unified(solver, left, right):
    with pytest.raises(tvm.TVMError, match="cannot be unified"):
        solver.Unify(left, right)


def test_a_type_does_not_contain_itself(solver):
    t = relay.IncompleteType()
    with pytest.raises(tvm.TVMError, match="cannot be unified"):
        solver.Unify(t, pair(t, A))


def test_dimensions_that_are_open(solver):
    assert solver.Unify(relay.TensorType((3, 2)), relay.TensorType((relay.Any(), 2))) == relay.TensorType((relay.Any(), 2))


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
