# SPDX-License-Identifier: Apache-2.0
"""Compiling programs of any shapes and control flow."""

from ..runtime.vm import Executable
from .backend.executor import VMExecutor
from .build_module import BuildModule, build


def compile(mod, target=None, target_host=None, params=None):  # noqa: A001
    """An Executable of a program, for `baton.runtime.vm.VirtualMachine`."""
    return Executable(build(mod, target, params=params))


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
        self.build(mod, target, params=self.params)

    def codegen(self):
        """Nothing is left to do: `lower` makes the code, too."""

    def get_exec(self):
        """The program that `lower` made."""
        return Executable(self.get_module())


__all__ = ["Executable", "VMCompiler", "VMExecutor", "compile"]
