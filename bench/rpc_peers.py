# SPDX-License-Identifier: Apache-2.0
"""A call over other remote systems, for `bench/rpc.py`: grpcio with TLS, apache-tvm. Each server is a separate process; what is not
installed is not measured."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

GRPC = """
import sys, grpc
from concurrent.futures import ThreadPoolExecutor

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

pem = open(sys.argv[1], "rb").read()
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((Echo(),))
port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pem, pem)]))
server.start()
print(port, flush=True)
server.wait_for_termination()
"""
TVM = """
import sys
from tvm import rpc
if __name__ == "__main__":
    server = rpc.Server("127.0.0.1", 9300, port_end=9400)
    print(server.port, flush=True)
    sys.stdin.read()
    server.terminate()
"""


class Peer:
    """A server in a separate process; its port is the last word of its first line."""

    def __init__(self, program: str, *arguments: str):
        command = [sys.executable, "-c", program, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self._process.stdout.readline().split()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def grpc_call(certificate: str | None, percentiles, count: int) -> tuple[float, float] | None:
    """(p50, p99) in seconds of a call with 16 bytes, which come back, over TLS."""
    if certificate is None or importlib.util.find_spec("grpc") is None:
        return None
    import grpc

    with open(certificate, "rb") as file:
        trusted = grpc.ssl_channel_credentials(file.read())
    with Peer(GRPC, certificate) as peer:
        with grpc.secure_channel(f"127.0.0.1:{peer.port}", trusted, [("grpc.ssl_target_name_override", "localhost")]) as channel:
            call = channel.unary_unary("/bench/echo")
            return percentiles(lambda: call(b"0" * 16, timeout=10), count)


def tvm_call(percentiles, count: int) -> tuple[float, float] | None:
    """The same of a function that every server has, with a string, over plain TCP."""
    if importlib.util.find_spec("tvm") is None:
        return None
    from tvm import rpc

    with Peer(TVM) as peer:
        remote = rpc.connect("127.0.0.1", peer.port)
        call = remote.get_function("runtime.RuntimeEnabled")
        return percentiles(lambda: call("cpu"), count)
