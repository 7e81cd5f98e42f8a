# SPDX-License-Identifier: Apache-2.0
"""`baton.testing`: errors and callbacks through C++, and what pools of processes are tested with."""

import multiprocessing
import traceback

import pytest

import baton as tvm


def test_a_kind_becomes_its_class():  # PF-014
    with pytest.raises(tvm.error.OpNotImplemented, match="myop") as caught:
        tvm.testing.test_raise_error_callback("OpNotImplemented: myop")()
    assert isinstance(caught.value, NotImplementedError)
    with pytest.raises(tvm.error.InternalError, match="no kind: said"):
        tvm.testing.test_raise_error_callback("this is no kind: said")()
    equal = tvm.testing.test_check_eq_callback("InternalError: myop")
    assert equal(2, 2) is None
    with pytest.raises(tvm.error.InternalError, match="myop"):
        equal(0, 1)
    with pytest.raises(ValueError, match="0 and 1"):
        tvm.testing.ErrorTest(0, 1)
    with pytest.raises(tvm.error.InternalError, match="x is 1"):
        tvm.testing.ErrorTest(1, 1)
    assert tvm.testing.ErrorTest(2, 2) is None


def test_an_exception_through_three_callbacks():  # PF-014
    raised = ValueError("callback error")

    def error_callback():
        raise raised

    one = tvm.testing.test_wrap_callback(error_callback)

    def flevel2():
        one()

    two = tvm.testing.test_wrap_callback(flevel2)

    def flevel3():
        two()

    with pytest.raises(ValueError, match="callback error") as caught:
        tvm.testing.test_wrap_callback(flevel3)()
    assert caught.value is raised
    text = "".join(traceback.format_exception(caught.value))
    assert text.index("in flevel3") < text.index("in flevel2") < text.index("in error_callback")


def test_devices():
    dev = tvm.cpu(3)
    assert tvm.testing.device_test(dev, dev.device_type, dev.device_id) == dev
    with pytest.raises(ValueError, match=r"cpu\(3\), not number 0"):
        tvm.testing.device_test(dev, dev.device_type, 0)


def in_a_process(queue):
    tvm.testing.initializer(1, 2, 3)
    tvm.testing.register_ffi()
    queue.put(
        [
            tvm.testing.after_initializer(),
            tvm.testing.call_py_ffi("a"),
            tvm.testing.call_cpp_ffi("b"),
            tvm.testing.call_cpp_py_ffi("c"),
            tvm.testing.identity_after("d", 0.01),
            tvm.testing.fast_summation(100),
            tvm.testing.slow_summation(100),
        ]
    )
    tvm.testing.terminate_self()


def test_what_pools_are_tested_with():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=in_a_process, args=(queue,))
    process.start()
    assert queue.get() == [(1, 2, 3), "a", "b", "c", "d", 5050, 5050]
    process.join()
    assert process.exitcode not in (0, None)
