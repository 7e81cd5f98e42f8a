# SPDX-License-Identifier: Apache-2.0
"""The graph executor with times of its kernels."""

import json

from ...runtime.profiling import Report
from .. import graph_executor


def create(graph_json_str, libmod, device, dump_root=None):
    """An executor of a module that says where its time goes. The graph is part of the module, so `graph_json_str` is not read; nothing is
    written to `dump_root`."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    return GraphModuleDebug(libmod["default"](*devices), devices[0], graph_json_str, dump_root, libmod)


class GraphModuleDebug(graph_executor.GraphModule):
    """A model with its inputs and outputs, and times of its kernels. `libmod`: the module that was compiled in this process, without
    which the time of the whole is all that can be told."""

    def __init__(self, module, device, graph_json_str=None, dump_root=None, libmod=None):
        super().__init__(module)
        self._device, self._libmod = device, libmod

    def _steps(self, rounds):
        if self._libmod is None or not self._libmod.implements_function("profile"):
            times = self.module.time_evaluator("run", self._device, 1, rounds)()
            return [{"kernel": "run", "median_us": times.median * 1e6}], times.median * 1e6
        inputs = [self.get_input(i) for i in range(self.get_num_inputs())]
        found = json.loads(str(self._libmod["profile"](inputs, rounds)))
        return found["steps"], found["total_us"]

    def profile(self, collectors=None, **input_dict):
        """A Report of the kernels' times, on inputs by name if they are given."""
        if input_dict:
            self.set_input(**input_dict)
        steps, total = self._steps(5)
        device = str(self._device)
        calls = [{"Name": s["kernel"], "Duration (us)": s["median_us"], "Count": 1, "Device": device} for s in steps]
        return Report(calls, {device: {"Duration (us)": total, "Count": 1}})

    def run_individual(self, number, repeat=1, min_repeat_ms=0):
        """The kernels' times in microseconds, in the order in which they run, over `number * repeat` rounds."""
        return [s["median_us"] for s in self._steps(max(1, number * repeat))[0]]


__all__ = ["GraphModuleDebug", "create"]
