# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest: `pytest_plugins = ["baton.testing.plugin"]` runs each test that takes `target` once for each target that is
enabled here; `dev` is its device.

`baton.testing.exclude_targets` leaves targets out, `known_failing_targets` expects failures, `parametrize_targets` names them.
"""

import pytest

from .. import testing
from ..runtime import device

_MARKS = {"gpu": "uses a GPU", "cuda": "needs CUDA", "opencl": "needs OpenCL", "llvm": "needs LLVM", "vulkan": "needs Vulkan",
          "metal": "needs Metal", "rocm": "needs ROCm"}


def pytest_configure(config):
    """Names the marks that `uses_gpu` and its like put on tests."""
    for name, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


@pytest.fixture
def dev(target):
    """The device of the test's target."""
    return device(str(target))


def _parametrized(metafunc):
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0]
        if "target" in (names.replace(" ", "").split(",") if isinstance(names, str) else names):
            return True
    return False


def _target_to_requirement(target):
    """The marks that skip a test where there is no such target."""
    requires = getattr(testing, f"requires_{str(target).split(' ', 1)[0]}", None)
    return [] if requires is None else [requires()]


def pytest_generate_tests(metafunc):
    """A test for each enabled target, where a test takes one and does not say which."""
    if "target" not in metafunc.fixturenames or _parametrized(metafunc):
        return
    excluded = getattr(metafunc.function, "tvm_excluded_targets", ())
    failing = getattr(metafunc.function, "tvm_known_failing_targets", ())
    chosen = [t for t, _ in testing.enabled_targets() if t not in excluded and t.split(" ", 1)[0] not in excluded]
    metafunc.parametrize("target", [pytest.param(t, id=t, marks=pytest.mark.xfail(reason=f"is known to fail on {t}") if t in failing else ())
                                    for t in chosen])
