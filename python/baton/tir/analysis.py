# SPDX-License-Identifier: Apache-2.0
"""Facts about PrimFuncs."""

from .._core import convert
from .._ffi import get_global_func
from ..error import UnsupportedError
from ..ir import PrimExpr
from ..runtime import DataType
from .expr import BufferLoad, IntImm
from .stmt import Allocate, BufferStore, For, Stmt
from .stmt_functor import _parts


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


def calculate_workspace_bytes(func, workspace_byte_alignment):
    """The bytes that the allocations of a function take at most at one time, each a multiple of `workspace_byte_alignment`."""
    align = int(workspace_byte_alignment)

    def peak(node):
        """Allocations that follow each other share memory, those within each other do not."""
        inner = max((peak(p) for p in _parts(node) if isinstance(p, Stmt)), default=0)
        if not isinstance(node, Allocate):
            return inner
        count = 1
        for extent in node.extents:
            count *= int(extent.value) if isinstance(extent, IntImm) else 0
        size = count * DataType(str(node.dtype)).itemsize
        return inner + -(-size // align) * align

    return peak(func.body)


def detect_buffer_access_lca(func):
    """The innermost loop around all accesses of each buffer of a function; None where there is none. A map by Buffer."""
    around = {}
    todo = [(func.body, ())]
    while todo:
        node, loops = todo.pop()
        if isinstance(node, (BufferLoad, BufferStore)):
            buffer, before = around.get(node.buffer.handle, (node.buffer, loops))
            shared = 0
            while shared < min(len(before), len(loops)) and before[shared].same_as(loops[shared]):
                shared += 1
            around[node.buffer.handle] = buffer, loops[:shared]
        inside = (*loops, node) if isinstance(node, For) else loops
        todo += [(p, inside) for p in _parts(node) if isinstance(p, (Stmt, PrimExpr))]
    return convert({buffer: loops[-1] if loops else None for buffer, loops in around.values()})


def _of_blocks(name):
    def call(block, buffer_var_map=None):
        raise UnsupportedError(
            f"tir.analysis.{name} is not there: PrimFuncs have no blocks; detect_buffer_access_lca and Analyzer().int_set say what loops access"
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Not there: PrimFuncs have no blocks."
    return call


get_block_access_region, get_block_read_write_region = map(_of_blocks, ("get_block_access_region", "get_block_read_write_region"))


def __getattr__(name):
    func = None if name.startswith("_") else get_global_func("tir.analysis." + name, allow_missing=True)
    if func is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return func
