# SPDX-License-Identifier: Apache-2.0
"""Facts about PrimFuncs."""

from .._ffi import get_global_func


def expr_deep_equal(lhs, rhs):
    """Whether two expressions have the same structure and the same variables."""
    return bool(get_global_func("tir.analysis.expr_deep_equal")(lhs, rhs))


def verify_ssa(func):
    """Whether each variable and buffer of a function is bound at one place alone."""
    return bool(get_global_func("tir.analysis.verify_ssa")(func))


def verify_memory(func):
    """Whether a function touches memory only where it may. One for a device (its attribute "target", else the current target) may do so
    within parallel loops alone, whose iterations are the device's work-items; a function for a host may do so anywhere."""
    return bool(get_global_func("tir.analysis.verify_memory")(func))


def verify_gpu_code(func, constraints):
    """Whether the kernels of a function keep within the limits of a device.

    constraints: limits by name; those not named are not checked. max_threads_per_block, max_thread_x, max_thread_y, max_thread_z and
    max_vthread in threads, max_shared_memory_per_block, max_local_memory_per_block and max_vector_bytes in bytes, max_kernels.
    """
    return bool(get_global_func("tir.analysis.verify_gpu_code")(func, constraints))


def verify_well_formed(func):
    """Whether everything is bound where it is used, indices are as many as dimensions, and dtypes agree."""
    return bool(get_global_func("tir.analysis.verify_well_formed")(func))


def __getattr__(name):
    func = None if name.startswith("_") else get_global_func("tir.analysis." + name, allow_missing=True)
    if func is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return func
