# SPDX-License-Identifier: Apache-2.0
"""Compiling programs of any shapes and control flow."""

from .._ffi import get_global_func
from ..driver.compiler import capsule
from ..ir import TupleType
from ..runtime.vm import Executable
from .backend.executor import VMExecutor
from .build_module import BuildModule, _bind, _module, _target, _targets, build
from .expr import Tuple
from .function import Function
from .transform import InferType


def compile(mod, target=None, target_host=None, params=None):  # noqa: A001
    """An Executable of a program, for `baton.runtime.vm.VirtualMachine`, whose `invoke` calls any function of the program."""
    mod = _module(mod)
    others = [f for v, f in mod.functions.items() if isinstance(f, Function) and v.name_hint != "main" and not f.type_params]
    targets = _targets(target)
    if targets or _target(target).kind.name != "llvm" or not others and not gives_structure(mod):
        return Executable(build(mod, target, params=params))
    if "main" not in mod:
        mod = mod.shallow_copy()
        mod["main"] = Function([], Tuple([]))
    with capsule():
        return Executable(get_global_func("driver.CompileVm")(_bind(mod, params), _target(target)))


def gives_structure(mod):
    """Whether main gives a tuple that is not a plain row of several tensors: a program without control flow would flatten it."""
    if "main" not in mod:
        return False
    gives = InferType()(mod)["main"].ret_type
    return isinstance(gives, TupleType) and (len(gives.fields) == 1 or any(isinstance(t, TupleType) for t in gives.fields))


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
