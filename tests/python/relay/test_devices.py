# SPDX-License-Identifier: Apache-2.0
"""Device planning (DV): annotations, copies, functions for several devices, and running what was planned.

The second device is `ext_dev` (12) where programs run, and `cuda` (2) where they are only planned.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from programs import EXT, program, strip

import baton as tvm
from baton import relay

_HEAD = '#[version = "0.0.5"]\n'
_T = "Tensor[(4), float32]"
_XYZ = f"%x: {_T}, %y: {_T}, %z: {_T}"


def _typed(text):
    return relay.transform.InferType()(relay.parse(_HEAD + text) if isinstance(text, str) else text)


def _plan(text, default="cpu"):
    """Plans, and holds every planned program to what all must keep: DV-013 idempotent, DV-020 readable without defaults."""
    typed = _typed(text)
    planned = relay.transform.PlanDevices(default)(typed)
    assert relay.analysis.well_formed(planned)
    _read_off(planned)
    for other in (1, 2):
        assert relay.transform.PlanDevices(other)(planned).same_as(planned)
        again = _typed(relay.parse(planned.astext()))
        tvm.ir.assert_structural_equal(relay.transform.PlanDevices(other)(again), again)
    return planned


def _main(body, params=_XYZ):
    return f"def @main({params}) {{ {body} }}"


def _copies(mod):
    found = []
    for func in mod.functions.values():
        relay.analysis.post_order_visit(
            func,
            lambda e: (
                found.append((e.attrs.src_dev_type, e.attrs.dst_dev_type))
                if isinstance(e, relay.Call) and isinstance(e.op, tvm.ir.Op) and e.op.name == "device_copy"
                else None
            ),
        )
    return found


def _devices(mod, name="main"):
    attrs = mod[name].attrs
    return list(attrs["param_device_types"]), attrs["result_device_type"]


def _read_off(mod):
    """DV-020: the device of each value follows from what is written around it."""

    def signature(f):
        return list(f.attrs["param_device_types"]), f.attrs["result_device_type"]

    env = {}

    def is_op(e, name):
        return isinstance(e, relay.Call) and isinstance(e.op, tvm.ir.Op) and e.op.name == name

    def device(e, around):
        """The device of a value in surroundings on another device: what is written at it, else that of the surroundings."""
        if isinstance(e, relay.Function):
            function(e)
            return signature(e)[1]
        if is_op(e, "on_device"):
            check(e, e.attrs.device_type, around)
            return e.attrs.device_type
        if isinstance(e, relay.Var):
            return env[e] if isinstance(env[e], int) else env[e][1]
        check(e, around)
        return around

    def check(e, here, around=None):
        """Whether a value on a device says so where what is around it is on another."""
        around = here if around is None else around
        while isinstance(e, relay.Let):
            env[e.var] = signature(e.value) if isinstance(e.value, relay.Function) else None
            found = device(e.value, here)
            if not isinstance(e.value, relay.Function):
                env[e.var] = (
                    env[e.value] if isinstance(e.value, relay.Var) else (found if not isinstance(e.var.checked_type, tvm.ir.FuncType) else (None, found))
                )
            e = e.body
        if is_op(e, "on_device"):
            assert e.attrs.is_fixed and e.attrs.device_type == here != around, e
            check(e.args[0], here)
            return
        unit = isinstance(e.checked_type, tvm.ir.TupleType) and not e.checked_type.fields
        assert here == around or unit or isinstance(e, (relay.Var, relay.Function)), f"nothing says where this lives: {e}"
        if is_op(e, "device_copy"):
            assert e.attrs.dst_dev_type == here and e.attrs.src_dev_type != here
            check(e.args[0], e.attrs.src_dev_type, here)
        elif isinstance(e, relay.Call) and isinstance(e.op, (tvm.ir.Op, relay.Constructor)):
            for a in e.args:
                check(a, here)
        elif isinstance(e, relay.Call):
            params, result = signature(mod[e.op]) if isinstance(e.op, relay.GlobalVar) else (signature(e.op) if isinstance(e.op, relay.Function) else env[e.op])
            assert result == here
            for a, d in zip(e.args, params, strict=True) if params else ():
                check(a, d, here)
        elif isinstance(e, relay.Var):
            assert (env[e] if isinstance(env[e], int) else env[e][1]) == here, e
        elif isinstance(e, relay.Tuple):
            for f in e.fields:
                check(f, here)
        elif isinstance(e, relay.TupleGetItem):
            check(e.tuple_value, here)
        elif isinstance(e, relay.If):
            check(e.cond, 1, here)
            check(e.true_branch, here)
            check(e.false_branch, here)
        elif isinstance(e, relay.Match):
            d = device(e.data, here)
            for c in e.clauses:
                for v in relay.analysis.all_vars(relay.Match(relay.Tuple([]), [relay.Clause(c.lhs, relay.Tuple([]))])):
                    env[v] = d
                check(c.rhs, here)
        elif isinstance(e, relay.RefCreate):
            check(e.value, here)
        elif isinstance(e, relay.RefRead):
            check(e.ref, here)
        elif isinstance(e, relay.RefWrite):
            check(e.ref, here)
            check(e.value, here)
        else:
            assert isinstance(e, (relay.Constant, relay.Function, relay.GlobalVar)), type(e)

    def function(f):
        params, result = signature(f)
        for p, d in zip(f.params, params, strict=True):
            env[p] = (None, d) if isinstance(p.checked_type, tvm.ir.FuncType) else d
        check(f.body, result)

    for f in mod.functions.values():
        function(f)


def _equal(mod, text):
    tvm.ir.assert_structural_equal(relay.transform.InferType()(mod), _typed(text))


_PLANNED = f"{_XYZ}, param_device_types=[2, 2, 1], result_device_type=1"


def test_annotation_is_the_identity():  # DV-001
    typed = _typed(_main("on_device(%x, device_type=2)"))
    tvm.ir.assert_structural_equal(typed["main"].body.checked_type, typed["main"].params[0].type_annotation)
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(relay.create_executor("debug", mod=typed).evaluate()(x, x, x).numpy(), x)


def test_attributes():  # DV-002, DV-003, DV-005, DV-008
    attrs = relay.on_device(relay.var("x"), "cuda").attrs
    assert attrs.type_key == "relay.attrs.OnDeviceAttrs" and attrs.device_type == 2 and attrs.is_fixed is False
    plain = tvm.ir.make_node("relay.attrs.OnDeviceAttrs")
    assert plain.device_type == -1 and not plain.is_fixed
    copy = relay.device_copy(relay.var("x"), "cuda", "cpu")
    assert len(copy.args) == 1 and (copy.attrs.src_dev_type, copy.attrs.dst_dev_type) == (2, 1)


@pytest.mark.parametrize("device", [2, "cuda", "cuda(0)", "gpu"])
def test_devices_as_number_text_or_object(device):  # DV-022
    x = relay.var("x")
    assert relay.on_device(x, device).attrs.device_type == 2
    assert relay.op.annotation.on_device(x, tvm.cuda(0), is_fixed=True).attrs.is_fixed
    assert relay.device_copy(x, tvm.cuda(0), 1).attrs.src_dev_type == 2


def test_example():  # TR-24, DV-004, DV-006, DV-007, DV-009, DV-016, DV-017
    mod = _plan(_main("multiply(on_device(add(%x, %y), device_type=2), %z)"))
    _equal(mod, f"def @main({_PLANNED}) {{ multiply(device_copy(on_device(add(%x, %y), device_type=2, is_fixed=True), src_dev_type=2, dst_dev_type=1), %z) }}")


def test_planned_form():  # TR-25, DV-012, DV-014, DV-015, DV-018, DV-021
    text = "let %a = on_device(add(%x, %y), device_type=2, is_fixed=True); multiply(device_copy(%a, src_dev_type=2, dst_dev_type=1), %z)"
    mod = _plan(_main(text))
    _equal(mod, f"def @main({_PLANNED}) {{ {text} }}")
    plain = _plan(_main("let %a = on_device(add(%x, %y), device_type=2); multiply(%a, %z)"))
    assert _devices(plain) == _devices(mod)
    assert mod["main"].attrs["result_device_type"] == 1


def test_no_copy_on_one_device():  # DV-009
    assert _copies(_plan(_main("on_device(add(on_device(%x, device_type=1), %y), device_type=1)"))) == []
    mod = _plan(_main("on_device(add(on_device(negative(%x), device_type=2), %y), device_type=2)"))
    assert _copies(mod) == []  # the result lies where the function ends


def test_default_device():  # DV-017
    assert _devices(_plan(_main("add(%x, %y)"))) == ([1, 1, 1], 1)
    assert _devices(_plan(_main("add(%x, %y)"), "cuda")) == ([2, 2, 2], 2)
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 2}):
        assert _devices(relay.transform.PlanDevices()(_typed(_main("add(%x, %y)")))) == ([2, 2, 2], 2)
        assert _devices(relay.transform.PlanDevices("cpu")(_typed(_main("add(%x, %y)")))) == ([1, 1, 1], 1)
    with pytest.raises(tvm.error.TVMError, match="must be positive"):
        relay.transform.PlanDevices(0)(_typed(_main("%x")))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add(on_device(%x, device_type=2, is_fixed=True), on_device(%y, device_type=1, is_fixed=True))", "`add`"),
        ("on_device(on_device(%x, device_type=1, is_fixed=True), device_type=2, is_fixed=True)", "`on_device`"),
        ("add(device_copy(%x, src_dev_type=1, dst_dev_type=2), on_device(%y, device_type=1, is_fixed=True))", "device_copy at"),
        ("device_copy(on_device(%x, device_type=1, is_fixed=True), src_dev_type=2, dst_dev_type=1)", "device_copy at"),
        ("on_device(negative(on_device(%x, device_type=1, is_fixed=True)), device_type=2)", "`on_device`"),
    ],
)
def test_contradictions_name_both_annotations(body, message):  # DV-010, DV-011, DV-024, DV-026
    with pytest.raises(tvm.error.CompileError, match=message) as caught:
        _plan(_main(body))
    text = str(caught.value)
    assert "1 (cpu)" in text and "2 (cuda)" in text and text.count("is asked for here") == 2
    assert text.count("error:") == 1  # one contradiction, told once


def test_annotation_without_a_device():  # DV-023
    assert _copies(_plan(_main("add(on_device(%x), on_device(%y, device_type=2))"))) == [(2, 1)]
    assert _devices(_plan(_main("on_device(%x)"))) == ([1, 1, 1], 1)
    with pytest.raises(tvm.error.CompileError, match="names no device"):
        _plan(_main("on_device(%x, is_fixed=True)"))


def test_devices_that_there_are_not():
    """Unknown kinds of devices, wherever they are named: each error has the place and the known kinds."""
    for body in ("on_device(%x, device_type=99)", "device_copy(%x, src_dev_type=1, dst_dev_type=99)"):
        with pytest.raises(tvm.error.CompileError, match=r"R1\] `.*_type` is 99, which is no device; there are 1 \(cpu\), 2 \(cuda\)") as caught:
            _typed(f"def @main(%x: {_T}) {{\n  {body}\n}}")
        assert ":3:3: error:" in str(caught.value)
    with pytest.raises(tvm.error.CompileError, match="the default device has type 99, which is no device; there are 1 "):
        relay.transform.PlanDevices(99)(_typed(_main("%x")))
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 99}), pytest.raises(tvm.error.CompileError, match="has type 99"):
        tvm.transform.parse_pipeline("PlanDevices")(_typed(_main("%x")))
    planned = _typed(f"def @main(%x: {_T}, param_device_types=[99], result_device_type=1) {{\n  negative(%x)\n}}")
    with pytest.raises(tvm.error.CompileError, match="an attribute of the function names device type 99, which is no device") as caught:
        relay.transform.PlanDevices()(planned)
    assert ":2:1: error:" in str(caught.value) and "help: there are 1 (cpu)" in str(caught.value)
    with pytest.raises(tvm.error.CompileError, match="device type 99 is no device"):
        relay.build(planned, target="llvm")


@pytest.mark.parametrize("target", ["llvm", {"cpu": "llvm", "ext_dev": "llvm"}])
def test_devices_without_a_target(target):
    """All at once, each where it is named first."""
    mod = relay.parse(
        _HEAD + f"def @main({_XYZ}) {{\n  let %a = on_device(add(%x, %y), device_type=2);\n"
        "  add(device_copy(%a, src_dev_type=2, dst_dev_type=7), on_device(%z, device_type=2))\n}"
    )
    with pytest.raises(ValueError, match="the program runs on cuda, for which no target is given; give one: {\"cuda\": \"cuda\"}") as caught:
        relay.build(mod, target=target)
    text = str(caught.value)
    assert ":3:12: error: the program runs on cuda" in text and ":4:7: error: the program runs on vulkan" in text
    assert text.count("error:") == 2


def test_annotations_of_one_device_cost_nothing():
    """They stand in the way of nothing where there is but one device."""
    text = "on_device((add(on_device(multiply(%x, %y), device_type=1, is_fixed=True), on_device(%z)), %x), device_type=1)"
    lib = relay.build(relay.parse(_HEAD + _main(text)), target="llvm")
    assert lib.type_key == "aot" and "on_device" not in lib.get_source("relay")
    assert lib.get_source("relay").count("Primitive=1") == 1


def test_nested_annotations():  # DV-024
    mod = _plan(_main("on_device(on_device(negative(%x), device_type=1), device_type=2)"), "cuda")
    assert _copies(mod) == [(1, 2)]
    mod = _plan(_main("on_device(on_device(negative(%x), device_type=1), device_type=2, is_fixed=True)"), "cuda")
    assert _copies(mod) == [(1, 2)]


def test_shared_input_is_copied_once():
    mod = _plan(
        _main(
            "let %a = on_device(add(%x, %y), device_type=2, is_fixed=True);"
            "let %b = on_device(multiply(%x, %z), device_type=1, is_fixed=True);"
            "let %c = on_device(subtract(%x, %b), device_type=1, is_fixed=True); (%a, %c)"
        )
    )
    assert sorted(_copies(mod)) == [(1, 2), (2, 1)]  # %x once, %a once
    told = relay.analysis.explain_placement(mod)["copies"]
    # A planned program needs no more.
    assert sorted((r["expression"], r["because"].split(" at ")[0], r["bytes"]) for r in told) == [(e, "written as device_copy", 16) for e in ("%c", "%x")]


_LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("let %a = on_device(add(%x, 1f), device_type=2); add(%a, %y)", 1),
        ("if (less(sum(%x), 1f)) { on_device(negative(%y), device_type=2) } else { %z }", 1),
        ("if (on_device(less(sum(%x), 1f), device_type=2)) { %y } else { %z }", 1),
        ("let %t = on_device((%x, negative(%y)), device_type=2); add(%t.0, %z)", None),
        ("let %f = fn (%a: Tensor[(4), float32]) { on_device(add(%a, %x), device_type=2) }; add(%f(%y), %f(%z))", None),
        (
            "let %f = fn (%n: int32, %a: Tensor[(4), float32]) -> Tensor[(4), float32] {"
            " if (equal(%n, 0)) { %a } else { %f(subtract(%n, 1), on_device(negative(%a), device_type=2)) } }; %f(3, %x)",
            None,
        ),
        ("let %r = ref(on_device(negative(%x), device_type=2)); let %u = ref_write(%r, %y); add(ref_read(%r), %z)", None),
        ("let %l = Cons(on_device(negative(%x), device_type=2), Nil); match? (%l) { Cons(%h, _) => add(%h, %y) }", None),
        ("match ((on_device(negative(%x), device_type=2), %y)) { (%a, %b) => add(%a, %b) }", None),
        (
            "let %g = fn (%f: fn (Tensor[(4), float32]) -> Tensor[(4), float32]) { %f(%x) };"
            "%g(fn (%a: Tensor[(4), float32]) { on_device(negative(%a), device_type=2) })",
            None,
        ),
        ("concatenate((on_device(negative(%x), device_type=2), %y))", 1),
        ("split(on_device(negative(%x), device_type=2), indices_or_sections=2).0", 1),
        ("reshape(on_device(negative(%x), device_type=2), newshape=[2, 2])", 1),
        ("(on_device(negative(%x), device_type=2), shape_of(on_device(negative(%y), device_type=2)))", None),
    ],
)
def test_all_kinds_of_expressions(text, copies):  # DV-019
    mod = _plan(_LIST + _main(text))
    if copies is not None:
        assert len(_copies(mod)) == copies
    _plan(_LIST + _main(text), "cuda")
    _run_both(_LIST + _main(text.replace("device_type=2", f"device_type={EXT}")))


def test_functions_for_several_devices():
    text = f"def @f(%a: {_T}) -> {_T} {{ @g(negative(%a)) }}\ndef @g(%a: {_T}) -> {_T} {{ add(%a, %a) }}\n" + _main(
        "add(on_device(@f(on_device(%x, device_type=2)), device_type=2), @f(%y))"
    )
    mod = _plan(text)
    assert [v.name_hint for v in mod.get_global_vars()] == ["f", "g", "main", "f_on_1_1", "g_on_1_1"]
    assert _devices(mod, "f") == ([2], 2) and _devices(mod, "g_on_1_1") == ([1], 1) and len(_copies(mod)) == 1
    _run_both(text.replace("device_type=2", f"device_type={EXT}"))


def test_mutual_recursion():  # DV-019
    text = (
        f"def @even(%n: int32, %a: {_T}) -> {_T} {{ if (equal(%n, 0)) {{ %a }} else {{ @odd(subtract(%n, 1), negative(%a)) }} }}\n"
        f"def @odd(%n: int32, %a: {_T}) -> {_T} {{ if (equal(%n, 0)) {{ %a }} else {{ @even(subtract(%n, 1), add(%a, %a)) }} }}\n"
        + _main("add(on_device(@even(5, on_device(%x, device_type=2)), device_type=2), @even(4, %y))")
    )
    mod = _plan(text)
    assert len(mod.functions) == 5
    _run_both(text.replace("device_type=2", f"device_type={EXT}"))


def _run_both(text):
    """DV-025: two devices give what one gives; arguments lie where the plan wants them."""
    typed = _typed(text)
    planned = relay.transform.PlanDevices()(typed)
    args = [np.linspace(k - 2, k, 4).astype("float32") for k in (1, 2, 3)]
    want = relay.create_executor("debug", mod=_typed(strip(text))).evaluate()(*args)
    got = relay.create_executor("debug", mod=planned).evaluate()(*args)
    for a, b in zip(_arrays(want), _arrays(got), strict=True):
        np.testing.assert_array_equal(a, b)


def _arrays(v):
    if isinstance(v, tvm.nd.NDArray):
        return [v.numpy()]
    return [a for x in v for a in _arrays(x)]


@pytest.mark.parametrize("seed", range(60))
def test_generated_programs(seed):  # DV-013, DV-019, DV-020, DV-025
    text = program(seed)
    try:
        _typed(text)
    except tvm.error.CompileError as error:
        pytest.fail(f"{error}\n{text}")
    _plan(text)
    _plan(text, "cuda")
    _run_both(text)


def test_device_copy_moves():  # DV-025
    mod = _plan(_main(f"on_device(negative(%x), device_type={EXT}, is_fixed=True)"))
    x = np.arange(4, dtype="float32")
    out = relay.create_executor("debug", mod=mod).evaluate()(x, x, x)
    assert out.device.device_type == EXT
    np.testing.assert_array_equal(out.numpy(), -x)


def test_what_cannot_run_says_so():
    x = np.arange(4, dtype="float32")
    mod = _plan(_main("multiply(on_device(add(%x, %y), device_type=2), %z)"))
    with pytest.raises(tvm.error.TVMError, match="cuda"):
        relay.create_executor("debug", mod=mod).evaluate()(x, x, x)
    unplanned = _typed(_main(f"add(device_copy(%x, src_dev_type=1, dst_dev_type={EXT}), %y)"))
    with pytest.raises(tvm.error.TVMError, match="planned by PlanDevices"):
        relay.create_executor("debug", mod=unplanned).evaluate()(x, x, x)


def test_build_with_a_target_for_each_device():
    from baton.contrib import graph_executor

    mod = relay.parse(_HEAD + _main(f"multiply(on_device(add(%x, %y), device_type={EXT}), %z)"))
    lib = relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
    run = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    args = [np.linspace(0, k, 4).astype("float32") for k in (1, 2, 3)]
    for name, value in zip("xyz", args, strict=True):
        run.set_input(name, value)
    run.run()
    np.testing.assert_array_equal(run.get_output(0).numpy(), (args[0] + args[1]) * args[2])
    with pytest.raises(tvm.error.TVMError, match="the target of opencl is `llvm`; its code is made by opencl"):
        relay.build(mod, target={"cpu": "llvm", "opencl": "llvm"})
    other = relay.parse(_HEAD + _main("multiply(on_device(add(%x, %y), device_type=2), %z)"))
    with pytest.raises(ValueError, match="for which no target is given"):
        relay.build(other, target={"cpu": "llvm", "ext_dev": "llvm"})


def test_build_asks_the_option_for_the_default_device():  # DV-017
    mod = relay.parse(_HEAD + _main("multiply(on_device(add(%x, %y), device_type=1), %z)"))
    with tvm.transform.PassContext(config={"relay.fallback_device_type": EXT}):
        lib = relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
        assert f"param_device_types=[1, 1, {EXT}], result_device_type={EXT}" in lib.get_source("relay")
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 2}), pytest.raises(ValueError, match="is 2, a device for which no target is given"):
        relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})


def test_constants_keep_their_annotation():  # CF-027, CF-028, TR-12
    text = _main("let %c = on_device(1f, device_type=2, is_fixed=True); add(%x, device_copy(%c, src_dev_type=2, dst_dev_type=1))")
    typed = _typed(text)
    tvm.ir.assert_structural_equal(relay.transform.FoldConstant()(typed), typed)
    folded = relay.transform.FoldConstant()(_typed(_main("add(%x, on_device(add(1f, 2f), device_type=2))")))
    call = folded["main"].body.args[1]
    assert call.op.name == "on_device" and call.args[0].data.numpy() == 3


def test_placement_report(tmp_path):
    path = tmp_path / "m.relay"
    path.write_text(_HEAD + "def @main(" + _XYZ + ") {\n  multiply(on_device(add(%x, %y), device_type=2), %z)\n}\n")

    def command(*more):
        return subprocess.run([sys.executable, "-m", "baton", "explain-placement", str(path), *more], capture_output=True, text=True, check=False)

    out = command()
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert any("m.relay:3:22: @main: add on cuda: on_device at" in line for line in lines)
    assert any("%z on cpu: nothing decides: the default device" in line for line in lines)
    assert lines[-1].endswith("on 1 (cpu)") and "copy of add from cuda to cpu, 16 bytes" in lines[-1]
    found = json.loads(command("--json", "--default", "cuda").stdout)
    assert found["copies"] == [] and {p["device"] for p in found["places"]} == {"cuda"}
    assert command("--default", "toaster").returncode == 2


def _untyped(mod):
    """Expressions of main without a type: operators and constructors have none of their own."""
    out = []

    def look(e):
        try:
            e.checked_type  # noqa: B018
        except ValueError:
            if not isinstance(e, (tvm.ir.Op, relay.Constructor)):
                out.append(e)

    relay.analysis.post_order_visit(mod["main"], look)
    return out


_TYPED = {
    "let and function": "let %f = fn (%n: int32) -> int32 { if (less(%n, 0)) { %n } else { %f(subtract(%n, multiply(1, 1))) } }; negative(multiply(%x, 1f))",
    "if": "if (less(sum(multiply(%x, 1f)), 1f)) { multiply(%x, 1f) } else { %y }",
    "match": "match ((multiply(%x, 1f), %y)) { (%a, %b) => { add(multiply(%a, 1f), %b) } }",
    "references": "let %r = ref(multiply(%x, 1f)); let %u = ref_write(%r, multiply(%y, 1f)); ref_read(%r)",
}


@pytest.mark.parametrize("name", ["FuseOps", "SimplifyExpr"])
@pytest.mark.parametrize("inner", _TYPED)
def test_passes_that_keep_types_leave_none_out(inner, name):
    """Inference trusts the parts of what has a type; PlanDevices takes what it finds."""
    typed = _typed(_main(f"exp({{ {_TYPED[inner]} }})"))
    new = relay.transform.InferType()(getattr(relay.transform, name)()(typed))
    assert not new.same_as(typed)
    assert _untyped(new) == []
    planned = relay.transform.PlanDevices()(new)
    assert relay.analysis.well_formed(planned) and _untyped(planned) == []


def test_deep_programs():
    x = relay.var("x", shape=(4,))
    e = x
    for i in range(20_000):
        e = relay.add(e, x)
        if i % 100 == 50:
            e = relay.on_device(e, 1 + i // 100 % 2)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], e)))
    planned = relay.transform.PlanDevices()(mod)
    assert relay.transform.PlanDevices("cuda")(planned).same_as(planned)


def test_deep_function_types():
    """A function that returns a function counts by the device of what that gives in the end."""
    x = relay.var("x", shape=(4,))
    e, depth = relay.on_device(relay.exp(x), 2), 20_000
    for i in range(depth):
        e = relay.Function([relay.var("y", shape=(2,))] if i % 2 else [], e)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], e)))
    planned = relay.transform.PlanDevices("cpu")(mod)
    function = planned["main"]
    for i in range(depth, -1, -1):
        assert function.attrs["result_device_type"] == 2
        assert len(function.attrs["param_device_types"]) == len(function.params)
        function = function.body if i else function
    assert relay.transform.PlanDevices("cuda")(planned).same_as(planned)


def test_functions_of_one_type_are_placed_apart():
    """Their types are one object; what they are unified with is not."""
    planned = _plan(_main(f"""let %f = fn (%a: {_T}) {{ on_device(exp(%a), device_type=2, is_fixed=True) }};
        let %g = fn (%a: {_T}) {{ on_device(tanh(%a), device_type=1, is_fixed=True) }};
        add(%f(%x), %g(%y))"""))  # fmt: skip
    f, g = planned["main"].body.value, planned["main"].body.body.value
    assert f.checked_type.same_as(g.checked_type)
    assert [f.attrs["result_device_type"], g.attrs["result_device_type"]] == [2, 1] and len(_copies(planned)) >= 1
    # One that stands for either is where both are.
    planned = relay.transform.PlanDevices("cpu")(_typed(_main(f"""let %f = fn (%a: {_T}) {{ on_device(exp(%a), device_type=2, is_fixed=True) }};
        let %g = fn (%a: {_T}) {{ tanh(%a) }};
        let %h = if (%c) {{ %f }} else {{ %g }};
        %h(%x)""", f"%c: bool, {_XYZ}")))  # fmt: skip
    f, g = planned["main"].body.value, planned["main"].body.body.value
    assert f.attrs["result_device_type"] == g.attrs["result_device_type"] == 2
