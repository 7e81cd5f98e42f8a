# SPDX-License-Identifier: Apache-2.0
"""`baton.testing` as test files of Relay's programs use it: parameters, fixtures, targets, marks, comparisons."""

import os
import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
import baton.testing
from baton import relay, te, tir

FEATURES = '''
import numpy as np
import pytest
import baton as tvm
import baton.testing

size, dtype = tvm.testing.parameters((16, "float32"), (512, "float16"))
n = tvm.testing.parameter(1, 2)
calls = []


@tvm.testing.fixture(cache_return_value=True)
def data(size, dtype):
    calls.append((size, dtype))
    return {"values": [size], "array": tvm.nd.array(np.zeros(2, dtype))}


@tvm.testing.fixture
def double(n):
    return 2 * n


def test_rows(size, dtype, n, double):
    assert (size, dtype) in [(16, "float32"), (512, "float16")] and double == 2 * n


def test_column(dtype):
    assert dtype in ("float32", "float16")


def test_kept(data, size, n):
    assert data["values"] == [size]
    data["values"].append("changed")


def test_kept_once():
    assert len(calls) == 2


@tvm.testing.parametrize_targets("llvm", "cuda")
def test_target_alone(target):
    assert target == "llvm"


@tvm.testing.parametrize_targets("llvm")
def test_target_and_device(target, dev):
    assert dev == tvm.cpu()


@tvm.testing.parametrize_targets
def test_bare(target, dev):
    assert dev == tvm.device(target)


@pytest.mark.parametrize("k", [1, 2])
@tvm.testing.parametrize_targets("llvm")
def test_with_others(k, target, dev, n):
    assert k in (1, 2)


@tvm.testing.fixture
def described(target, dev):
    return f"{target} on {dev}"


@tvm.testing.known_failing_targets("llvm")
def test_known(target, dev):
    assert False


@tvm.testing.exclude_targets("cuda", "vulkan")
@tvm.testing.known_failing_targets("opencl")
def test_excluded(target, described):
    assert described.startswith(target)


@tvm.testing.requires_llvm
def test_requires():
    pass


@tvm.testing.requires_llvm()
def test_requires_called():
    pass


@tvm.testing.requires_cuda
class TestNeedsCuda:
    def test_it(self):
        assert False


@tvm.testing.uses_gpu()
def test_uses():
    pass


class TestInClass:
    width = tvm.testing.parameter(3, 4)
    a, b = tvm.testing.parameters((1, 10), (2, 20))

    @tvm.testing.fixture
    def area(self, width):
        return width * width

    @tvm.testing.fixture(cache_return_value=True)
    def kept(self, width):
        return [width]

    def test_them(self, target, dev, width, area, kept, a, b):
        assert area == width**2 and kept == [width] and b == 10 * a

    @tvm.testing.known_failing_targets("llvm")
    def test_known(self, target):
        assert False

    @tvm.testing.exclude_targets("llvm")
    def test_excluded(self, target):
        assert False

    @tvm.testing.parametrize_targets("llvm")
    def test_chosen(self, target, dev):
        assert target == "llvm"

    @tvm.testing.parametrize_targets("llvm")
    def test_chosen_alone(self, target):
        assert target == "llvm"


@tvm.testing.known_failing_targets("llvm")
class TestKnown:
    def test_it(self, target):
        assert False


@pytest.mark.parametrize("target", [pytest.param("llvm", marks=tvm.testing.requires_llvm()), pytest.param("cuda", marks=tvm.testing.requires_cuda())])
def test_marks(target):
    assert target == "llvm"
'''


