# SPDX-License-Identifier: Apache-2.0
"""An attribute that a program leaves out means the same in Relay text and in Python. Generated over the registered operators."""

import inspect

import pytest

import baton
from baton import relay
from baton.relay.op import find
from baton.relay.op.make import operator

# An alias of another operator's function is not the function of the operator of that name.
NAMES = sorted(
    n for n in baton.ir.Op.list_op_names() if baton.ir.Op.get(n).get_attr("output") is not None and not n.startswith("test.") and n not in relay.op._ALIASES
)
# What a call needs, by the kind of the parameter and, where any value of the kind is not enough, by operator.
SAMPLES = {
    "int": 1,
    "float": 1.0,
    "bool": True,
    "str": "NCHW",
    "dtype": "float32",
    "Array<int>": [1, 1],
    "Array<float>": [1.0, 1.0],
    "Array<Array<int>>": [[0, 0]],
    "runtime.Object": 1,
    "int or Array[int]": 1,
    "PrimExpr": 1,
    "runtime.String": "Op",
}
GIVEN = {
    "random.normal": {"shape": [2]},
    "random.uniform": {"shape": [2]},
    "nn.contrib_dense_pack": {"weight_layout": "NC8n"},
    "contrib_check_index": {"extents": [4]},
    "nn.contrib_recurrence": {"functions": ["sigmoid", "tanh", "tanh"], "alpha": [0.0] * 3, "beta": [0.0] * 3},
    "nn.contrib_recurrence_pack": {"functions": ["sigmoid", "tanh", "tanh"], "alpha": [0.0] * 3, "beta": [0.0] * 3},
    "device_copy": {"src_device": "cpu", "dst_device": "cpu"},
    "on_device": {"data": relay.var("data"), "device": "cpu"},
    "nn.deformable_conv2d": {"offset": relay.var("offset"), "weight": relay.var("weight")},
    "qnn.concatenate": dict.fromkeys(("data", "input_scales", "input_zero_points"), relay.Tuple([relay.var("x")])),
}
# Fields that the parameters give under another name.
FIELDS = {"device": ("device_type",), "src_device": ("src_dev_type",), "dst_device": ("dst_dev_type",)}
# Where Python names what text leaves to the operator: {operator: (parameter, inputs, attributes)}. Both calls have one type.
INTEGERS = "Tensor[(4, 4), int8]"
QUANTIZED = [INTEGERS, INTEGERS, "int32", "int32", "float32", "float32"]
IMAGES = ["Tensor[(1, 4, 5, 5), int8]", "Tensor[(4, 4, 1, 1), int8]", *QUANTIZED[2:]]
MEANING = {
    "zeros": ("dtype", [], {"shape": [2]}),
    "ones": ("dtype", [], {"shape": [2]}),
    "full": ("shape", ["int64"], {}),
    "qnn.dense": ("out_dtype", QUANTIZED, {"units": 4}),
    "qnn.batch_matmul": ("out_dtype", ["Tensor[(2, 4, 4), int8]"] * 2 + QUANTIZED[2:], {}),
    "qnn.conv2d": ("out_dtype", IMAGES, {"kernel_size": [1, 1], "channels": 4}),
    "qnn.conv2d_transpose": ("out_dtype", IMAGES, {"kernel_size": [1, 1], "channels": 4}),
}
# Relay's function asks for 64 bits; its attributes, which text leaves out, say 32.
OTHER_DEFAULT = {("vm.shape_of", "dtype")}


def plain(value):
    """A value as both sides can say it: arrays and tuples as lists, a dtype that is not given as "void"."""
    if isinstance(value, (tuple, list)) or type(value).__name__ == "Array":
        return [plain(v) for v in value]
    return "void" if value == "" else getattr(value, "value", value)


def attributes(name):
    """The attributes of an operator, by name, without those that a call must give."""
    return {p.name: p for p in operator(name).attrs if not p.required}


def signature(function):
    """The parameters of an operator's function, without *args and **kwargs."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name: p for p in inspect.signature(function).parameters.values() if p.kind not in kinds}


@pytest.mark.parametrize("name", NAMES)
def test_signature(name):
    """Each parameter's default is the attribute's. None asks for it, which the next test looks at."""
    defaults = attributes(name)
    wrong = {
        p.name: (p.default, defaults[p.name].default)
        for p in signature(find(name)).values()
        if p.name in defaults
        and p.name not in MEANING.get(name, ())[:1]
        and (name, p.name) not in OTHER_DEFAULT
        and p.default not in (inspect.Parameter.empty, None)
        and plain(p.default) != plain(defaults[p.name].default)
    }
    assert not wrong, f"{name}: {{parameter: (Python, text)}} {wrong}"


def call_of(name):
    """The call that the operator's function makes of what it requires, and the names of the parameters that were given."""
    plain_op, given = operator(name), dict(GIVEN.get(name, {}))
    inputs, kinds = {p.name for p in plain_op.inputs}, {p.name: p.kind for p in plain_op.attrs}
    for p in signature(find(name)).values():
        if p.default is not inspect.Parameter.empty or p.name in given:
            continue
        is_input = p.name in inputs and p.name not in kinds
        given[p.name] = relay.var(p.name) if is_input or p.name not in kinds else SAMPLES[kinds[p.name]]
    made = find(name)(**given)
    found = []
    relay.analysis.post_order_visit(
        made.astuple() if isinstance(made, relay.TupleWrapper) else made,
        lambda e: found.append(e) if isinstance(e, relay.Call) and e.op == plain_op.op else None,
    )
    return (found[-1] if found else None), given


@pytest.mark.parametrize("name", [n for n in NAMES if attributes(n)])
def test_call(name):
    """What the function leaves in the call is what text leaves there."""
    call, given = call_of(name)
    assert call is not None
    spatial = operator(name).spatial
    given = {field for n in given for field in FIELDS.get(n, (n,))} | set(MEANING.get(name, ())[:1])
    for p in attributes(name).values():
        if p.name in given or (name, p.name) in OTHER_DEFAULT:
            continue
        want, got = plain(p.default), plain(getattr(call.attrs, p.field))
        if p.name == "padding" and isinstance(want, list) and len(want) == spatial:
            want = want * (len(got) // spatial)  # both ends of each dimension
        assert got == want, f"{name}: `{p.name}` is {got} in Python, {want} in text"


@pytest.mark.parametrize("name", MEANING)
def test_meaning(name):
    """What text leaves to the operator is what Python's default says."""
    _, types, attrs = MEANING[name]
    names = [f"%x{i}" for i in range(len(types))]
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    text = ", ".join([*names, *(f"{n}={v}" for n, v in attrs.items())])
    mod = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"]\ndef @main({parameters}) {{ {name}({text}) }}'))
    variables = [relay.var(v.name_hint, v.checked_type) for v in mod["main"].params]
    made = relay.Function(variables, find(name)(*variables, **attrs))
    made = relay.transform.InferType()(baton.IRModule.from_expr(made))
    assert str(made["main"].body.checked_type) == str(mod["main"].body.checked_type)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("dyn.") and n[4:] in NAMES])
def test_twin(name):
    """An operator with operands for attributes shares the defaults of the one with attributes."""
    twin = attributes(name[4:])
    assert {n: plain(p.default) for n, p in attributes(name).items() if n in twin} == {n: plain(twin[n].default) for n in attributes(name) if n in twin}
