# SPDX-License-Identifier: Apache-2.0
"""Rounds of connect, load, run, close: what is left behind. `python bench/rpc_soak.py 10000` (the bar: 100,000 rounds, at most 1 MiB of
growth in client and server, no descriptor, no process). `--tls` over loopback TLS; `--check` makes a miss exit code 1."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))


def resident(pid: int) -> int:
    """Bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def state(server: int) -> dict:
    """Memory, descriptors and processes of both sides, once the pool of the server's processes is full again."""
    found = {}
    for _ in range(100):
        found = {
            "client bytes": resident(os.getpid()), "server bytes": resident(server), "client descriptors": len(os.listdir("/proc/self/fd")),
            "server descriptors": len(os.listdir(f"/proc/{server}/fd")),
            "processes": len(Path(f"/proc/{server}/task/{server}/children").read_text().split()),
        }  # fmt: skip
        if found["processes"] == 4:
            break
        time.sleep(0.05)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=10_000)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    import numpy as np

    import baton
    from baton import relay, rpc
    from baton.rpc.server import program

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = os.environ["TMPDIR"] = folder
        x = relay.var("x", shape=(4,))
        baton.relay.build(baton.IRModule.from_expr(relay.Function([x], relay.add(x, x))), target="llvm").export_library(f"{folder}/m.so")
        data, model = np.arange(4, dtype="float32"), Path(folder, "m.so").read_bytes()
        url = "tls://127.0.0.1:0" if args.tls else f"unix:{folder}/s"
        with subprocess.Popen([program(), "--listen", url], stdout=subprocess.PIPE, text=True) as process:
            try:
                url = process.stdout.readline().split()[-1]

                def once():
                    with rpc.connect(url, connect_timeout=20) as remote:
                        remote.upload(model, "m.so")
                        run = remote.load_module("m.so")["default"](remote.cpu())
                        run["set_input"]("x", data)
                        run["run"]()
                        assert run["get_output"](0).numpy()[3] == 6

                for _ in range(200):
                    once()
                before, began = state(process.pid), time.perf_counter()
                for number in range(1, args.rounds + 1):
                    once()
                    if number % max(1, args.rounds // 5) == 0:
                        print(f"{number} rounds, {number / (time.perf_counter() - began):.0f}/s: {state(process.pid)}", flush=True)
                after = state(process.pid)
                files = len(list(Path(folder).glob("baton-rpc-server-*/*")))
            finally:
                process.terminate()
    growth = {name: after[name] - before[name] for name in after}
    print(f"growth: {growth}; files of sessions left: {files}")
    good = all(amount <= (1 << 20 if name.endswith("bytes") else 0) for name, amount in growth.items()) and not files
    print("holds" if good else "MISSED")
    return 0 if good or not args.check else 1


if __name__ == "__main__":
    sys.exit(main())
