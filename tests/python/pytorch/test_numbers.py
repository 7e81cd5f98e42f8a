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


def scaled(x, by):
    """A number of Python that becomes a SymFloat."""
    return x * (by / 2) + by


def test_floats_are_inputs_of_one_graph():
    from baton.contrib import torch as door

    door.reset()
    fast = torch.compile(scaled, backend="baton", dynamic=True, fullgraph=True, options={"fallback": "error"})
    for count, by in ((3, 0.5), (4, 0.25), (5, -3.0), (7, 1e9)):
        torch.testing.assert_close(fast(torch.ones(count), by), scaled(torch.ones(count), by))
    assert len(door.report()) == 1


BY_VALUES = {
    "nonzero": lambda x: x.nonzero(),
    "nonzero_as_tuple": lambda x: x[torch.where(x > 0)] + 1,
    "masked_select": lambda x: torch.masked_select(x, x > 0) * 2,
    "mask": lambda x: x[x > 0].sort()[0],
    "joined": lambda x: torch.cat([x[x > 0], x[x < 0]]),
    "shares": lambda x: x[x > 0] / x[x > 0].numel(),
    "unique": lambda x: torch.unique(x),
}


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("door", ["export", "compile", "compile whole"])
@pytest.mark.parametrize("name", BY_VALUES)
def test_extents_that_values_give(name, door):
    """Inside of one graph, and where dynamo breaks it."""
    import baton

    module = Calls(BY_VALUES[name])
    given = [torch.randn(4, 5).round(), torch.zeros(4, 5), torch.ones(4, 5)]
    if door == "export":
        model = baton.compile(torch.export.export(module, (given[0],)))
        for x in given:
            torch.testing.assert_close(torch.from_dlpack(model(x)), module(x), equal_nan=True)
        return
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=door == "compile whole", capture_scalar_outputs=True):
        fast = torch.compile(module, backend="baton", options={"fallback": "error"})
        for x in given:
            torch.testing.assert_close(fast(x), module(x), equal_nan=True)
