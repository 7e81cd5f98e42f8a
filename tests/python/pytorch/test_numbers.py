# SPDX-License-Identifier: Apache-2.0
"""Numbers of sizes that no tensor has as an extent: arguments of `torch.compile` that change from call to call."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.filterwarnings("ignore:Baton leaves")]


def clipped(boxes, height, width):
    """Boxes within an image."""
    across, down = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return torch.stack((across, down), dim=boxes.dim()).reshape(boxes.shape)


@pytest.mark.parametrize("size", [(30, 40), (-3, 7), (0, 1)])
def test_values(size):
    fast = torch.compile(clipped, backend="baton", dynamic=True, fullgraph=True, options={"fallback": "error"})
    for count in (5, 7, 0):
        boxes = torch.randn(count, 4) * 50
        torch.testing.assert_close(fast(boxes, *size), clipped(boxes, *size))


def around(boxes, count):
    """An operator that stays with PyTorch between others, whose parts know the sizes."""
    kept = boxes[:, 0::2] * torch.rand(1).clamp(min=1, max=1)
    rest = boxes[:, 1::2] + count
    return torch.stack((kept, rest), dim=2).reshape(boxes.shape) * 2


def test_extents_beside_what_stays_with_pytorch():
    fast = torch.compile(around, backend="baton", dynamic=True)
    for rows, columns in ((3, 4), (5, 6), (2, 8)):
        boxes = torch.randn(rows, columns)
        torch.testing.assert_close(fast(boxes, rows), around(boxes, rows))


def made(count, x):
    """A tensor whose extent is an argument."""
    return torch.arange(count) + x, torch.ones(count, 2) * x


def test_extents():
    fast = torch.compile(made, backend="baton", dynamic=True, fullgraph=True, options={"fallback": "error"})
    for count in (3, 6, 2):
        torch.testing.assert_close(fast(count, torch.tensor(2.0)), made(count, torch.tensor(2.0)))
