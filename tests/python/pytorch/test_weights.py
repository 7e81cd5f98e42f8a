# SPDX-License-Identifier: Apache-2.0
"""Weights of `torch.compile(backend="baton")`: arguments that are packed once, and again when they change."""

import copy
import gc

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from baton._ffi import get_global_func  # noqa: E402
from baton.contrib import torch as door  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh(fresh):
    door.reset()


class Net(torch.nn.Module):
    """A convolution and a layer that are packed (64 KB and more), and small weights that are not."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(64, 64, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(64)
        self.head = torch.nn.Linear(64, 512)
        self.last = torch.nn.Linear(512, 3)

    def forward(self, x):
        return self.last(torch.relu(self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))))


X = (2, 64, 8, 8)


def compiled(module, **options):
    return torch.compile(module, backend="baton", fullgraph=True, options={"fallback": "error", **options})


def same(fast, module, x):
    torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


def packed():
    return [g.packed for g in door.report()]


def test_weights_are_packed_once():
    module, x = Net().eval(), torch.randn(X)
    fast = compiled(module)
    with torch.no_grad():
        for _ in range(4):
            same(fast, module, x)
    assert packed() == [1]
    assert "2 weights packed 1 times" in str(door.report())


def test_an_optimizer_step_packs_again():
    module, x = Net(), torch.randn(X)
    fast = compiled(module)
    step = torch.optim.SGD(module.parameters(), lr=0.1)
    for round_ in range(3):
        module.eval()
        with torch.no_grad():
            same(fast, module, x)
            same(fast, module, x)
        (inference,) = [g for g in door.report() if g.kind == "inference"]
        assert inference.packed == round_ + 1
        module.train()
        step.zero_grad()
        module(x).square().mean().backward()
        step.step()


CHANGES = {
    "in place": lambda w: w.mul_(2),
    "data": lambda w: w.data.mul_(2),
    "other storage": lambda w: setattr(w, "data", w.data * 2),
    "NumPy": lambda w: w.detach().numpy().__imul__(2),
    "zeros": lambda w: w.zero_(),
    "ones": lambda w: w.fill_(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_way_to_change_a_weight_is_seen(change):
    module, x = Net().eval(), torch.randn(X)
    fast = compiled(module)
    with torch.no_grad():
        same(fast, module, x)
        for weight in (module.head.weight, module.conv.weight, module.last.weight, module.head.bias):
            CHANGES[change](weight)
            same(fast, module, x)


def test_values_of_weights_are_not_built_into_the_code():
    module, x = Net().eval(), torch.randn(X)
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()
        fast = compiled(module)
        same(fast, module, x)
        for weight in module.parameters():
            weight.normal_()
        torch.testing.assert_close(fast(x), module(x), rtol=1e-3, atol=1e-2)


def test_modules_that_share_code_have_their_own_weights():
    @torch.compile(backend="baton", fullgraph=True)
    def call(module, x):
        return module(x)

    one, other, x = Net().eval(), Net().eval(), torch.randn(X)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(call(one, x), one(x), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(call(other, x), other(x), rtol=1e-4, atol=1e-5)


def test_a_module_that_takes_the_place_of_another():
    weights = [torch.randn(512, 64) for _ in range(6)]
    fast = torch.compile(torch.nn.functional.linear, backend="baton")
    layer = torch.nn.Linear(64, 512, bias=False)
    run = torch.compile(layer, backend="baton")
    x = torch.randn(3, 64)
    with torch.no_grad():
        for w in weights:
            layer.weight = torch.nn.Parameter(w)
            gc.collect()
            torch.testing.assert_close(run(x), layer(x))
            torch.testing.assert_close(fast(x, w), x @ w.T)


def test_weights_that_change_from_call_to_call_stay_arguments():
    module, x = Net().eval(), torch.randn(X)
    fast = compiled(module)
    with torch.no_grad():
        for _ in range(8):
            module.head.weight.add_(0.01)
            same(fast, module, x)
        assert packed()[0] <= 4
        for _ in range(3):
            same(fast, module, x)
    assert packed()[0] <= 5


def test_open_batches_and_tied_weights():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(256, 256, bias=False)
            self.two = torch.nn.Linear(256, 256, bias=False)
            self.two.weight = self.one.weight
            self.table = torch.nn.Embedding(100, 256)
            self.out = torch.nn.Linear(256, 100, bias=False)
            self.out.weight = self.table.weight

        def forward(self, ids):
            return self.out(torch.relu(self.two(torch.relu(self.one(self.table(ids))))))

    module = Tied().eval()
    fast = compiled(module)
    with torch.no_grad():
        for n in (2, 3, 5, 7):
            same(fast, module, torch.arange(n))
            module.one.weight.mul_(0.9)
            module.table.weight.mul_(0.9)
    assert len(packed()) == 2


def test_frozen_weights_are_constants():
    module, x = Net().eval(), torch.randn(X)
    fast = compiled(module, freeze=True)
    with torch.no_grad():
        same(fast, module, x)
    assert packed() == [0]


def test_weights_made_in_inference_mode():
    with torch.inference_mode():
        module = Net().eval()
        x = torch.randn(X)
        fast = compiled(module)
        same(fast, module, x)
        module.head.weight.mul_(2)
        same(fast, module, x)


def test_a_copy_has_weights_of_its_own():
    module, x = Net().eval(), torch.randn(X)
    fast = compiled(module)
    with torch.no_grad():
        same(fast, module, x)
        twin = copy.deepcopy(module)
        twin.head.weight.mul_(3)
        same(compiled(twin), twin, x)
        same(fast, module, x)


def test_the_number_of_threads():
    threads = get_global_func("driver.NumThreads")
    before = threads()
    try:
        compiled(lambda x: x + 1, threads=1)(torch.ones(3))
        assert threads() == 1
    finally:
        get_global_func("driver.SetNumThreads")(0)
    assert threads() == before


OPTIONS = [
    ({"fallbak": 1}, r"no option 'fallbak' \(did you mean 'fallback'\?\); it has config, fallback, freeze, opt_level, precision, target, threads"),
    ({"fallback": "never"}, 'option fallback is \'never\'; it is "eager" or "error"'),
    ({"freeze": "yes"}, "option freeze is 'yes'; it is True or False"),
    ({"precision": "bfloat16"}, 'precision is "bfloat16"; it is "exact", "bf16" or "f16"'),
    ({"precision": "bf16", "config": {"precision": "f16"}}, "precision is 'bf16' and config says 'f16'; say it once"),
    ({"threads": 0}, "option threads is 0; it is a number from 1 to 1024"),
    ({"threads": True}, "option threads is True"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_are_checked(options, message):
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: x + 1, backend="baton", options=options)(torch.ones(2))
