# SPDX-License-Identifier: Apache-2.0
"""Records a conversation for the corpus: `python tests/rpc/corpus/record.py NAME` writes NAME.txt beside this file, with the release that is
here. A line a piece: `>` from the client, `<` from the server, and its bytes in hexadecimal digits. Add one with each release; remove none."""

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent


def converse(url):
    """What is recorded: each kind of call, an error, arrays small and large, a file."""
    import numpy as np

    import baton
    from baton import rpc

    with rpc.connect(url) as remote:
        assert remote.get_function("runtime.DeviceExists")(remote.cpu())
        x = np.arange(6, dtype="float32").reshape(2, 3)
        a = baton.nd.array(x, remote.cpu())
        b = baton.nd.empty((2, 3), "float32", remote.cpu())
        a.copyto(b)
        assert (b.numpy() == x).all()
        remote.upload(b"content", "name")
        remote.upload(b"content", "name")
        assert bytes(remote.download("name")) == b"content"
        remote.remove("name")
        try:
            remote.get_function("runtime.ReadManifest")("/nonexistent")
        except (OSError, RuntimeError):
            pass
        remote.cpu(0)
        a.device.sync()


def record(path, unix):
    lines, lock = [], threading.Lock()

    def passes(source, sink, mark):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with lock:
                    lines.append(f"{mark} {data.hex()}\n")
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{unix}.tap")
        listener.listen()
        thread = threading.Thread(target=converse, args=(f"unix:{unix}.tap",))
        thread.start()
        near, _ = listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(unix)
        ways = [threading.Thread(target=passes, args=way) for way in ((near, far, ">"), (far, near, "<"))]
        for one in ways:
            one.start()
        for one in [thread, *ways]:
            one.join()
    path.write_text("".join(lines))


def main():
    from baton.rpc.server import program

    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([program(), "--listen", f"unix:{folder}/s"], stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            record(HERE / f"{sys.argv[1]}.txt", f"{folder}/s")
            process.terminate()


if __name__ == "__main__":
    main()
