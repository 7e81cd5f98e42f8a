# SPDX-License-Identifier: Apache-2.0
"""Compiling programs of any shapes and control flow."""

from .._ffi import get_global_func
from ..relay.expr import Tuple
from ..relay.function import Function
from ..runtime.vm import Executable
from .executors import VMExecutor
from .options import capsule
from .outside import import_all, made_outside
from .relay_build import BuildModule, _bind, _module, build
from .targets import device_name, target_of, targets_of


def compile(mod, target=None, target_host=None, params=None):  # noqa: A001
    """An Executable of a program, for `baton.runtime.vm.VirtualMachine`, whose `invoke` calls any function of the program."""
    mod, modules = made_outside(_module(mod))
    others = [f for v, f in mod.functions.items() if isinstance(f, Function) and v.name_hint != "main" and not f.type_params]
    if not others:
        return Executable(import_all(build(mod, target, params=params), modules))
    if "main" not in mod:
        mod = mod.shallow_copy()
        mod["main"] = Function([], Tuple([]))
    mod, targets = _bind(mod, params), targets_of(target)
    one = None if targets else target_of(target)
    with capsule():
        if one and get_global_func("target.OnHost")(one):
            return Executable(import_all(get_global_func("driver.CompileVm")(mod, one), modules))
        targets = targets or {device_name(one.device_type): one}
        return Executable(import_all(get_global_func("driver.CompileForDevices")(mod, targets), modules))


class VMCompiler(BuildModule):
    """The steps of `compile`, one by one.

    compiler = relay.vm.VMCompiler()
    compiler.set_params({"w": w})
    compiler.lower(mod, target="llvm")
    compiler.codegen()
    exe = compiler.get_exec()
    """

    def lower(self, mod, target=None, target_host=None):
        """Compiles a module with the parameters set."""
        self._made = compile(mod, target, params=self.params).mod

    def codegen(self):
        """Nothing is left to do: `lower` makes the code, too."""

    def get_exec(self):
        """The program that `lower` made."""
        return Executable(self.get_module())


__all__ = ["Executable", "VMCompiler", "VMExecutor", "compile"]
