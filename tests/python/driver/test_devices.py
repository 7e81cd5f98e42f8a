# SPDX-License-Identifier: Apache-2.0
"""Parts of a program for several devices are optimised for their device, as a model for it is."""

import re
import time

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor

_EXT = tvm.device("ext_dev")
_BOTH = {"cpu": "llvm", "ext_dev": "llvm"}


def _net(end):
    """Convolutions with batch norms, a product; `end` is what follows."""
    rng = np.random.default_rng(1)
    params = {}

    def param(name, *shape):
        params[name] = rng.uniform(0.1, 0.5, shape).astype("float32") / np.prod(shape[1:], dtype=int) ** 0.5
        return relay.var(name, shape=shape)

    x = y = relay.var("x", shape=(1, 32, 28, 28))
    for i in range(3):
        y = relay.nn.conv2d(y, param(f"w{i}", 32, 32, 3, 3), padding=(1, 1))
        y = relay.nn.relu(relay.nn.batch_norm(y, *(param(f"{n}{i}", 32) for n in ("gamma", "beta", "mean", "variance")))[0])
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.avg_pool2d(y, pool_size=(7, 7), strides=(7, 7))), param("d", 64, 512))
    y = end(y)
    return tvm.IRModule.from_expr(relay.Function([x, *(p for p in relay.analysis.free_vars(y) if p.name_hint != "x")], y)), params


def _operators(text):
    """The operators of all kernels in Relay text, in order; copies and annotations left out."""
    return [m for m in re.findall(r"(?:= |\{ ?|^ +)([a-z_0-9.]+)\(", text, re.MULTILINE) if m not in ("device_copy", "on_device")]


def _on(device):
    return lambda y: relay.annotation.on_device(relay.exp(relay.annotation.on_device(y, tvm.cpu())), device, is_fixed=True)


def _build(mod, target, params):
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target, params=params)


def _model(lib, *devices):
    return graph_executor.GraphModule(lib["default"](*devices))


def test_scales_are_folded_and_weights_packed_on_each_device():
    mod, params = _net(_on(_EXT))
    plain, _ = _net(relay.exp)
    one, two = _build(plain, "llvm", params), _build(mod, _BOTH, params)
    text = two.get_source("relay")
    regions = text[text.index("@baton_region_0") : text.index("#[metadata]")]
    assert re.search(r"conv2d_NCHWc\(.*data_layout=\"NCHW\d+c\"", regions) and "dense_pack" in regions, regions
    assert "nn.batch_norm" not in regions and "multiply" not in _operators(regions)
    # The operators of all regions are those of a model for one device.
    assert sorted(_operators(regions)) == sorted(_operators(one.get_source("relay")))
    x = np.random.default_rng(0).standard_normal((1, 32, 28, 28), dtype="float32")
    results = []
    for model in (_model(one, tvm.cpu()), _model(two, tvm.cpu(), _EXT)):
        model.run(x=x)
        results.append(model.get_output(0))
    assert results[1].device == _EXT
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-6)


@pytest.mark.slow
def test_a_part_is_as_fast_as_a_model():
    mod, params = _net(_on(_EXT))
    plain, _ = _net(relay.exp)
    one = _model(_build(plain, "llvm", params), tvm.cpu())
    two = _model(_build(mod, _BOTH, params), tvm.cpu(), _EXT)
    x = np.random.default_rng(0).standard_normal((1, 32, 28, 28), dtype="float32")
    best = {}
    for _ in range(60):  # side by side: the machine is shared
        for name, model in (("one", one), ("two", two)):
            model.set_input("x", x)
            begin = time.perf_counter()
            model.run()
            best[name] = min(best.get(name, 1), time.perf_counter() - begin)
    assert best["two"] <= 1.15 * best["one"] + 2e-5, best


def test_equal_weights_are_kept_once():
    """A constant that several regions read is in the artifact once."""
    x = relay.var("x", shape=(1, 64))
    w = relay.const(np.ones((64, 64), "float32"))
    y = relay.annotation.on_device(relay.add(relay.sum(relay.var("k", shape=(64, 64)) * w, axis=0, keepdims=True), x), tvm.cpu())
    y = relay.annotation.on_device(relay.exp(y), _EXT)
    y = relay.annotation.on_device(relay.add(relay.sum(relay.var("l", shape=(64, 64)) * w, axis=0, keepdims=True), y), tvm.cpu(), is_fixed=True)
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y))
    model = relay.build(mod, target=_BOTH)["default"](tvm.cpu(), _EXT)
    assert int(model["get_memory"]()[0]) < 2 * 64 * 64 * 4


def test_results_share_no_memory_with_inputs_and_are_not_written_again():
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x, relay.annotation.on_device(relay.negative(x), _EXT), relay.reshape(x, (2, 2))])))
    model = _model(relay.build(mod, target=_BOTH), tvm.cpu(), _EXT)
    model.set_input("x", np.arange(4, dtype="float32"))
    model.run()
    first = [model.get_output(i) for i in range(3)]
    want = [a.numpy().copy() for a in first]
    model.get_input("x").copyfrom(np.full(4, 7, "float32"))
    model.run()
    for a, b in zip(first, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(model.get_output(1).numpy(), np.full(4, -7, "float32"))


def test_work_of_a_device_stands_together():
    """Alternating operators without dependencies become one region a device."""
    xs = [relay.var(f"x{i}", shape=(8,)) for i in range(6)]
    rows = [relay.annotation.on_device(relay.tanh(relay.exp(x)), (tvm.cpu(), _EXT)[i % 2]) for i, x in enumerate(xs)]
    body = relay.annotation.on_device(relay.concatenate(relay.Tuple(rows), 0), tvm.cpu(), is_fixed=True)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function(xs, body)), target=_BOTH)
    text = lib.get_source("vm")
    assert len(re.findall(r"kernel baton_region", text)) == 3 and len(re.findall(r": copy ", text)) == 3, text


def test_an_artifact_of_an_earlier_version(tmp_path):
    """A list of steps for devices, which the runtime no longer runs: said when the file is loaded."""
    import hashlib
    import struct

    x = relay.var("x", shape=(4,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.annotation.on_device(relay.exp(x), _EXT, is_fixed=True))), target=_BOTH)
    lib.export_library(tmp_path / "m.so")
    data = (tmp_path / "m.so").read_bytes()
    assert tvm.runtime.load_module(tmp_path / "m.so").get_source("json").count('{\\"devices\\"') == 1
    tail = 8 * 4 + 8 + 32 + 8
    constants_at, constants, at, size, version, zero = struct.unpack("<QQQQII", data[-tail : -tail + 40])
    manifest = data[at : at + size]
    old = manifest.replace(b'\\"entries\\"', b'\\"steps\\":[],\\"entries\\"')
    assert old != manifest
    digest = hashlib.sha256(manifest).digest()
    # Code of that version knew its manifest and not yet the numbers of its entry.
    body = data[:at].replace(digest, hashlib.sha256(old).digest()).replace(b"baton_entry_numbers", b"baton_entry_was_not") + old
    body += struct.pack("<QQQQII", constants_at, constants, at, len(old), version, zero)
    (tmp_path / "old.so").write_bytes(body + hashlib.sha256(body).digest() + data[-8:])
    with pytest.raises(tvm.error.TVMError, match="compiled by an earlier version, for its devices; compile it anew"):
        tvm.runtime.load_module(tmp_path / "old.so")
