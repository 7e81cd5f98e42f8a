# SPDX-License-Identifier: Apache-2.0
"""A compiled model on another machine, called as it is here."""

import os
import tempfile

from ..driver.executable import Executable


class _Deployed(Executable):
    """A model on another machine: what this one can do at best says nothing of its times."""

    _here = False


def deploy(session, model, device=None):
    """The model on the remote: an `Executable` (of `baton.compile`) whose calls run there. Results lie there; `.numpy()` copies them.

        remote = baton.rpc.connect("ssh://pi@board")
        model = baton.rpc.deploy(remote, baton.compile("model.onnx", target="llvm -mtriple=aarch64-linux-gnu"))
        y = model(x).numpy()

    model: an `Executable`, or the path of one that was saved. device: where it runs; the remote's CPU unless told otherwise.
    """
    device = device or session.cpu()
    if not isinstance(model, Executable):
        session.upload(model)
        return _Deployed(session.load_module(os.path.basename(os.fsdecode(model))), device=device)
    with tempfile.TemporaryDirectory(prefix="baton-deploy-") as folder:
        path = os.path.join(folder, "model.so")
        model.save(path)
        session.upload(path)
    return _Deployed(session.load_module("model.so"), device=device)


def timed(executable, device, inputs, number=1, repeat=10, min_repeat_ms=0):
    """Times runs of a model that `deploy` gave, on the remote: a `BenchmarkResult`, in seconds, without the network."""
    executor = executable._runners[0].executor
    for name, value in inputs.items():
        executor["set_input"](name, value)
    return executor.time_evaluator("run", device, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms)()
