# SPDX-License-Identifier: Apache-2.0
"""Losses that PyTorch computes in pieces of Python are graphs of ATen here, with their derivatives."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.mark.skipif(not hasattr(torch.nn.functional, "linear_cross_entropy"), reason="this PyTorch has no linear_cross_entropy")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_cross_entropy_of_a_last_layer(reduction, weighted):
    """In chunks of rows, with rows that are left out: losses and derivatives are eager's."""
    target = torch.tensor([1, 2, -100, 4, 0, 9])
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=reduction != "none")
    weight = torch.rand(10) if weighted else None

    def loss(x, matrix, bias):
        return torch.nn.functional.linear_cross_entropy(x, matrix, target, linear_bias=bias, weight=weight, reduction=reduction, options=options)

    values = torch.randn(6, 8), torch.randn(10, 8), torch.randn(10)
    found = []
    for function in (torch.compile(loss, backend="baton", options={"fallback": "error"}), loss):
        given = [v.clone().requires_grad_() for v in values]
        out = function(*given)
        (out * torch.arange(1.0, 7.0) if out.ndim else out * 3).sum().backward()
        found.append((out.detach(), *(v.grad for v in given)))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not hasattr(torch.nn.functional, "linear_cross_entropy"), reason="this PyTorch has no linear_cross_entropy")
def test_derivatives_of_smoothed_labels_stay_with_pytorch():
    layer, target = torch.nn.Linear(8, 5), torch.randint(0, 5, (6,))
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def loss(x):
        return torch.nn.functional.linear_cross_entropy(x, layer.weight, target, linear_bias=layer.bias, label_smoothing=0.1, options=options)

    x = torch.randn(6, 8, requires_grad=True)
    (want,) = torch.autograd.grad(loss(x), x)
    with pytest.warns(UserWarning, match="linear_cross_entropy"):
        (got,) = torch.autograd.grad(torch.compile(loss, backend="baton")(x), x)
    torch.testing.assert_close(got, want)
