# SPDX-License-Identifier: Apache-2.0
"""Quantised modules: those of `torch.ao` (eager mode), and programs of PT2E."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import torch.ao.quantization as ao  # noqa: E402

import baton as tvm  # noqa: E402
from baton import relay  # noqa: E402
from baton.contrib.torch import quantized  # noqa: E402

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.filterwarnings("ignore")]
Q, D = torch.ops.quantized, torch.ops.quantized_decomposed
SHAPE = (2, 3, 12, 12)


class Net(torch.nn.Module):
    """Convolutions with and without ReLU, an addition, a join, pools, a layer."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
        self.conv, self.relu = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU()
        self.conv2 = torch.nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.add, self.join = (torch.ao.nn.quantized.FloatFunctional() for _ in range(2))
        self.most, self.mean = torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = self.quant(x)
        y = self.relu(self.conv(x))
        y = self.join.cat([self.add.add_relu(y, self.conv2(y)), y], 1)[:, :8]
        return self.dequant(self.head(self.mean(self.most(y)).flatten(1)))


def quantised(module, *shapes, qconfig=None, fuse=()):
    """The module as `torch.ao` makes it of one of real numbers."""
    module = copy.deepcopy(module).eval()
    module.qconfig = qconfig or ao.get_default_qconfig(torch.backends.quantized.engine)
    module = ao.prepare(ao.fuse_modules(module, [list(names) for names in fuse]) if fuse else module)
    for _ in range(3):
        module(*(torch.randn(s) for s in shapes))
    return ao.convert(module)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return quantised(Net(), SHAPE, fuse=[("conv", "relu")])


def evaluated(mod, params, *args):
    return relay.create_executor("graph", mod).evaluate()(*(a.numpy() for a in args), **params).numpy()


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", ["module", "traced", "scripted"])
def test_each_kind_of_model(net, kind, keep):
    x = torch.randn(SHAPE)
    model = {"module": lambda: net, "traced": lambda: torch.jit.trace(net, x), "scripted": lambda: torch.jit.script(net)}[kind]()
    mod, params = relay.frontend.from_pytorch(model, [("x", SHAPE)], keep_quantized_weight=keep)
    assert sorted(params) == [f"{layer}.{name}" for layer in ("conv", "conv2", "head") for name in ("bias", "weight")]
    assert {p.dtype for name, p in params.items() if name.endswith("weight")} == {"int8" if keep else "float32"}
    names = relay.analysis.list_op_freqs(mod)
    assert names["qnn.quantize"] >= 7 and names["nn.conv2d"] == 2
    assert np.abs(evaluated(mod, params, x) - net(x).numpy()).max() <= net.head.scale * 1.001


def test_layers_of_integers(net):
    mod, params = relay.frontend.from_pytorch(net, [("x", SHAPE)])
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    whole = relay.transform.FakeQuantizationToInteger()(relay.transform.FoldConstant()(relay.transform.InferType()(mod)))
    assert relay.analysis.list_op_freqs(whole)["qnn.conv2d"] == 2
    x = torch.randn(SHAPE)
    assert np.abs(evaluated(whole, {}, x) - net(x).numpy()).max() <= net.head.scale * 4.001  # each requantize rounds


@pytest.mark.parametrize("engine", ["x86", "qnnpack", "onednn"])
def test_weights_of_each_engine(engine):
    """A scale for each channel, or one."""
    if engine not in torch.backends.quantized.supported_engines:
        pytest.skip(f"PyTorch has no engine {engine} here")
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        model = quantised(Net(), SHAPE)
        x = torch.randn(SHAPE)
        mod, params = relay.frontend.from_pytorch(model, [("x", SHAPE)])
        assert np.abs(evaluated(mod, params, x) - model(x).numpy()).max() <= model.head.scale * 1.001
    finally:
        torch.backends.quantized.engine = before


def test_dynamic_layers():
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
    model = ao.quantize_dynamic(layers, {torch.nn.Linear}, dtype=torch.qint8)
    x = torch.randn(5, 16)
    mod, params = relay.frontend.from_pytorch(model, [("x", (5, 16))])
    np.testing.assert_allclose(evaluated(mod, params, x), model(x).detach().numpy(), atol=2e-2)


