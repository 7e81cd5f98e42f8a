# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own table of operators through `bench/torch_ops.py`: nothing is wrong, nothing fails but by a named reason, and so many are right."""

import collections
import importlib.util
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

# Entries that are right by now, by dtype, with so many samples each: may only rise.
RIGHT = {"float32": 580, "int64": 380, "bool": 270, "bfloat16": 470}


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).resolve().parents[3] / "bench" / "torch_ops.py"
    spec = importlib.util.spec_from_file_location("torch_ops", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def check(bench, dtype, samples, only=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bench.run(getattr(torch, dtype), samples, only)
    wrong = {name: [row for row in went if row[0] in ("wrong", "failed")] for name, went in found.items() if bench.verdict(went) in ("wrong", "failed")}
    assert not wrong, wrong
    return collections.Counter(bench.verdict(went) for went in found.values())


OFTEN = {
    *("add", "mul", "sum", "mean", "amax", "argmax", "cumsum", "where", "cat", "index_put", "gather", "scatter_reduce.amax", "index_select", "topk", "sort"),
    *("nn.functional.conv2d", "nn.functional.conv_transpose2d", "nn.functional.max_pool2d", "nn.functional.avg_pool2d", "nn.functional.layer_norm"),
    *("nn.functional.group_norm", "nn.functional.linear", "nn.functional.embedding_bag", "nn.functional.interpolate.bilinear", "nn.functional.gelu"),
    *("addmm", "matmul", "bmm", "var", "std", "clamp", "div.floor_rounding", "remainder", "masked_scatter", "diagonal", "as_strided", "unfold"),
}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_operators_that_models_have(bench, dtype):
    counts = check(bench, dtype, 3, OFTEN)
    assert counts["unsupported"] <= 1 and counts["right"] >= 20, counts


@pytest.mark.slow
@pytest.mark.parametrize("dtype", RIGHT)
def test_a_sample_of_each(bench, dtype):
    counts = check(bench, dtype, 1)
    assert counts["right"] >= RIGHT[dtype], counts


@pytest.mark.long
@pytest.mark.parametrize("dtype", RIGHT)
def test_eight_samples_of_each(bench, dtype):
    counts = check(bench, dtype, 8)
    assert counts["right"] >= RIGHT[dtype], counts
