# SPDX-License-Identifier: Apache-2.0
"""Single operators whose rules have cases of their own, equal to eager without fallback."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh")


MASK = torch.tensor([True, False, True, True])


def put(x, values):
    return x.index_put((MASK,), values)


def renormalised(weight, ids):
    return F.embedding(ids, weight.clone(), max_norm=1.0)


def segments(reduce, **given):
    return lambda x: torch.segment_reduce(x, reduce, axis=0, **given)


SAMPLES = torch.rand(2, 3, 2)
LENGTHS = torch.tensor([0, 1, 3, 2])
CASES = {
    "put one": (put, torch.zeros(4, 2), torch.tensor(3.0)),
    "put a row": (put, torch.zeros(4, 2), torch.tensor([[1.0, 2.0]])),
    "put rows": (put, torch.zeros(4, 2), torch.arange(6.0).reshape(3, 2)),
    "add rows": (lambda x, v: x.index_put((MASK,), v, accumulate=True), torch.ones(4, 2), torch.arange(6.0).reshape(3, 2)),
    "embedding with a norm": (renormalised, torch.randn(5, 3) * 3, torch.tensor([[0, 2], [2, 4]])),
    "same without a batch": (lambda x, w: F.conv2d(x, w, padding="same"), torch.randn(3, 5, 6), torch.randn(4, 3, 2, 3)),
    "smooth down": (lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), torch.randn(1, 2, 9, 10)),
    "smooth up": (lambda x: F.interpolate(x, (9, 13), mode="bilinear", antialias=True, align_corners=True), torch.randn(1, 2, 5, 6)),
    "smooth cubes down": (lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), torch.randn(1, 2, 9, 10)),
    "smooth cubes up": (lambda x: F.interpolate(x, (9, 13), mode="bicubic", antialias=True, align_corners=True), torch.randn(1, 2, 5, 6)),
    "fractions of an image": (lambda x, r: F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=r), torch.randn(2, 3, 7, 9), SAMPLES),
    "fractions of a volume": (
        lambda x, r: F.fractional_max_pool3d(x, (2, 3, 2), (2, 3, 1), return_indices=True, _random_samples=r),
        torch.randn(2, 3, 5, 7, 6),
        torch.rand(2, 3, 3),
    ),
    "runs": (lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), torch.tensor([[2, 2, 1], [1, 1, 2]])),
    "runs of slices": (lambda x: torch.unique_consecutive(x, return_counts=True, dim=1)[0], torch.tensor([[2.0, 2, 1], [1, 1, 2]])),
    "bins": (lambda x: tuple(torch.histogram(x, 5)), torch.randn(40)),
    "bins of a range": (lambda x: tuple(torch.histogram(x, 7, range=(-1.0, 1.5), weight=x.abs(), density=True)), torch.randn(40)),
    "bins of edges": (lambda x, e: tuple(torch.histogram(x, e)), torch.tensor([0.0, 1, 1.5, 2, 4, 5, 9]), torch.tensor([0.0, 1, 2, 5])),
    "bins of a plane": (
        lambda x: (torch.histogramdd(x, [3, 4], weight=x[:, 0].abs(), density=True)[0], torch.histogramdd(x, [3, 4], range=[-1.0, 1, 0, 2])[0]),
        torch.randn(40, 2),
    ),
    "another shape": (lambda x: torch.ops.aten.resize(x, [2, 3]) + torch.ops.aten.resize(x, [4])[1], torch.randn(6)),
    "a leak between two": (lambda x: F.rrelu(x, 0.1, 0.4), torch.randn(9)),
    "a scatter of a scalar": (lambda x, i: x.scatter_add(0, i, x) + torch.take(x, i), torch.tensor(2.0), torch.tensor(0)),
    **{f"segments {r}": (segments(r, lengths=LENGTHS), torch.randn(6, 2)) for r in ("sum", "mean", "max", "min", "prod")},
    "segments from 2": (segments("mean", offsets=torch.tensor([0, 0, 1, 4, 6]), initial=2), torch.randn(6)),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    function, *args = CASES[name]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        got = torch.compile(function, backend="baton", fullgraph=True, options={"fallback": "error"})(*args)
    torch.testing.assert_close(got, function(*args), rtol=1e-4, atol=1e-5, equal_nan=True)
