# SPDX-License-Identifier: Apache-2.0
"""Programs planned on two devices, beside the form that PlanDevices documents (DV-012)."""

import numpy as np

import baton as tvm
from baton import relay
from baton.contrib import graph_executor
from baton.relay import transform

CPU, GPU = tvm.cpu(0), tvm.cuda(0)
HEAD = '#[version = "0.0.5"]\n'


def tensors(names):
    return [relay.var(n, shape=(5, 7)) for n in names]


def fixed(value, device):
    return relay.annotation.on_device(value, device, is_fixed=True)


def planned(params, body):
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function(params, body)))
    once = transform.PlanDevices(CPU)(mod)
    tvm.ir.assert_structural_equal(transform.PlanDevices(CPU)(once), once)
    return once["main"]


def check(params, body, want, devices, result):
    got = planned(params, body)
    expected = relay.Function(params, want).with_attr("param_device_types", devices).with_attr("result_device_type", result)
    tvm.ir.assert_structural_equal(got, transform.InferType()(tvm.IRModule.from_expr(expected))["main"])
    assert [int(d) for d in got.attrs["param_device_types"]] == devices
    assert int(got.attrs["result_device_type"]) == result


def test_argument_on_another_device():
    x, y, z = tensors("xyz")
    total = relay.add(x, y)
    check([x, y, z], relay.multiply(relay.annotation.on_device(total, GPU), z), relay.multiply(relay.device_copy(fixed(total, GPU), GPU, CPU), z), [2, 2, 1], 1)


def test_both_arguments():
    a, b, c, d = tensors("abcd")
    left, right = relay.add(a, b), relay.add(c, d)
    body = relay.subtract(relay.annotation.on_device(left, CPU), relay.annotation.on_device(right, CPU))

    def copy(value):
        return relay.device_copy(fixed(value, CPU), CPU, GPU)

    check([a, b, c, d], relay.annotation.on_device(body, GPU), relay.subtract(copy(left), copy(right)), [1] * 4, 2)


def test_annotation_at_the_end_says_where_the_result_lies():
    x, y = tensors("xy")
    check([x, y], relay.annotation.on_device(relay.add(x, y), GPU), relay.add(x, y), [2, 2], 2)


def test_result_of_a_let():
    x, y = tensors("xy")
    v = relay.var("v", shape=(5, 7))
    check(
        [x, y],
        relay.Let(v, relay.add(x, y), relay.annotation.on_device(relay.negative(v), GPU)),
        relay.Let(v, relay.add(x, y), relay.negative(v)),
        [2, 2],
        2,
    )


def test_variables_are_copied_as_they_are():
    x, y = tensors("xy")
    left, right = relay.annotation.on_device(relay.negative(x), GPU), relay.annotation.on_device(relay.add(x, y), CPU)
    got = planned([x, y], relay.add(left, right))
    copies = []
    relay.analysis.post_order_visit(got, lambda e: copies.append(e.args[0]) if isinstance(e, relay.Call) and e.op.name == "device_copy" else None)
    assert sorted(type(c).__name__ for c in copies) == ["Call", "Var"]
    assert sum(isinstance(c, relay.Call) and bool(c.attrs.is_fixed) for c in copies) == 1


def test_planned_text_is_read_back():
    x, y, z = tensors("xyz")
    func = planned([x, y, z], relay.multiply(relay.annotation.on_device(relay.add(x, y), GPU), z))
    text = func.astext()
    assert "on_device(%0, device_type=2, is_fixed=True)" in text
    assert "device_copy(%1, src_dev_type=2, dst_dev_type=1)" in text
    back = tvm.parser.parse_expr(HEAD + text.removeprefix(HEAD))
    tvm.ir.assert_structural_equal(transform.InferType()(tvm.IRModule.from_expr(back))["main"], func)


def test_planned_programs_run():
    other = tvm.ext_dev(0)
    x, y, z = tensors("xyz")
    body = relay.multiply(relay.annotation.on_device(relay.add(x, y), other), z)
    mod = transform.PlanDevices(CPU)(tvm.IRModule.from_expr(relay.Function([x, y, z], body)))
    values = [np.random.default_rng(i).standard_normal((5, 7), "float32") for i in range(3)]
    want = (values[0] + values[1]) * values[2]
    np.testing.assert_allclose(relay.create_executor("debug", mod).evaluate()(*values).numpy(), want, rtol=1e-6)
    lib = relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
    model = graph_executor.GraphModule(lib["default"](CPU, other))
    model.run(**dict(zip("xyz", values, strict=True)))
    np.testing.assert_allclose(model.get_output(0).numpy(), want, rtol=1e-6)


def test_result_on_another_device_runs():
    other = tvm.ext_dev(0)
    x, y = tensors("xy")
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.annotation.on_device(relay.add(x, y), other)))
    model = graph_executor.GraphModule(relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})["default"](CPU, other))
    model.run(x=np.ones((5, 7)), y=np.ones((5, 7)))
    assert (model.get_output(0).numpy() == 2).all()
