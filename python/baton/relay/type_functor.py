# SPDX-License-Identifier: Apache-2.0
"""Traversal of types in Python."""

from ..ir import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)
from .adt import TypeData

_METHODS = {
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TensorType: "visit_tensor_type",
    FuncType: "visit_func_type",
    TupleType: "visit_tuple_type",
    RelayRefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
    TypeRelation: "visit_type_relation",
}


class TypeFunctor:
    """Dispatch on the kind of type."""

    def visit(self, typ):
        """The result for a type."""
        for cls in type(typ).__mro__:
            name = _METHODS.get(cls)
            if name is not None:
                return getattr(self, name)(typ)
        if isinstance(typ, Type):
            return self.visit_default(typ)
        raise TypeError(f"{type(self).__name__} visits types, not {type(typ).__name__}")

    __call__ = visit

    def visit_default(self, typ):
        """For kinds of types without a method."""
        raise NotImplementedError(f"{type(self).__name__} has no method for `{typ.type_key}`")

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = visit_default
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = visit_type_relation = visit_default


class TypeVisitor(TypeFunctor):
    """Visits every component of a type."""

    def visit_default(self, typ):
        pass

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_default

    def visit_func_type(self, ft):
        for part in (*ft.arg_types, ft.ret_type, *ft.type_params, *ft.type_constraints):
            self.visit(part)

    def visit_tuple_type(self, tt):
        for field in tt.fields:
            self.visit(field)

    def visit_ref_type(self, rt):
        self.visit(rt.value)

    def visit_type_call(self, tc):
        self.visit(tc.func)
        for arg in tc.args:
            self.visit(arg)

    def visit_type_relation(self, tr):
        for arg in tr.args:
            self.visit(arg)

    def visit_type_data(self, td):
        self.visit(td.header)
        for var in td.type_vars:
            self.visit(var)


class TypeMutator(TypeFunctor):
    """Rebuilds a type of which a component changed."""

    def visit_default(self, typ):
        return typ

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_default

    def _all(self, parts):
        return [self.visit(p) for p in parts]

    def visit_func_type(self, ft):
        return _keep(ft, FuncType(self._all(ft.arg_types), self.visit(ft.ret_type), self._all(ft.type_params), self._all(ft.type_constraints)))

    def visit_tuple_type(self, tt):
        return _keep(tt, TupleType(self._all(tt.fields)))

    def visit_ref_type(self, rt):
        return _keep(rt, RelayRefType(self.visit(rt.value)))

    def visit_type_call(self, tc):
        return _keep(tc, TypeCall(self.visit(tc.func), self._all(tc.args)))

    def visit_type_relation(self, tr):
        return _keep(tr, TypeRelation(tr.func, self._all(tr.args), tr.num_inputs, tr.attrs))

    def visit_type_data(self, td):
        return _keep(td, TypeData(self.visit(td.header), self._all(td.type_vars), td.constructors))


def _keep(old, new):
    return old if old == new else new
