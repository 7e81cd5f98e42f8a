# SPDX-License-Identifier: Apache-2.0
"""Makes the stand-in for the CUDA driver run kernels by the interpreter of PTX: `BATON_CUDA_LIBRARY` names it, `install()` joins both."""

import ctypes
import functools
import json
import os

import numpy as np
import run_ptx

_RUNNER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_void_p)
)
FAULTS = []  # of launches, which a driver would tell later
LAUNCHES = []


@functools.lru_cache(64)
def _program(text):
    return run_ptx.Program(text)


@functools.lru_cache(64)
def _addresses(text):
    """How many of a kernel's first parameters are addresses."""
    head = json.loads(text.partition("\n")[0].removeprefix("// baton-cuda "))
    return {k["name"]: len(k["args"]) for f in head["functions"] for k in f["kernels"]}


def install(path=None):
    library = ctypes.CDLL(str(path or os.environ["BATON_CUDA_LIBRARY"]))

    def run(ptx, name, grid, block, args):
        try:
            program, name = _program(ptx.decode()), name.decode()
            memory, values = run_ptx.Memory(), []
            addresses = _addresses(ptx.decode())[name]
            for i in range(len(program.kernels[name].params)):
                value = ctypes.c_uint64.from_address(args[i]).value
                values.append(value)
                if i < addresses:
                    base, size = find(value)
                    if base not in [b for b, _ in memory.arrays]:
                        memory.add(np.ctypeslib.as_array(ctypes.cast(base, ctypes.POINTER(ctypes.c_uint8)), (size,)), base)
            LAUNCHES.append((name, tuple(grid[:3]), tuple(block[:3])))
            program.launch(name, tuple(grid[:3]), tuple(block[:3]), values, memory)
        except Exception as e:  # noqa: BLE001: there is no way out of a callback but this
            FAULTS.append(e)

    def find(address):
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        if library.fake_cuda_find(ctypes.c_uint64(address), ctypes.byref(base), ctypes.byref(size)):
            raise run_ptx.Fault(f"address {address:#x} was not allocated")
        return base.value, size.value

    keep = _RUNNER(run)
    library.fake_cuda_run_with(keep)
    install.keep = keep
    return library
