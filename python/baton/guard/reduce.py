# SPDX-License-Identifier: Apache-2.0
"""Makes a program that shows something small: `reduce(mod, predicate)`."""

from .._ffi import get_global_func
from .checker import Checker
from .typed import typed


def reduce(mod, predicate, budget=600, shapes=True):
    """A smaller module for which `predicate(module)` is still true.

        small = baton.testing.reduce(mod, lambda m: crashes(my_pass, m))

    predicate: called with modules whose types are inferred; what it throws counts as false. It must be true for `mod`. Tries, as
    long as something helps: single functions, halves of the program (what comes before an expression, or what comes after it with
    a parameter in its place), expressions without one of their operators, branches, fields, bindings; then smaller shapes.
    budget: how many programs the predicate is asked about. Raises ValueError where it is not true for `mod` itself.
    """
    return Reducer(predicate, budget).run(mod, shapes)


def count_calls(mod):
    """Calls of operators and functions in all Relay functions of a module."""
    from .. import relay

    count = 0

    def see(node):
        nonlocal count
        count += isinstance(node, relay.Call)

    for _, func in mod.functions.items():
        if isinstance(func, relay.Function):
            relay.analysis.post_order_visit(func, see)
    return count


class Reducer:
    """One reduction. `tests` counts the programs that were tried."""

    def __init__(self, predicate, budget):
        self.predicate, self.budget, self.tests, self._seen = predicate, budget, 0, set()

    def run(self, mod, shapes=True):
        """The small module."""
        first = typed(mod)
        if first is None or not self._true(first):
            raise ValueError("the predicate is not true for the module that is to be reduced")
        self.mod = first
        self._only_one_function()
        self._loop()
        if shapes:
            self._smaller_shapes()
            self._loop()
        self._drop_parameters()
        return self.mod

    def _loop(self):
        while self._left():
            before = self.mod
            self._halve()
            self._step()
            if self.mod.same_as(before):
                return

    def _left(self):
        return self.tests < self.budget

    # ---- Trying

    def _true(self, mod):
        self.tests += 1
        try:
            return bool(self.predicate(mod))
        except Exception:  # the caller's way to say no
            return False

    def _accept(self, mod):
        """Whether the module is taken."""
        if not self._left():
            return False
        mod = typed(mod)
        if mod is None:
            return False
        key = get_global_func("node.StructuralHash")(mod, True)
        if key in self._seen:
            return False
        self._seen.add(key)
        if not self._true(mod):
            return False
        self.mod = mod
        return True

    def _with_main(self, params, body, only=False):
        """The module with another main, and what that does not need left out."""
        from .. import relay
        from ..ir import IRModule

        needed, extra = {p for p in params}, []
        bound = {}
        for var in relay.analysis.free_vars(body):
            if var in needed:
                continue
            type_ = var.checked_type_ if var.checked_type_ is not None else var.type_annotation
            if type_ is None:
                return None
            if var._field("type_annotation") is None:
                bound[var] = relay.Var(var.name_hint, type_)
            extra.append(bound.get(var, var))
        if bound:
            body = relay.analysis.bind(body, bound)
        free = set(relay.analysis.free_vars(body))
        params = [p for p in [*params, *extra] if p in free]
        main = relay.Function(params, body)
        out = IRModule(dict(self.mod.functions.items()), dict(self.mod.type_definitions.items()))
        if "main" in out:
            del out["main"]
        out["main"] = main
        return self._reachable(out)

    def _reachable(self, mod):
        from .. import relay
        from ..ir import GlobalVar, IRModule

        by_name = {var.name_hint: (var, func) for var, func in mod.functions.items()}
        keep, work = [], ["main"]
        while work:
            name = work.pop()
            if name in keep or name not in by_name:
                continue
            keep.append(name)
            if isinstance(by_name[name][1], relay.Function):
                relay.analysis.post_order_visit(by_name[name][1],
                                                lambda n: work.append(n.name_hint) if isinstance(n, GlobalVar) else None)  # fmt: skip
        if len(keep) == len(by_name):
            return mod
        return IRModule({by_name[n][0]: by_name[n][1] for n in by_name if n in keep}, dict(mod.type_definitions.items()))

    # ---- Functions

    def _only_one_function(self):
        from .. import relay

        functions = [(v.name_hint, f) for v, f in self.mod.functions.items() if isinstance(f, relay.Function)]
        if "main" in self.mod:
            self._accept(self._reachable(self.mod))
        for name, func in functions:
            if name != "main" and (len(functions) > 1 or "main" not in self.mod):
                made = self._with_main(list(func.params), func.body)
                if made is not None and self._accept(made):
                    return

    # ---- Expressions

    def _nodes(self, name="main"):
        """Expressions of a function, inputs first."""
        from .. import relay

        out = []
        relay.analysis.post_order_visit(self.mod[name].body, out.append)
        kinds = (relay.Call, relay.Tuple, relay.TupleGetItem, relay.If, relay.Let, relay.Match, relay.Constant, relay.RefRead, relay.Function)
        inner = set()
        for node in out:  # parts of fusion groups go with them
            if isinstance(node, relay.Function) and node.attrs is not None and "Primitive" in node.attrs:
                relay.analysis.post_order_visit(node, lambda n, top=node: inner.add(n) if n is not top else None)
        return [n for n in out if isinstance(n, kinds) and n not in inner]

    def _replace(self, mapping):
        """Main with other expressions in place of some."""
        from .. import relay

        mutator, main = relay.ExprMutator(), self.mod["main"]
        mutator.memo_map.update(mapping)
        return self._with_main(list(main.params), mutator.visit(main.body))

    def _variable(self, node):
        """A new parameter of an expression's type; None where no values are made of it."""
        from .. import relay

        type_ = node.checked_type_
        if not _is_data(type_):
            return None
        names = {p.name_hint for p in self.mod["main"].params}
        return relay.Var(next(n for n in (f"p{i}" for i in range(len(names) + 1)) if n not in names), type_)

    def _upstream(self, node):
        made = self._with_main(list(self.mod["main"].params), node)
        return made is not None and self._accept(made)

    def _cut(self, node):
        var = self._variable(node)
        made = self._replace({node: var}) if var is not None else None
        return made is not None and self._accept(made)

    def _halve(self):
        """Keeps one side of an expression in the middle, as long as one side suffices."""
        from .. import relay

        while self._left():
            nodes = [n for n in self._nodes() if isinstance(n, (relay.Call, relay.TupleGetItem)) and _is_data(n.checked_type_)]
            if len(nodes) < 6:
                return
            places, step = [], len(nodes) // 2
            while step >= max(1, len(nodes) // 16):
                places += [p for p in range(step, len(nodes), step) if p not in places]
                step //= 2
            body = self.mod["main"].body
            if not any(nodes[p] is not body and not nodes[p].same_as(body) and self._upstream(nodes[p]) or self._cut(nodes[p]) for p in places):
                return

    def _step(self):
        """Small simplifications, again and again."""
        while self._left():
            before = self.mod
            if not any(self._simplify(node) for node in reversed(self._nodes())):
                self._step_of_others()
            if self.mod.same_as(before):
                return

    def _step_of_others(self):
        """One simplification of a function that main calls. Its parameters and result keep their types."""
        from .. import relay
        from ..ir import IRModule

        for var, func in list(self.mod.functions.items()):
            if var.name_hint == "main" or not isinstance(func, relay.Function):
                continue
            for node in reversed(self._nodes(var.name_hint)):
                for other in [*self._instead(node), *_ones(node)]:
                    mutator = relay.ExprMutator()
                    mutator.memo_map[node] = other
                    functions = dict(self.mod.functions.items())
                    functions[var] = relay.Function(list(func.params), mutator.visit(func.body), func._field("ret_type"), list(func.type_params), func.attrs)
                    if self._accept(self._reachable(IRModule(functions, dict(self.mod.type_definitions.items())))):
                        return

    def _simplify(self, node):
        from .. import relay

        root = node.same_as(self.mod["main"].body)
        for part in _parts(node):
            if root and not isinstance(part, (relay.Var, relay.Constant)) and self._upstream(part):
                return True
        for other in self._instead(node):
            made = self._replace({node: other})
            if made is not None and self._accept(made):
                return True
        if isinstance(node, relay.Constant):
            return _elements(node.checked_type_) > 1 and self._cut(node)
        if not root and not isinstance(node, (relay.Tuple, relay.Let, relay.Function)):
            if self._cut(node):
                return True
            constant = self._value(node)
            if constant is not None:
                made = self._replace({node: constant})
                return made is not None and self._accept(made)
        return False

    def _value(self, node):
        """Returns the value of an expression without free variables, as a constant."""
        from .. import relay

        if not isinstance(node, relay.Call) or list(relay.analysis.free_vars(node)) or _elements(node.checked_type_) > 1 << 20:
            return None
        value = Checker().evaluate(relay.Function([], node), [], self.mod).value
        from ..runtime import NDArray

        return relay.Constant(value) if isinstance(value, NDArray) else None

    def _instead(self, node):
        """Simpler expressions of the same type."""
        from .. import relay

        if isinstance(node, relay.Call):
            if isinstance(node.op, relay.Function) and len(node.op.params) == len(node.args):
                yield relay.analysis.bind(node.op.body, dict(zip(node.op.params, node.args, strict=True)))
            for arg in node.args:
                if arg.checked_type_ is not None and node.checked_type_ is not None and arg.checked_type_ == node.checked_type_:
                    yield arg
        elif isinstance(node, relay.TupleGetItem) and isinstance(node.tuple_value, relay.Tuple):
            yield node.tuple_value.fields[node.index]
        elif isinstance(node, relay.If):
            yield node.true_branch
            yield node.false_branch
        elif isinstance(node, relay.Let):
            free = relay.analysis.free_vars(node.body)
            if not any(v.same_as(node.var) for v in free):
                yield node.body
            else:
                yield relay.analysis.bind(node.body, {node.var: node.value})
                var = self._variable(node.value)
                if var is not None and not isinstance(node.value, relay.Var):
                    yield relay.analysis.bind(node.body, {node.var: var})
        elif isinstance(node, relay.Match):
            yield from (clause.rhs for clause in node.clauses)

    # ---- Shapes

    def _smaller_shapes(self):
        """Smaller lengths of dimensions, each everywhere."""
        tried = set()
        while self._left():
            lengths = sorted({d for d in self._lengths() if d > 1}, reverse=True)
            found = False
            for length in lengths:
                for smaller in (1, 2, 3, 4, length // 4, length // 2):
                    for attrs in (False, True):
                        if not 0 < smaller < length or (length, smaller, attrs) in tried:
                            continue
                        tried.add((length, smaller, attrs))
                        made = self._resized(length, smaller, attrs)
                        if made is not None and self._accept(made):
                            found = True
                            break
                    if found:
                        break
                if found:
                    tried.clear()
                    break
            if not found:
                return

    def _lengths(self):
        from .. import relay

        out = []
        for param in self.mod["main"].params:
            out += _lengths_of(param.checked_type_ or param.type_annotation)
        for node in self._nodes():
            if isinstance(node, relay.Constant):
                out += _lengths_of(node.checked_type_)
        return out

    def _resized(self, length, smaller, attrs):
        from .. import relay
        from ..ir import make_node

        main, mapping = self.mod["main"], {}
        for param in main.params:
            old = param.type_annotation if param.type_annotation is not None else param.checked_type_
            new = _resize(old, length, smaller)
            if new is not None:
                mapping[param] = relay.Var(param.name_hint, new)

        class Resizer(relay.ExprMutator):
            """Shapes in constants and attributes; types are inferred anew."""

            def visit_constant(self, const):
                array = const.data
                if length not in array.shape:
                    return const
                import numpy as np

                from .sample import array_of, numpy_of

                index = tuple(slice(smaller) if d == length else slice(None) for d in array.shape)
                return relay.Constant(array_of(np.ascontiguousarray(numpy_of(array)[index]), str(array.dtype)))

            def visit_var(self, var):
                return var

            def visit_call(self, call):
                new = super().visit_call(call)
                if not attrs or new.attrs is None or not len(new.attrs.keys()):
                    return relay.Call(new.op, new.args, new.attrs)
                fields = {key: new.attrs[key] for key in new.attrs.keys()}
                changed = {key: _resize_field(key, value, length, smaller) for key, value in fields.items()}
                if all(changed[key] is fields[key] for key in fields):
                    return new
                return relay.Call(new.op, new.args, make_node(new.attrs.type_key, **changed))

        mutator = Resizer()
        mutator.memo_map.update(mapping)
        if not mapping and not any(isinstance(n, relay.Constant) for n in self._nodes()):
            return None
        return self._with_main([mapping.get(p, p) for p in main.params], mutator.visit(main.body))

    def _drop_parameters(self):
        main = self.mod["main"]
        made = self._with_main(list(main.params), main.body)
        if made is not None and len(made["main"].params) < len(main.params):
            self._accept(made)


_SHAPES = frozenset(["channels", "end", "indices_or_sections", "newshape", "oshape", "output_size", "shape", "size", "slice_size", "units"])


def _resize_field(key, value, length, smaller):
    if key not in _SHAPES:
        return value
    number = getattr(value, "value", value)
    if isinstance(number, int) and not isinstance(number, bool):
        return smaller if number == length else value
    if hasattr(value, "__len__") and not isinstance(value, str):
        items = [getattr(v, "value", v) for v in value]
        if all(isinstance(v, int) for v in items) and length in items:
            return [smaller if v == length else v for v in items]
    return value


def _parts(node):
    """The expressions that an expression is made of."""
    from .. import relay

    if isinstance(node, relay.Call):
        return list(node.args)
    if isinstance(node, relay.Tuple):
        return list(node.fields)
    if isinstance(node, relay.TupleGetItem):
        return [node.tuple_value]
    if isinstance(node, relay.If):
        return [node.true_branch, node.false_branch, node.cond]
    if isinstance(node, relay.Let):
        return [node.body, node.value]
    if isinstance(node, relay.Match):
        return [node.data, *[clause.rhs for clause in node.clauses]]
    return []


def _ones(node):
    """A constant in place of an expression, where that is simpler."""
    import numpy as np

    from .. import relay
    from ..ir.tensor_type import TensorType
    from .sample import FLOATS, array_of

    type_ = node.checked_type_
    if isinstance(node, (relay.Constant, relay.Let)) or not isinstance(type_, TensorType) or _elements(type_) > 1 << 16:
        return []
    if str(type_.dtype) not in FLOATS and not str(type_.dtype).startswith(("int", "uint", "bool")):
        return []
    shape = [getattr(d, "value", d) for d in type_.shape]
    return [relay.Constant(array_of(np.ones(shape), str(type_.dtype)))] if all(isinstance(d, int) for d in shape) else []


def _is_data(type_):
    """Tensors and tuples of them, of known lengths: what a parameter can stand for."""
    from ..ir import TupleType
    from ..ir.tensor_type import TensorType

    if isinstance(type_, TupleType):
        return all(_is_data(field) for field in type_.fields)
    return isinstance(type_, TensorType)


def _elements(type_):
    count = 1
    for length in _lengths_of(type_):
        count *= length
    return count


def _lengths_of(type_):
    from ..ir import TupleType

    if isinstance(type_, TupleType):
        return [d for field in type_.fields for d in _lengths_of(field)]
    return [d for d in (getattr(d, "value", d) for d in getattr(type_, "shape", ())) if isinstance(d, int)]


def _resize(type_, length, smaller):
    """The type with one length in place of another; None where it has none such."""
    from ..ir import TupleType
    from ..ir.tensor_type import TensorType

    if isinstance(type_, TupleType):
        fields = [_resize(field, length, smaller) for field in type_.fields]
        if all(field is None for field in fields):
            return None
        return TupleType([new or old for new, old in zip(fields, type_.fields, strict=True)])
    if not isinstance(type_, TensorType):
        return None
    shape = [getattr(d, "value", d) for d in type_.shape]
    if length not in shape:
        return None
    return TensorType([smaller if d == length else d for d in shape], str(type_.dtype))
