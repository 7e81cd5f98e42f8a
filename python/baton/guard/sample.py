# SPDX-License-Identifier: Apache-2.0
"""Values to evaluate a function on, made from its parameters' types and a seed."""

from .._ffi import get_global_func
from ..ir import FuncType, GlobalTypeVar, RelayRefType, TupleType, TypeVar
from ..ir.tensor_type import TensorType
from ..ir.type_relation import TypeCall
from ..runtime import ndarray as nd

KINDS = ("ordinary", "positive", "wide", "grid", "special", "extreme")
"""The kinds of samples, in the order in which they are tried.

ordinary: normal floats, integers from 0 to 3 (which are indices of something in most programs). positive: floats from 0.1 to 2,
for logarithms and roots. wide: floats of many magnitudes, integers from -8 to 8. grid: halves from -3 to 3, with ties and equal
rows. special: also 0, -0, infinities, NaN, the least and the largest numbers. extreme: large and tiny finite floats, the ends of
the integer types.
"""

_SIZES = {"ordinary": 3, "positive": 5, "wide": 1, "grid": 2, "special": 7, "extreme": 4}
"""Lengths of open dimensions, by kind of sample."""

FLOATS = {"float16": ("float16", 5), "bfloat16": ("float32", 8), "float32": ("float32", 8), "float64": ("float64", 11)}


class CannotSample(Exception):
    """A type that no values are made of; the text says why."""


