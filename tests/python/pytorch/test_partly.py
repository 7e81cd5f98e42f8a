# SPDX-License-Identifier: Apache-2.0
"""`baton.compile(program, fallback="eager")`: operators without a rule stay with PyTorch, the rest is compiled."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.filterwarnings("ignore:Baton leaves")]


class Lacking(torch.nn.Module):
    """A layer, an operator without a rule, and a layer; `times` counts calls."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
        self.register_buffer("times", torch.zeros(()))

    def forward(self, x):
        self.times += 1
        hidden = torch.relu(self.first(x))
        _, vectors = torch.linalg.eigh(hidden.T @ hidden + torch.eye(6))
        return self.last(hidden) + vectors.abs().sum() * 0 + self.times


def exported(module, *args, **given):
    return torch.export.export(module, args, **given)


def test_the_rest_is_compiled():
    module, x = Lacking().eval(), torch.randn(5, 4)
    program = exported(module, x)
    with pytest.raises(baton.UnsupportedError, match="_linalg_eigh"):
        baton.compile(program)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = baton.compile(program, fallback="eager")
    assert sum("aten._linalg_eigh.default" in str(w.message) for w in said) == 1
    row = baton.torch.report()[-1]
    assert row is model.report and row.kind == "program" and row.parts == 2 and [name for name, _, _ in row.left] == ["aten._linalg_eigh.default"]
    for _ in range(2):
        torch.testing.assert_close(torch.from_dlpack(model(x)), module(x), rtol=1e-4, atol=1e-5)
    assert row.calls == 2 and str(model) == "<baton.Executable x float32[5, 4] -> output0 float32[5, 3]>"
    torch.testing.assert_close(np.asarray(model({"x": x.numpy()})), module(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_buffers_are_kept():
    model = baton.compile(exported(Lacking(), torch.randn(5, 4)), fallback="eager")
    x = torch.zeros(5, 4)
    model(x), model(x)
    assert list(model.buffers) == ["times"] and float(np.asarray(model.buffers["times"])) == 2
    model.buffers.reset()
    assert float(np.asarray(model.buffers["times"])) == 0


class Noise(torch.nn.Module):
    def forward(self, x, into):
        into.add_(x.sum())
        return torch.rand(3) + x, x


def test_random_numbers_and_arguments_that_are_written():
    x, into = torch.ones(3), torch.zeros(2)
    model = baton.compile(exported(Noise(), x, into), fallback="eager")
    torch.manual_seed(3)
    noisy, same = model(x, into)
    torch.manual_seed(3)
    assert np.asarray(noisy).tolist() == (torch.rand(3) + 1).tolist() and into.tolist() == [3, 3]
    x.fill_(7)
    assert np.asarray(same).tolist() == [1, 1, 1]  # memory of its own


class Open(torch.nn.Module):
    def forward(self, x, y):
        return torch.linalg.eigh(x.T @ x)[0] * 2 + torch.rand(3) * 0, (x + y).sum(1)


def test_open_dimensions():
    n = torch.export.Dim("n", min=4, max=8)
    program = exported(Open(), torch.randn(5, 3), torch.randn(5, 3), dynamic_shapes=({0: n}, {0: n}))
    model = baton.compile(program, fallback="eager")
    assert [str(i) for i in model.inputs] == ["x float32[x_0, 3]", "y float32[x_0, 3]"] and [tuple(d) for d in model.dims] == [("x_0", 4, 8, 1)]
    for size in (4, 8):
        x, y = torch.randn(size, 3), torch.randn(size, 3)
        got = [torch.from_dlpack(v) for v in model(x, y)]
        torch.testing.assert_close(got[1], (x + y).sum(1), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"input `x` has shape \(3, 3\): x_0 is 4 to 8"):
        model(torch.ones(3, 3), torch.ones(3, 3))
    with pytest.raises(ValueError, match=r"dimension 0 is x_0, which is 5 elsewhere"):
        model(torch.ones(5, 3), torch.ones(4, 3))


def test_calls_that_do_not_fit():
    model = baton.compile(exported(Lacking(), torch.randn(5, 4)), fallback="eager")
    with pytest.raises(TypeError, match="input `x` is float32, float64 was given"):
        model(torch.ones(5, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="dimension 1 is 4, not 3"):
        model(torch.ones(5, 3))
    with pytest.raises(TypeError, match="input `x` is missing"):
        model()
    with pytest.raises(baton.UnsupportedError, match="PyTorch runs operators of this program: aten._linalg_eigh.default"):
        model.save("model.so")


def test_choices_that_do_not_fit():
    program = exported(Lacking(), torch.randn(5, 4))
    with pytest.raises(ValueError, match="fallback is 'maybe'"):
        baton.compile(program, fallback="maybe")
    with pytest.raises(baton.UnsupportedError, match="leave out shape"):
        baton.compile(program, fallback="eager", shape={"x": (5, 4)})
    with pytest.raises(baton.UnsupportedError, match="for programs of torch.export"):
        baton.compile("def @main(%x: float32) { %x }\n", fallback="eager")


def test_nothing_is_left_where_every_operator_has_a_rule(tmp_path):
    baton.torch.reset()
    torch.export.save(exported(torch.nn.ReLU(), torch.ones(2)), tmp_path / "relu.pt2")
    model = baton.compile(str(tmp_path / "relu.pt2"), fallback="eager")
    model.save(str(tmp_path / "relu.so"))
    assert not baton.torch.report()


def test_weights_beside_what_is_left_are_packed():
    baton.torch.reset()
    module = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU())
    fast = torch.compile(lambda x: module(x) + torch.rand(2, 256) * 0, backend="baton")
    x = torch.randn(2, 256)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
        assert baton.torch.report()[-1].packed == 1
        module[0].weight.mul_(2)
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
    assert baton.torch.report()[-1].packed == 2
