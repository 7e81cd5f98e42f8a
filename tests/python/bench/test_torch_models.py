# SPDX-License-Identifier: Apache-2.0
"""`bench/torch_models.py` compares detections as sets: rounding orders equal scores."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
BENCH = Path(__file__).resolve().parents[3] / "bench"


@pytest.fixture(scope="module")
def unlike():
    sys.path.insert(0, str(BENCH))
    try:
        import torch_models

        yield torch_models.unlike
    finally:
        sys.path.remove(str(BENCH))


def found():
    return [
        {
            "boxes": torch.tensor([[0.0, 0, 4, 4], [5, 5, 9, 9], [1, 1, 2, 2]]),
            "scores": torch.tensor([0.7, 0.7, 0.2]),
            "labels": torch.tensor([1, 2, 1]),
            "keypoints": torch.tensor([[[1.0, 1, 1]], [[6, 6, 1]], [[1, 2, 1]]]),
            "keypoints_scores": torch.tensor([[3.0], [4.0], [5.0]]),
        }
    ]


def test_another_order_of_equal_scores(unlike):
    got = [{key: value[[1, 0, 2]] for key, value in found()[0].items()}]
    assert unlike(got, found()) is None


def test_a_key_point_at_another_maximum(unlike):
    got = found()
    got[0]["keypoints"][1] += 2
    assert unlike(got, found()) is None
    got[0]["keypoints_scores"][1] += 0.1
    assert "box 1" in unlike(got, found())


@pytest.mark.parametrize("field", ["boxes", "scores", "labels"])
def test_detections_that_differ(unlike, field):
    got = found()
    got[0][field][2] += 1
    assert "image 0: box 2 [1.0, 1.0, 2.0, 2.0] of score 0.2000 has no partner" in unlike(got, found())


def test_a_box_that_is_not_there(unlike):
    got = [{key: value[:2] for key, value in found()[0].items()}]
    assert unlike(got, found()) == "other fields or counts than eager's"
    twice = [{key: value[[0, 0, 2]] for key, value in found()[0].items()}]
    assert "box 1" in unlike(twice, found())
