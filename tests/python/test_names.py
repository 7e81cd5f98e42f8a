# SPDX-License-Identifier: Apache-2.0
"""The names that programs of Relay's time use, one line a module or class in names.txt and names_more.txt: `import baton as tvm` finds each of them."""

import importlib
from pathlib import Path

import pytest

import baton

HERE = Path(__file__).parent
ROWS = [line.split(": ") for file in ("names.txt", "names_more.txt") for line in (HERE / file).read_text(encoding="utf-8").splitlines()]
# Names that reach the same object, by whichever of them a program takes.
SAME = [
    "relay.const relay.op.const",
    "relay.TensorType relay.ty.TensorType ir.TensorType",
    "relay.add relay.op.add",
    "relay.Var relay.expr.Var",
    "relay.Call relay.expr.Call",
    "relay.Let relay.expr.Let",
    "relay.FuncType relay.ty.FuncType ir.FuncType",
    "relay.GlobalVar ir.GlobalVar",
    "relay.build relay.build_module.build",
    "relay.Match relay.adt.Match",
    "relay.ScopeBuilder relay.scope_builder.ScopeBuilder",
    "relay.TypeCall relay.ty.TypeCall",
    "relay.ExprMutator relay.expr_functor.ExprMutator",
    "relay.Span relay.base.Span",
    "relay.nn.conv2d relay.op.nn.conv2d",
    "IRModule ir.IRModule ir.module.IRModule",
    "cpu nd.cpu",
    "TVMError error.TVMError _ffi.base.TVMError",
    "register_func _ffi.register_func",
    "nd.array runtime.ndarray.array",
    "relay.op.annotation.compiler_begin relay.annotation.compiler_begin",
    "relay.op.get relay.op.op.get",
    "relay.vm.compile relay.backend.vm.compile",
    "relay.vm.VMCompiler relay.backend.vm.VMCompiler",
    "tir.Cast tir.expr.Cast",
    "topi.cast topi.math.cast",
    "te.max te.operation.max",
    "runtime.Module runtime.module.Module",
    "transform.PassContext ir.transform.PassContext",
    "relay.testing.enabled_targets testing.enabled_targets",
    "instrument.pass_instrument ir.instrument.pass_instrument",
]


def find(path):
    found = baton
    parts = path.split(".")
    for i, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(["baton", *parts[: i + 1]]))
    return found


def test_how_many_there_are():
    assert sum(len(names.split()) for _, names in ROWS) >= 1890


@pytest.mark.parametrize(("where", "names"), ROWS, ids=[f"{where} {names.split()[0]}" for where, names in ROWS])
def test_names(where, names):
    place = where.removeprefix("baton").lstrip(".")
    missing = []
    for name in names.split():
        try:
            find(f"{place}.{name}".lstrip("."))
        except (AttributeError, ImportError):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("row", SAME, ids=lambda row: row.split()[0])
def test_names_of_one_thing(row):
    first, *others = (find(path) for path in row.split())
    assert all(other is first for other in others)
