# SPDX-License-Identifier: Apache-2.0
"""Largest elements of windows that lie side by side, with their places, and what gradients make of these."""

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh")

IMAGES = {
    "random": lambda: torch.randn(2, 3, 4, 6),
    "equal elements": lambda: torch.randint(0, 2, (2, 3, 4, 6)).float(),
    "NaN": lambda: torch.where(torch.rand(2, 3, 4, 6) < 0.3, math.nan, torch.randn(2, 3, 4, 6)),
    "infinities and zeros": lambda: torch.tensor([-math.inf, 0.0, -0.0, math.inf])[torch.randint(0, 4, (2, 3, 4, 6))],
    "one image": lambda: torch.randn(3, 4, 6),
    "float64": lambda: torch.randn(2, 3, 4, 6, dtype=torch.float64),
    "no image": lambda: torch.randn(0, 3, 4, 6),
}


@pytest.mark.parametrize("window", [(2, 2), (1, 3), (4, 2), (2, 1)])
@pytest.mark.parametrize("name", IMAGES)
def test_largest_elements_and_their_places(name, window):
    fast = torch.compile(lambda x: F.max_pool2d(x, window, return_indices=True), backend="baton", fullgraph=True, options={"fallback": "error"})
    x = IMAGES[name]()
    torch.testing.assert_close(fast(x), F.max_pool2d(x, window, return_indices=True), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", IMAGES)
def test_gradients(name):
    fast = torch.compile(lambda x: F.max_pool2d(x, 2), backend="baton", fullgraph=True, options={"fallback": "error"})
    x = IMAGES[name]()
    ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, want = fast(ours), F.max_pool2d(eagers, 2)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    by = torch.randn_like(want)
    got.backward(by), want.backward(by)
    torch.testing.assert_close(ours.grad, eagers.grad, rtol=0, atol=0)


def test_open_images():
    fast = torch.compile(lambda x: F.max_pool2d(x, 2, return_indices=True), backend="baton", dynamic=True, options={"fallback": "error"})
    for shape in ((2, 3, 4, 6), (3, 3, 4, 6), (3, 3, 5, 7)):
        x = torch.randn(shape)
        torch.testing.assert_close(fast(x), F.max_pool2d(x, 2, return_indices=True), rtol=0, atol=0)
