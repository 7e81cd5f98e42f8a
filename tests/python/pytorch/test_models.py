# SPDX-License-Identifier: Apache-2.0
"""Whole models through each door, equal to eager."""

import copy
import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton as tvm  # noqa: E402
from baton.contrib import torch as door  # noqa: E402


def beside(path):
    """A file of Python as a module."""
    spec = importlib.util.spec_from_file_location("torch_" + path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


MODELS = beside(Path(__file__).with_name("models.py")).MODELS


pytestmark = pytest.mark.usefixtures("fresh")


def flat(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def close(got, want):
    torch.testing.assert_close(flat(got), flat(want), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_exported(name):
    module, args = MODELS[name]()
    module.eval()
    model = tvm.compile(torch.export.export(module, args))
    close([torch.from_dlpack(v) for v in flat(model(*args))], module(*args))


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("lstm", "gru", "rnn")])  # Dynamo takes no recurrent layers
def test_compiled(name):
    module, args = MODELS[name]()
    module.eval()
    with torch.no_grad():
        fast = torch.compile(module, backend="baton", fullgraph=True, options={"fallback": "error"})
        close(fast(*args), module(*args))


@pytest.mark.parametrize("name", ["resnet", "vit", "bert", "gpt2", "llama", "unet"])
def test_training(name):
    """Five steps of Adam: the losses of eager."""
    module, args = MODELS[name]()
    for layer in module.modules():  # random numbers of a dropout would differ between the two runs
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
        if isinstance(layer, torch.nn.MultiheadAttention):
            layer.dropout = 0.0
    twin = copy.deepcopy(module)
    fast = torch.compile(twin, backend="baton", fullgraph=True, options={"fallback": "error"})
    steps = [torch.optim.Adam(m.parameters(), lr=1e-3) for m in (module, twin)]
    for _ in range(5):
        losses = [sum((o.float() ** 2).mean() for o in flat(m(*args))) for m in (module, fast)]
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
        for step, loss in zip(steps, losses, strict=True):
            step.zero_grad()
            loss.backward()
            step.step()


@pytest.mark.parametrize(
    "name, dims", [("bert", {0: "batch", 1: "length"}), ("gpt2", {0: "batch", 1: "length"}), ("resnet", {0: "batch"}), ("vit", {0: "batch"})]
)
def test_one_compilation_serves_all_sizes(name, dims):
    module, args = MODELS[name]()
    module.eval()
    open_dims = {axis: torch.export.Dim(label, min=1, max=64) for axis, label in dims.items()}
    model = tvm.compile(torch.export.export(module, args, dynamic_shapes=tuple(open_dims for _ in args)))
    for sizes in ((1, 1), (1, 7), (3, 12), (4, 2)):
        given = []
        for arg in args:
            for (axis, _), size in zip(dims.items(), sizes, strict=False):
                arg = torch.cat([arg] * 8, axis).narrow(axis, 0, size)
            given.append(arg.contiguous())
        close([torch.from_dlpack(v) for v in flat(model(*given))], module(*given))


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_sixteen_sizes_are_two_compilations(name, freeze):
    """The first call's, and one for all others."""
    module, (words, *rest) = MODELS[name]()
    module.eval()
    door.reset()
    fast = torch.compile(module, backend="baton", options={"fallback": "error", "freeze": freeze})
    with torch.no_grad():
        for batch, length in [(2, 3), (3, 7), *((b, n) for b in (2, 4, 5, 8) for n in (2, 5, 9, 12))][:16]:
            given = [torch.cat([torch.cat([x] * 8, 0)] * 8, 1)[:batch, :length].contiguous() for x in (words, *rest)]
            close([fast(*given)], [module(*given)])
    assert len(door.report()) == 2


def test_a_decoder_keeps_its_cache_open():
    module, args = MODELS["llama"]()
    module.eval()
    length, past = torch.export.Dim("length", min=1, max=64), torch.export.Dim("past", min=0, max=256)
    model = tvm.compile(torch.export.export(module, args, dynamic_shapes=({1: length}, {2: past}, {2: past})))
    k, v = torch.empty(2, 2, 0, 8), torch.empty(2, 2, 0, 8)
    for n in (4, 1, 1, 3):
        x = torch.randn(2, n, 32)
        want = module(x, k, v)
        got = [torch.from_dlpack(t) for t in model(x, k, v)]
        close(got, want)
        k, v = got[1:]
