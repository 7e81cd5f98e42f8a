# SPDX-License-Identifier: Apache-2.0
"""Whole models on OpenCL, and models on the CPU and a second device: the values are those of one device (DV-025)."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor

_HEAD = '#[version = "0.0.5"]\n'


def _random(mod, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {}
    for p in mod["main"].params:
        t = p.type_annotation
        arrays[p.name_hint] = rng.standard_normal([int(d) for d in t.shape]).astype(t.dtype)
    return arrays


def _run(lib, devices, arrays):
    model = graph_executor.GraphModule(lib["default"](*devices))
    model.run(**arrays)
    return [model.get_output(i).numpy() for i in range(model.get_num_outputs())]


def _program(lib):
    return json.loads(json.loads(lib.get_source("json"))["program"])


def _crossing(lib):
    """What a run copies between devices: as many notes as instructions."""
    copies = _program(lib)["copies"] if "copy r" in lib.get_source("vm") else []
    assert len(copies) == len(re.findall(r"^ +\d+: copy ", lib.get_source("vm"), re.MULTILINE))
    return copies


def _agree(got, want, rtol=1e-5, atol=1e-5):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def _conv_net():
    x = relay.var("x", shape=(1, 3, 20, 20))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, relay.var("w1", shape=(8, 3, 3, 3)), padding=(1, 1)), relay.var("b1", shape=(8,))))
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = relay.nn.conv2d(y, relay.var("w2", shape=(16, 8, 3, 3)), strides=(2, 2))
    y = relay.nn.batch_flatten(relay.sigmoid(y))
    y = relay.nn.softmax(relay.nn.dense(y, relay.var("w3", shape=(10, 256))))
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))


def _attention():
    q, k, v = (relay.var(n, shape=(2, 16, 24)) for n in "qkv")
    s = relay.nn.softmax(relay.nn.batch_matmul(q, k) * relay.const(0.2))
    y = relay.nn.batch_matmul(s, relay.transpose(v, (0, 2, 1)))
    y = relay.nn.layer_norm(y + q, relay.var("g", shape=(24,)), relay.var("b", shape=(24,)))
    y = relay.Tuple([relay.nn.dense(relay.reshape(y, (32, 24)), relay.var("w", shape=(48, 24))), relay.mean(relay.erf(y), axis=[1, 2])])
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))


@pytest.mark.parametrize("make", [_conv_net, _attention])
def test_a_whole_model(device, make, tmp_path):  # DV-025, MO-014
    mod = make()
    arrays = _random(mod)
    params = {k: v for k, v in arrays.items() if k[0] in "wgb"}
    inputs = {k: v for k, v in arrays.items() if k not in params}
    want = _run(relay.build(mod, target="llvm", params=params), [tvm.cpu()], inputs)
    lib = relay.build(mod, target="opencl", params=params)
    assert lib.imported_modules[0].type_key == "opencl" and lib.get_source("opencl") == lib.imported_modules[0].get_source()
    _agree(_run(lib, [device], inputs), want)
    program = _program(lib)
    assert len(program["kernels"]) == 1 and program["kernels"][0]["device"] == 1 and not _crossing(lib)
    lib.export_library(tmp_path / "m.so")
    again = tvm.runtime.load_module(tmp_path / "m.so")
    assert again.imported_modules[0].get_source() == lib.get_source("opencl")
    _agree(_run(again, [device], inputs), want)


_T = "Tensor[(8, 8), float32]"
_XYZ = f"%x: {_T}, %y: {_T}, %z: {_T}"
# Each with the device of the annotations as D: what crosses, and how often.
_PROGRAMS = {
    "DV-007 one copy": ("multiply(on_device(add(%x, %y), device_type=D), %z)", 1),
    "DV-018 a copy of the user's": ("multiply(device_copy(add(%x, %y), src_dev_type=D, dst_dev_type=1), %z)", 1),
    "DV-010 all there": ("on_device(nn.relu(add(%x, %y)), device_type=D, is_fixed=True)", 0),
    "there and back": ("add(on_device(exp(on_device(tanh(%x), device_type=1)), device_type=D), %y)", 2),
    "shared by two": (
        "let %a = on_device(tanh(%x), device_type=1); let %b = on_device(exp(%a), device_type=D);"
        " let %c = on_device(negative(%a), device_type=D); add(on_device(exp(%a), device_type=1), on_device(add(%b, %c), device_type=D))",
        2,
    ),
    "a shared input": ("add(multiply(%x, %y), on_device(multiply(%x, %z), device_type=D))", None),
    "tuples": ("let %t = on_device(split(%x, indices_or_sections=2, axis=1), device_type=D); concatenate((%t.0, nn.relu(%t.1), %y), axis=1)", None),
    "views": ("let %a = on_device(reshape(add(%x, %y), newshape=[64]), device_type=D); reshape(multiply(%a, %a), newshape=[8, 8])", 1),
    "constants": ("add(on_device(multiply(%x, meta[relay.Constant][0]), device_type=D), meta[relay.Constant][0])", 1),
    "an input is an output": ("(%x, on_device(negative(%y), device_type=D), %x)", 1),
}


def _parse(body, number):
    text = body.replace("=D", f"={number}").replace("meta[relay.Constant][0]", "%k")
    mod = relay.parse(_HEAD + f"def @main({_XYZ}{', %k: ' + _T if '%k' in text else ''}) {{ {text} }}")
    if "%k" not in text:
        return mod, {}
    return mod, {"k": np.arange(64, dtype="float32").reshape(8, 8) / 10}


def _second(request, name):
    return request.getfixturevalue("device") if name == "opencl" else tvm.device(name)


@pytest.mark.parametrize("second", ["ext_dev", "opencl"])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_two_devices(request, name, second, tmp_path):  # DV-025
    device = _second(request, second)
    body, copies = _PROGRAMS[name]
    one, params = _parse(body, 1)
    two, _ = _parse(body, device.device_type)
    arrays = {k: v for k, v in _random(one).items() if k not in params}
    want = _run(relay.build(one.__class__.from_expr(_plain(one["main"])), target="llvm", params=params), [tvm.cpu()], arrays)
    lib = relay.build(two, target={"cpu": "llvm", second: "opencl" if second == "opencl" else "llvm"}, params=params)
    assert lib.type_key == "vm"
    _agree(_run(lib, [tvm.cpu(), device], arrays), want)
    _agree(_run(lib, [device], arrays), want)
    crossing = _crossing(lib)
    assert copies is None or len(crossing) == copies
    assert all(c["bytes"] > 0 for c in crossing)
    lib.export_library(tmp_path / "m.so")
    _agree(_run(tvm.runtime.load_module(tmp_path / "m.so"), [tvm.cpu(), device], arrays), want)


def _plain(func):
    """The function without annotations and copies."""

    class Plain(relay.ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            return new.args[0] if isinstance(new.op, tvm.ir.Op) and new.op.name in ("on_device", "device_copy") else new

    return Plain().visit(func)


def test_a_shared_input_is_copied_once(device):  # DV-009
    """Two readers on each of two devices: one copy, of as many bytes as the input has."""
    body = "add(on_device(add(tanh(%x), exp(%x)), device_type=1), on_device(multiply(sin(%x), cos(%x)), device_type=4))"
    lib = relay.build(_parse(body, 4)[0], target=["llvm", "opencl"])
    assert [c["bytes"] for c in _crossing(lib)] == [256, 256]


def test_planned_storage_is_used_again(device):
    """A chain of operators that cannot be fused takes two buffers on each device, however long it is."""
    x = relay.var("x", shape=(64, 64))
    e = x
    for _ in range(12):
        e = relay.nn.softmax(relay.nn.dense(e, x))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], e)), target="opencl")
    (kernel,) = _program(lib)["kernels"]
    assert kernel["arena_bytes"] <= 3 * 64 * 64 * 4


def test_two_executors_of_one_module(device):
    mod = _conv_net()
    arrays = _random(mod)
    lib = relay.build(mod, target="opencl")
    a, b = (graph_executor.GraphModule(lib["default"](device)) for _ in range(2))
    a.run(**arrays)
    first = a.get_output(0)
    want = first.numpy()
    b.run(**{**arrays, "x": arrays["x"] * 2})
    a.run(**{**arrays, "x": arrays["x"] * 3})
    np.testing.assert_array_equal(first.numpy(), want)  # an output that is held is never written again
    assert np.abs(b.get_output(0).numpy() - want).max() > 0


def test_runs_without_the_compiler(device, tmp_path):
    lib = relay.build(_parse(_PROGRAMS["DV-007 one copy"][0], 4)[0], target={"cpu": "llvm", "opencl": "opencl"})
    lib.export_library(tmp_path / "m.so")
    code = f"""
