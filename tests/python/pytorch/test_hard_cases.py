# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's door says of programs and calls that go wrong, in the user's terms, and that the next call works."""

import contextlib
import os
import re
import signal
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402
from baton import relay  # noqa: E402
from baton.contrib import torch as door  # noqa: E402
from baton.contrib.torch import compiled as compiled_module  # noqa: E402

HERE = re.escape(__file__)


@pytest.fixture(autouse=True)
def _fresh(fresh):
    door.reset()


def said(function):
    """(what a function gives, Baton's warnings)"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = function()
    return value, [str(w.message) for w in caught if "Baton" in str(w.message)]


def test_a_graph_break():
    seen = []

    def function(x):
        y = x * 2
        torch._dynamo.graph_break()
        seen.append(1)
        return torch.relu(y) + 1

    fast = torch.compile(function, backend="baton")
    x = torch.randn(5)
    value, warned = said(lambda: fast(x))
    torch.testing.assert_close(value, function(x))
    assert not warned and len(door.report()) == 2 and not any(g.left for g in door.report())
    torch.testing.assert_close(fast(-x), function(-x))


class Branches(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


def test_control_flow_that_depends_on_data():
    fast = torch.compile(Branches(), backend="baton")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(fast(x), Branches()(x))
    with pytest.raises(baton.UnsupportedError, match=rf"makes no program of Branches: {HERE}:\d+: .*data-dependent.*torch.cond") as raised:
        relay.frontend.from_pytorch(Branches(), [("x", (3,))])
    assert len(str(raised.value).splitlines()) == 1


class Cond(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_control_flow_of_torch():
    with pytest.raises(baton.UnsupportedError, match=rf"torch.ops.higher_order.cond at {HERE}:\d+"):
        baton.compile(torch.export.export(Cond(), (torch.ones(3),)))
    fast = torch.compile(Cond(), backend="baton")
    for x in (torch.ones(3), -torch.ones(3)):
        value, warned = said(lambda x=x: fast(x))
        torch.testing.assert_close(value, Cond()(x))
    assert not warned  # once


def test_tensors_that_are_elsewhere():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3)).to("meta")
    with pytest.raises(baton.UnsupportedError, match="weight `0.weight`: a tensor on meta: move the module to the CPU"):
        baton.compile(torch.export.export(module, (torch.ones(2, 3, device="meta"),)))
    with pytest.raises(Exception, match="a tensor on meta: backend \"baton\" compiles for the CPU"):
        torch.compile(module, backend="baton")(torch.ones(2, 3, device="meta"))


@pytest.fixture(scope="module")
def custom():
    library = torch.library.Library("hard", "DEF")
    library.define("odd(Tensor x) -> Tensor")
    library.impl("odd", lambda x: x * 3, "CompositeExplicitAutograd")
    torch.library.register_fake("hard::odd", torch.empty_like, lib=library)

    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.ops.hard.odd(x) + 1

    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Odd()

        def forward(self, x):
            return self.inner(x * 2)

    yield Around()
    library._destroy()


def test_an_operator_of_the_users_own(custom):
    with pytest.raises(baton.UnsupportedError, match=rf"hard.odd.default at {HERE}:\d+, in inner: there is no rule for it"):
        baton.compile(torch.export.export(custom, (torch.ones(2),)))
    fast = torch.compile(custom, backend="baton")
    value, warned = said(lambda: fast(torch.ones(2)))
    assert value.tolist() == [7, 7] and len(warned) == 1 and re.search(rf"hard.odd.default at {HERE}:\d+", warned[0]), warned
    value, warned = said(lambda: fast(torch.zeros(2)))
    assert value.tolist() == [1, 1] and not warned


def program(low, high):
    n = torch.export.Dim("n", min=low, max=high)
    return torch.export.export(torch.nn.ReLU(), (torch.ones(low + 1, 3),), dynamic_shapes=({0: n},))


def test_ranges_of_the_program_hold():
    model = baton.compile(program(4, 8))
    assert [tuple(d) for d in model.dims] == [("input_0", 4, 8, 1)]
    assert model(torch.ones(8, 3)).shape == (8, 3)
    for n in (3, 9):
        with pytest.raises(ValueError, match=rf"input `input` has shape \({n}, 3\): input_0 is 4 to 8"):
            model(torch.ones(n, 3))
    assert model(torch.ones(4, 3)).shape == (4, 3)


def test_ranges_that_contradict():
    for asked, text in ((baton.Dim("k", 20, 30), "20 to 30"), (9, "9")):
        with pytest.raises(ValueError, match=f"dimension 0 of input `input` is 4 to 8 in the program, {text} was asked for"):
            baton.compile(program(4, 8), shape={"input": (asked, 3)})
    model = baton.compile(program(4, 8), shape={"input": (baton.Dim("k", 6, 30), 3)})
    assert [tuple(d) for d in model.dims] == [("k", 6, 8, 1)]
    assert baton.compile(program(4, 8), shape={"input": (5, 3)})(torch.ones(5, 3)).shape == (5, 3)


CASES = {
    "embedding": (lambda x, i: torch.nn.functional.embedding(i, x), (10, 4), [3, 100]),
    "index": (lambda x, i: x[:, i], (4, 10), [-10, -11]),
    "two indices": (lambda x, i: x[i, i], (4, 10), [1, 4]),
    "index_select": (lambda x, i: torch.index_select(x, 1, i), (4, 10), [0, 10]),
    "gather": (lambda x, i: torch.gather(x, 1, i[None]), (4, 10), [0, 10]),
    "gather below": (lambda x, i: torch.gather(x, 1, i[None]), (4, 10), [0, -1]),
    "embedding below": (lambda x, i: torch.nn.functional.embedding(i, x), (10, 4), [3, -1]),
    "take": (lambda x, i: torch.take(x, i), (10,), [-10, -11]),
    "scatter": (lambda x, i: x.scatter(0, i, 2.0), (10,), [9, 10]),
    "scatter below": (lambda x, i: x.scatter(0, i, 2.0), (10,), [0, -1]),
    "scatter_add": (lambda x, i: x.scatter_add(1, i[None], torch.ones(1, 2)), (3, 10), [9, 10]),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(1, i[None], torch.ones(1, 2), "amax"), (3, 10), [9, 10]),
    "scatter_reduce mean": (lambda x, i: x.scatter_reduce(0, i, torch.ones(2), "mean"), (10,), [9, 10]),
    "index_add": (lambda x, i: x.index_add(1, i, torch.ones(4, len(i))), (4, 10), [0, 10]),
    "index_copy": (lambda x, i: x.index_copy(0, i, torch.ones(len(i), 4)), (10, 4), [0, 10]),
    "index_reduce": (lambda x, i: x.index_reduce(0, i, torch.ones(len(i), 4), "prod"), (10, 4), [0, 10]),
    "index_put": (lambda x, i: x.index_put((i,), torch.tensor(1.0)), (10, 4), [-10, 10]),
    "put": (lambda x, i: x.put(i, torch.ones(len(i))), (10,), [-10, 10]),
    "embedding_bag": (lambda x, i: torch.nn.functional.embedding_bag(i[None], x), (10, 4), [3, 10]),
}


# Where PyTorch calls an operator otherwise.
ATEN = {"two indices": "index", "embedding_bag": "embedding_bag_forward_only"}


@pytest.mark.parametrize("name", CASES)
def test_an_index_that_lies_outside(name):
    function, shape, places = CASES[name]
    x, good, bad = torch.randn(shape), torch.tensor(places[:1]), torch.tensor(places)
    fast = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})
    with pytest.raises((IndexError, RuntimeError)):
        function(x, bad)
    for _ in range(2):
        torch.testing.assert_close(fast(x, good), function(x, good))
        with pytest.raises(IndexError, match=rf", {ATEN.get(name, name.split()[0])}: index -?\d+ lies outside axis [01] of \d+ elements"):
            fast(x, bad)


def test_an_index_that_lies_outside_names_the_users_line():
    class Table(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 4)

        def forward(self, ids):
            return self.table(ids).sum(-1)

    module = Table().eval()
    model = baton.compile(torch.export.export(module, (torch.tensor([1, 2]),)))
    with pytest.raises(IndexError, match=r"\(table\), embedding: index 100 lies outside axis 0 of 10 elements"):
        model(torch.tensor([1, 100]))
    torch.testing.assert_close(torch.from_dlpack(model(torch.tensor([1, 9]))), module(torch.tensor([1, 9])))


def test_a_compilation_that_fails_within(monkeypatch):
    def fails(*args, **kwargs):
        raise baton.error.InternalError("something broke")

    fast = torch.compile(lambda x: x + 1, backend="baton")
    with monkeypatch.context() as patch:
        patch.setattr(compiled_module, "compile_model", fails)
        with pytest.raises(Exception, match="something broke"):
            fast(torch.ones(2))
    assert fast(torch.ones(2)).tolist() == [2, 2]


def test_a_place_that_a_value_gives_stays_with_pytorch():
    """A number without code: one warning that names its operator, and eager's result; with fallback="error" one error."""

    def function(x):
        return x[(x > 0).sum().item() - 4] * 2

    x = -torch.ones(4, 5)
    x[0] = 1
    says = rf"aten.select.int at {HERE}:\d+.*the extent `u0 - 4` depends on values"
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        fast = torch.compile(function, backend="baton")
        value, warned = said(lambda: fast(x))
        torch.testing.assert_close(value, function(x))
        assert len(warned) == 1 and re.search(says, warned[0]), warned
        row = baton.torch.report()[-1]
        assert row.parts == 2 and [name for name, _, _ in row.left] == ["aten.select.int"]
        torch._dynamo.reset()
        with pytest.raises(Exception, match=says):
            torch.compile(function, backend="baton", options={"fallback": "error"})(x)