OUT = (0.05, 120)  # what results are quantised to, where operators are told
ROW = torch.randn(4, generator=torch.Generator().manual_seed(1))


def q(x, scale=0.03, zero_point=100):
    return torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)


def packed(kind, *weight, **given):
    """Packed weights, for one operator: PyTorch keeps what it made of them for the first one."""
    w = torch.randn(*weight, generator=torch.Generator().manual_seed(2)) * 0.3
    w = torch.quantize_per_tensor(w, 0.01, 0, torch.qint8)
    if kind == "linear":
        return Q.linear_prepack(w, ROW)
    rank = len(weight) - 2
    args = [[2] * rank, [1] * rank, *([[1] * rank] if "transpose" in kind else []), [1] * rank, 1]
    return getattr(Q, f"{kind}_prepack")(w, ROW, *args)


_L = ("linear", 4, 4)
_C = {n: (f"conv{n}d", 4, 4, *[3] * n) for n in (1, 2, 3)}
_T = {n: (f"conv_transpose{n}d", 4, 4, *[3] * n) for n in (1, 2, 3)}
CASES = {
    **{f"conv{n}d{r}": (lambda x, w, n=n, r=r: getattr(Q, f"conv{n}d{r}")(q(x), w, *OUT), (2, 4, *[6] * n), _C[n]) for n in (1, 2, 3) for r in ("", "_relu")},
    **{f"conv_transpose{n}d": (lambda x, w, n=n: getattr(Q, f"conv_transpose{n}d")(q(x), w, *OUT), (2, 4, *[4] * n), _T[n]) for n in (1, 2, 3)},
    **{f"conv{n}d_dynamic": (lambda x, w, n=n: getattr(Q, f"conv{n}d_dynamic")(x, w, True), (2, 4, *[6] * n), _C[n]) for n in (1, 2, 3)},
    "linear": (lambda x, w: Q.linear(q(x), w, *OUT), (3, 4), _L),
    "linear_relu": (lambda x, w: Q.linear_relu(q(x), w, *OUT), (3, 4), _L),
    "linear_dynamic": (lambda x, w: Q.linear_dynamic(x, w, True), (3, 4), _L),
    "linear_relu_dynamic": (lambda x, w: Q.linear_relu_dynamic(x, w, False), (3, 4), _L),
    **{name: (lambda x, name=name: getattr(Q, name)(q(x), q(x.flip(0), 0.02, 90), *OUT), (3, 4)) for name in ("add", "add_relu", "mul", "mul_relu")},
    "matmul": (lambda x: Q.matmul(q(x), q(x.flip(0), 0.02, 90), *OUT), (4, 4)),
    **{
        f"{name}_scalar {number}": (lambda x, name=name, number=number: getattr(Q, f"{name}_scalar")(q(x), number), (3, 4))
        for name in ("add", "mul")
        for number in (0.5, -0.5, 9.0, -9.0, 0.0)
    },
    "add_scalar_relu": (lambda x: Q.add_scalar_relu(q(x), 0.5), (3, 4)),
    "mul_scalar_relu": (lambda x: Q.mul_scalar_relu(q(x), -0.5), (3, 4)),
    "cat": (lambda x: Q.cat([q(x), q(x, 0.02, 90)], 1, *OUT), (3, 4)),
    "cat_relu": (lambda x: Q.cat_relu([q(x), q(x, 0.02, 90)], 1, *OUT), (3, 4)),
    "hardswish": (lambda x: Q.hardswish(q(x), *OUT), (3, 4)),
    "sigmoid": (lambda x: Q.sigmoid(q(x), 1 / 200, 3), (3, 4)),
    "softmax": (lambda x: Q.softmax(q(x), 1, 1 / 256, 0), (3, 4)),
    "leaky_relu": (lambda x: Q.leaky_relu(q(x), 0.1, False, *OUT), (3, 4)),
    "elu": (lambda x: Q.elu(q(x), *OUT, 1.5), (3, 4)),
    "celu": (lambda x: Q.celu(q(x), *OUT, 1.5), (3, 4)),
    "prelu": (lambda x: Q.prelu(q(x), q(ROW.abs(), 0.01, 0), *OUT), (3, 4)),
    "relu6": (lambda x: Q.relu6(q(x)), (3, 4)),
    "clamp": (lambda x: Q.clamp(q(x), -0.3, 0.4), (3, 4)),
    "threshold": (lambda x: Q.threshold(q(x), 0.1, 0.5), (3, 4)),
    "max_pool2d": (lambda x: Q.max_pool2d(q(x), [2, 2], [2, 2], [0, 0], [1, 1], False), (1, 2, 6, 6)),
    "max_pool1d": (lambda x: Q.max_pool1d(q(x), [2], [2], [0], [1], False), (1, 2, 6)),
    "dropout": (lambda x: Q.dropout(q(x), *OUT, 0.5, False), (3, 4)),
    "layer_norm": (lambda x: Q.layer_norm(q(x), [4], ROW, ROW, 1e-5, *OUT), (3, 4)),
    "group_norm": (lambda x: Q.group_norm(q(x), 2, ROW, ROW, 1e-5, *OUT), (2, 4, 5)),
    "instance_norm": (lambda x: Q.instance_norm(q(x), ROW, ROW, 1e-5, *OUT), (2, 4, 5, 5)),
    **{
        f"batch_norm{n}d{r}": (
            lambda x, n=n, r=r: getattr(Q, f"batch_norm{n}d{r}")(q(x), ROW, ROW, ROW, ROW.abs() + 0.5, 1e-5, *OUT),
            (2, 4, *[4] * n),
        )
        for n in (2, 3)
        for r in ("", "_relu")
    },
    # Operators of ATen on quantised tensors.
    "aten.sigmoid": (lambda x: torch.sigmoid(q(x)), (3, 4)),
    "aten.tanh": (lambda x: torch.tanh(q(x)), (3, 4)),
    "aten.relu": (lambda x: torch.relu(q(x)), (3, 4)),
    "aten.mean": (lambda x: q(x).mean((2, 3)), (2, 3, 4, 4)),
    "aten.avg_pool2d": (lambda x: torch.nn.functional.avg_pool2d(q(x), 2), (2, 3, 4, 4)),
    "aten.hardtanh": (lambda x: torch.nn.functional.hardtanh(q(x), -0.5, 0.5), (3, 4)),
    "aten.upsample": (lambda x: torch.nn.functional.interpolate(q(x), scale_factor=2, mode="nearest"), (1, 2, 3, 3)),
    "aten.moves": (lambda x: q(x).transpose(0, 1).reshape(2, -1).unsqueeze(0).chunk(2, 1)[1], (3, 4)),
    "aten.int_repr": (lambda x: q(x).int_repr(), (3, 4)),
    "aten.int8": (lambda x: torch.quantize_per_tensor(x, 0.02, -3, torch.qint8), (3, 4)),
}


