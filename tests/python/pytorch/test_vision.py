# SPDX-License-Identifier: Apache-2.0
"""torchvision's operators on boxes, beside plain Python. Where torchvision is not installed its operators are defined here."""

import importlib.util

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402


def overlap(a, b):
    """The intersection of two boxes over their union."""
    across = (torch.minimum(a[2], b[2]) - torch.maximum(a[0], b[0])).clamp(min=0)
    down = (torch.minimum(a[3], b[3]) - torch.maximum(a[1], b[1])).clamp(min=0)
    both = across * down
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def suppressed(boxes, scores, iou_threshold):
    """Places of boxes by falling score, without those that overlap a better one."""
    kept = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if all(overlap(boxes[i], boxes[k]) <= iou_threshold for k in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def sample(plane, y, x):
    """A bilinear sample of (C, H, W); 0 more than a pixel outside."""
    height, width = plane.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return torch.zeros(len(plane))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - top, x - left
    return (plane[:, top, left] * (1 - u) + plane[:, top, right] * u) * (1 - v) + (plane[:, low, left] * (1 - u) + plane[:, low, right] * u) * v


def aligned(x, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """The mean of samples in each part of a box."""
    out, n = torch.empty(len(rois), x.shape[1], pooled_height, pooled_width), sampling_ratio
    for r, (image, *corners) in enumerate(rois.tolist()):
        left, top, right, bottom = (v * spatial_scale - (0.5 if aligned else 0) for v in corners)
        width, height = (right - left, bottom - top) if aligned else (max(right - left, 1), max(bottom - top, 1))
        for i in range(pooled_height):
            for j in range(pooled_width):
                at = [
                    (top + (i + (a + 0.5) / n) * height / pooled_height, left + (j + (b + 0.5) / n) * width / pooled_width) for a in range(n) for b in range(n)
                ]
                out[r, :, i, j] = sum(sample(x[int(image)], *place) for place in at) / n**2
    return out


@pytest.fixture(scope="module")
def operators():
    if importlib.util.find_spec("torchvision"):
        import torchvision  # noqa: F401

        yield torch.ops.torchvision
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.define("nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    library.define("roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool aligned) -> Tensor")
    library.impl("nms", suppressed, "CPU")
    library.impl("roi_align", aligned, "CPU")
    torch.library.register_fake("torchvision::nms", lambda b, s, i: b.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64), lib=library)
    torch.library.register_fake("torchvision::roi_align", lambda x, rois, _, h, w, *rest: x.new_empty(rois.shape[0], x.shape[1], h, w), lib=library)
    yield torch.ops.torchvision
    library._destroy()


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def boxes_of(count, side):
    corner = torch.rand(count, 2) * side
    return torch.cat([corner, corner + torch.rand(count, 2) * side / 2 + 1], 1)


@pytest.mark.parametrize("half", [False, True])
def test_contents_of_boxes(operators, half):
    x, rois = torch.randn(2, 3, 9, 11), torch.cat([torch.tensor([[0.0], [1.0], [1.0]]), boxes_of(3, 14)], 1)
    model = baton.compile(torch.export.export(Calls(lambda x, rois: operators.roi_align(x, rois, 0.5, 2, 3, 2, half)), (x, rois)))
    torch.testing.assert_close(torch.from_dlpack(model(x, rois)), aligned(x, rois, 0.5, 2, 3, 2, half), rtol=1e-4, atol=1e-5)


def test_boxes_that_overlap(operators):
    boxes, scores = boxes_of(40, 12), torch.randn(40)
    program = torch.export.export(Calls(lambda b, s: operators.nms(b, s, 0.3)), (boxes, scores))
    got = torch.from_dlpack(baton.compile(program)(boxes, scores))
    assert 1 < len(got) < 40 and got.tolist() == suppressed(boxes, scores, 0.3).tolist()


def test_boxes_that_are_taken(operators):
    """An extent that depends on values goes on."""
    boxes, scores = boxes_of(40, 12), torch.randn(40)

    def best(b, s):
        return b[operators.nms(b, s, 0.3)] * 2

    got = torch.from_dlpack(baton.compile(torch.export.export(Calls(best), (boxes, scores)))(boxes, scores))
    torch.testing.assert_close(got, boxes[suppressed(boxes, scores, 0.3)] * 2)
