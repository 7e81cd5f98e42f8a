# SPDX-License-Identifier: Apache-2.0
"""A virtual machine that says where the time goes."""

import json

from .profiling import Report
from .values import to_value
from .vm import VirtualMachine


def enabled():
    """Whether programs can be profiled: they can."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine with `profile`."""

    def profile(self, *args, func_name="main", collectors=None, **kwargs):
        """A Report of one call of a function: each kernel's time where the program has fixed shapes and was compiled in this process, else
        the time of the whole. Times are medians of some rounds."""
        import statistics
        import time

        self.set_input(func_name, *args, **kwargs)
        values = self._inputs[func_name]
        device = f"{self.device}"
        mod = self.exe.mod
        if func_name == "main" and mod.implements_function("profile"):
            found = json.loads(str(mod["profile"]([to_value(v) for v in values], 5)))
            calls = [{"Name": s["kernel"], "Duration (us)": s["median_us"], "Count": 1, "Device": device} for s in found["steps"]]
            return Report(calls, {device: {"Duration (us)": found["total_us"], "Count": 1}})
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            self.invoke(func_name)
            times.append((time.perf_counter() - begin) * 1e6)
        spent = statistics.median(times)
        return Report([{"Name": func_name, "Duration (us)": spent, "Count": 1, "Device": device}], {device: {"Duration (us)": spent, "Count": 1}})


__all__ = ["VirtualMachineProfiler", "enabled"]
