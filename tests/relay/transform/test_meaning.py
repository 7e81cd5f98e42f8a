# SPDX-License-Identifier: Apache-2.0
"""Golden programs mean the same before and after their passes: the interpreter runs both."""

import re
from pathlib import Path

import golden
import numpy as np
import pytest
from meaning import arguments, flat, results

import baton
from baton import relay
from baton.error import BatonError
from baton.guard import Checker

FILES = [golden.read(p) for p in sorted(Path(__file__).parent.glob("*.relay")) if golden.is_golden(p)]
CASES = {(file.path.stem, case.title): (file, case) for file in FILES for case in file.cases if case.kind != "error"}

# Those that compute in narrow types on purpose: a few roundings to 11 or 8 bits.
NARROW = {"widen_half_floats": 4e-3, "widen_half_floats_asked": 1e-2, "to_mixed_precision": 1e-2, "to_mixed_precision_known": 2e-2, "quantize_weights": 2e-2}
# Those whose integers may be off by one step of the result.
STEPS = {"fake_quantization_to_integer": 1}
# What an unknown extent is where 3 does not fit.
EXTENTS = {
    ("simplify_expr", "unknown extents: only what no extent decides"): 4,
    ("pack_dense", "rows that callers choose get their dimensions before the product"): 1,
}
# Parameters that are shapes.
SHAPES = {
    ("dynamic_to_static", "a value known at run time only"): {"s": [3, 2]},
    ("plan_devices", "a tensor is read under another shape where it lies, the shape on the host"): {"s": [2, 2]},
}
# Neither these nor what they become end.
ENDLESS = {
    ("inline", "recursion stays, and functions without the attribute"),
    ("to_a_normal_form", "what is in the form already"),
    ("to_graph_normal_form", "a function that calls itself needs its name"),
    ("remove_unused_functions", "all are used, in a circle too"),
}
_NO_CUDA = "device `cuda.*(is not available|does not exist on this machine)"
_NO_VM = "operator `memory.alloc_storage` cannot be run"
# What the interpreter cannot run after the pass, and what it says. The guard runs these (tests/python/guard/test_golden_programs.py).
UNABLE = {
    ("plan_devices", "storage lives where it says, its sizes on the host"): _NO_VM,
    ("plan_devices_again", "shapes and storage"): _NO_VM,
    ("plan_devices", "a kernel's result and arguments share a device in the virtual machine's form"): "a part of an expression is missing",
    ("decompose_ops", "what is fused already"): "no lowering for an operator of a primitive function",
    # A state is another parameter then: memory, and where its rows end. tests/python/open/test_state.py runs it.
    **{key: "input 2 `past`: expected Tensor" for key in CASES if key[0] == "state_to_buffers" and not key[1].startswith("without")},
    **{key: _NO_CUDA for key in CASES if key[0] == "plan_devices_several"},
}


def without_devices(part):
    """A program's part of a golden file with annotations that say no device: before it is planned it runs on one."""
    first, lines = part
    text = re.sub(r",? ?\b(device_type|src_dev_type|dst_dev_type|result_device_type)=\d+|,? ?is_fixed=True|,? ?param_device_types=\[[^]]*\]",
                  "", "\n".join(lines))  # fmt: skip
    return first, text.replace("device_copy(", "on_device(").split("\n")


def in_direct_style(mod):
    """A module whose main, if it takes a continuation, is given one that gives back what it gets."""
    func = mod["main"]
    if not func.type_params:
        return mod
    *params, last = [relay.Var(p.name_hint, p.checked_type) for p in func.params]
    (result,) = last.type_annotation.arg_types
    value, main = relay.Var("value", result), relay.GlobalVar("in_style")
    functions = dict(mod.functions.items())
    functions[main] = functions.pop(mod.get_global_var("main"))
    functions[relay.GlobalVar("main")] = relay.Function(params, relay.Call(main, [*params, relay.Function([value], value)], None, [result]))
    return relay.transform.InferType()(baton.IRModule(functions, dict(mod.type_definitions.items())))


def outcome(key, mod, args):
    """What a program gives, in a row. A gradient gives (value, gradients), of which this is the value."""
    out = results(mod, args)
    if key[0] in ("gradient", "first_order_gradient") and isinstance(out[0], str):
        assert out[0] == "tuple of 2"
        return out[1:2]
    return out


@pytest.mark.parametrize("key", CASES, ids="-".join)
def test_passes_keep_what_a_program_means(key):
    """AN-018: the result is equal, within the tolerance of another order of additions."""
    file, case = CASES[key]
    part = without_devices(case.first) if key[0].startswith("plan_devices") else case.first
    before = relay.transform.InferType()(golden.parse(file.path, part))
    after = relay.transform.InferType()(golden.run(file, golden.parse(file.path, case.first))[1])
    if key[0] in ("to_cps", "un_cps"):
        before, after = in_direct_style(before), in_direct_style(after)

    def args(seed=0):
        values = arguments(before["main"], seed, before, EXTENTS.get(key, 3))
        for i, p in enumerate(before["main"].params):
            if shape := SHAPES.get(key, {}).get(p.name_hint):
                values[i] = baton.nd.array(np.array(shape, p.checked_type.dtype))
        return values

    if key in ENDLESS:
        for mod in (before, after):
            assert "more than 200 calls" in Checker(max_calls=200).evaluate(mod["main"], args(), mod).error
        return
    if key in UNABLE:
        with pytest.raises(BatonError, match=UNABLE[key]):
            outcome(key, after, args())
        return
    for seed in range(4):  # branches go either way
        want, got = outcome(key, before, args(seed)), outcome(key, after, args(seed))
        assert [isinstance(x, str) and x for x in got] == [isinstance(x, str) and x for x in want], "the structure of the result"
        arrays = [(g, w) for g, w in zip(got, want, strict=True) if not isinstance(w, str)]
        for g, w in arrays:
            assert g.shape == w.shape and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=NARROW.get(key[0], 1e-4), atol=STEPS.get(key[0], 1e-5))
        # A result of nothing would be equal to any other.
        assert arrays or want == ["tuple of 0"] or len(want) > 1


def test_the_lists_name_what_there_is():
    assert set(EXTENTS) | set(SHAPES) | ENDLESS | set(UNABLE) <= set(CASES)
    assert set(NARROW) | set(STEPS) <= {stem for stem, _ in CASES}


def test_what_differs_is_found():
    """Arrays, structure, data, references and functions: each tells two values apart."""
    text = """#[version = "0.0.5"]
    type List[A] {{ Cons(A, List[A]), Nil, }}
    def @main(%x: float32, %r: ref(float32)) {{
      let %u = ref_write(%r, {});
      ((%x, {}), Cons({}, Nil), fn (%y: float32) -> float32 {{ {} }})
    }}"""
    first = ["1f", "2f", "3f", "add(%x, %y)"]
    programs = [text.format(*first)] + [text.format(*first[:i], other, *first[i + 1 :]) for i, other in enumerate(["4f", "4f", "4f", "%y"])]
    seen = []
    for program in programs:
        mod = relay.transform.InferType()(relay.parse(program))
        seen.append([x if isinstance(x, str) else x.tolist() for x in results(mod, arguments(mod["main"], mod=mod))])
    assert seen[0][1:3] == ["tuple of 2", seen[0][2]] and {"Cons", "Nil", "fn", "ref"} <= {x for x in seen[0] if isinstance(x, str)}
    assert all(other != seen[0] and len(other) == len(seen[0]) for other in seen[1:])
    with pytest.raises(TypeError, match="cannot be compared"):
        flat(object())