@pytest.mark.parametrize("kind", ["CompileError", "UnsupportedError", "InternalError"])
@pytest.mark.parametrize("left", [False, True])
def test_a_fault_of_a_pass_is_an_error(monkeypatch, kind, left):
    """Operators have rules, or are named before anything is compiled: an error behind that point is no reason to leave a graph to PyTorch."""

    def fails(*args, **kwargs):
        raise getattr(baton.error, kind)("a pass broke")

    fast = torch.compile(lambda x: (torch.rand(2) * 0 if left else 0) + x + 1, backend="baton", options={"fallback": "eager"})
    with monkeypatch.context() as patch:
        patch.setattr(compiled_module, "compile_model", fails)
        with pytest.raises(Exception, match="a pass broke"):
            fast(torch.ones(2))
    assert fast(torch.ones(2)).tolist() == [2, 2]


def test_arguments_are_changed_once_where_compiling_fails(monkeypatch):
    """A function that writes into its argument and into its module: a compilation that fails leaves both as they were."""

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x.add_(1) * self.calls

    def fails(*args, **kwargs):
        raise baton.error.InternalError("something broke")

    module, x = Counting(), torch.ones(2)
    fast = torch.compile(module, backend="baton")
    with monkeypatch.context() as patch:
        patch.setattr(compiled_module, "compile_model", fails)
        with pytest.raises(Exception, match="something broke"):
            fast(x)
    assert x.tolist() == [1, 1] and module.calls == 0
    assert fast(x).tolist() == [2, 2] and x.tolist() == [2, 2] and module.calls == 1


def test_a_compilation_that_is_interrupted(monkeypatch):
    """Ctrl-C while native code compiles."""
    layers = [torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1 + i % 2), torch.nn.GELU()) for i in range(12)]
    module, x = torch.nn.Sequential(*layers).eval(), torch.randn(1, 8, 9, 9)
    fast = torch.compile(module, backend="baton")
    compile_model, begun = compiled_module.compile_model, []

    def interrupted(*args, **kwargs):
        done = threading.Event()

        def interrupt():  # again and again: Python drops an interrupt that arrives within a finalizer
            while not done.wait(0.02):
                os.kill(os.getpid(), signal.SIGINT)

        begun.append(threading.Thread(target=interrupt))
        begun[-1].start()
        try:
            made = compile_model(*args, **kwargs)
            threading.Event().wait(5)  # the signal, where compilation was faster
            return made
        finally:
            while begun[-1].is_alive():
                with contextlib.suppress(KeyboardInterrupt):
                    done.set()
                    begun[-1].join()

    with torch.no_grad():
        with monkeypatch.context() as patch:
            patch.setattr(compiled_module, "compile_model", interrupted)
            with pytest.raises(KeyboardInterrupt):
                fast(x)
        assert begun
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
