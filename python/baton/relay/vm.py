# SPDX-License-Identifier: Apache-2.0
"""Compiling programs of any shapes and control flow."""

from ..runtime.vm import Executable
from .backend.executor import VMExecutor
from .build_module import build


def compile(mod, target=None, target_host=None, params=None):  # noqa: A001
    """An Executable of a program, for `baton.runtime.vm.VirtualMachine`."""
    return Executable(build(mod, target, params=params))


__all__ = ["Executable", "VMExecutor", "compile"]