class Calls(torch.nn.Module):
    def __init__(self, function, weight=None):
        super().__init__()
        self.function, self.packed = function, weight

    def forward(self, x):
        y = self.function(x) if self.packed is None else self.function(x, self.packed)
        return y.dequantize() if y.is_quantized else y


@pytest.mark.parametrize("name", CASES)
def test_operators(name):
    function, shape, *weight = CASES[name]
    x, weight = torch.randn(shape), [packed(*kind) for kind in weight]
    try:
        out = function(x, *weight)
    except RuntimeError as error:
        pytest.skip(f"PyTorch itself: {str(error).splitlines()[0]}")
    want = Calls(function, *weight)(x).numpy()
    mod, params = relay.frontend.from_pytorch(torch.jit.trace(Calls(function, *weight), x), [("x", shape)])
    got = evaluated(mod, params, x)
    assert got.shape == want.shape and got.dtype == want.dtype
    step = out.q_scale() if out.is_quantized else (x.max() - x.min()).item() / 127 if out.is_floating_point() else 1
    assert np.abs(got.astype("float64") - want).max() <= step * 1.001


def test_each_rule_has_a_case():
    same = {"batch_norm", "batch_norm1d", "linear_leaky_relu", "linear_tanh", "conv2d_add", "conv2d_add_relu"}  # of engines, or of another's code
    same |= {f"conv_transpose{n}d_{r}" for n in (1, 2, 3) for r in ("relu", "dynamic")} | {f"batch_norm{r}_relu" for r in ("", "1d")}
    tried = {name.partition(" ")[0] for name in CASES}
    assert {name.removeprefix("quantized.") for name in quantized.RULES} - same == {t for t in tried if not t.startswith("aten.")}


