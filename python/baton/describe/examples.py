# SPDX-License-Identifier: Apache-2.0
"""An example for each operator: inputs that it accepts, found by trying, and the type that inference gives its result.

Nothing here knows an operator: candidates for inputs and attributes are tried in turn until one is well typed.
"""

import inspect
import itertools

from .model import call_path

# Shapes of the first input; the others are tried from the same list. Small, and different in each dimension.
_SHAPES = (
    (2, 3),
    (1, 4, 8, 8),
    (1, 4, 8),
    (1, 4, 8, 8, 8),
    (4,),
    (),
    (2, 3, 4),
    (3, 3),
    (2, 2),
    (1, 2, 2, 2),
    (4, 4, 3, 3),
    (4, 1, 3, 3),
    (4, 4, 3),
    (4, 4, 3, 3, 3),
    (1,),
    (2,),
    (3,),
)
_DTYPES = ("float32", "int32", "bool", "int64", "uint8", "uint32")
_NUMBERS = ([1], [2, 2], [0], [1, 1], [2], [2, 2, 2], [3, 2], [0, 1], [2, 3], [1, 0], [1, 0, 2], [1, 2, 3, 4])
_LIMIT = 400  # tries an operator


def _values(field):
    """Candidates for an attribute that must be given."""
    kind = field.kind
    if kind == "Array<int>":
        return _NUMBERS
    if kind.startswith("Array<Array"):
        return ([[0, 0], [1, 1]], [[1, 1]], [[0, 0], [0, 0], [1, 1], [1, 1]])
    if kind == "int":
        return (1, 2, 0)
    if kind == "float":
        return (1.0, 0.5)
    if kind == "bool":
        return (True,)
    if kind == "dtype":
        return ("float32", "int32")
    if kind == "runtime.String":
        return ("NHWC",) if "layout" in field.name else ("ij,jk->ik",) if field.name == "equation" else ("linear", "default")
    return (2, [2, 2], [2, 3])


def _attribute_sets(op, function):
    """Attributes that must be given, in several ways; none where no attribute must."""
    asked = {p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty}
    needed = [p for p in op.attrs if p.required or p.name in asked]
    for values in itertools.islice(itertools.product(*(_values(p) for p in needed)), 40):
        yield dict(zip((p.name for p in needed), values, strict=True))


def _input_sets(names):
    """Shapes and dtypes of the inputs that must be given, by their names; likely ones first."""
    count = len(names)
    # Beside a tensor, parameters by their word; a second tensor may be a weight.
    scalars = [((), "float32") if n.endswith(("scale", "scales")) else ((), "int32") if n.endswith(("zero_point", "zero_points")) else None for n in names]
    if any(scalars):
        for dtype, shapes in itertools.product(
            ("float32", "int8"), (((2, 3), (2, 3)), ((1, 4, 8, 8), (4, 4, 3, 3)), ((1, 4, 8, 8), (2, 4, 2, 2)), ((1, 2, 3), (1, 4, 3)))
        ):
            tensors = iter(shapes)
            yield [s or (next(tensors, shapes[-1]), dtype) for s in scalars]
        # Bytes of several numbers each, with a scale and a zero point for each block of a column; data before them.
        packed = [((32, 3), "uint8"), ((2, 3), "float32"), ((2, 3), "float32")]
        if count in (3, 4):
            yield [((2, 64), "float32"), *packed][-count:]
        return
    for dtype in _DTYPES[:3]:
        for shape in _SHAPES:
            yield [(shape, dtype)] * count
    if count >= 2:
        for first, dtype in itertools.product(_SHAPES, _DTYPES[:2]):
            for other, second in itertools.product(_SHAPES, (dtype, "int32", "int64", "bool")):
                yield [(first, dtype), *[(other, second)] * (count - 1)]
    yield [((10,), "uint64")] * count


def example(op):
    """(lines of Python, type of the result) for an operator's function, or None where nothing that was tried fits."""
    from .. import ir, relay

    function = relay.op.find(op.name)  # where there is one by hand, it is what programs call
    needed = [p for p in op.inputs if p.required]
    tuples = [len(op.inputs) == 1 and "tensors" in p.doc.lower()[:12] or "uple" in p.kind + p.doc.lower()[:12] for p in needed]
    tries = 0
    for inputs in _input_sets([p.name for p in needed]):
        for attrs in _attribute_sets(op, function):
            tries += 1
            if tries > _LIMIT:
                return None
            try:
                made = [relay.var(p.name, shape=s, dtype=d) for p, (s, d) in zip(needed, inputs, strict=True)]
                given = [relay.Tuple([v, v]) if pair else v for v, pair in zip(made, tuples, strict=True)]
                call = function(*given, **attrs)
                call = call.astuple() if isinstance(call, relay.TupleWrapper) else call
                mod = relay.transform.InferType()(ir.IRModule.from_expr(relay.Function(made, call)))
                result = mod["main"].ret_type
            except Exception:  # noqa: BLE001 - whatever it is, these inputs do not fit
                continue
            lines = [f'{v.name_hint} = relay.var("{v.name_hint}", shape={s}, dtype="{d}")' for v, (s, d) in zip(made, inputs, strict=True)]
            names = [f"({v.name_hint}, {v.name_hint})" if pair else v.name_hint for v, pair in zip(made, tuples, strict=True)]
            arguments = ", ".join([*names, *(f"{k}={tuple(v) if isinstance(v, list) else v!r}" for k, v in attrs.items())])
            lines.append(f"{call_path(op.name)}({arguments})")
            return lines, str(result)
    return None
