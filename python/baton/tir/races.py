# SPDX-License-Identifier: Apache-2.0
"""Races of threads: accesses of one element, at least one of them a write, that no barrier orders."""

import numpy as np

from .._core import Object
from .._ffi import get_global_func
from ..error import RuntimeError as BatonRuntimeError
from ..ir.instrument import PassInstrument
from ..runtime.ndarray import array
from .expr import IntImm
from .function import PrimFunc


class Race(Object, key="tir.Race"):
    """Two accesses of one element by different threads; `str()` gives them as a sentence."""

    __slots__ = ()

    def __str__(self):
        return str(get_global_func("tir.RaceText")(self))


def find_races(func, arrays, threads="apart", mod=None):
    """Interprets a PrimFunc and returns a list of its races (`tir.Race`): buffer, index, and threads and statements of both accesses.

    Looked at are the kernels ("thread_extent") and the outermost parallel loops, whose rounds are threads. A barrier
    `tvm_storage_sync(scope)` orders accesses of memory of that scope, "shared" or "global", among the threads of a block, "warp" those of
    32 threads; nothing orders blocks. Code without barriers is meant to run in lockstep until `tir.transform.ThreadSync` has added
    them: ask after it. A pair of statements is reported once a buffer, with the first element found. Accesses that the
    input does not reach are not seen; the arrays are copied, not written to.

    threads: "together", "apart" or "apart backwards", the order in which threads are interpreted. mod: functions that can be called.
    Takes memory and time for each access: for small sizes.
    """
    copies = [array(np.array(a.numpy() if hasattr(a, "numpy") else a)) for a in arrays]
    return list(get_global_func("tir.analysis.find_races")(func, copies, threads, mod))


class RaceCheck(PassInstrument):
    """Looks for races after each pass, from the pass `after` on; an error names the pass, the function and the race.

    after: the name of the pass that adds barriers; None: from the first pass on. seed: of the random inputs. Functions are run on shapes as
    they are declared, with extents that are open set to `extent`, and passed over where they call code that the interpreter does not
    know. `checked` counts the functions that were run.
    """

    observes = True

    def __init__(self, after="tir.ThreadSync", seed=0, extent=33):
        self.after, self.seed, self.extent = after, seed, extent
        self.started, self.checked = after is None, 0
        super().__init__()

    def run_after_pass(self, mod, info):
        """Runs the functions of a module; raises for the first race."""
        name = str(info.name)
        self.started = self.started or name.removeprefix("tir.") == str(self.after).removeprefix("tir.")
        if not self.started:
            return
        for var, func in mod.functions.items():
            if not isinstance(func, PrimFunc) or not get_global_func("tir.analysis.can_interpret")(func):
                continue
            found = find_races(func, self._inputs(func), mod=mod)
            self.checked += 1
            if found:
                more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
                raise BatonRuntimeError(f"after {name}: @{var.name_hint}: {found[0]}{more}")

    def _inputs(self, func):
        rng = np.random.default_rng(self.seed)
        arrays = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            shape = [1] if buffer is None else [int(d.value) if isinstance(d, IntImm) else self.extent for d in buffer.shape]
            dtype = str(param.dtype if buffer is None else buffer.dtype)
            values = np.full(shape, self.extent) if buffer is None else rng.integers(0, 2 if dtype == "bool" else 9, shape)
            arrays.append(array(values.astype(dtype)) if dtype != "bfloat16" else array(values.astype("float32")).astype(dtype))
        return arrays
