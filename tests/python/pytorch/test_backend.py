# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(backend="baton")`: inference, training, open shapes, what stays with PyTorch, and hard arguments."""

import copy
import threading
import warnings
from pathlib import Path

import pytest
import tomllib

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton as tvm  # noqa: E402
from baton.contrib import torch as door  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    door.register()
    door.reset()
    yield
    torch._dynamo.reset()


def compiled(function, **options):
    return torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error", **options})


def same(function, *args, **options):
    got, want = compiled(function, **options)(*args), function(*args)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    return got


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


def test_the_entry_point_names_the_backend():
    with open(ROOT / "pyproject.toml", "rb") as file:
        points = tomllib.load(file)["project"]["entry-points"]["torch_dynamo_backends"]
    module, _, name = points["baton"].partition(":")
    import importlib

    assert getattr(importlib.import_module(module), name) is torch._dynamo.lookup_backend("baton")
    assert "baton" in torch._dynamo.list_backends(None)


@pytest.mark.parametrize("freeze", [False, True])
def test_inference_and_more_shapes(freeze):
    module = Small().eval()
    with torch.no_grad():
        fast = compiled(module, freeze=freeze)
        for n in (2, 3, 4, 5, 6):
            x = torch.randn(n, 3, 16, 16)
            torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
    assert [g.kind for g in door.report()] == ["inference", "inference"], door.report()  # the second one has an open batch
    assert sum(g.calls for g in door.report()) == 5


def test_changed_weights_are_seen():
    module = Small().eval()
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        fast, frozen = compiled(module), compiled(module, freeze=True)
        before = frozen(x)
        torch.testing.assert_close(fast(x), before)
        module.head.bias.add_(1)
        torch.testing.assert_close(fast(x), before + 1)
        torch.testing.assert_close(frozen(x), before)


def test_freezing_is_for_inference():
    with pytest.raises(Exception, match="freeze=True is for inference"):
        compiled(Small(), freeze=True)(torch.randn(2, 3, 16, 16))


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training(optimizer):
    import copy

    module = Small().train()
    twin = copy.deepcopy(module)
    fast = compiled(twin)
    steps = [getattr(torch.optim, optimizer)(m.parameters(), lr=1e-2) for m in (module, twin)]
    for _ in range(6):
        x, want = torch.randn(4, 3, 16, 16), torch.randn(4, 5)
        losses = [((m(x) - want) ** 2).mean() for m in (module, fast)]
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
        for step, loss in zip(steps, losses, strict=True):
            step.zero_grad()
            loss.backward()
            step.step()
    torch.testing.assert_close(twin.norm.running_var, module.norm.running_var, rtol=1e-4, atol=1e-5)
    assert int(twin.norm.num_batches_tracked) == 6
    assert {g.kind for g in door.report()} == {"forward", "backward"}


def test_training_with_other_batches():
    import copy

    module = Small().train()
    twin = copy.deepcopy(module)
    fast = compiled(twin)
    steps = [torch.optim.SGD(m.parameters(), lr=1e-2) for m in (module, twin)]
    for n in (4, 3, 5, 7):
        x, labels = torch.randn(n, 3, 16, 16), torch.randint(0, 5, (n,))
        losses = [torch.nn.functional.cross_entropy(m(x), labels) for m in (module, fast)]
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
        for step, loss in zip(steps, losses, strict=True):
            step.zero_grad()
            loss.backward()
            step.step()
    torch.testing.assert_close(twin.norm.running_var, module.norm.running_var, rtol=1e-4, atol=1e-5)
    assert len(door.report()) == 4  # forward and backward for the first batch, and for all others