class Pt2e(torch.nn.Module):
    """A program as PT2E writes one, but for tracing: weights are integers, what layers read is quantised and restored."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-128, 127, (8, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(8) * 0.01 + 0.005)
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(8))
        self.register_buffer("w2", torch.randint(-128, 127, (5, 8), dtype=torch.int8))

    def forward(self, x):
        x = D.dequantize_per_tensor(D.quantize_per_tensor(x, 0.03, 115, 0, 255, torch.uint8), 0.03, 115, 0, 255, torch.uint8)
        w = D.dequantize_per_channel(self.w, self.scales, self.zeros, 0, -128, 127, torch.int8)
        y = torch.relu(torch.nn.functional.conv2d(x, w, self.bias)).mean((2, 3))
        y = D.dequantize_per_tensor(D.quantize_per_tensor(y, 0.02, 0, 0, 127, torch.uint8), 0.02, 0, 0, 127, torch.uint8)
        return torch.nn.functional.linear(y, D.dequantize_per_tensor(self.w2, 0.01, 3, -128, 127, torch.int8))


@pytest.mark.parametrize("door", ["compile", "from_pytorch", "torch.compile", "torch.compile frozen"])
def test_programs_of_pt2e(door):
    module, x = Pt2e().eval(), torch.randn(SHAPE)
    with torch.no_grad():
        want = module(x)
        if door.startswith("torch"):
            options = {"fallback": "error", "freeze": door.endswith("frozen")}
            got = torch.compile(module, backend="baton", fullgraph=True, options=options)(x).numpy()
        elif door == "compile":
            got = tvm.compile(torch.export.export(module, (x,)))(x).numpy()
        else:
            mod, params = relay.frontend.from_pytorch(torch.export.export(module, (x,)), [("x", SHAPE)])
            assert sorted(params) == ["bias", "w", "w2"]  # scales are constants
            got = evaluated(mod, params, x)
    np.testing.assert_allclose(got, want.numpy(), atol=8 * 0.02 * 0.01 * 128)


class Ranges(torch.nn.Module):
    """Scales that come of values: of a tensor, and of each row."""

    def forward(self, x):
        scale, zero = D.choose_qparams(x, 0, 255, 1e-6, torch.uint8)
        y = D.dequantize_per_tensor(D.quantize_per_tensor(x, scale, zero, 0, 255, torch.uint8), scale, zero, 0, 255, torch.uint8)
        scale, zero = D.choose_qparams_symmetric(x, -127, 127, 1e-6, torch.int8)
        z = D.dequantize_per_tensor(D.quantize_per_tensor(x, scale, zero, -127, 127, torch.int8), scale, zero, -127, 127, torch.int8)
        scales, zeros = D.choose_qparams_per_token_asymmetric(x, torch.int8)
        t = D.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        return y, z, D.dequantize_per_token(t, scales, zeros, -128, 127, torch.int8, torch.float32)


def test_scales_that_come_of_values():
    x = torch.randn(4, 16)
    got = tvm.compile(torch.export.export(Ranges(), (x,)))(x)
    for g, want in zip(got, Ranges()(x), strict=True):
        np.testing.assert_allclose(g.numpy(), want.numpy(), atol=(x.max() - x.min()).item() / 254 * 1.01)


def test_torch_compile_of_torch_ao_gives_eagers_numbers(net):
    """PyTorch itself traces no packed weights: what it leaves runs in eager."""
    x = torch.randn(SHAPE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = torch.compile(net, backend="baton")(x)
    assert (got - net(x)).abs().max() <= net.head.scale * 1.001


def test_what_has_no_rule_is_named():
    table = torch.quantize_per_channel(torch.randn(4, 8), torch.ones(4) * 0.01, torch.zeros(4), 0, torch.quint4x2)
    weight = Q.embedding_bag_prepack(table)
    function = torch.jit.trace(Calls(lambda x, w: Q.embedding_4bit(w, x), weight), torch.tensor([1, 2]))
    with pytest.raises(tvm.UnsupportedError, match="(?s)1 quantised operators.*quantized.embedding_4bit"):
        relay.frontend.from_pytorch(function, [("x", ((2,), "int64"))])
