# SPDX-License-Identifier: Apache-2.0
"""A model compiled for a processor of another kind: it is saved, or run where that processor is."""

from __future__ import annotations

from ..error import UnsupportedError
from .executable import Executable


class ForeignExecutable(Executable):
    """The result of `baton.compile` for the triple of another machine: an `Executable` that `save` and `baton.rpc.deploy` take, and whose
    calls are an UnsupportedError."""

    def __init__(self, module, target, inputs, outputs):
        self._module, self._target = module, target
        self._specialize, self.artifact = None, None
        self._read(inputs, outputs)

    def _refuse(self, *args, **kwargs):
        import platform

        raise UnsupportedError(
            f"code for {str(self._target.mtriple).partition('-')[0]} does not run on this machine ({platform.machine()}): "
            "`baton.rpc.deploy(session, model)` runs it on another one, `save` writes it"
        )

    __call__ = profile = shapes = reserve = _refuse
