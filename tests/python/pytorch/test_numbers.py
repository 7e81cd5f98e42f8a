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
    "ones": lambda x: torch.ones_like(x[x > 0]) * 2,
    "a fill": lambda x: torch.full_like(x[x > 0], 3.0),
    "zeros of a count": lambda x: torch.zeros(x[x > 0].shape[0], 3) + 1,
    "joined with ones": lambda x: torch.cat([x[x > 0], torch.ones_like(x[x > 0])]),
    "a column": lambda x: x[x > 0].reshape(-1, 1) * torch.ones(1, 3),
    "expanded": lambda x: x[x > 0].unsqueeze(1).expand(-1, 3) + 1,
    "a range": lambda x: torch.arange(x[x > 0].shape[0]) + 1,
    "scattered": lambda x: torch.zeros(20).index_put((x.flatten().nonzero()[:, 0],), torch.ones_like(x[x != 0])),
    "a mask of a mask": lambda x: (lambda y: y[y > 0.5])(x[x > 0]),
    "rows": lambda x: x[x[:, 0] > 0] @ torch.ones(5, 2),
    "columns": lambda x: x[:, x[0] > 0] * 2,
    "rows through layers": lambda x: torch.nn.functional.layer_norm(x[x[:, 0] > 0], (5,)),
    "a convolution of rows": lambda x: torch.nn.functional.conv1d(x[x[:, 0] > 0][:, None], torch.ones(2, 1, 3)),
    "counts of numbers": lambda x: torch.bincount((x > 0).long().flatten(), minlength=1) + 0,
    "a prefix": lambda x: x[:, : x.nonzero().shape[0] // 5] + 1,
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


BY_ITEMS = {
    "a value": lambda x: x * (x > 0).sum().item(),
    "an extent": lambda x: torch.zeros((x > 0).sum().item()) + 1,
    "a length": lambda x: torch.narrow(x, 0, 0, (x[:, 0] > 0).sum().item()) * 2,
    "lengths of parts": lambda x: torch.split(x.flatten(), [(x > 0).sum().item(), x.numel() - (x > 0).sum().item()])[0] + 1,
    "a float": lambda x: x * x.sum().item(),
}


@pytest.mark.parametrize("name", BY_ITEMS)
def test_an_element_as_a_number(name):
    function = BY_ITEMS[name]
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        fast = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})
        for x in (torch.randn(4, 5), torch.ones(4, 5), -torch.ones(4, 5)):
            torch.testing.assert_close(fast(x), function(x))


TRAINED = {
    "mask": lambda x: (x[x > 0] * 2).exp(),
    "mean": lambda x: (x[x > 0] ** 2).mean(),
    "rows": lambda x: x[x[:, 0] > 0] @ torch.ones(5, 2),
    "ones": lambda x: torch.ones_like(x[x > 0]) * x[x > 0].exp(),
    "item": lambda x: x * (x > 0).sum().item(),
    "masked_select": lambda x: torch.masked_select(x, x > 0).sort()[0] * 3,
}


@pytest.mark.parametrize("name", TRAINED)
def test_extents_that_values_give_in_training(name):
    """The forward graph gives the backward one their numbers."""
    function = TRAINED[name]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        fast = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})
        for _ in range(3):
            x = torch.randn(4, 5)
            x[0, 0] = 1.0
            ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
            got, want = fast(ours), function(eagers)
            torch.testing.assert_close(got, want)
            got.sum().backward(), want.sum().backward()
            torch.testing.assert_close(ours.grad, eagers.grad)
