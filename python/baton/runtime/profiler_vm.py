# SPDX-License-Identifier: Apache-2.0
"""A virtual machine that says where the time goes."""

from .profiling import Report
from .steps import times_of_steps
from .values import to_value
from .vm import VirtualMachine, flat


def enabled():
    """Whether programs can be profiled: they can."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine with `profile`."""

    def profile(self, *args, func_name="main", collectors=None, **kwargs):
        """A Report of one call of a function: of `main` the time of each kernel and host function, else the time of the whole. Times are medians
        of some rounds."""
        import statistics
        import time

        self.set_input(func_name, *args, **kwargs)
        values = self._inputs[func_name]
        device = f"{self.device}"
        if func_name == "main" and self._executor.implements_function("profile"):
            values = [to_value(v) for v in values]
            found, _ = times_of_steps(self._executor, values if self._executor.implements_function("invoke") else flat(values), 5)
            calls = [{"Name": s["kernel"], "Duration (us)": s["median_us"], "Count": s["count"], "Device": device} for s in found["steps"]]
            return Report(calls, {device: {"Duration (us)": found["total_us"], "Count": 1}})
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            self.invoke(func_name)
            times.append((time.perf_counter() - begin) * 1e6)
        spent = statistics.median(times)
        return Report([{"Name": func_name, "Duration (us)": spent, "Count": 1, "Device": device}], {device: {"Duration (us)": spent, "Count": 1}})


__all__ = ["VirtualMachineProfiler", "enabled"]
