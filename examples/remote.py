# SPDX-License-Identifier: Apache-2.0
"""Compiles a network here for a machine of another kind, runs it there, compares the result with this machine's, and times it there.

    ./dev cross aarch64
    python examples/remote.py                                  # on an emulated machine, by qemu-aarch64
    ./dev cross riscv64 && python examples/remote.py riscv64
    python examples/remote.py aarch64 --url ssh://pi@board     # on a board that has baton-rpc-server

Needs for an emulated machine Debian's packages qemu-user and g++-aarch64-linux-gnu (g++-riscv64-linux-gnu, g++-arm-linux-gnueabihf).
"""

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import baton
from baton import relay, rpc

ROOT = Path(__file__).resolve().parents[1]
# Machine -> (triple of compiled code, triple of Debian's packages, emulator).
MACHINES = {
    "aarch64": ("aarch64-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-gnu", "riscv64-linux-gnu", "qemu-riscv64"),
    "armhf": ("arm-linux-gnueabihf", "arm-linux-gnueabihf", "qemu-arm"),
}


def network(rng):
    """A small convolutional network with a dense head: images (1, 3, 16, 16) to logarithms of ten probabilities."""

    def weights(*shape):
        return relay.const((rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))

    x = relay.var("x", shape=(1, 3, 16, 16))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weights(16, 3, 3, 3), padding=1), weights(16)))
    y = relay.nn.max_pool2d(y, pool_size=2, strides=2)
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(y, weights(32, 16, 3, 3), padding=1), weights(32)))
    y = relay.tanh(relay.nn.dense(relay.nn.batch_flatten(relay.nn.avg_pool2d(y, pool_size=2, strides=2)), weights(64, 512)))
    return baton.IRModule.from_expr(relay.Function([x], relay.nn.log_softmax(relay.nn.dense(y, weights(10, 64)))))


def missing(machine):
    """Missing parts of the machine for emulating another one, as a command that installs or builds it; None if nothing."""
    _, debian, qemu = MACHINES[machine]
    if not shutil.which(qemu) or not shutil.which(f"{debian}-g++"):
        return f"apt-get install --no-install-recommends qemu-user g++-{debian}"
    if not server_of(machine).exists():
        return f"./dev cross {machine}"
    return None


def server_of(machine):
    """The server for a machine, as `./dev cross` built it."""
    return ROOT / f"build-{machine}" / "baton" / "lib" / "baton-rpc-server"


def url_of(machine):
    """The address of an emulated machine: its server runs while the session does."""
    _, debian, qemu = MACHINES[machine]
    return "exec:" + shlex.join(["exec", qemu, "-L", f"/usr/{debian}", str(server_of(machine)), "--stdio"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", nargs="?", default="aarch64", choices=list(MACHINES))
    parser.add_argument("--url", help="a server of such a machine, as ssh://pi@board")
    args = parser.parse_args()
    lacking = None if args.url else missing(args.machine)
    if lacking:
        sys.exit(f"error: no {args.machine} machine can be emulated here\n  mend: {lacking}")

    rng = np.random.default_rng(0)
    module, image = network(rng), rng.normal(size=(1, 3, 16, 16)).astype("float32")
    here = baton.compile(module)
    there = baton.compile(module, target=f"llvm -mtriple={MACHINES[args.machine][0]}")
    with rpc.connect(args.url or url_of(args.machine), connect_timeout=30) as remote:
        remote_model = rpc.deploy(remote, there)
        want, got = here(image).numpy(), remote_model(image).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        print(f"{args.machine}: equal to this machine's to {np.abs(got - want).max():.1e}")
        # The same by hand: upload, load, call, and times taken there.
        with tempfile.TemporaryDirectory() as folder:
            there.save(f"{folder}/model.so")
            remote.upload(f"{folder}/model.so")
        executor = remote.load_module("model.so")["default"](remote.cpu())
        executor["set_input"](0, baton.nd.array(image, remote.cpu()))
        times = executor.time_evaluator("run", remote.cpu(), number=5, repeat=3)()
        print(f"{times.mean * 1e3:.2f} ms there")


if __name__ == "__main__":
    main()
