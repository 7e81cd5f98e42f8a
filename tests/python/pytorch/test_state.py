# SPDX-License-Identifier: Apache-2.0
"""Programs of `torch.export` that change their buffers and arguments: calls of the compiled model do what eager's calls do."""

import copy
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402


def exported(module, *args, **options):
    """The program of a copy, so that eager's calls of `module` begin with the same buffers."""
    return torch.export.export(copy.deepcopy(module), args, **options)


def same(got, want):
    torch.testing.assert_close(torch.from_dlpack(got), want.detach(), rtol=1e-4, atol=1e-5)


class Counts(torch.nn.Module):
    """Adds what it sees to a buffer that does not begin with zeros, and counts calls in one that is not saved."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.total.add_(x)
        self.calls += 1
        return x * 2 + self.calls


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Cached(torch.nn.Module):
    """One head of attention with its keys and values in buffers."""

    def __init__(self, most=8, width=4):
        super().__init__()
        self.project = torch.nn.Linear(width, 3 * width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, most, width))

    def forward(self, x, at):
        q, k, v = self.project(x).chunk(3, -1)
        self.keys.index_copy_(1, at, k)
        self.values.index_copy_(1, at, v)
        seen = torch.arange(self.keys.shape[1])[None, :] <= at[:, None]
        return torch.nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)


def test_a_buffer_is_kept_between_calls():
    module, x = Counts(), torch.tensor([1.0, 10.0, 100.0])
    model = baton.compile(exported(module, x))
    assert [str(i) for i in model.inputs] == ["x float32[3]"] and len(model.outputs) == 1
    for _ in range(3):
        same(model(x), module(x))
        same(model.buffers["total"], module.total)
        same(model.buffers["calls"], module.calls)
    assert sorted(model.buffers) == ["calls", "total"]


def test_batch_norm_in_training():
    module = Normed().train()
    model = baton.compile(exported(module, torch.randn(4, 3, 8, 8)))
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8) * 3 + 1
        same(model(x), module(x))
    for name in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
        same(model.buffers[name], module.get_buffer(name))


def test_a_cache_in_buffers():
    module = Cached().eval()
    model = baton.compile(exported(module, torch.randn(1, 1, 4), torch.tensor([0])))
    for step in range(5):
        x, at = torch.randn(1, 1, 4), torch.tensor([step])
        same(model(x, at), module(x, at))
    same(model.buffers["keys"], module.keys)
    model.buffers.reset()
    assert not model.buffers["keys"].numpy().any()


def test_open_dimensions_beside_a_buffer():
    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean.mul_(0.5).add_(x.mean(0))
            return x - self.mean

    module = Mean()
    model = baton.compile(exported(module, torch.randn(4, 2), dynamic_shapes=({0: torch.export.Dim("n", min=1, max=99)},)))
    assert [str(i) for i in model.inputs] == ["x float32[x_0, 2]"]
    for n in (4, 1, 7):
        x = torch.randn(n, 2)
        same(model(x), module(x))
    assert model.shapes((5, 2)) == ((5, 2),)


def test_buffers_are_read_set_and_reset():
    module, x = Counts(), torch.ones(3)
    model = baton.compile(exported(module, x))
    model(x)
    model.buffers["total"] = np.zeros(3, "float32")
    model(x)
    assert model.buffers["total"].numpy().tolist() == [1, 1, 1]
    with pytest.raises(KeyError, match="no buffer `totl`; it changes calls, total"):
        model.buffers["totl"] = x
    with pytest.raises(ValueError, match=r"buffer `total` is float32\[3\], int64\[3\] was given"):
        model.buffers["total"] = np.zeros(3, "int64")
    model.buffers.reset()
    assert model.buffers["total"].numpy().tolist() == [1, 2, 3]
    same(model(x), module(x))


def test_what_callers_change_is_not_the_buffer():
    class Gives(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x)
            return self.total + 0, self.total

    module, x = Gives(), torch.ones(3)
    model = baton.compile(exported(module, x))
    for value in model(x):
        torch.from_dlpack(value).fill_(7)
    read = torch.from_dlpack(model.buffers["total"])
    read.fill_(9)
    given = torch.ones(3)
    model.buffers["total"] = given
    given.fill_(5)
    same(model(x)[1], torch.full((3,), 2.0))


def test_a_program_without_results():
    class Only(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(2))

        def forward(self, x):
            self.last.copy_(x)

    model = baton.compile(exported(Only(), torch.ones(2)))
    assert model(torch.tensor([3.0, 4.0])) is None
    assert model.buffers["last"].numpy().tolist() == [3, 4]


class Writes(torch.nn.Module):
    def forward(self, x, y):
        x.add_(1)
        y[1:].mul_(x[1:])
        return x + y


@pytest.mark.parametrize("kind", ["torch", "numpy", "baton", "keywords"])
def test_arguments_are_written(kind):
    x, y = torch.arange(4.0), torch.full((4,), 2.0)
    model = baton.compile(exported(Writes(), x.clone(), y.clone()))
    make = {"torch": torch.clone, "keywords": torch.clone, "numpy": lambda t: t.numpy().copy(), "baton": lambda t: baton.nd.array(t.numpy())}[kind]
    given, want = [make(x), make(y)], [x.clone(), y.clone()]
    for _ in range(2):
        got = model(y=given[1], x=given[0]) if kind == "keywords" else model(*given)
        same(got, Writes()(*want))
        for g, w in zip(given, want, strict=True):
            np.testing.assert_allclose(g if kind == "numpy" else g.numpy(), w.numpy())


def test_arguments_with_strides_are_written():
    x, y = torch.arange(8.0)[::2], torch.full((4,), 2.0)
    model = baton.compile(exported(Writes(), x.clone(), y.clone()))
    model(x, y)
    assert x.tolist() == [1, 3, 5, 7] and y.tolist() == [2, 6, 10, 14]


def test_arguments_that_cannot_be_written():
    x = torch.arange(4.0)
    model = baton.compile(exported(Writes(), x.clone(), x.clone()))
    fixed = np.zeros(4, "float32")
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="the program writes into input `x`, and the array that was given is read-only"):
        model(fixed, x)
    with pytest.raises(TypeError, match="the program writes into input `y`: give a tensor of PyTorch, a NumPy array or an NDArray, not list"):
        model(x, [1.0, 2.0, 3.0, 4.0])
    assert x.tolist() == [0, 1, 2, 3]


def test_a_call_that_fails_leaves_buffers():
    module, x = Counts(), torch.ones(3)
    model = baton.compile(exported(module, x))
    for wrong in (torch.ones(4), torch.ones(3, dtype=torch.int64)):
        with pytest.raises((ValueError, TypeError), match="input `x`"):
            model(wrong)
    same(model(x), module(x))


def test_threads_lose_no_call():
    x = torch.ones(3)
    model = baton.compile(exported(Counts(), x))
    threads = [threading.Thread(target=lambda: [model(x) for _ in range(50)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert model.buffers["calls"].numpy() == 200 and model.buffers["total"].numpy().tolist() == [201, 202, 203]


def test_profiling_changes_nothing():
    module, x = Counts(), torch.ones(3)
    model = baton.compile(exported(module, x))
    same(model.profile(x, rounds=2).result, copy.deepcopy(module)(x))
    same(model(x), module(x))


def test_saved_models_keep_buffers_without_pytorch(tmp_path):
    module, x = Counts(), torch.ones(3)
    baton.compile(exported(module, x)).save(tmp_path / "counts.so")
    baton.compile(exported(Writes(), x, x.clone())).save(tmp_path / "writes.so")
    text = f"""
        import sys, numpy as np, baton
        model, x = baton.load({str(tmp_path / "counts.so")!r}), np.ones(3, "float32")
        assert len(model.inputs) == len(model.outputs) == 1
        print([model(x).numpy().tolist() for _ in range(2)], model.buffers["total"].numpy().tolist())
        baton.load({str(tmp_path / "writes.so")!r})(x, x.copy())
        print(x.tolist(), "torch" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True)
    assert done.stdout == "[[3.0, 3.0, 3.0], [4.0, 4.0, 4.0]] [3.0, 4.0, 5.0]\n[2.0, 2.0, 2.0] False\n", done.stderr