import numpy as np, baton
model = baton.load({str(tmp_path / 'm.so')!r})
x = np.ones((8, 8), "float32")
assert (model(x, x, 2 * x).numpy() == 4).all()
maps = open("/proc/self/maps").read()
assert "libbaton_opencl" in maps and "libbaton.so" not in maps and "libLLVM-19" not in maps
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_refused():
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x)))
    with pytest.raises(tvm.error.UnsupportedError, match="the target of opencl is `llvm`; its code is made by opencl"):
        relay.build(mod, target={"cpu": "llvm", "opencl": "llvm"})
    with pytest.raises(tvm.error.UnsupportedError, match="no code is made for vulkan; code is made for cpu, ext_dev, cuda, opencl, metal and webgpu"):
        relay.build(mod, target={"cpu": "llvm", "vulkan": "llvm"})
    with pytest.raises(tvm.error.UnsupportedError, match="give both the same"):
        relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm -opt-level=1"})
    with pytest.raises(ValueError, match="two targets are given for one device"):
        relay.build(mod, target=["llvm", "llvm -opt-level=1"])
    with pytest.raises(ValueError, match="no target is given"):
        relay.build(mod, target={})
    elsewhere = relay.parse(_HEAD + f"def @main({_XYZ}) {{ multiply(on_device(add(%x, %y), device_type=2), %z) }}")
    with pytest.raises(ValueError, match="runs on cuda, for which no target is given; give one: "):
        relay.build(elsewhere, target={"cpu": "llvm", "opencl": "opencl"})
    with pytest.raises(ValueError, match="runs on cuda, for which no target is given"):
        relay.build(elsewhere, target="opencl")
    branch = relay.parse(_HEAD + f"def @main(%c: bool, {_XYZ}) {{ if (%c) {{ add(%x, %y) }} else {{ %z }} }}")
    assert relay.build(branch, target="opencl").type_key == "vm"