@pytest.mark.filterwarnings("ignore:Baton leaves")
def test_training_where_all_sizes_are_open():
    """A part of the graph behind an operator that stays with PyTorch knows sizes as formulas alone."""
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64, 3)
    )
    twin = copy.deepcopy(module)
    fast = torch.compile(module, backend="baton", dynamic=True)
    for rows in (4, 6):
        x = torch.randn(rows, 1, 8, 8)
        for net, run in ((module, fast), (twin, twin)):
            net.zero_grad()
            (run(x) ** 2).mean().backward()
        for ours, theirs in zip(module.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def test_what_has_no_rule_stays_with_pytorch():
    def function(x):
        q = torch.linalg.eigh(x @ x.T)[1].abs()
        return torch.sin(q) + torch.relu(x[0]), x.shape[0]

    fast = torch.compile(function, backend="baton")
    x = torch.randn(3, 3)
    with pytest.warns(UserWarning, match=r"Baton leaves 1 of \d+ operators of a graph to PyTorch: aten._linalg_eigh.default at .*test_backend.py:\d+"):
        got = fast(x)
    torch.testing.assert_close(got[0], function(x)[0])
    (graph,) = door.report()
    assert graph.parts >= 1 and [name for name, _, _ in graph.left] == ["aten._linalg_eigh.default"]
    assert "left to PyTorch: aten._linalg_eigh.default" in str(tvm.torch.report())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(x)  # warned once


def test_the_report_tells_shares_of_time_and_copies():
    def function(x, y):
        return torch.relu(torch.linalg.eigh(x @ x.T)[1].abs()) * 2 + torch.linalg.eigh(y + y.T)[1].abs()

    x, y = torch.randn(64, 64), torch.randn(64, 64).t()
    fast = torch.compile(function, backend="baton")
    with pytest.warns(UserWarning, match="leaves 2 of"):
        torch.testing.assert_close(fast(x, y), function(x, y), rtol=1e-3, atol=1e-3)
    (report,) = door.report()
    assert len(report.left_seconds) == 2 and all(s > 0 for s in report.left_seconds)
    assert sorted(report.shares) == ["aten._linalg_eigh.default", "compiled"] and sum(report.shares.values()) == pytest.approx(1)
    assert all(0 < share < 1 for share in report.shares.values())
    copied = [count for _, count in report.copies]
    assert 64 * 64 * 4 in copied
    text = str(report)
    assert "copied in each call: " in text and "% of the time" in text and text.splitlines()[-1].startswith("  compiled: ")


def test_the_report_of_a_whole_graph():
    x = torch.randn(4, 6).t()
    same(lambda x: x * 2, x)
    (report,) = door.report()
    assert report.shares == {"compiled": 1.0} and [count for _, count in report.copies] == [96]
    same(lambda x: x * 3, x.contiguous())
    assert door.report()[-1].copies == []


def test_fallback_error_names_all():
    def function(x):
        return torch.linalg.eigh(x)[1].abs() + torch.rand(3)

    with pytest.raises(Exception, match="(?s)2 kinds of operators.*_linalg_eigh.*aten.rand"):
        compiled(function)(torch.eye(3))


def test_random_numbers_are_eagers():
    def function(x):
        return torch.nn.functional.dropout(x, 0.5) * 2

    x = torch.ones(4, 64)
    torch.manual_seed(3)
    want = function(x)
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="draws random numbers"):
        got = torch.compile(function, backend="baton")(x)
    torch.testing.assert_close(got, want)


def test_the_next_call_works_after_an_error():
    def function(x):
        return torch.linalg.eigh(x)[1].abs()

    fast = compiled(function)
    for _ in range(2):
        with pytest.raises(Exception, match="_linalg_eigh"):
            fast(torch.eye(3))
    same(lambda x: x * 2, torch.ones(3))


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(24.0).reshape(4, 6).t(),
        torch.arange(24.0).reshape(4, 6)[::2, 1::2],
        torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last),
        torch.arange(3.0)[:, None].expand(3, 4),
        torch.tensor(3.0),
        torch.empty(0, 4),
        torch.arange(12.0)[5:],
        torch.ones(3, dtype=torch.bool),
        torch.ones(3, dtype=torch.bfloat16),
        torch.arange(4),
    ],
    ids=["transposed", "steps", "channels_last", "expanded", "scalar", "empty", "offset", "bool", "bfloat16", "int64"],
)
def test_strides_ranks_and_dtypes(x):
    same(lambda x: (x + x, x.reshape(-1) * 2, x.sum()), x)


def test_arguments_that_share_memory():
    base = torch.arange(8.0)
    same(lambda a, b: a * 2 + b, base[:4], base[2:6])
    same(lambda a, b: a * b, base, base)


def test_arguments_that_are_changed():
    def function(x, y):
        x.add_(1)
        y[1:].mul_(x[1:])
        return x + y

    a, b = torch.arange(4.0), torch.ones(4)
    c, d = a.clone(), b.clone()
    torch.testing.assert_close(compiled(function)(a, b), function(c, d))
    torch.testing.assert_close((a, b), (c, d))


def test_results_that_are_views_of_arguments():
    x = torch.arange(6.0)
    view, twice = compiled(lambda x: (x.view(2, 3), x * 2))(x)
    view[0, 0] = 7
    assert x[0] == 7 and twice[0] == 0


def test_inference_mode_and_autocast():
    module, x = Small().eval(), torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        same(module, x)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        got, want = compiled(module)(x), module(x)
    assert got.dtype == want.dtype == torch.bfloat16
    torch.testing.assert_close(got, want, rtol=5e-2, atol=5e-2)


def test_several_threads():
    module = Small().eval()
    x = torch.randn(4, 3, 16, 16)
    with torch.no_grad():
        fast, want, wrong = compiled(module), module(x), []
        fast(x)

        def work():
            with torch.no_grad():
                for _ in range(20):
                    if not torch.allclose(fast(x), want, rtol=1e-4, atol=1e-5):
                        wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_a_tensor_elsewhere():
    with pytest.raises(Exception, match="a tensor on meta: backend \"baton\" compiles for the CPU"):
        compiled(lambda x: x + 1)(torch.ones(2, device="meta"))


def test_numbers_as_arguments():
    fast = torch.compile(lambda x, n, s: x.repeat(n, 1) * s, backend="baton", dynamic=True)
    for n, s in ((2, 0.5), (3, 0.25), (5, 4.0)):
        torch.testing.assert_close(fast(torch.ones(2, 3), n, s), torch.ones(2, 3).repeat(n, 1) * s)
