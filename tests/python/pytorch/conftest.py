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
        if "python/pytorch/" in str(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning"))


@pytest.fixture
def fresh():
    """The door is open, and nothing is compiled before a test or left behind it."""
    import torch

    from baton.contrib import torch as door

    torch._dynamo.reset()
    door.register()
    yield
    torch._dynamo.reset()


@pytest.fixture(autouse=True)
def _seed():
    if HAVE_TORCH:
        import torch

        torch.manual_seed(0)
