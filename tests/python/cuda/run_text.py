# SPDX-License-Identifier: Apache-2.0
"""Runs a function of a PTX program by the interpreter, as the driver would launch its kernels."""

import numpy as np
import run_ptx
from kernel_texts import head_of, number


def run(text, *arrays, change=None):
    """Runs the only function of a program on arrays, of which it writes the last. `change` makes another text of the program's."""
    (function,) = head_of(text, "cuda")["functions"]
    sizes = [arrays[param].shape[dim] for param, dim in function["read"]]
    program, memory = run_ptx.Program(change(text) if change else text), run_ptx.Memory()
    arrays = [np.ascontiguousarray(a) for a in arrays]
    places = arrays + [np.full(number(n, sizes), 0xFF, "uint8") for n in function["workspace"]]
    at = [memory.add(p) for p in places]
    for k in function["kernels"]:
        if "items" in k:
            grid, block = (-(-number(k["items"], sizes) // 64), 1, 1), (64, 1, 1)
        else:
            grid, block = (tuple(number(n, sizes) for n in k[key]) for key in ("groups", "threads"))
        program.launch(k["name"], grid, block, [at[a] if a >= 0 else at[len(arrays) - 1 - a] for a in k["args"]] + sizes, memory)
    return arrays[-1]
