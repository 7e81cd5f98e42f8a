# SPDX-License-Identifier: Apache-2.0
"""A made-up accelerator: which operators it takes, its code generator, its module, and what loads that module.

Its "machine code" is a list of instructions in JSON; NumPy plays the chip. The first half needs the compiler, the second half the runtime
alone: another process imports this file, and then loads what was saved.

    from examples.accelerator import toy
    model = baton.compile(toy.partition(mod))     # convolutions, biases and relus go to the chip
    model.save("m.so")
"""

import base64
import json

import numpy as np

import baton

# ---- The chip: what its instructions do. `a` are arrays, `s` the settings of the instruction.


def conv2d(a, s):
    """A convolution in NCHW with weights in OIHW, as sums over the window's places."""
    data, weight = a
    (top, left, bottom, right), (down, across), (by, wide) = s["padding"], s["strides"], s["dilation"]
    data = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    filters, channels, height, width = weight.shape
    rows = (data.shape[2] - (height - 1) * by - 1) // down + 1
    columns = (data.shape[3] - (width - 1) * wide - 1) // across + 1
    groups = s["groups"]
    out = np.zeros((data.shape[0], groups, filters // groups, rows, columns), "float32")
    data = data.reshape(data.shape[0], groups, channels, *data.shape[2:])
    weight = weight.reshape(groups, filters // groups, channels, height, width)
    for i in range(height):
        for j in range(width):
            seen = data[..., i * by : i * by + (rows - 1) * down + 1 : down, j * wide : j * wide + (columns - 1) * across + 1 : across]
            out += np.einsum("ngchw,gfc->ngfhw", seen, weight[..., i, j], optimize=True)
    return out.reshape(out.shape[0], filters, rows, columns)


CHIP = {
    "nn.conv2d": conv2d,
    "nn.bias_add": lambda a, s: a[0] + a[1].reshape([-1 if i == s["axis"] % a[0].ndim else 1 for i in range(a[0].ndim)]),
    "nn.relu": lambda a, s: np.maximum(a[0], 0),
    "add": lambda a, s: a[0] + a[1],
}


# ---- Code where the model runs: the runtime alone.
class Program:
    """The instructions of a region, and the constants that they read."""

    def __init__(self, data):
        said = json.loads(data)
        self.name, self.steps, self.results, self.slots = said["name"], said["steps"], said["results"], said["slots"]
        self.constants = {int(slot): np.frombuffer(base64.b64decode(c["data"]), c["dtype"]).reshape(c["shape"]) for slot, c in said["constants"].items()}

    def __call__(self, *arrays):
        """Arguments, then the results that are written."""
        values = dict(self.constants)
        inputs = arrays[: len(arrays) - len(self.results)]
        values.update(enumerate(a.numpy() for a in inputs))
        for step in self.steps:
            values[step["to"]] = CHIP[step["op"]]([values[i] for i in step["from"]], step["settings"])
        for slot, out in zip(self.results, arrays[len(inputs) :], strict=True):
            out.copyfrom(np.ascontiguousarray(values[slot], "float32"))


def load(data):
    """A module of the bytes that one was saved as."""
    data = bytes(data)
    program = Program(data)
    return baton.runtime.create_module("toy", {program.name: program}, binary=data, source=data.decode())


baton.register_func("runtime.module.loadbinary_toy", load, override=True)


# ---- Code where the model is compiled.
def takes(expr):
    """Whether the chip has an instruction for a call."""
    attrs = expr.attrs
    if str(expr.op.name) == "nn.conv2d":
        return attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW"
    return all(len(a.checked_type.shape) > 0 for a in expr.args)


def _settings(call):
    if str(call.op.name) == "nn.conv2d":
        a = call.attrs
        numbers = {"padding": a.padding, "strides": a.strides, "dilation": a.dilation}
        return {**{k: [int(n) for n in v] for k, v in numbers.items()}, "groups": int(a.groups)}
    return {"axis": int(call.attrs.axis)} if str(call.op.name) == "nn.bias_add" else {}


def generate(func):
    """The module of a region: an instruction a call, in order."""
    from baton import relay

    slots, steps, constants = {}, [], {}
    for var in func.params:
        slots[var] = len(slots)

    def visit(expr):
        if expr in slots:
            return
        if isinstance(expr, relay.Constant):
            array = expr.data.numpy()
            slots[expr] = len(slots)
            constants[slots[expr]] = {"dtype": str(array.dtype), "shape": array.shape, "data": base64.b64encode(array.tobytes()).decode()}
        elif isinstance(expr, relay.Call):
            slots[expr] = len(slots)
            step = {"op": str(expr.op.name), "to": slots[expr], "from": [slots[a] for a in expr.args], "settings": _settings(expr)}
            steps.append(step)

    relay.analysis.post_order_visit(func.body, visit)
    results = func.body.fields if isinstance(func.body, relay.Tuple) else [func.body]
    said = {"name": str(func.attrs["global_symbol"]), "steps": steps, "constants": constants, "slots": len(slots)}
    return load(json.dumps({**said, "results": [slots[r] for r in results]}).encode())


def partition(mod, params=None):
    """The module with regions for the chip; `params` become constants of it."""
    from baton import relay

    for name in CHIP:
        if not relay.op.get(name).has_attr("target.toy"):
            baton.ir.register_op_attr(name, "target.toy", takes)
    baton.register_func("relay.ext.toy", generate, override=True)
    if params:
        mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    steps = [relay.transform.InferType(), relay.transform.AnnotateTarget(["toy"]), relay.transform.MergeCompilerRegions()]
    return baton.transform.Sequential([*steps, relay.transform.PartitionGraph(), relay.transform.InferType()])(mod)
