# SPDX-License-Identifier: Apache-2.0
"""The virtual machine's API that Relay's users know, over the one engine."""

from . import module as _module
from .devices import cpu


class Executable:
    """A compiled program, of any shapes and control flow."""

    def __init__(self, module):
        self.mod = module

    def get_function(self, name):
        """A function of the module."""
        return self.mod.get_function(name)

    def export_library(self, file_name):
        """Writes a shared library that the runtime alone can load."""
        self.mod.export_library(file_name)

    @staticmethod
    def load_exec(path, lib=None):
        """Loads what `export_library` wrote."""
        return Executable(_module.load_module(path))


class VirtualMachine:
    """Runs an Executable on a device."""

    def __init__(self, exe, device=None, memory_cfg=None):
        self.exe = exe if isinstance(exe, Executable) else Executable(exe)
        self.device = device or cpu()
        self._executor = self.exe.mod["default"](self.device)
        self._run, self._inputs, self._outputs = self._executor["run_with"], None, None

    def set_input(self, func_name, *args, **kwargs):
        """Keeps the arguments of the next call."""
        self._main(func_name)
        if kwargs:
            name = self._executor["get_input_name"]
            order = [name(i) for i in range(self._executor["get_num_inputs"]())]
            args = [*args, *(kwargs[n] for n in order[len(args):])]
        self._inputs = args

    def invoke(self, func_name, *args, **kwargs):
        """The result of a function; several results as an Array."""
        if args or kwargs or self._inputs is None:
            self.set_input(func_name, *args, **kwargs)
        from ..relay.backend.executor import to_value
        self._outputs = self._run(*map(to_value, self._inputs))
        return self._outputs[0] if len(self._outputs) == 1 else self._outputs

    def run(self, *args, **kwargs):
        """`invoke("main", ...)`."""
        return self.invoke("main", *args, **kwargs)

    def get_outputs(self):
        """The results of the last call."""
        return list(self._outputs)

    def benchmark(self, device, *args, func_name="main", repeat=5, number=5, **kwargs):
        """Seconds a call, averaged over `number` calls, `repeat` times."""
        import time
        self.set_input(func_name, *args, **kwargs)
        results = []
        for _ in range(repeat):
            begin = time.perf_counter()
            for _ in range(number):
                self.invoke(func_name)
            results.append((time.perf_counter() - begin) / number)
        return _module.BenchmarkResult(results)

    @staticmethod
    def _main(name):
        if name != "main":
            raise AttributeError(f"a compiled program has the function `main` alone, not `{name}`")