def test_a_model_on_another_device_than_it_was_compiled_for():
    x = relay.var("x", shape=(4,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x))), target={"cpu": "llvm", "ext_dev": "llvm"})
    with pytest.raises(tvm.error.RuntimeError, match=r"compiled for cpu and ext_dev, it cannot run on cuda\(0\)"):
        lib["default"](tvm.cuda(0))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_dtypes(device, dtype):
    x = relay.var("x", shape=(5, 6), dtype=dtype)
    y = relay.logical_not(x) if dtype == "bool" else relay.sum(x * x + relay.const(3, dtype), axis=1)
    mod = tvm.IRModule.from_expr(relay.Function([x], y))
    value = {"x": (np.arange(30).reshape(5, 6) % 7).astype(dtype)}
    (got,), (want,) = (_run(relay.build(mod, target=t), [d], value) for t, d in (("opencl", device), ("llvm", tvm.cpu())))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.relay"
    path.write_text(_HEAD + f"def @main({_XYZ}) {{ nn.softmax(add(multiply(%x, %y), %z)) }}\n")
    return path


def _command(*args):
    return subprocess.run([sys.executable, "-m", "baton", *map(str, args)], capture_output=True, text=True, check=False)


def test_the_command(device, model):
    values = [json.loads(_command("run", model, *more, "--json").stdout)["outputs"] for more in ([], ["--device", "opencl"], ["--target", "opencl"])]
    for name, value in values[0].items():
        for other in values[1:]:
            np.testing.assert_allclose(
                value["data"] if "data" in value else value["mean"], other[name]["data"] if "data" in value else other[name]["mean"], rtol=1e-5
            )
    artifact = model.with_suffix(".so")
    assert _command("compile", model, "--target", "opencl", "-o", artifact).returncode == 0
    assert _command("run", artifact, "--device", "opencl").returncode == 0
    assert "__kernel void" in _command("compile", model, "--target", "opencl", "--emit", "opencl").stdout
    assert device.device_name in _command("doctor").stdout


