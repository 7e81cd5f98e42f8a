# SPDX-License-Identifier: Apache-2.0
"""What the tests share: compilers with every warning as an error, and programs compiled by both code generators."""

import shutil
import subprocess

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton._ffi import get_global_func
from baton.contrib import graph_executor

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
COMPILERS = [name for name in ("gcc", "clang", "tcc") if shutil.which(name)]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler: apt-get install gcc")


def accept(path, folder, *more):
    """Every compiler here takes the file, with all warnings as errors."""
    for compiler in COMPILERS:
        flags = FLAGS if compiler != "tcc" else ["-std=c99", "-Wall", "-Werror"]
        done = subprocess.run([compiler, *flags, *more, "-O2", "-c", str(path), "-o", str(folder / "strict.o")], capture_output=True, text=True)
        assert done.returncode == 0, f"{compiler}: {done.stderr[:3000]}"


def lowered(mod):
    """The PrimFuncs that target "c" makes of a model: one function and its kernels."""
    target = tvm.target.Target("c")
    with target:
        return relay.transform.LowerToTIR()(get_global_func("driver.Optimize")(mod, target))


def both(mod):
    """(module by C, module by LLVM) of the same loops."""
    loops = lowered(mod)
    return [get_global_func("driver.Generate")(loops, tvm.target.Target(name)) for name in ("c", "llvm")]


def results(module, args):
    """What a compiled model gives for the arguments in order."""
    executor = module["default"](tvm.cpu())
    outputs = executor["run_with"](*[tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in args])
    return [o.numpy() for o in outputs]


def same_bits(a, b):
    """Whether arrays are equal bit by bit, but for the payload of NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        nan = np.isnan(a)
        return (nan == np.isnan(b)).all() and (a[~nan].tobytes() == b[~nan].tobytes())
    return a.tobytes() == b.tobytes()


__all__ = ["COMPILERS", "FLAGS", "accept", "both", "graph_executor", "lowered", "needs_compiler", "results", "same_bits"]
