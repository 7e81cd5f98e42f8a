# SPDX-License-Identifier: Apache-2.0
"""The value of a program keeps its tuples, on each target and through each way to run it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor
from baton.runtime.vm import Executable, VirtualMachine

_X = np.array([0.5, -2], "float32")
# What main gives, and the value: x is the argument.
RESULTS = {
    "a tensor": ("exp(%x)", lambda x: np.exp(x)),
    "the argument": ("%x", lambda x: x),
    "a tuple": ("(%x, exp(%x))", lambda x: (x, np.exp(x))),
    "a tuple of one": ("(exp(%x),)", lambda x: (np.exp(x),)),
    "a tuple of one tuple of one": ("((%x,),)", lambda x: ((x,),)),
    "nested tuples": ("let %a = negative(%x); ((%a, (exp(%a), %x)), %a, ((%x,), ()))", lambda x: ((-x, (np.exp(-x), x)), -x, ((x,), ()))),
    "an empty tuple": ("()", lambda x: ()),
    "a tuple by name": ("let %t = (exp(%x), (%x,)); let %u = (%t.1, %t); %u", lambda x: ((x,), (np.exp(x), (x,)))),
    "a branch": ("if (less(sum(%x), 0f)) { ((negative(%x),), %x) } else { ((%x,), exp(%x)) }", lambda x: ((-x,), x)),
}
_TARGETS = {"llvm": "llvm", "two": {"cpu": "llvm", "ext_dev": "llvm"}, "opencl": "opencl"}


def _program(name, target):
    body = RESULTS[name][0]
    if target == "two":  # part of the work there
        body = body.replace("exp(%x)", "on_device(exp(on_device(add(%x, 0f), device_type=12)), device_type=12)")
    return relay.parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{ {body} }}')


def _devices(request, target):
    if target == "opencl":
        return [request.getfixturevalue("device")]
    return [tvm.cpu(), tvm.device("ext_dev")] if target == "two" else [tvm.cpu()]


def _same(value, want):
    if isinstance(want, tuple):
        assert not isinstance(value, tvm.nd.NDArray) and len(value) == len(want)
        for v, w in zip(value, want, strict=True):
            _same(v, w)
    else:
        assert isinstance(value, tvm.nd.NDArray)
        np.testing.assert_allclose(value.numpy(), want, rtol=1e-6)


def _tuples(value):
    """The shape of a value of Python's tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, tuple) else None


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_value_keeps_its_tuples(request, name, target, tmp_path):
    devices, want = _devices(request, target), RESULTS[name][1](_X)
    exe = relay.vm.compile(_program(name, target), target=_TARGETS[target])
    _same(VirtualMachine(exe, devices).invoke("main", _X), want)
    exe.export_library(tmp_path / "m.so")
    _same(VirtualMachine(Executable.load_exec(tmp_path / "m.so"), devices).invoke("main", _X), want)
    # Called from Python, it gives Python's tuples; of a file, too.
    for model in (tvm.compile(_program(name, target), target=_TARGETS[target], device=devices), tvm.load(tmp_path / "m.so", device=devices)):
        value = model(_X)
        _same(value, want)
        assert _tuples(value) == _tuples(want)


@pytest.mark.parametrize("kind", ["vm", "graph", "aot", "debug"])
@pytest.mark.parametrize("target", ["llvm", "opencl"])
@pytest.mark.parametrize("name", RESULTS)
def test_executors_keep_tuples(request, name, target, kind):
    (device,) = _devices(request, target)
    mod = _program(name, target)
    _same(relay.create_executor(kind, mod, device=device, target=target).evaluate()(_X), RESULTS[name][1](_X))


def test_outputs_are_in_a_row():
    """By number, as the graph executor has them."""
    lib = relay.build(_program("nested tuples", "llvm"), target="llvm")
    model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    model.run(x=_X)
    assert model.get_num_outputs() == 5
    for i, want in enumerate((-_X, np.exp(-_X), _X, -_X, _X)):
        np.testing.assert_allclose(model.get_output(i).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "two", "opencl"])
def test_functions_by_name(request, target):
    """Of programs without control flow, on each target."""
    mod = relay.parse("""#[version = "0.0.5"]
        def @twice(%x: Tensor[(2), float32]) { (add(%x, %x),) }
        def @main(%x: Tensor[(2), float32]) { (exp(%x), negative(%x)) }""")
    machine = VirtualMachine(relay.vm.compile(mod, target=_TARGETS[target]), _devices(request, target))
    _same(machine.invoke("main", _X), (np.exp(_X), -_X))
    _same(machine.invoke("twice", _X), (_X + _X,))


def test_the_tree_is_in_the_file_and_needs_no_compiler(tmp_path):
    tvm.compile(_program("nested tuples", "llvm")).save(tmp_path / "m.so")
    code = f"""
import json, numpy as np, baton
model = baton.load({str(tmp_path / 'm.so')!r})
out = model(baton.nd.array(np.zeros(2, "float32")))
shape = lambda v: [shape(f) for f in v] if isinstance(v, tuple) else "t"
maps = open("/proc/self/maps").read()
assert "libbaton.so" not in maps and "libLLVM" not in maps
print(json.dumps([shape(out), json.loads(model.module.get_source("json"))["results"]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[["t", ["t", "t"]], "t", [["t"], []]], [3, 2, -1, 2, -1, -1, -1, 2, 1, -1, 0]]


def test_the_command_line_names_outputs_in_a_row(tmp_path):
    tvm.compile(_program("nested tuples", "llvm")).save(tmp_path / "m.so")
    done = subprocess.run([sys.executable, "-m", "baton", "run", tmp_path / "m.so", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["outputs"]) == [f"output{i}" for i in range(5)]


def test_deep_tuples():
    """As deep as a program may be."""
    value, depth = relay.var("x", shape=(1,)), 3000
    x = value
    for _ in range(depth):
        value = relay.Tuple([value])
    out = tvm.compile(relay.Function([x], value))(np.ones(1, "float32"))
    for _ in range(depth):
        assert isinstance(out, tuple) and len(out) == 1
        (out,) = out
    assert out.numpy() == 1
