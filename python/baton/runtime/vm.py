# SPDX-License-Identifier: Apache-2.0
"""The virtual machine's API that Relay's users know, over the one engine."""

from .. import error as _errors
from .._core import Array
from . import module as _module
from .devices import cpu
from .runner import Runner
from .values import fitted, to_value


class Executable:
    """A compiled program, of any shapes and control flow. Immutable; machines in several threads may share it."""

    def __init__(self, module):
        self.mod = module

    def get_function(self, name):
        """A function of the module."""
        return self.mod.get_function(name)

    @property
    def bytecode(self):
        """The program as text, an instruction a line; `r1!` is a last use. A program of fixed shapes has none, and is shown as Relay."""
        return self.mod.get_source("vm" if self.mod.type_key == "vm" else "relay")

    @property
    def lib(self):
        """The module with the code."""
        return self.mod

    @property
    def stats(self):
        """The parts of the program, in words."""
        lines = [f"Relay VM executable statistics: {len(str(self.bytecode).splitlines())} lines of bytecode"]
        for what, names in (("Globals", self.globals), ("Primitive ops", self.primitive_ops)):
            lines.append(f"  {what} (#{len(names)}): [{', '.join(names)}]")
        return "\n".join(lines)

    @property
    def globals(self):
        """Names of the functions that `VirtualMachine.invoke` calls."""
        import re

        try:
            return sorted(set(re.findall(r"^(\w+): \d+ parameters", str(self.bytecode), re.MULTILINE)) or {"main"})
        except _errors.UnsupportedError:  # a loaded program of fixed shapes, which keeps code alone
            return ["main"]

    module = property(lambda self: self.mod, doc="The module with the code.")

    def get_function_params(self, func_name):
        """Names of the parameters of a function; of `main` alone they are kept."""
        if func_name not in self.globals:
            raise ValueError(f"no function is called `{func_name}`; there are {', '.join(self.globals)}")
        if func_name != "main":
            return []
        return Runner(self.mod["default"](cpu())).names("input")

    @property
    def primitive_ops(self):
        """Names of the kernels that it calls; none of a loaded program of fixed shapes, which keeps code alone."""
        import re

        if self.mod.type_key == "vm":
            return list(dict.fromkeys(re.findall(r"^ +\d+: (?:packed|kernel) (\S+)", str(self.bytecode), re.MULTILINE)))
        try:
            return re.findall(r"^def @(\w+)", str(self.mod.get_source("tir")), re.MULTILINE)
        except _errors.UnsupportedError:
            return []

    def export_library(self, file_name):
        """Writes a shared library that the runtime alone can load."""
        self.mod.export_library(file_name)

    def save(self):
        """(the program as bytes, the module with the code); `load_exec` takes both, or the bytes alone."""
        import os
        import tempfile

        with tempfile.TemporaryDirectory(prefix="baton-") as folder:
            path = os.path.join(folder, "program.so")
            self.mod.export_library(path)
            with open(path, "rb") as f:
                return bytearray(f.read()), self.mod

    @staticmethod
    def load_exec(bytecode, lib=None):
        """The program of what `save` gave; or of a file that `export_library` wrote, by path."""
        if not isinstance(bytecode, (bytes, bytearray, memoryview)):
            return Executable(_module.load_module(bytecode))
        import os
        import tempfile

        with tempfile.TemporaryDirectory(prefix="baton-") as folder:
            path = os.path.join(folder, "program.so")
            with open(path, "wb") as f:
                f.write(bytecode)
            return Executable(_module.load_module(path))


