# SPDX-License-Identifier: Apache-2.0
"""Operators of the tables of `tests/relay/op` as WGSL on a device: each row that becomes one function of WGSL gives what its row says."""

import importlib
import json
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from kernel_texts import head_of  # the folder is on the path by conftest.py
from test_wgsl_source import adapter_or_why, run

import baton
from baton import relay

TABLES = Path(__file__).parents[2] / "relay" / "op"


def rows():
    """(label, row, attributes) of all tables."""
    sys.path.insert(0, str(TABLES))
    cases = importlib.import_module("cases")
    for path in sorted(TABLES.glob("test_*.py")):
        for test in vars(importlib.import_module(path.stem)).values():
            for mark in getattr(test, "pytestmark", ()) if hasattr(test, "rows") else ():
                for p in mark.args[1]:
                    if isinstance(p.values[0], cases.Case):
                        yield p.id, *p.values


class OneDevice:
    """An adapter that gives a device for the same features again."""

    def __init__(self, adapter):
        self.adapter, self.devices = adapter, {}

    def request_device_sync(self, required_features=()):
        key = tuple(required_features)
        if key not in self.devices:
            self.devices[key] = self.adapter.request_device_sync(required_features=list(key), required_limits={"max-storage-buffers-per-shader-stage": 16})
        return self.devices[key]


def function_of(case, attrs):
    """(the text of a row's only function, its arguments in order, the wanted result), or why there is none."""
    from cases import call

    rng = np.random.default_rng(zlib.crc32(case.op.encode()))

    def draw(i):
        return [draw(x) for x in i] if isinstance(i, list) else i(rng)

    arrays = [draw(i) for i in case.inputs]
    with np.errstate(all="ignore"):
        want = case.value(*arrays, **attrs)
    expr, variables, values = call(case.op, arrays, attrs, case.constant)
    try:
        lib = relay.build(baton.IRModule.from_expr(relay.Function(variables, expr)), target="webgpu")
    except baton.error.UnsupportedError:
        return "types that WGSL lacks, or vectors"
    program = json.loads(json.loads(lib.get_source("json"))["program"])
    text = next((d[3] for d in program["devices"] if d[0] == 15), "")
    functions = head_of(text, "webgpu")["functions"] if text else []
    kernels = program["kernels"]
    if len(functions) != 1 or len(kernels) != 1 or len(kernels[0]["steps"]) != 1 or program["constants"] or isinstance(want, (list, tuple)):
        return "not one function"
    (_, _, _, *places), want = kernels[0]["steps"][0], np.asarray(want)
    names = [v.name_hint for v in variables]
    ins = [values[names.index(i[0])].numpy() for i in kernels[0]["inputs"]]
    given = [n for place, n in places]
    if any(place for place, _ in places) or sorted(given) != list(range(len(ins) + 1)) or given[-1] != len(ins) or not all(a.size for a in [*ins, want]):
        return "not of its arguments alone"
    return text, [ins[n] for n in given[:-1]], want


@pytest.mark.slow
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_rows_of_tables(every):
    adapter, why = adapter_or_why()
    if why:
        pytest.skip(why)
    device, seen, wrong = OneDevice(adapter), Counter(), []
    for n, (label, case, attrs) in enumerate(rows()):
        if n % every:
            continue
        made = function_of(case, attrs)
        if isinstance(made, str):
            seen[made] += 1
            continue
        text, ins, want = made
        half = want.dtype == "float16"
        got = run(device, text, *ins, np.zeros(want.shape, want.dtype))
        close = (4e-3, 2e-3) if half else (max(case.rtol or 0, 2e-5), max(case.atol, 2e-6))
        fine = np.allclose(got, want, *close, equal_nan=True) if want.dtype.kind == "f" else np.array_equal(got, want)
        seen["ran"] += 1
        if not fine:
            wrong.append(label)
    assert not wrong, (len(wrong), wrong[:20], seen)
    assert seen["ran"] > 1000 // every, seen
