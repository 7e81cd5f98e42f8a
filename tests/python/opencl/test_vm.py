# SPDX-License-Identifier: Apache-2.0
"""Programs with control flow, data types and dynamic shapes on the CPU and a second device: the values are those of one device (DV-025)."""

import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.runtime.vm import Executable, VirtualMachine

_HEAD = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'
_T = "Tensor[(4), float32]"
_XYZ = f"%n: int32, %x: {_T}, %y: {_T}, %z: {_T}"
_X = [np.linspace(k - 2, k, 4).astype("float32") for k in (1, 2, 3)]


def _main(body, before=""):
    return f"{before}\ndef @main({_XYZ}) {{ {body} }}"


_LOOP = f"""def @loop(%n: int32, %a: {_T}, %w: {_T}) -> {_T} {{
  if (less_equal(%n, 0)) {{ %a }} else {{ @loop(subtract(%n, 1), on_device(add(multiply(%a, 0.5f), tanh(%w)), device_type=D), %w) }}
}}"""
_MAP = """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil() } }
}"""
# Each with the second device as D.
PROGRAMS = {
    "a branch there": _main("if (less(%n, 2)) { on_device(negative(%y), device_type=D) } else { %z }"),
    "a condition from there": _main("if (on_device(less(sum(%x), 100f), device_type=D)) { %y } else { %z }"),
    "a loop": _main("@loop(%n, %x, %y)", _LOOP),
    "a loop over weights": _main("@loop(%n, %x, WEIGHTS)", _LOOP),
    "two at once": _main(
        "add(multiply(on_device(tanh(%x), device_type=D), %y), if (less(%n, 2)) { on_device(exp(add(on_device(tanh(%x),"
        " device_type=D), %z)), device_type=D) } else { exp(%y) })"
    ),
    "lists": _main(
        "match (@map(fn (%a: " + _T + ") { on_device(exp(%a), device_type=D) }, Cons(%x, Cons(%y, Nil())))) {"
        " Cons(%h, Cons(%g, _)) => { add(%h, %g) }, _ => { %z } }",
        _MAP,
    ),
    "closures": _main(
        "let %w = on_device(multiply(%x, %y), device_type=D); let %f = fn (%a: " + _T + ") { on_device(add(%a, %w), device_type=D) }; add(%f(%y), %f(%f(%z)))"
    ),
    "functions for both": _main(
        "add(on_device(@f(on_device(%x, device_type=D), %n), device_type=D), @f(%y, %n))",
        f"def @f(%a: {_T}, %n: int32) -> {_T} {{ if (less(%n, 2)) {{ negative(%a) }} else {{ add(%a, %a) }} }}",
    ),
    "references": _main(
        "let %r = ref(on_device(negative(%x), device_type=D)); let %u = if (less(%n, 2)) { ref_write(%r, %y) } else { () }; (add(ref_read(%r), %z), %u)"
    ),
    "tuples": _main(
        "let %t = if (less(%n, 2)) { on_device((%x, (negative(%y), %z)), device_type=D) } else { (%z, (%y, %x)) };"
        " let %p = %t.1; (add(%t.0, %p.0), %t, on_device(concatenate((%p.1, %t.0)), device_type=D))"
    ),
    "views": _main(
        "let %a = on_device(reshape(add(%x, %y), newshape=[2, 2]), device_type=D); if (less(%n, 2)) { reshape(%a, newshape=[4]) }"
        " else { on_device(reshape(multiply(%a, %a), newshape=[4]), device_type=D) }"
    ),
    "constants": _main(
        "let %c = on_device(WEIGHTS, device_type=D, is_fixed=True); if (less(%n, 2)) { on_device(add(%c, %x), device_type=D) } else { WEIGHTS }"
    ),
    "operators of the host": _main(
        "let %i = on_device(argsort(%x, axis=0, dtype=\"int32\"), device_type=D); if (less(%n, 2)) {"
        " on_device(take(%y, %i, axis=0, mode=\"clip\"), device_type=D) } else { %z }"
    ),
    "matrices": _main(
        "let %m = on_device(nn.dense(reshape(%x, newshape=[2, 2]), reshape(%y, newshape=[2, 2])), device_type=D);"
        " if (less(%n, 2)) { on_device(nn.softmax(%m), device_type=D) } else { %m }"
    ),
}
OPEN = """
def @main(%a: Tensor[(?, 3), float32], %n: int32) {
  let %b = on_device(tanh(add(%a, 1f)), device_type=D);
  let %c = if (less(%n, 3)) { %b } else { concatenate((%b, %b)) };
  (on_device(nn.softmax(%c), device_type=D), sum(%c, axis=[0]), argwhere(greater(%c, 0.5f)))
}"""


