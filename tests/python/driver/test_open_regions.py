# SPDX-License-Identifier: Apache-2.0
"""Regions with open dimensions for code generators of others: those that say that they take them, and those that do not."""

import json
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay
from baton.runtime.vm import VirtualMachine

LOADER = '''
import json, baton

@baton.register_func("runtime.module.loadbinary_opener", override=True)
def load(data):
    """Writes the sum of all arguments' elements, and the number of the result's, into each result."""
    said = json.loads(bytes(data))
    def run(*arrays):
        inputs, outputs = arrays[: said["inputs"]], arrays[said["inputs"] :]
        for out in outputs:
            value = out.numpy()
            value[...] = sum(float(a.numpy().sum()) for a in inputs) + value.size
            out.copyfrom(value)
    return baton.runtime.create_module("opener", {said["symbol"]: run}, binary=bytes(data))
'''
exec(LOADER)  # noqa: S102 - the very text that another process runs
load = globals()["load"]


@pytest.fixture
def opener():
    """The functions that the generator got."""
    got = []

    def generate(func):
        got.append(func)
        return load(json.dumps({"symbol": str(func.attrs["global_symbol"]), "inputs": len(func.params)}).encode())

    baton.register_func("relay.ext.opener", generate, override=True)
    baton.register_func("relay.ext.opener.open_shapes", lambda func: True, override=True)
    yield got
    for name in ("relay.ext.opener", "relay.ext.opener.open_shapes"):
        if baton.get_global_func(name, True):
            baton._ffi.registry.remove_global_func(name)


def begin(value):
    return relay.annotation.compiler_begin(value, "opener")


def end(value):
    return relay.annotation.compiler_end(value, "opener")


def partitioned(params, body):
    return relay.transform.PartitionGraph()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body))))


def rows():
    """exp(x) to the generator, which makes two columns of each of x's, and 1 more."""
    x = relay.var("x", shape=(relay.Any(), 4))
    inside = begin(relay.exp(x))
    return partitioned([x], relay.add(end(relay.concatenate([inside, inside], axis=1)), relay.const(1.0)))


def expected(x):
    return np.full((x.shape[0], 8), np.exp(x).sum() + x.shape[0] * 8 + 1, "float32")


@pytest.mark.parametrize("how", ["compile", "vm", "saved"])
def test_one_module_for_all_lengths(opener, tmp_path, how):
    mod = rows()
    if how == "vm":
        machine = VirtualMachine(relay.vm.compile(mod, "llvm"), baton.cpu())
        run = lambda x: machine.invoke("main", x)  # noqa: E731
    else:
        run = baton.compile(mod)
    if how == "saved":
        run.save(tmp_path / "m.so")
        run = baton.load(tmp_path / "m.so")
    for n in (3, 1, 100, 3):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype("float32")
        np.testing.assert_allclose(run(x).numpy(), expected(x), rtol=1e-5)
    (func,) = opener
    assert not isinstance(func.params[0].checked_type.shape[0], int) and "Tensor[(?, 8), float32]" in str(func.ret_type)


def test_the_runtime_alone_runs_them(opener, tmp_path):
    baton.compile(rows()).save(tmp_path / "m.so")
    text = f"{LOADER}\nimport numpy as np\nm = baton.load({str(tmp_path / 'm.so')!r})\nfor n in (2, 7):\n    print(m(np.zeros((n, 4), 'float32')).numpy().tolist())"
    text += "\nfrom baton._ffi import compiler_loaded\nassert not compiler_loaded()"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected(np.zeros((n, 4), "float32")).tolist() for n in (2, 7)]


def test_lengths_that_follow_from_others(opener):
    """Windows, broadcasts of two open lengths, and two results."""
    x, w = relay.var("x", shape=(1, 3, relay.Any(), relay.Any())), relay.var("w", shape=(4, 3, 3, 3))
    model = baton.compile(partitioned([x, w], relay.nn.relu(end(relay.nn.conv2d(begin(x), begin(w), strides=(2, 2), padding=(1, 1))))))
    for h, wide in ((7, 8), (1, 33)):
        assert model(np.ones((1, 3, h, wide), "float32"), np.ones((4, 3, 3, 3), "float32")).shape == (1, 4, (h + 1) // 2, (wide + 1) // 2)
    a, b = (relay.var(n, shape=(relay.Any(), 2)) for n in "ab")
    model = baton.compile(partitioned([a, b], end(relay.add(begin(a), begin(b)))))
    for n, m in ((3, 3), (1, 3), (3, 1)):
        np.testing.assert_array_equal(model(np.ones((n, 2), "float32"), np.ones((m, 2), "float32")).numpy(), np.full((3, 2), 2 * (n + m) + 6))
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32]) { @r(%x) }
def @r(%y: Tensor[(?, 4), float32], Primitive=1, Compiler="opener", global_symbol="r") { (nn.relu(%y), transpose(%y)) }
"""
    assert [o.shape for o in baton.compile(relay.fromtext(text))(np.ones((3, 4), "float32"))] == [(3, 4), (4, 3)]


def test_a_length_that_is_said_when_it_is_compiled(opener):
    model = baton.compile(rows(), shape={"x": (5, 4)})
    x = np.ones((5, 4), "float32")
    np.testing.assert_allclose(model(x).numpy(), expected(x), rtol=1e-5)
    with pytest.raises(ValueError, match="has shape"):
        model(np.ones((6, 4), "float32"))


def explained(mod, tmp_path, capsys):
    from baton.cli import main

    (tmp_path / "m.relay").write_text(mod.astext())
    assert main(["explain-placement", str(tmp_path / "m.relay")]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("says", ["nothing", "no"])
def test_a_generator_that_takes_known_shapes_alone(opener, tmp_path, capsys, says):
    """The region is computed by the own kernels; a warning and the command say so."""
    baton._ffi.registry.remove_global_func("relay.ext.opener.open_shapes")
    if says == "no":
        baton.register_func("relay.ext.opener.open_shapes", lambda func: False)
    why = r"`relay\.ext\.opener` takes tensors of known shapes, not Tensor\[\(\?, 4\), float32\]"
    with pytest.warns(UserWarning, match=why + ".*Baton's own kernels compute 1 function"):
        model = baton.compile(rows())
    assert not opener
    x = np.ones((3, 4), "float32")
    np.testing.assert_allclose(model(x).numpy(), np.exp(np.ones((3, 8), "float32")) + 1, rtol=1e-6)
    said = explained(rows(), tmp_path, capsys)
    assert "@tvmgen_default_opener_main_0: for opener: `relay.ext.opener` takes tensors of known shapes, not Tensor[(?, 4), float32]" in said
    assert "Baton's own kernels compute it" in said


def test_a_result_whose_shape_depends_on_values(opener, tmp_path, capsys):
    x = relay.var("x", shape=(relay.Any(),))
    mod = partitioned([x], end(relay.argwhere(begin(x))))
    with pytest.warns(UserWarning, match="the shape of a result depends on values, which a region cannot give: Baton's own kernels compute 1"):
        model = baton.compile(mod)
    np.testing.assert_array_equal(model(np.array([1, 0, 2], "float32")).numpy(), [[0], [2]])
    assert "the shape of a result depends on values" in explained(mod, tmp_path, capsys)


def test_an_answer_that_fails_is_an_error(opener):
    baton.register_func("relay.ext.opener.open_shapes", lambda func: {}[0], override=True)
    with pytest.raises(baton.CompileError, match=r"relay\.ext\.opener\.open_shapes failed: KeyError: 0"):
        baton.compile(rows())
