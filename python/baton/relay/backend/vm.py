# SPDX-License-Identifier: Apache-2.0
"""Compiling programs of any shapes and control flow: the same as `baton.relay.vm`."""

from ..vm import Executable, VMCompiler, VMExecutor, compile  # noqa: A004

__all__ = ["Executable", "VMCompiler", "VMExecutor", "compile"]
