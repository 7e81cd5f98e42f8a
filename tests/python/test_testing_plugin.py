# SPDX-License-Identifier: Apache-2.0
"""`baton.testing.plugin` in a run of its own."""

import os
import subprocess
import sys

import pytest

import baton as tvm
import baton.testing.plugin

TESTS = '''
import baton as tvm
import baton.testing.plugin

size = tvm.testing.parameter(3, 4)

def test_each(target, dev, size):
    assert tvm.device(target) == dev and size in (3, 4)

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_named(target, dev):
    assert target == "llvm" and dev == tvm.cpu(0)

@tvm.testing.known_failing_targets("llvm")
def test_failing(target):
    assert target != "llvm"

@tvm.testing.exclude_targets("llvm")
def test_none(target, dev):
    assert False

@tvm.testing.uses_gpu
def test_plain():
    pass

@tvm.testing.requires_package("no_such_package_at_all")
def test_skipped():
    assert False
'''


def test_the_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["baton.testing.plugin"]\n')
    (tmp_path / "test_targets.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "PASSED test_targets.py::test_each[3-llvm]",
        "PASSED test_targets.py::test_each[4-llvm]",
        "PASSED test_targets.py::test_named[llvm]",
        "XFAIL test_targets.py::test_failing[llvm]",
        "PASSED test_targets.py::test_plain",
    ):
        assert line in done.stdout, done.stdout
    assert "2 skipped" in done.stdout


def test_requirements_of_targets():
    assert not tvm.testing.plugin._target_to_requirement("llvm")[0].args[0], "llvm is there"
    assert tvm.testing.plugin._target_to_requirement("cuda -arch=sm_70")[0].args[0] and tvm.testing.plugin._target_to_requirement("none") == []


@pytest.mark.parametrize("name", ["vulkan", "metal", "rocm", "nvptx", "hexagon", "tensorcore", "ethosn", "cuda", "gpu", "llvm"])
def test_every_requirement_marks(name):
    requires = getattr(tvm.testing, f"requires_{name}")
    assert requires().name == "skipif" and callable(requires(lambda: None))
