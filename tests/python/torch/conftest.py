# SPDX-License-Identifier: Apache-2.0
"""All tests here need PyTorch, and skip without it."""

import importlib.util
import warnings

import pytest

HAVE_TORCH = importlib.util.find_spec("torch") is not None


def pytest_collection_modifyitems(items):
    """PyTorch's own warnings about Python are no business of ours."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    for item in items:
        if "python/torch/" in str(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning"))


@pytest.fixture(autouse=True)
def _seed():
    if HAVE_TORCH:
        import torch

        torch.manual_seed(0)
