# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest: `pytest_plugins = ["baton.testing.plugin"]` runs each test that takes `target` once for each target that is
enabled here; `dev` is its device. It also runs a test once for each row of `baton.testing.parameters`.

`baton.testing.exclude_targets` leaves targets out, `known_failing_targets` expects failures, `parametrize_targets` names them.
"""

import pytest

from ..runtime import device
from . import parametrized

_MARKS = {
    "gpu": "uses a GPU",
    "cuda": "needs CUDA",
    "opencl": "needs OpenCL",
    "llvm": "needs LLVM",
    "vulkan": "needs Vulkan",
    "metal": "needs Metal",
    "rocm": "needs ROCm",
}


def pytest_configure(config):
    """Names the marks that `uses_gpu` and its like put on tests."""
    parametrized.plugin_is_active = True
    for name, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


@pytest.fixture
def dev(target):
    """The device of the test's target."""
    return device(parametrized.kind_of(target))


def _parametrized(metafunc):
    """Names that marks of the test, its class or its module give values to."""
    found = set()
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        found.update(names.replace(" ", "").split(",") if isinstance(names, str) else names)
    return found


def _target_to_requirement(target):
    """The marks that skip a test where there is no such target."""
    return parametrized.target_requirement(target)


def _groups(metafunc, taken):
    """Groups of values that belong together -> the names by which a test, or a fixture of it, takes them."""
    found = {}
    for name, definitions in metafunc.definition._fixtureinfo.name2fixturedefs.items():
        group = getattr(definitions[-1].func, "parameter_group", None) if definitions else None
        if group is not None and name not in taken and name in metafunc.fixturenames:
            found.setdefault(group, []).append(name)
    return found


def pytest_generate_tests(metafunc):
    """A test for each enabled target, where a test takes one and does not say which; a test for each row of values."""
    taken = _parametrized(metafunc)
    for group, names in _groups(metafunc, taken).items():
        rows = range(len(group.rows))
        ids = group.ids or [
            "-".join(str(v) if isinstance(v, (str, int, float, bool)) else f"{name}{i}" for name, v in ((n, _value(metafunc, n, i)) for n in names))
            for i in rows
        ]
        metafunc.parametrize(names, [[i] * len(names) for i in rows], indirect=True, ids=ids)
    if "target" in metafunc.fixturenames and "target" not in taken and not _is_fixture(metafunc, "target"):
        targets = parametrized.chosen_targets()
        metafunc.parametrize("target", list(parametrized.target_params(targets, metafunc.function, metafunc.cls, with_device=False)))


def _is_fixture(metafunc, name):
    """Whether a program has its own fixture by this name."""
    return bool(metafunc.definition._fixtureinfo.name2fixturedefs.get(name))


def _value(metafunc, name, row):
    func = metafunc.definition._fixtureinfo.name2fixturedefs[name][-1].func
    return func.parameter_group.rows[row][func.column]