class VirtualMachine:
    """Runs an Executable on a device, or on a list of devices if it was compiled for several.

        exe = relay.vm.compile(mod, target="llvm")
        vm = VirtualMachine(exe, baton.cpu())
        vm.invoke("main", x)

    One thread at a time: make a machine for each, they share code and weights.
    """

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2  # accepted as `memory_cfg`; there is one allocator

    module = property(lambda self: self._executor, doc="The module of the machine itself, whose functions are `invoke` and its like.")

    def __init__(self, exe, device=None, memory_cfg=None):
        self.exe = exe if isinstance(exe, Executable) else Executable(exe)
        devices = device if isinstance(device, (list, tuple)) else [device or cpu()]
        devices = list(dict.fromkeys(devices))
        if not devices:
            raise ValueError("a virtual machine runs on a device, and the list of devices is empty")
        self.device = devices[0]
        self._executor = self.exe.mod["default"](*devices)
        if len(devices) > 1 and not self._executor.implements_function("get_devices"):
            raise ValueError(f"the program was compiled for one device, a virtual machine runs it on one, not on {', '.join(map(str, devices))}")
        try:
            self._call, self._names = self._executor["invoke"], self._executor["entry_inputs"]
            self._dtypes = self._executor["entry_dtypes"]
        except AttributeError:
            # A program without control flow is one function.
            run, rows = self._executor["call"], Runner(self._executor).rows("input")
            names, dtypes = [row[0] for row in rows], [row[2] for row in rows]
            self._call, self._names = self._only_main(lambda _, *args: run(*flat(args))), self._only_main(lambda _: names)
            self._dtypes = self._only_main(lambda _: dtypes)
        self._inputs, self._outputs = {}, None

    def set_input(self, func_name, *args, **kwargs):
        """Keeps the arguments of the next call of a function, by position or name."""
        if kwargs:
            names = list(self._names(func_name))
            rest = names[len(args) :]
            unknown = [k for k in kwargs if k not in rest]
            if unknown:
                raise TypeError(f"`{func_name}` has no parameter `{unknown[0]}`, or got it twice; it has {', '.join(names)}")
            missing = [n for n in rest if n not in kwargs]
            if missing:
                raise TypeError(f"`{func_name}` needs `{'`, `'.join(missing)}`")
            args = [*args, *(kwargs[n] for n in rest)]
        self._inputs[func_name] = args

    def invoke(self, func_name, *args, **kwargs):
        """The value of a function: an NDArray, an Array for a tuple, an ADT for data."""
        if args or kwargs or func_name not in self._inputs:
            self.set_input(func_name, *args, **kwargs)
        values = [to_value(v) for v in self._inputs[func_name]]
        dtypes = list(self._dtypes(func_name))
        if len(dtypes) != len(values) == 1:  # the fields of a tuple
            values = flat(values)
        if len(dtypes) == len(values):
            names = self._names(func_name)
            values = [fitted(v, dtype, name, i) for i, (v, dtype, name) in enumerate(zip(values, dtypes, names, strict=True))]
        self._outputs = self._call(func_name, *values)
        return self._outputs

    def run(self, *args, **kwargs):
        """`invoke("main", ...)`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name, *args, **kwargs):
        """`invoke`, for `get_outputs` to tell the results."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self):
        """The results of the last call, a list."""
        if self._outputs is None:
            raise RuntimeError("no function has been called yet")
        return list(self._outputs) if isinstance(self._outputs, Array) else [self._outputs]

    def benchmark(
        self,
        device,
        *args,
        func_name="main",
        repeat=5,
        number=5,
        min_repeat_ms=None,
        limit_zero_time_iterations=100,
        end_to_end=False,
        cooldown_interval_ms=0,
        repeats_to_cooldown=1,
        **kwargs,
    ):
        """Seconds a call, averaged over `number` calls, `repeat` times; over more calls where these take less than `min_repeat_ms` together,
        with a pause after each `repeats_to_cooldown`. With `end_to_end`, copying inputs in and outputs out counts too."""

        def once():
            if end_to_end:
                self.set_input(func_name, *args, **kwargs)
            out = self.invoke(func_name)
            for value in flat([out]) if end_to_end else ():
                if hasattr(value, "numpy"):
                    value.numpy()

        self.set_input(func_name, *args, **kwargs)
        return _module.timed(once, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown, limit_zero_time_iterations)

    @staticmethod
    def _only_main(function):
        def call(name, *args):
            if name != "main":
                raise _errors.AttributeError(f"the program has no function `{name}`; it has `main`")
            return function(name, *args)

        return call


def flat(values):
    """Arrays in a row, of nested tuples: as a program without control flow takes them."""
    if not any(isinstance(v, (Array, list, tuple)) for v in values):
        return values
    todo, out = list(reversed(values)), []
    while todo:
        value = todo.pop()
        if isinstance(value, (Array, list, tuple)):
            todo.extend(reversed(list(value)))
        else:
            out.append(value)
    return out
