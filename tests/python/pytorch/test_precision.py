# SPDX-License-Identifier: Apache-2.0
"""Option `precision` of `torch.compile(backend="baton")`: products in 16 bits, tensors in float32."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from baton.contrib import torch as door  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh")
# Of the largest value of a result.
TOLERANCE = {"bf16": 2e-2, "f16": 2e-3}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 64, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(64, 64, 3, padding=1)
        self.head = torch.nn.Linear(64, 1024)

    def forward(self, x):
        return self.head(torch.relu(self.conv2(torch.relu(self.conv(x)))).mean((2, 3)))


def compiled(module, **options):
    return torch.compile(module, backend="baton", fullgraph=True, options={"fallback": "error", **options})


def near(got, want, precision):
    assert got.dtype == want.dtype == torch.float32
    error = (got - want).abs().max() / want.abs().max()
    assert 1e-5 < error < TOLERANCE[precision]  # rounded, and no further than its type rounds


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_products_are_narrow(precision, freeze):
    module = Net().eval()
    with torch.no_grad():
        fast = compiled(module, precision=precision, freeze=freeze)
        for size in (2, 5):
            x = torch.randn(size, 16, 8, 8)
            near(fast(x), module(x), precision)


def test_exact_is_the_default():
    module, x = Net().eval(), torch.randn(2, 16, 8, 8)
    with torch.no_grad():
        want = compiled(module)(x)
        torch._dynamo.reset()
        assert torch.equal(compiled(module, precision="exact")(x), want)


def test_weights_that_change_are_packed_again_in_16_bits():
    module, x = Net().eval(), torch.randn(2, 16, 8, 8)
    door.reset()
    with torch.no_grad():
        fast = compiled(module, precision="bf16")
        near(fast(x), module(x), "bf16")
        packed = door.report()[-1].packed
        module.head.weight.mul_(-3)
        near(fast(x), module(x), "bf16")
    assert packed > 0 and door.report()[-1].packed > packed


def test_beside_what_stays_with_pytorch():
    layer = torch.nn.Linear(256, 256).eval()

    def function(x):
        return torch.linalg.eigh(layer(x) @ layer(x).T)[1].abs()

    x = torch.randn(4, 256)
    with torch.no_grad(), pytest.warns(UserWarning, match="_linalg_eigh"):
        got = torch.compile(function, backend="baton", options={"precision": "bf16"})(x)
    torch.testing.assert_close(got, function(x), rtol=5e-2, atol=5e-2 * float(got.abs().max()))


def test_training_in_16_bits():
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    x, want = torch.randn(32, 64), torch.randn(32, 8)
    fast = compiled(module, precision="bf16")
    optimizer, losses = torch.optim.Adam(module.parameters(), lr=1e-2), []
    for _ in range(20):
        loss = ((fast(x) - want) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3