def _plain(value):
    if isinstance(value, tvm.nd.NDArray):
        return value.numpy()
    return tuple(map(_plain, value))


def _same(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            _same(g, w)
    else:
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def _parse(text, number):
    text = text.replace("=D", f"={number}")
    if "WEIGHTS" not in text:
        return relay.parse(_HEAD + text), {}
    text = text.replace("WEIGHTS", "%k").replace(f"@main({_XYZ})", f"@main({_XYZ}, %k: {_T})")
    return relay.parse(_HEAD + text), {"k": np.arange(4, dtype="float32") / 4}


def _without(text):
    """The program for one device."""
    return re.sub(r",? device_type=D(, is_fixed=True)?", "", text)


def _second(request, name):
    return request.getfixturevalue("device") if name == "opencl" else tvm.device(name)


def _targets(second):
    return {"cpu": "llvm", second: "opencl" if second == "opencl" else "llvm"}


@pytest.mark.parametrize("second", ["ext_dev", "opencl"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_devices(request, name, second, tmp_path):  # DV-025
    device = _second(request, second)
    one, params = _parse(_without(PROGRAMS[name]), 1)
    two, _ = _parse(PROGRAMS[name], device.device_type)
    plain = VirtualMachine(relay.vm.compile(one, target="llvm", params=params), tvm.cpu())
    exe = relay.vm.compile(two, target=_targets(second), params=params)
    exe.export_library(tmp_path / "m.so")
    machines = [VirtualMachine(exe, [tvm.cpu(), device]), VirtualMachine(Executable.load_exec(tmp_path / "m.so"), [device, tvm.cpu()])]
    for n in (0, 1, 5):
        want = _plain(plain.invoke("main", np.int32(n), *_X))
        for machine in machines:
            _same(_plain(machine.invoke("main", np.int32(n), *_X)), want)
        # Arguments that lie on the other device are taken from there.
        _same(_plain(machines[0].invoke("main", np.int32(n), *(tvm.nd.array(x, device) for x in _X))), want)


@pytest.mark.parametrize("second", ["ext_dev", "opencl"])
def test_open_shapes(request, second, tmp_path):
    device = _second(request, second)
    exe = relay.vm.compile(_parse(OPEN, device.device_type)[0], target=_targets(second))
    exe.export_library(tmp_path / "m.so")
    plain = VirtualMachine(relay.vm.compile(_parse(_without(OPEN), 1)[0], target="llvm"), tvm.cpu())
    for machine in (VirtualMachine(exe, [tvm.cpu(), device]), VirtualMachine(Executable.load_exec(tmp_path / "m.so"), [tvm.cpu(), device])):
        for rows, n in ((2, 1), (4, 5), (0, 5)):
            a = np.linspace(-1, 1, rows * 3).reshape(rows, 3).astype("float32")
            _same(_plain(machine.invoke("main", a, np.int32(n))), _plain(plain.invoke("main", a, np.int32(n))))


_OPEN_THERE = """def @main(%a: Tensor[(?, 3), float32], %w: Tensor[(3, 4), float32]) {
  let %m = tanh(add(nn.dense(%a, transpose(%w)), 1f));
  let %r = reshape(%m, newshape=[-1, 2]);
  let %s = split(%r, indices_or_sections=2, axis=1);
  (nn.softmax(%r), concatenate((exp(%s.1), %r, %s.0), axis=1), sum(%m))
}"""


def test_open_shapes_run_on_the_device(device, tmp_path):
    """Operators and views whose shapes come when the program runs are kernels of OpenCL that take sizes: nothing calls back."""
    mod = relay.parse(_HEAD + _OPEN_THERE)
    exe = relay.vm.compile(mod, target="opencl")
    assert "packed" not in exe.bytecode and re.findall(r"kernel (\S+) on opencl", exe.bytecode) == ["baton_region_0"], exe.bytecode
    assert "const long" in exe.mod.get_source("opencl")
    found, _ = _explain(exe, tmp_path / "m.so")
    assert found["copies"] == [] and {p["device"] for p in found["places"]} == {"opencl"}
    want = VirtualMachine(relay.vm.compile(mod, target="llvm"), tvm.cpu())
    w = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")
    for machine in (VirtualMachine(exe, device), VirtualMachine(Executable.load_exec(tmp_path / "m.so"), device)):
        for rows in (2, 5, 2, 0, 1, 5, 64, 3):
            a = np.linspace(-1, 1, rows * 3).reshape(rows, 3).astype("float32")
            out = machine.invoke("main", a, w)
            assert {str(o.device) for o in out} == {"opencl(0)"}
            _same(_plain(out), _plain(want.invoke("main", a, w)))


def test_open_shapes_on_the_device_need_no_compiler(device, tmp_path):
    relay.vm.compile(relay.parse(_HEAD + _OPEN_THERE), target="opencl").export_library(tmp_path / "m.so")
    code = f"""
import numpy as np, baton
model = baton.load({str(tmp_path / "m.so")!r}, baton.opencl(0))
for rows in (3, 7, 1, 7):
    softmax, _, total = model(np.ones((rows, 3), "float32"), np.zeros((3, 4), "float32"))
    np.testing.assert_allclose(softmax.numpy(), np.full((2 * rows, 2), 0.5), rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), 4 * rows * np.tanh(1), rtol=1e-5)
assert model.describe()["needs"] == ["libbaton_runtime", "libbaton_vm", "libbaton_opencl"]
maps = open("/proc/self/maps").read()
assert "libbaton_opencl" in maps and "libbaton.so" not in maps and "libLLVM-19" not in maps
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("second", ["ext_dev", "opencl"])
def test_named_dimensions_on_a_device(request, second, tmp_path):
    """Names, bounds and what must agree are those of a model for the CPU."""
    device = _second(request, second)
    body = "def @main(%a: Tensor[(n, 8), float32], %b: Tensor[(n, 8), float32]) { on_device(nn.softmax(add(%a, %b)), device_type=D, is_fixed=True) }"
    mod = _parse(body, device.device_type)[0]
    model = tvm.compile(mod, target=_targets(second), shape={"a": (tvm.Dim("n", 1, 64), 8)}, device=[tvm.cpu(), device])
    model.save(tmp_path / "m.so")
    for each in (model, tvm.load(tmp_path / "m.so", [tvm.cpu(), device])):
        assert [(d.name, d.min, d.max) for d in each.dims] == [("n", 1, 64)]
        for n in (1, 33, 7):
            a = np.linspace(-1, 1, n * 8, dtype="float32").reshape(n, 8)
            out = each(a, a)
            e = np.exp(2 * a)
            assert out.device == device
            np.testing.assert_allclose(out.numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)
        with pytest.raises(ValueError, match=r"shape \(65, 8\): n is 1 to 64"):
            each(np.zeros((65, 8), "float32"), np.zeros((65, 8), "float32"))
        with pytest.raises(ValueError, match="`a` has n = 2|`b` has n = 3"):
            each(np.zeros((2, 8), "float32"), np.zeros((3, 8), "float32"))


@pytest.mark.parametrize("second", ["ext_dev", "opencl"])
def test_sizes_that_are_values_of_an_input(request, second):
    """`sizes` reads integers of an input that lies on the device."""
    device = _second(request, second)
    body = """def @main(%a: Tensor[(?, ?), float32], %s: Tensor[(2), int64]) {
      on_device(exp(dyn.reshape(tanh(%a), %s)), device_type=D, is_fixed=True)
    }"""
    exe = relay.vm.compile(_parse(body, device.device_type)[0], target=_targets(second))
    assert "packed" not in exe.bytecode, exe.bytecode
    machine = VirtualMachine(exe, [tvm.cpu(), device])
    for shape, to in (((2, 6), (3, 4)), ((5, 2), (1, 10)), ((2, 6), (12, 1))):
        a = np.linspace(-1, 1, shape[0] * shape[1], dtype="float32").reshape(shape)
        np.testing.assert_allclose(machine.invoke("main", a, np.array(to)).numpy(), np.exp(np.tanh(a)).reshape(to), rtol=1e-5)


def test_open_shapes_on_the_device_in_many_threads(device):
    mod = relay.parse(_HEAD + "def @main(%a: Tensor[(?), float32]) { exp(add(%a, 1f)) }")
    exe = relay.vm.compile(mod, target="opencl")
    wrong = []

    def work(n):
        machine = VirtualMachine(exe, device)
        for i in range(12):
            a = np.full(1 + (n + i) % 3, n, "float32")
            if not np.allclose(machine.invoke("main", a).numpy(), np.exp(a + 1), rtol=1e-5):
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_it_on_opencl(device, name):
    """Without annotations: the program as a whole runs there, and the host decides where control goes."""
    mod, params = _parse(_without(PROGRAMS[name]), 1)
    want = VirtualMachine(relay.vm.compile(mod, target="llvm", params=params), tvm.cpu())
    machine = VirtualMachine(relay.vm.compile(mod, target="opencl", params=params), device)
    for n in (1, 3):
        _same(_plain(machine.invoke("main", np.int32(n), *_X)), _plain(want.invoke("main", np.int32(n), *_X)))


def test_what_the_bytecode_says():
    exe = relay.vm.compile(_parse(PROGRAMS["a branch there"], 12)[0], target=_targets("ext_dev"))
    assert "baton_region_1 on ext_dev 1 1" in exe.bytecode and "copy r" in exe.bytecode and "to cpu" in exe.bytecode
    assert exe.mod.type_key == "vm" and [str(d) for d in exe.mod["default"](tvm.cpu())["get_devices"]()] == ["cpu(0)", "ext_dev(0)"]


def test_where_the_kernels_of_a_compiled_program_run(tmp_path):
    relay.vm.compile(_parse(PROGRAMS["a branch there"], 12)[0], target=_targets("ext_dev")).export_library(tmp_path / "m.so")
    out = subprocess.run([sys.executable, "-m", "baton", "explain-placement", tmp_path / "m.so"], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == [
        *(f"@main: baton_region_{i} ({op}) on {d}: the plan that it was compiled with" for i, d, op in ((0, "cpu", "less"), (1, "ext_dev", "negative"))),
        "from_string:4: @main: copy of negative from ext_dev to cpu, 16 bytes: for the result of an if",
    ]


def _explain(exe, path):
    """What `baton explain-placement` says of a program, in JSON and as text."""
    exe.export_library(path)
    json_, text = (
        subprocess.run([sys.executable, "-m", "baton", "explain-placement", path, *more], capture_output=True, text=True, check=False)
        for more in (["--json"], [])
    )
    assert json_.returncode == 0, json_.stderr
    return json.loads(json_.stdout), text.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_copy_of_a_program_is_explained(name, tmp_path):
    """As many as instructions copy, each with where from and to, its bytes and the instruction that wants it."""
    exe = relay.vm.compile(_parse(PROGRAMS[name], 12)[0], target=_targets("ext_dev"))
    found, text = _explain(exe, tmp_path / "m.so")
    copies = found["copies"]
    instructions = re.findall(r"^ +\d+: copy .* to (\S+)$", exe.bytecode, re.MULTILINE)
    host = [c for c in copies if "which runs on the CPU" in c["because"]]
    assert len(host) == (2 if name == "operators of the host" else 0)
    assert sorted(c["dst_dev"] for c in copies if c not in host) == sorted(instructions)
    for c in copies:
        assert {c["src_dev"], c["dst_dev"]} == {"cpu", "ext_dev"} and c["because"].startswith(("for ", "the result of "))
        assert c["bytes"] > 0 and c["formula"] == str(c["bytes"])
    assert text.count(": copy of ") == len(copies) and bool(copies) != ("nothing is copied" in text)


def test_bytes_of_open_shapes_are_a_formula(tmp_path):
    found, text = _explain(relay.vm.compile(_parse(OPEN, 12)[0], target=_targets("ext_dev")), tmp_path / "m.so")
    formulas = {c["formula"] for c in found["copies"]}
    assert formulas == {"3 * ?", "16 * ?"}, found  # what argwhere reads, and what it gives
    assert "3 * ? bytes, known when it runs: for argwhere" in text
    lists = """def @up(%n: int32, %l: List[int32]) -> List[int32] { if (less_equal(%n, 0)) { %l } else { @up(subtract(%n, 1), Cons(%n, %l)) } }
def @main(%n: int32) { match (device_copy(@up(%n, Nil()), src_dev_type=1, dst_dev_type=12)) { Cons(%h, _) => { %h }, Nil => { 0 } } }"""
    found, text = _explain(relay.vm.compile(relay.parse(_HEAD + lists), target=_targets("ext_dev")), tmp_path / "l.so")
    assert "copy of a call of @up from cpu to ext_dev, all its tensors: ? bytes, known when it runs: for a match" in text


def test_a_weight_is_put_on_its_device_once():
    """No copy in the loop: weights are on their device when the machine is made."""
    mod, params = _parse(PROGRAMS["a loop over weights"], 12)
    text = relay.vm.compile(mod, target=_targets("ext_dev"), params=params).bytecode
    loop = text[text.index("loop:") :].split("\nmain:")[0]
    assert "copy" not in loop, text


def test_results_lie_where_the_plan_says():
    exe = relay.vm.compile(
        _parse(
            _main("if (less(%n, 2)) { on_device(negative(%x), device_type=D, is_fixed=True) } else { on_device(exp(%y), device_type=D, is_fixed=True) }"), 12
        )[0],
        target=_targets("ext_dev"),
    )
    machine = VirtualMachine(exe, [tvm.cpu(), tvm.device("ext_dev")])
    out = machine.invoke("main", np.int32(0), *_X)
    assert out.device == tvm.device("ext_dev")
    np.testing.assert_array_equal(out.numpy(), -_X[0])


def test_long_lists_go_to_another_device():
    """A copy of data is linear and does not recurse."""
    up = """def @up(%n: int32, %l: List[int32]) -> List[int32] { if (less_equal(%n, 0)) { %l } else { @up(subtract(%n, 1), Cons(%n, %l)) } }
def @sum(%a: int32, %l: List[int32]) -> int32 { match (%l) { Cons(%h, %t) => { @sum(on_device(add(%a, %h), device_type=12), %t) }, Nil => { %a } } }
def @main(%n: int32) { @sum(0, device_copy(@up(%n, Nil()), src_dev_type=1, dst_dev_type=12)) }"""
    machine = VirtualMachine(relay.vm.compile(relay.parse(_HEAD + up), target=_targets("ext_dev")), [tvm.cpu(), tvm.device("ext_dev")])
    n = 20_000
    assert machine.invoke("main", np.int32(n)).item() == n * (n + 1) // 2


def test_runs_without_the_compiler(device, tmp_path):
    exe = relay.vm.compile(_parse(PROGRAMS["a loop"], 4)[0], target=_targets("opencl"))
    exe.export_library(tmp_path / "m.so")
    want = VirtualMachine(exe, [tvm.cpu(), device]).invoke("main", np.int32(3), *_X).numpy()
    code = f"""
import numpy as np, baton
from baton.runtime.vm import Executable, VirtualMachine
machine = VirtualMachine(Executable.load_exec({str(tmp_path / 'm.so')!r}), [baton.cpu(), baton.opencl(0)])
x = [baton.nd.array(np.linspace(k - 2, k, 4).astype("float32")) for k in (1, 2, 3)]
out = machine._call("main", baton.nd.array(np.int32(3)), *x).numpy()
np.testing.assert_allclose(out, {want.tolist()!r}, rtol=1e-6)
maps = open("/proc/self/maps").read()
assert "libbaton_opencl" in maps and "libbaton.so" not in maps and "libLLVM-19" not in maps
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_devices_that_there_are_not():
    exe = relay.vm.compile(_parse(PROGRAMS["a loop"], 12)[0], target=_targets("ext_dev"))
    with pytest.raises(tvm.error.RuntimeError, match=r"the program was compiled for cpu and ext_dev, it cannot run on cuda\(0\)"):
        VirtualMachine(exe, [tvm.cpu(), tvm.cuda(0)])
    with pytest.raises(tvm.error.RuntimeError, match=r"compiled for cpu and ext_dev: device `ext_dev\(9\)` does not exist on this machine"):
        VirtualMachine(exe, [tvm.cpu(), tvm.device("ext_dev", 9)])
    plain = relay.vm.compile(_parse(_without(PROGRAMS["a loop"]), 1)[0], target="llvm")
    with pytest.raises(tvm.error.RuntimeError, match=r"the model was compiled for the CPU, it cannot run on ext_dev\(0\)"):
        VirtualMachine(plain, tvm.device("ext_dev"))