def test_what_does_not_go_with_buffers():
    program = exported(Counts(), torch.ones(3))
    with pytest.raises(baton.UnsupportedError, match="a program that changes buffers or arguments gives no input's memory away"):
        baton.compile(program, donate=("x",))
    with pytest.raises(baton.UnsupportedError, match="keeps its buffers itself"):
        baton.compile(program, state={"x": "output0"})


def test_models_without_buffers_have_none():
    model = baton.compile(exported(torch.nn.ReLU(), torch.ones(3)))
    assert dict(model.buffers) == {}


def test_results_that_share_memory_are_one():
    """Training keeps a result of relu twice, as itself and as an alias: compiled code gives it once."""
    from torch.fx.experimental.proxy_tensor import make_fx

    from baton.contrib.torch.compiled import compile_graph

    def function(x):
        y = torch.relu(x)
        return y, torch.ops.aten.alias(y), torch.ops.aten.detach(y), y.clone()

    x = torch.randn(3, 4)
    graph = compile_graph(make_fx(function, tracing_mode="fake")(x))
    first, alias, detached, clone = graph(x)
    assert first.data_ptr() == alias.data_ptr() == detached.data_ptr() != clone.data_ptr()
    assert len(graph.model.outputs) == 2
    for value in (first, clone):
        torch.testing.assert_close(value, torch.relu(x))
