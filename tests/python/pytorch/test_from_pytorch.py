# SPDX-License-Identifier: Apache-2.0
"""`relay.frontend.from_pytorch` and `baton.compile` of programs of `torch.export`."""

import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton as tvm  # noqa: E402
from baton import relay  # noqa: E402
from baton.contrib import graph_executor  # noqa: E402


class Small(torch.nn.Module):
    """A convolution, a normalisation, a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


@pytest.fixture
def small():
    return Small().eval()


X = (2, 3, 16, 16)


def close(got, want, **bounds):
    np.testing.assert_allclose(np.asarray(got.numpy()), want.detach().numpy(), **({"rtol": 1e-5, "atol": 1e-6} | bounds))


@pytest.mark.parametrize("kind", ["module", "traced", "scripted", "exported"])
def test_each_kind_of_model_through_relays_api(small, kind):
    x = torch.randn(X)
    model = {
        "module": lambda: small,
        "traced": lambda: torch.jit.trace(small, x),
        "scripted": lambda: torch.jit.script(small),
        "exported": lambda: torch.export.export(small, (x,)),
    }[kind]()
    mod, params = relay.frontend.from_pytorch(model, [("data", X)])
    assert [p.name_hint for p in mod["main"].params][0] == "data"
    assert list(map(int, mod["main"].params[0].type_annotation.shape)) == list(X)
    assert {"conv.weight", "conv.bias", "head.weight", "norm.running_mean"} <= set(params)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    run = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.set_input("data", x.numpy())
    run.run()
    close(run.get_output(0), small(x))


def test_names_and_dtypes_of_inputs():
    class Two(torch.nn.Module):
        def forward(self, ids, x):
            return x[ids] * 2

    mod, params = relay.frontend.from_pytorch(Two(), [("ids", ((4,), "int64")), ("x", (7, 3))])
    assert params == {}
    assert [str(p.type_annotation) for p in mod["main"].params] == ["Tensor[(4), int64]", "Tensor[(7, 3), float32]"]
    mod, _ = relay.frontend.from_pytorch(Two(), [("ids", torch.zeros(4, dtype=torch.int32)), ("x", (7, 3))], default_dtype="float64")
    assert [str(p.type_annotation) for p in mod["main"].params] == ["Tensor[(4), int32]", "Tensor[(7, 3), float64]"]
    with pytest.raises(TypeError, match="`input_infos` is needed"):
        relay.frontend.from_pytorch(Two())
    with pytest.raises(tvm.error.UnsupportedError, match="no dtype `int3`"):
        relay.frontend.from_pytorch(Two(), [("ids", ((4,), "int3")), ("x", (7, 3))])
    with pytest.raises(TypeError, match="not str"):
        relay.frontend.from_pytorch("model.pt", [("x", (1,))])


def test_weights_have_names_that_the_parser_reads(small):
    mod, params = relay.frontend.from_pytorch(small, [("data", X)], use_parser_friendly_name=True)
    assert "conv_weight" in params and "conv.weight" not in params
    tvm.ir.assert_structural_equal(mod, relay.transform.InferType()(relay.fromtext(mod.astext())), map_free_vars=True)


def test_weights_are_copies(small):
    x = torch.randn(X)
    model = tvm.compile(torch.export.export(small, (x,)))
    want = small(x).detach().clone()
    with torch.no_grad():
        small.head.weight.zero_()
    close(model(x), want)


@pytest.mark.parametrize("saved", [False, True])
def test_compile_takes_programs_and_their_files(small, saved, tmp_path):
    x = torch.randn(X)
    program = torch.export.export(small, (x,))
    if saved:
        torch.export.save(program, tmp_path / "small.pt2")
    model = tvm.compile(tmp_path / "small.pt2" if saved else program)
    assert [str(i) for i in model.inputs] == ["x float32[2, 3, 16, 16]"]
    close(model(x), small(x))
    close(model(x.numpy()), small(x))


def test_files_that_are_none(tmp_path):
    (tmp_path / "m.pt2").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(tvm.error.CompileError, match="m.pt2` is no program that torch.export.save wrote: it is no zip"):
        tvm.compile(tmp_path / "m.pt2")
    with zipfile.ZipFile(tmp_path / "other.pt2", "w") as file:
        file.writestr("something", "else")
    with pytest.raises(tvm.error.CompileError, match="other.pt2` is no program that torch.export.save of PyTorch"):
        tvm.compile(tmp_path / "other.pt2")
    with pytest.raises(FileNotFoundError):
        tvm.compile(tmp_path / "absent.pt2")
    with pytest.raises(TypeError, match="torch.export.export"):
        tvm.compile(torch.nn.ReLU())


def test_open_dimensions_stay_open(small):
    batch = torch.export.Dim("batch", min=1, max=64)
    model = tvm.compile(torch.export.export(small, (torch.randn(X),), dynamic_shapes={"x": {0: batch}}))
    assert [str(i) for i in model.inputs] == ["x float32[x_0, 3, 16, 16]"]
    for n in (1, 2, 5, 64):
        x = torch.randn(n, 3, 16, 16)
        close(model(x), small(x))


def test_arithmetic_on_open_dimensions():
    class Windows(torch.nn.Module):
        def forward(self, x, y):
            n = x.shape[0]
            both = torch.cat([x, y])
            flat = both.reshape(-1, 2)
            return flat + n, both[:-1].sum(0), torch.arange(n) * 2, x.new_ones(n + 1, 3), both[n:]

    a, b = torch.export.Dim("a"), torch.export.Dim("b")
    x, y = torch.randn(6, 4), torch.randn(4, 4)
    module = Windows()
    model = tvm.compile(torch.export.export(module, (x, y), dynamic_shapes={"x": {0: a}, "y": {0: b}}))
    for n, m in ((6, 4), (3, 5), (8, 2)):
        x, y = torch.randn(n, 4), torch.randn(m, 4)
        for got, want in zip(model(x, y), module(x, y), strict=True):
            close(got, want)


def test_relays_function_gives_state_behind_the_results():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x)
            return x * 2

    mod, params = relay.frontend.from_pytorch(Counts(), [("x", (3,))])
    assert [p.name_hint for p in mod["main"].params] == ["x", "total"] and list(params) == ["total"]
    doubled, total = relay.create_executor("graph", mod=mod).evaluate()(np.ones(3, "float32"), np.full(3, 4, "float32"))
    assert doubled.numpy().tolist() == [2, 2, 2] and total.numpy().tolist() == [5, 5, 5]


class Lacking(torch.nn.Module):
    def forward(self, x):
        first = torch.linalg.eigh(x)[1].abs()
        return first + torch.rand(3)


def test_everything_unsupported_at_once():
    program = torch.export.export(Lacking(), (torch.eye(3),))
    with pytest.raises(tvm.error.UnsupportedError) as raised:
        tvm.compile(program)
    text = str(raised.value)
    assert text.startswith("2 kinds of operators")
    assert "aten._linalg_eigh.default at " in text and "aten.rand.default at " in text
    names = {name for name, _, _ in raised.value.missing}
    assert names == {"aten._linalg_eigh.default", "aten.rand.default"}
    lines = [place for _, place, _ in raised.value.missing]
    assert all(__file__ in line for line in lines), lines
    assert "random numbers are PyTorch's" in text


def test_the_script_shows_the_same():
    with pytest.raises(tvm.error.UnsupportedError) as raised:
        tvm.compile(torch.export.export(Lacking(), (torch.eye(3),)))
    for name, script in raised.value.scripts.items():
        assert len(script.splitlines()) <= 10
        with pytest.raises(tvm.error.UnsupportedError, match=name):
            exec(compile(script, "shown.py", "exec"), {})  # noqa: S102


def test_errors_of_types_name_the_users_line():
    from baton.contrib.torch.registry import RULES

    saved = RULES["aten.relu.default"]
    RULES["aten.relu.default"] = lambda c, x: c("concatenate", c.tuple([x, c.const(np.zeros((2, 2)), "float32")]), axis=0)
    try:
        with pytest.raises(tvm.error.CompileError, match="test_from_pytorch.py:"):
            tvm.compile(torch.export.export(Small().eval(), (torch.randn(X),)))
    finally:
        RULES["aten.relu.default"] = saved
