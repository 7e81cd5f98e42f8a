# SPDX-License-Identifier: Apache-2.0
"""Helps for tests."""

import functools

from .._ffi import get_global_func


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7):
    """Raises AssertionError unless two arrays are close: |actual - desired| <= atol + rtol * |desired|, shapes equal."""
    import numpy as np
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    if actual.shape != desired.shape:
        raise AssertionError(f"shapes differ: {actual.shape} and {desired.shape}")
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def device_enabled(target):
    """Whether code for a target can be made and run here."""
    from .. import runtime
    return runtime.enabled(str(target).split(" ", 1)[0])


def enabled_targets():
    """(target, device) of what there is to test on."""
    from ..runtime import device
    return [(t, device(t)) for t in ("llvm",) if device_enabled(t)]


def _requires(what, there):
    def requires(f=None):
        import pytest
        mark = pytest.mark.skipif(not there(), reason=f"needs {what}")
        return mark if f is None else mark(f)

    requires.__doc__ = f"Skips a test where there is no {what}."
    return requires


requires_llvm = _requires("llvm", lambda: device_enabled("llvm"))
requires_cuda = _requires("cuda", lambda: device_enabled("cuda"))
requires_gpu = _requires("a GPU", lambda: any(map(device_enabled, ("cuda", "opencl", "metal", "rocm", "vulkan"))))
requires_opencl = _requires("opencl", lambda: device_enabled("opencl"))
requires_rpc = _requires("rpc", lambda: get_global_func("rpc.Connect", allow_missing=True) is not None)
requires_micro = _requires("micro", lambda: False)
requires_cudagraph = requires_cuda
requires_vulkan = _requires("vulkan", lambda: device_enabled("vulkan"))
requires_metal = _requires("metal", lambda: device_enabled("metal"))
requires_rocm = _requires("rocm", lambda: device_enabled("rocm"))
requires_nvptx = _requires("nvptx", lambda: device_enabled("nvptx"))
requires_hexagon = _requires("hexagon", lambda: device_enabled("hexagon"))
requires_tensorcore = _requires("tensor cores", lambda: False)
requires_ethosn = _requires("ethosn", lambda: False)


def requires_package(*packages):
    """Skips a test where a package of Python is missing."""
    import importlib.util
    missing = [p for p in packages if importlib.util.find_spec(p.split(".")[0]) is None]
    return _requires(f"the packages {', '.join(packages)}", lambda: not missing)()


def uses_gpu(f):
    """Marks a test that uses a GPU where there is one."""
    return f


def parametrize_targets(*args):
    """Runs a test for each enabled target, as arguments `target` and `dev`."""

    if len(args) == 1 and callable(args[0]):
        return _for_each(args[0], [t for t, _ in enabled_targets()])
    return lambda f: _for_each(f, args or [t for t, _ in enabled_targets()])


def _for_each(f, targets):
    import pytest

    from ..runtime import device
    found = [(t, device(t)) for t in targets if device_enabled(t)]
    return pytest.mark.parametrize("target, dev", found, ids=[t for t, _ in found])(f)


def exclude_targets(*args):
    """Runs a test for all enabled targets but these."""

    def decorate(f):
        f.tvm_excluded_targets = args
        return _for_each(f, [t for t, _ in enabled_targets() if t not in args])

    return decorate


def known_failing_targets(*args):
    """Marks targets that a test is known to fail on."""

    def decorate(f):
        f.tvm_known_failing_targets = args
        return f

    return decorate


def parameter(*values, ids=None):
    """A fixture that takes each of the values."""
    import pytest

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(request):
        return request.param

    return as_fixture


def parameters(*value_sets, ids=None):
    """Fixtures that take the values of each set together."""
    import pytest
    rows = range(len(value_sets))

    def one(column):
        @pytest.fixture(params=rows, ids=ids, scope="function")
        def as_fixture(request):
            return value_sets[request.param][column]

        return as_fixture

    return [one(i) for i in range(len(value_sets[0]))]


def fixture(func=None, *, cache_return_value=False):
    """A fixture; its value may be kept between tests."""
    import pytest
    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    return pytest.fixture(scope="session" if cache_return_value else "function")(func)


def assert_prim_expr_equal(lhs, rhs):
    """Raises AssertionError unless two loop expressions are structurally equal."""
    from .. import ir
    if not ir.structural_equal(lhs, rhs):
        raise AssertionError(f"{lhs} and {rhs} differ")


def check_numerical_grads(function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1):
    """Raises AssertionError unless gradients agree with differences of the function's values, element by element."""
    import numpy as np
    names = list(input_values) if isinstance(input_values, dict) else None
    values = {n: np.array(v, "float64") for n, v in (input_values.items() if names else enumerate(input_values))}
    grads = dict(grad_values.items() if names else enumerate(grad_values))

    def at(changed):
        return float(np.sum(function(**changed) if names else function(*changed.values())))

    for name, value in values.items():
        want = np.zeros(value.shape)
        for place in np.ndindex(value.shape):
            ends = []
            for step in (delta, -delta):
                moved = value.copy()
                moved[place] += step
                ends.append(at({**values, name: moved}))
            want[place] = (ends[0] - ends[1]) / (2 * delta)
        np.testing.assert_allclose(grads[name], want, rtol=rtol, atol=atol, err_msg=f"gradient of {name}")


def reduce(mod, predicate, budget=600, shapes=True):
    """A smaller module for which `predicate(module)` is still true; see `baton.guard.reduce`."""
    from ..guard import reduce as smaller
    return smaller(mod, predicate, budget, shapes)


def object_use_count(obj):
    """References to an object of C++, without the one that this call makes."""
    return get_global_func("testing.object_use_count")(obj)


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


# Not tests of their own, whatever a test runner thinks of their names.
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
    """What `initializer` set in this process."""
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