def array_of(values, dtype):
    """A NumPy array as an NDArray of a type that NumPy may not have."""
    import numpy as np

    if dtype != "bfloat16":
        return nd.array(np.ascontiguousarray(values.astype(dtype)).reshape(values.shape))
    bits = np.ascontiguousarray(values.astype("float32")).reshape(values.shape).view("uint32")
    # Rounded to nearest even; NaN keeps a bit that is set.
    short = np.where(np.isnan(values), 0x7FC0, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")
    return nd.array(short)._create_view(values.shape, "bfloat16")


def numpy_of(array):
    """An NDArray as NumPy has it: bfloat16 as float32."""
    import numpy as np

    if array.dtype == "bfloat16":
        bits = array._create_view(array.shape, "uint16").numpy().astype("uint32") << 16
        return bits.view("float32").reshape(array.shape)
    return np.asarray(array.numpy())


class Sampler:
    """Values of one kind. The same seed gives the same values; `sizes` tells what a dynamic dimension becomes."""

    def __init__(self, kind, seed, definitions=(), size=None, weights=False):
        import numpy as np

        # With many parameters most are weights: of the size that keeps a deep network's values near 1, variances positive.
        self.weights = weights

        self.kind, self.rng = kind, np.random.default_rng([seed, KINDS.index(kind)])
        self.size = _SIZES[kind] if size is None else size
        self.definitions = {var: data for var, data in definitions}
        self.named, self.has_reference, self.highest = {}, False, 3

    def value(self, type_, bound=None, depth=0, name=""):
        """A value of a type. `bound` has what type variables stand for. An ordinary tensor of integers that is called a mask is
        of 0 and 1."""
        bound = bound or {}
        if isinstance(type_, TensorType):
            self.highest = 1 if "mask" in name.lower() else 3
            return self.tensor([self.dim(d) for d in type_.shape], str(type_.dtype))
        if isinstance(type_, TupleType):
            return [self.value(field, bound, depth) for field in type_.fields]
        if isinstance(type_, RelayRefType):
            self.has_reference = True
            return get_global_func("relay.guard.MakeRef")(self.value(type_.value, bound, depth))
        if isinstance(type_, TypeVar):
            return self.value(bound[type_], {}, depth) if type_ in bound else self.tensor([], "float32")
        if isinstance(type_, (TypeCall, GlobalTypeVar)):
            return self.data(type_, bound, depth)
        if isinstance(type_, FuncType):
            return self.function(type_, bound, depth)
        raise CannotSample(f"no values are made of type {type_}")

    def dim(self, dim):
        """The length of a dimension; an open one with a name is the same everywhere."""
        value = getattr(dim, "value", dim)
        if isinstance(value, int):
            return value
        if dim.type_key == "tir.Any":
            return self.size
        return self.named.setdefault(dim, self.size)

    def tensor(self, shape, dtype):
        """An array of the kind."""
        import numpy as np

        count = 1
        for size in shape:
            count *= size
        if count > 1 << 28:
            raise CannotSample(f"a parameter of shape {tuple(shape)} is too large to be sampled")
        if dtype in FLOATS:
            return array_of(self.floats(shape, dtype), dtype)
        if dtype == "bool":
            return nd.array(self.rng.random(shape) < 0.5)
        try:
            info = np.iinfo(dtype)
        except (TypeError, ValueError):
            raise CannotSample(f"no values are made of element type {dtype}") from None
        if self.kind == "extreme":
            chosen = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, -1 if info.min < 0 else 2], dtype=dtype)
            return nd.array(self.rng.choice(chosen, shape).astype(dtype).reshape(shape))
        low, high = (0, self.highest) if self.kind in ("ordinary", "special", "positive") else (-8, 8) if info.min < 0 else (0, 16)
        return nd.array(self.rng.integers(low, high + 1, shape).astype(dtype).reshape(shape))

    def floats(self, shape, dtype):
        import numpy as np

        rng, work = self.rng, FLOATS[dtype][0]
        if self.kind == "positive":
            scale = max(1.0, float(np.prod(shape[1:]))) if self.weights and len(shape) > 1 else 1.0
            return rng.uniform(0.1, 2, shape) / scale
        if self.kind == "grid":
            values = rng.integers(-6, 7, shape) / 2.0
            if values.size and values.ndim and values.shape[-1] > 1:
                rows = values.reshape(-1, values.shape[-1])
                rows[0] = rows[0, :1]  # all equal, and pairs of neighbours in the second
                rows[1:2, 1::2] = rows[1:2, :-1:2]
            return values
        plain = rng.standard_normal(shape)
        if self.weights and len(shape) > 1:
            plain = plain / max(1.0, float(np.prod(shape[1:]))) ** 0.5
        elif self.weights and len(shape) == 1 and self.kind == "ordinary":
            return rng.uniform(0.1, 2, shape)
        if self.kind == "ordinary":
            return plain
        if self.kind == "wide":
            return plain * 2.0 ** rng.integers(-6, 7, shape)
        # The last finite number of bfloat16 is less than that of float32, which it is made of.
        info = np.finfo(work)
        largest = 3.3895314e38 if dtype == "bfloat16" else float(info.max)
        tiny, least = float(info.tiny), float(info.smallest_subnormal) if dtype != "bfloat16" else 2.0**-133
        if self.kind == "special":
            chosen = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, tiny, least, -least, largest, -largest])
        else:
            root = largest**0.25
            chosen = np.array([root, -root, 1 / root, -1 / root, 0.0, -0.0, tiny, -least, 1.0])
        values = np.where(rng.random(shape) < 0.25, rng.choice(chosen, shape), plain)
        if self.kind == "special" and values.size >= 8:  # infinities and NaN are there for sure
            values.reshape(-1)[rng.permutation(values.size)[:5]] = chosen[:5]
        return values

    def data(self, type_, bound, depth):
        """A value of an algebraic data type: small, never endless."""
        from ..relay.backend.interpreter import ConstructorValue

        head, args = (type_.func, list(type_.args)) if isinstance(type_, TypeCall) else (type_, [])
        definition = self.definitions.get(head)
        if definition is None:
            raise CannotSample(f"type `{head.name_hint}` is not defined in the module")
        args = [bound.get(a, a) if isinstance(a, TypeVar) else a for a in args]
        constructors = list(definition.constructors)
        if not constructors:
            raise CannotSample(f"type `{head.name_hint}` has no constructors")
        if depth > 3:
            ends = [c for c in constructors if not any(isinstance(i, (TypeCall, GlobalTypeVar)) for i in c.inputs)]
            if not ends and depth > 24:
                raise CannotSample(f"type `{head.name_hint}` has no values that end")
            constructors = ends or constructors
        elif self.rng.random() < 0.5:  # values of some depth are more often of use than ends
            constructors = [c for c in constructors if any(isinstance(i, (TypeCall, GlobalTypeVar)) for i in c.inputs)] or constructors
        chosen = constructors[int(self.rng.integers(len(constructors)))]
        inner = dict(zip(definition.type_vars, args, strict=False))
        return ConstructorValue(chosen.tag, [self.value(i, inner, depth + 1) for i in chosen.inputs], chosen)

    def function(self, type_, bound, depth):
        """A function value: something simple of the argument that has the result's type, else a constant."""
        from .. import relay

        if type_.type_params:
            raise CannotSample("no values are made of functions with type parameters")
        params = [relay.Var(f"a{i}", t) for i, t in enumerate(type_.arg_types)]
        result = type_.ret_type
        body = next((p for p, t in zip(params, type_.arg_types, strict=True) if t == result), None)
        if body is not None and isinstance(result, TensorType):
            dtype = str(result.dtype)
            if dtype == "bool":
                body = relay.logical_not(body)
            elif dtype in FLOATS:
                body = relay.add(relay.multiply(body, relay.const(0.5, dtype)), relay.const(1, dtype))
            else:
                body = relay.add(body, relay.const(1, dtype))
        elif body is None:
            body = _as_expr(self.value(result, bound, depth + 1))
        return get_global_func("relay.guard.MakeClosure")(relay.Function(params, body, result))


def _as_expr(value):
    from .. import relay

    if isinstance(value, nd.NDArray):
        return relay.Constant(value)
    if isinstance(value, (list, tuple)):
        return relay.Tuple([_as_expr(field) for field in value])
    raise CannotSample("no values are made of functions whose result is not a tensor or tuple")