def run_tests(tmp_path, text, plugin=True, **env):
    if plugin:
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["baton.testing.plugin"]\n')
    (tmp_path / "test_them.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    return done.stdout + done.stderr


def test_features_with_the_plugin(tmp_path):
    out = run_tests(tmp_path, FEATURES)
    lines = [line.replace("test_them.py::", "") for line in out.splitlines()]

    def count(word, name):
        return sum(line.startswith(f"{word} {name}[") or line.split(" - ")[0] == f"{word} {name}" for line in lines)

    for word, name, times in (
        ("PASSED", "test_rows", 4),
        ("PASSED", "test_column", 2),
        ("PASSED", "test_kept", 4),
        ("PASSED", "test_kept_once", 1),
        ("PASSED", "test_target_alone", 1),
        ("PASSED", "test_target_and_device", 1),
        ("PASSED", "test_bare", 1),
        ("PASSED", "test_with_others", 4),
        ("XFAIL", "test_known", 1),
        ("PASSED", "test_excluded", 1),
        ("PASSED", "test_requires", 1),
        ("PASSED", "test_requires_called", 1),
        ("PASSED", "test_uses", 1),
        ("PASSED", "TestInClass::test_them", 4),
        ("XFAIL", "TestInClass::test_known", 1),
        ("PASSED", "TestInClass::test_chosen", 1),
        ("PASSED", "TestInClass::test_chosen_alone", 1),
        ("XFAIL", "TestKnown::test_it", 1),
        ("PASSED", "test_marks", 1),
    ):
        assert count(word, name) == times, (word, name)
    assert " failed" not in out and " error" not in out and "Warning" not in out, out
    assert "16-float32" in out


def test_without_the_plugin(tmp_path):
    text = FEATURES.split("@tvm.testing.fixture\ndef described")[0].replace("test_kept_once", "_no")
    out = run_tests(tmp_path, text, plugin=False)
    assert " failed" not in out and " error" not in out and "17 passed" in out, out


def test_targets_by_an_environment_variable(tmp_path):
    out = run_tests(tmp_path, "def test(target, dev):\n    pass\n", TVM_TEST_TARGETS="llvm;llvm -mcpu=x86-64;cuda")
    assert "2 passed" in out and "cuda" not in out and "test[llvm -mcpu=x86-64]" in out, out


def test_values_that_cannot_be_kept(tmp_path):
    out = run_tests(
        tmp_path,
        """
import threading, baton as tvm, baton.testing
@tvm.testing.fixture(cache_return_value=True)
def lock():
    return threading.Lock()
def test(lock):
    pass
""",
    )
    assert "1 error" in out and "`lock` cannot be kept" in out, out


def test_no_value_is_kept_where_that_is_turned_off(tmp_path):
    out = run_tests(
        tmp_path,
        """
import baton as tvm, baton.testing, pytest
made = []
@tvm.testing.fixture(cache_return_value=True)
def one():
    made.append(1)
    return len(made)
@pytest.mark.parametrize("i", range(3))
def test(one, i):
    assert one == i + 1
""",
        TVM_TEST_DISABLE_CACHE="1",
    )
    assert "3 passed" in out, out


def test_numerical_gradients():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3)).astype("float32"), rng.standard_normal(3).astype("float32")
    tvm.testing.check_numerical_grads(lambda x, y: (x * x * y).sum(), {"x": x, "y": y}, {"x": 2 * x * y, "y": (x * x).sum(0)})
    tvm.testing.check_numerical_grads(lambda a: np.sin(a).sum(), [x], [np.cos(x)], function_value=float(np.sin(x).sum()))
    with pytest.raises(AssertionError, match="gradient of y"):
        tvm.testing.check_numerical_grads(lambda x, y: (x * x * y).sum(), {"x": x, "y": y}, {"x": 2 * x * y, "y": 2 * (x * x).sum(0)})
    with pytest.raises(AssertionError, match="shape"):
        tvm.testing.check_numerical_grads(lambda a: a.sum(), [x], [np.ones(6)])
    with pytest.raises(AssertionError, match="finite"):
        tvm.testing.check_numerical_grads(lambda a: a.sum(), [x], [np.full(x.shape, np.nan)])


def test_gradients_of_a_program_get_its_dtype():
    x = relay.var("x", shape=(3,))
    run = relay.create_executor("graph").evaluate(relay.Function([x], relay.sum(x * x)))
    at = np.array([1, 2, 3], "float32")
    tvm.testing.check_numerical_grads(lambda v: run(v).numpy(), [at], [2 * at], delta=1e-2)


def test_expressions_that_are_provably_equal():
    x, y = te.var("x"), te.var("y")
    tvm.testing.assert_prim_expr_equal((x + y) * 2, 2 * y + x * 2)
    tvm.testing.assert_prim_expr_equal(x + y, y + x)
    with pytest.raises(AssertionError, match="not equal"):
        tvm.testing.assert_prim_expr_equal(x + y, x - y)


def test_conditions_over_ranges():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    ranges = {x: tvm.ir.Range(0, 10), y: tvm.ir.Range(0, 10)}
    tvm.testing.check_bool_expr_is_true(x * 2 > y * 4, ranges, x > y * 2)
    tvm.testing.check_bool_expr_is_true(x + y < 19, ranges)
    with pytest.raises(AssertionError, match="x = 0, y = 0"):
        tvm.testing.check_bool_expr_is_true(x > y, ranges)


@pytest.mark.parametrize("module", ["baton.testing.utils", "baton.testing.popen_pool"])
def test_modules_of_helpers(module):
    import importlib

    assert importlib.import_module(module) is tvm.testing


def test_arrays_are_compared_with_their_shapes():
    tvm.testing.assert_allclose(tvm.nd.array(np.ones(3, "float32")), np.ones(3), rtol=1e-6)
    for other in (np.ones(4), np.full(3, 1.1)):
        with pytest.raises(AssertionError):
            tvm.testing.assert_allclose(np.ones(3), other)