def test_the_command_and_devices_that_there_are_not(device, model):
    assert "`opencl(77)` does not exist on this machine: there are opencl(0)" in _command("run", model, "--device", "opencl:77").stderr
    bad = _command("run", model, "--device", "toaster")
    assert bad.returncode == 2 and "`toaster` is no device" in bad.stderr
    artifact = model.with_suffix(".so")
    _command("compile", model, "-o", artifact)
    assert "compiled for the CPU, it cannot run on opencl(0)" in _command("run", artifact, "--device", "opencl").stderr


def test_what_a_compiled_program_copies(tmp_path):  # DV-025
    """Each copy with its bytes and whom it is for, from the artifact alone."""
    lib = relay.build(_parse("add(multiply(on_device(tanh(%x), device_type=12), %y), %z)", 12)[0], target={"cpu": "llvm", "ext_dev": "llvm"})
    lib.export_library(tmp_path / "m.so")
    out = _command("explain-placement", tmp_path / "m.so")
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == [
        "@main: baton_region_0 (tanh) on ext_dev: the plan that it was compiled with",
        "@main: baton_region_1 (multiply + add) on cpu: the plan that it was compiled with",
        "from_string:2: @main: copy of tanh from ext_dev to cpu, 256 bytes: for multiply",
    ]
    found = json.loads(_command("explain-placement", tmp_path / "m.so", "--json").stdout)
    assert [(c["src_dev"], c["dst_dev"], c["bytes"]) for c in found["copies"]] == [("ext_dev", "cpu", 256)]


def test_compile_from_python(device, model):  # DV-025
    x = np.ones((8, 8), "float32")
    want = tvm.compile(model)(x, x, x).numpy()
    got = tvm.compile(model, target="opencl")
    assert got(x, x, x).device == device
    np.testing.assert_allclose(got(x, x, x).numpy(), want, rtol=1e-5)
    both = tvm.compile(model, target=["llvm", "opencl"], device=[tvm.cpu(), device])
    np.testing.assert_allclose(both(x, x, x).numpy(), want, rtol=1e-5)


def test_executors_of_relay(device):  # DV-025
    """The graph executor on the device, and a virtual machine on both devices."""
    from baton.runtime.vm import VirtualMachine

    x = relay.var("x", shape=(4,))
    value = np.ones(4, "float32")
    whole = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    np.testing.assert_allclose(relay.create_executor("graph", whole, device, "opencl").evaluate()(value).numpy(), np.exp(value), rtol=1e-6)
    both = tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.on_device(relay.exp(x), device), x)))
    exe = relay.vm.compile(both, target={"cpu": "llvm", "opencl": "opencl"})
    np.testing.assert_allclose(VirtualMachine(exe, [tvm.cpu(), device]).invoke("main", value).numpy(), np.exp(value) + 1, rtol=1e-6)
    with pytest.raises(ValueError, match="compiled for one device"):
        VirtualMachine(relay.vm.compile(whole, target="llvm"), [tvm.cpu(), device])
    with pytest.raises(tvm.error.UnsupportedError, match="no code is made for opencl"):
        relay.create_executor("debug", whole).evaluate()(tvm.nd.array(value, device))


@pytest.mark.slow
def test_a_light_model(device):  # MO-014
    """A whole network out of ONNX's own models: the values are those of the CPU."""
    onnx = pytest.importorskip("onnx")
    from pathlib import Path

    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_shufflenet.onnx"
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype="float32")
    got, want = (tvm.compile(path, target=t)(x).numpy() for t in ("opencl", "llvm"))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_minilm(device, tmp_path):  # MO-014
    """A transformer, compiled, saved and loaded: on OpenCL as on the CPU."""
    from baton.demo import DemoError
    from baton.demo.minilm import find_minilm

    try:
        found = find_minilm()
    except DemoError as error:  # its package is optional
        pytest.skip(f"MiniLM is not installed: {error}")
    path = str(found.onnx_file())
    shape = dict.fromkeys(("input_ids", "attention_mask"), (1, 16))
    inputs = {"input_ids": np.arange(1000, 1016).reshape(1, 16), "attention_mask": np.ones((1, 16), "int64")}
    want = tvm.compile(path, shape=shape)(inputs).numpy()
    model = tvm.compile(path, shape=shape, target="opencl")
    np.testing.assert_allclose(model(inputs).numpy(), want, rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "m.so")
    np.testing.assert_allclose(tvm.load(tmp_path / "m.so", device)(inputs).numpy(), want, rtol=1e-4, atol=1e-5)
