# SPDX-License-Identifier: Apache-2.0
"""Helps for tests."""

from .._ffi import convert, get_global_func
from .numeric import assert_allclose, assert_prim_expr_equal, check_bool_expr_is_true, check_int_constraints_trans_consistency, check_numerical_grads
from .parametrized import (
    DEFAULT_TEST_TARGETS,
    device_enabled,
    enabled_targets,
    exclude_targets,
    fixture,
    known_failing_targets,
    parameter,
    parameters,
    parametrize_targets,
    requires_cmsisnn,
    requires_corstone300,
    requires_cublas,
    requires_cuda,
    requires_cudagraph,
    requires_cudnn,
    requires_ethosn,
    requires_ethosu,
    requires_gpu,
    requires_hexagon,
    requires_libtorch,
    requires_llvm,
    requires_metal,
    requires_micro,
    requires_nvptx,
    requires_opencl,
    requires_package,
    requires_rocm,
    requires_rpc,
    requires_tensorcore,
    requires_vitis_ai,
    requires_vulkan,
    skip_if_32bit,
    slow,
    uses_gpu,
)


def reduce(mod, predicate, budget=600, shapes=True):
    """A smaller module for which `predicate(module)` is still true; see `baton.guard.reduce`."""
    from ..guard import reduce as smaller

    return smaller(mod, predicate, budget, shapes)


def object_use_count(obj):
    """References to an object of C++, without the one that this call makes."""
    return get_global_func("testing.object_use_count")(obj)


def identity_cpp(obj):
    """Returns the argument after a way through C++ and back."""
    return convert([obj])[0]


def echo(x):
    """The value after a way to C++ and back."""
    return get_global_func("testing.echo")(x)


def test_wrap_callback(callback):
    """A function of C++ that calls this one; an exception of it passes through C++."""
    return get_global_func("testing.test_wrap_callback")(callback)


def test_raise_error_callback(message):
    """A function of C++ that raises "Kind: what happened"."""
    return get_global_func("testing.test_raise_error_callback")(message)


def test_check_eq_callback(message):
    """A function of C++ of two ints that raises "Kind: what happened" unless they are equal."""
    return get_global_func("testing.test_check_eq_callback")(message)


# These are helpers: a test runner would take them for tests by their names.
test_wrap_callback.__test__ = test_raise_error_callback.__test__ = test_check_eq_callback.__test__ = False


def ErrorTest(x, y):
    """Raises ValueError unless the ints are equal, and InternalError if both are 1."""
    return get_global_func("testing.ErrorTest")(x, y)


def device_test(dev, device_type, device_id):
    """The device after a way to C++ and back; ValueError unless it is of this type and number there."""
    return get_global_func("testing.device_test")(dev, device_type, device_id)


def identity_after(x, sleep):
    """The value, after so many seconds. For tests of pools of processes, as those that follow."""
    import time

    if sleep:
        time.sleep(sleep)
    return x


def terminate_self():
    """Ends the process."""
    import sys

    sys.exit(-1)


TEST_GLOBAL_STATE_1 = TEST_GLOBAL_STATE_2 = TEST_GLOBAL_STATE_3 = 0


def initializer(test_global_state_1, test_global_state_2, test_global_state_3):
    """Sets the state of a process, for `after_initializer` to tell."""
    global TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3
    TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3 = test_global_state_1, test_global_state_2, test_global_state_3


def after_initializer():
    """Returns the values that `initializer` set in this process."""
    return TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3


def register_ffi():
    """Registers functions of Python in this process, for `call_py_ffi` and `call_cpp_py_ffi`."""
    from .._ffi import register_func

    register_func("testing.nested_identity_py", lambda arg: arg, override=True)


def call_py_ffi(arg):
    """The value after a way through the registered function of Python."""
    return get_global_func("testing.nested_identity_py")(arg)


def call_cpp_ffi(arg):
    """The value after a way through C++."""
    return get_global_func("testing.echo")(arg)


def call_cpp_py_ffi(arg):
    """The value after a way through C++ into the function of Python."""
    return get_global_func("testing.call")(get_global_func("testing.nested_identity_py"), arg)


def fast_summation(n):
    """0 + 1 + ... + n, by the formula."""
    return n * (n + 1) // 2


def slow_summation(n):
    """0 + 1 + ... + n, one by one."""
    return sum(range(n + 1))


def timeout_job(n):
    """Sleeps longer than n seconds."""
    import time

    time.sleep(n * 1.5)


def main():
    """Runs the tests of the calling file."""
    import inspect
    import sys

    import pytest

    sys.exit(pytest.main([inspect.stack()[1].filename, *sys.argv[1:]]))
