# SPDX-License-Identifier: Apache-2.0
"""Arrays of tensors of one shape, as lists of Relay: a data type and functions that a module gets by name."""

from ..ir import GlobalVar, TensorType
from .adt import Clause, Constructor, Match, PatternConstructor, PatternVar, PatternWildcard, TypeData
from .expr import If, Let, Var, const
from .function import Function
from .ty import Any, GlobalTypeVar, scalar_type


def _words(shape):
    return "_".join("any" if isinstance(d, Any) else str(int(d)) for d in shape) or "scalar"


def _count(of):
    """How many rows a tensor has."""
    from . import op

    return op.take(op.shape_of(of, dtype="int32"), const(0), axis=0)


class StaticTensorArrayOps:
    """Lists of tensors of one shape and dtype, and functions on them.

        mod = baton.IRModule()
        ops = StaticTensorArrayOps(Prelude(mod), "float32", (2, 3))
        ops.register()
        array, write = ops.get_global_var("tensor_array"), ops.get_global_var("tensor_array_write")

    A tensor is a value of the data type `tensor_t`: its constructor `tensor_constructor` holds the data, `tensor_nil` none. Functions:
    `tensor_array(size)`, `tensor_array_read(array, i)`, `tensor_array_write(array, i, tensor)`, `tensor_array_unstack(data)` of one more
    dimension, `tensor_get_data(tensor)`, `tensor_expand_dims(tensor)`, `tensor_array_stack(array)`, `tensor_array_gather(array, indices)`,
    `tensor_array_scatter(array, indices, tensors)`; where the shape has a dimension `tensor_take(tensor, lower, upper)`,
    `tensor_concatenate(a, b)`, and, of arrays of tensors whose first dimension is `Any`, `tensor_array_concat(array)` and
    `tensor_array_split(array, tensor, lengths)`. `define_` and the name of one of them adds it alone; without `Any` in the shape a stack of no
    tensors has no rows, with it it is an error.
    """

    def __init__(self, prelude, dtype, shape, batch_dim=None):
        self.prelude, self.dtype, self.shape, self.batch_dim = prelude, str(dtype), tuple(shape), batch_dim
        self._variables = {}

    def get_name(self, canonical):
        """The name of a function or type in the module."""
        words = _words(self.shape)
        return f"static_tensor_{self.dtype}_{words}_t" if canonical == "tensor_t" else f"{canonical}_{self.dtype}_{words}"

    def get_global_var(self, canonical):
        """A function of the module. Raises ValueError before `register`."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical):
        """The variable of a data type."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical):
        """The constructor `tensor_constructor` or `tensor_nil`."""
        return self.prelude.get_ctor(self.get_name("tensor_t"), self.get_name(canonical))

    def define_tensor_adt(self):
        """Adds the data type of tensors, unless it is there."""
        mod, name = self.prelude.mod, self.get_name("tensor_t")
        if not any(v.name_hint == name for v in mod.get_global_type_vars()):
            var = GlobalTypeVar(name)
            full = Constructor(self.get_name("tensor_constructor"), [self._data()], var)
            mod[var] = TypeData(var, [], [full, Constructor(self.get_name("tensor_nil"), [], var)])

    def register(self):
        """Adds the data type and the functions, unless they are there."""
        self.define_tensor_adt()
        if self.get_name("tensor_array") in self.prelude.mod:
            return
        self._elements()
        self._unstack()
        self._stack()
        self._gather()
        self.define_tensor_array_scatter()
        if self.shape:
            self._parts()
            self.define_tensor_array_concat()
            self.define_tensor_array_split()

    def __getattr__(self, name):
        if not name.startswith("define_tensor_"):
            raise AttributeError(f"'StaticTensorArrayOps' object has no attribute '{name}'")
        return lambda *_: self.register()

    # ---- Parts of the functions

    def _data(self, *first):
        return TensorType((*first, *self.shape), self.dtype)

    def _one(self):
        return self.get_type("tensor_t")()

    def _many(self):
        return self.prelude.l(self._one())

    def _of(self, shape):
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape)
        other.define_tensor_adt()
        return other

    def _call(self, canonical, *args):
        """A call of a function that may be added later."""
        name = self.get_name(canonical)
        if name in self.prelude.mod:
            return self.get_global_var(canonical)(*args)
        return self._variables.setdefault(name, GlobalVar(name))(*args)

    def _define(self, canonical, params, body, ret_type):
        name = self.get_name(canonical)
        var = self.get_global_var(canonical) if name in self.prelude.mod else self._variables.setdefault(name, GlobalVar(name))
        self.prelude.mod[var] = Function(params, body, ret_type)

    def _open(self, tensor, make):
        """Applies `make` to the data in a tensor."""
        data = Var("data", self._data())
        return Match(tensor, [Clause(PatternConstructor(self.get_ctor("tensor_constructor"), [PatternVar(data)]), make(data))], False)

    # ---- The functions

    def _elements(self):
        from . import op

        p, i32 = self.prelude, scalar_type("int32")
        size, at, array, x = Var("size", i32), Var("at", i32), Var("array", self._many()), Var("x", self._one())
        rest = p.cons(self.get_ctor("tensor_nil")(), self._call("tensor_array", op.subtract(size, const(1))))
        self._define("tensor_array", [size], If(op.equal(size, const(0)), p.nil(), rest), self._many())
        self._define("tensor_array_read", [array, at], p.nth(array, at), self._one())
        array, at = Var("array", self._many()), Var("at", i32)
        self._define("tensor_array_write", [array, at, x], p.update(array, at, x), self._many())
        x = Var("x", self._one())
        self._define("tensor_get_data", [x], self._open(x, lambda d: d), self._data())
        x, single = Var("x", self._one()), self._of((1, *self.shape))
        self._define("tensor_expand_dims", [x], self._open(x, lambda d: single.get_ctor("tensor_constructor")(op.expand_dims(d, 0))), single._one())

    def _unstack(self):
        from . import op

        p, i32 = self.prelude, scalar_type("int32")
        data, at, end = Var("data", self._data(Any())), Var("at", i32), Var("end", i32)
        full = self.get_ctor("tensor_constructor")
        more = p.cons(full(op.take(data, at, axis=0)), self._call("tensor_array_unstack_from", op.add(at, const(1)), end, data))
        self._define("tensor_array_unstack_from", [at, end, data], If(op.equal(at, end), p.nil(), more), self._many())
        data = Var("data", self._data(Any()))
        count = op.take(op.shape_of(data, dtype="int32"), const(0), axis=0)
        self._define("tensor_array_unstack", [data], self._call("tensor_array_unstack_from", const(0), count, data), self._many())

    def _stack(self):
        from . import op

        p, stacked = self.prelude, self._of((Any(), *self.shape))
        rows, array = Var("rows", self._data(Any())), Var("array", self._many())
        head, tail = Var("head", self._one()), Var("tail", self._many())
        row = self._open(head, lambda d: op.expand_dims(d, 0))
        full = stacked.get_ctor("tensor_constructor")
        if any(isinstance(d, Any) for d in self.shape):  # no tensor of no rows can be made: the first one begins
            array = Var("array", self._many())
            last = Var("last", self._one())
            one = PatternConstructor(p.cons, [PatternVar(last), PatternConstructor(p.nil, [])])
            more = op.concatenate([row, self._call("tensor_array_rows", tail)], axis=0)
            both = [
                Clause(one, self._open(last, lambda d: op.expand_dims(d, 0))),
                Clause(PatternConstructor(p.cons, [PatternVar(head), PatternVar(tail)]), more),
            ]
            self._define("tensor_array_rows", [array], Match(array, both, complete=False), self._data(Any()))
            array = Var("array", self._many())
            self._define("tensor_array_stack", [array], full(self._call("tensor_array_rows", array)), stacked._one())
            return
        more = self._call("tensor_array_rows", tail, op.concatenate([rows, row], axis=0))
        clauses = [Clause(PatternConstructor(p.cons, [PatternVar(head), PatternVar(tail)]), more), Clause(PatternWildcard(), rows)]
        self._define("tensor_array_rows", [array, rows], Match(array, clauses), self._data(Any()))
        array = Var("array", self._many())
        none = op.zeros((0, *self.shape), self.dtype)
        self._define("tensor_array_stack", [array], full(self._call("tensor_array_rows", array, none)), stacked._one())

    def _gather(self):
        from . import op

        p = self.prelude
        stacked = self._of((Any(), *self.shape))
        array, indices, at, end = self._walked((Any(),))
        more = p.cons(p.nth(array, op.take(indices, at, axis=0)), self._call("tensor_array_pick", array, indices, op.add(at, const(1)), end))
        self._define("tensor_array_pick", [array, indices, at, end], If(op.equal(at, end), p.nil(), more), self._many())
        array, indices, _, _ = self._walked((Any(),))
        picked = self._call("tensor_array_pick", array, indices, const(0), _count(indices))
        self._define("tensor_array_gather", [array, indices], self._call("tensor_array_stack", picked), stacked._one())

    def _walked(self, numbers):
        """Variables of an array, indices of it, a place among them and their end."""
        i32 = scalar_type("int32")
        return Var("array", self._many()), Var("indices", TensorType(numbers, "int32")), Var("at", i32), Var("end", i32)

    def define_tensor_array_scatter(self, indices_shape=None, force_update=False):
        """Adds `tensor_array_scatter`; with `force_update` anew, for indices of a shape."""
        from . import op

        if self.get_name("tensor_array_scatter") in self.prelude.mod and not force_update:
            return
        p, numbers = self.prelude, tuple(indices_shape or (Any(),))
        array, indices, at, end = self._walked(numbers)
        values = Var("values", self._many())
        written = p.update(array, op.take(indices, at, axis=0), p.nth(values, at))
        more = self._call("tensor_array_scatter_from", written, indices, values, op.add(at, const(1)), end)
        self._define("tensor_array_scatter_from", [array, indices, values, at, end], If(op.equal(at, end), array, more), self._many())
        array, indices, _, _ = self._walked(numbers)
        values = Var("values", self._many())
        self._define(
            "tensor_array_scatter",
            [array, indices, values],
            self._call("tensor_array_scatter_from", array, indices, values, const(0), _count(indices)),
            self._many(),
        )

    def _of_any_length(self):
        """The same of tensors whose first dimension is `Any`."""
        return self if isinstance(self.shape[0], Any) else self._of((Any(), *self.shape[1:]))

    def define_tensor_array_concat(self):
        """Adds `tensor_array_concat`: the tensors of an array, whose first dimensions may differ, behind each other."""
        from . import op

        if self.get_name("tensor_array_concat") in self.prelude.mod:
            return
        p, of = self.prelude, self._of_any_length()
        full = of.get_ctor("tensor_constructor")
        array, head, tail, rest = Var("array", of._many()), Var("head", of._one()), Var("tail", of._many()), Var("rest", of._one())
        joined = of._open(head, lambda d: Let(rest, self._call("tensor_array_concat", tail), of._open(rest, lambda e: full(op.concatenate([d, e], axis=0)))))
        last = Var("last", of._one())
        one = PatternConstructor(p.cons, [PatternVar(last), PatternConstructor(p.nil, [])])
        clauses = [Clause(one, last), Clause(PatternConstructor(p.cons, [PatternVar(head), PatternVar(tail)]), joined)]
        self._define("tensor_array_concat", [array], Match(array, clauses, complete=False), of._one())

    def define_tensor_array_split(self, value_shape=None, lengths_shape=None, force_update=False):
        """Adds `tensor_array_split(array, tensor, lengths)`, which writes parts of a tensor, of so many rows each, to the places of an array. The
        tensor has the shape of this class, or `value_shape`."""
        from . import op

        if self.get_name("tensor_array_split") in self.prelude.mod and not force_update:
            return
        p, i32, of = self.prelude, scalar_type("int32"), self._of_any_length()
        value = self._of(tuple(value_shape)) if value_shape is not None else self
        lengths_type = TensorType(tuple(lengths_shape or (Any(),)), "int32")

        def variables():
            return Var("array", of._many()), Var("x", value._one()), Var("lengths", lengths_type)

        array, x, lengths = variables()
        at, end, lower, upper = (Var(n, i32) for n in ("at", "end", "lower", "upper"))
        full = of.get_ctor("tensor_constructor")
        part = value._open(x, lambda d: full(op.take(d, op.arange(lower, upper, const(1), dtype="int32"), axis=0)))
        more = self._call("tensor_array_split_from", p.update(array, at, part), x, lengths, op.add(at, const(1)), end, upper)
        stepped = Let(upper, op.add(lower, op.take(lengths, at, axis=0)), more)
        self._define("tensor_array_split_from", [array, x, lengths, at, end, lower], If(op.equal(at, end), array, stepped), of._many())
        array, x, lengths = variables()
        begun = self._call("tensor_array_split_from", array, x, lengths, const(0), _count(lengths), const(0))
        self._define("tensor_array_split", [array, x, lengths], begun, of._many())

    def _parts(self):
        from . import op

        i32 = scalar_type("int32")
        x, y, lower, upper = Var("x", self._one()), Var("y", self._one()), Var("lower", i32), Var("upper", i32)
        some = self._of((Any(), *self.shape[1:]))
        part = self._open(x, lambda d: some.get_ctor("tensor_constructor")(op.take(d, op.arange(lower, upper, const(1), dtype="int32"), axis=0)))
        self._define("tensor_take", [x, lower, upper], part, some._one())
        x = Var("x", self._one())
        first = self.shape[0]
        both = self._of((first if isinstance(first, Any) else 2 * int(first), *self.shape[1:]))
        joined = self._open(x, lambda d: self._open(y, lambda e: both.get_ctor("tensor_constructor")(op.concatenate([d, e], axis=0))))
        self._define("tensor_concatenate", [x, y], joined, both._one())


__all__ = ["StaticTensorArrayOps"]
