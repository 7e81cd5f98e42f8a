# SPDX-License-Identifier: Apache-2.0
"""The cost of remote sessions: a call, calls at the same time, 64 MB each way, a new session; beside plain TCP and bare TLS of the same run.

`python bench/rpc.py` starts `baton-rpc-server` on a Unix socket and on loopback with a key. `--quick` measures less. `--check` makes a missed
bar exit code 1. apache-tvm and grpcio are measured too where they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import importlib.util
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

import rpc_peers  # noqa: E402

MB = 1 << 20


def percentiles(action, count: int) -> tuple[float, float]:
    """(p50, p99) in seconds."""
    for _ in range(max(3, count // 20)):
        action()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    times.sort()
    return statistics.median(times), times[min(count - 1, int(0.99 * count))]


class Echo:
    """A peer in a separate process: it echoes 64 bytes, and takes and gives bulk; over TCP, or TLS 1.3 with a certificate."""

    PROGRAM = """
import socket, ssl, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
context = None
if sys.argv[1:]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(sys.argv[1])
while True:
    s, _ = listener.accept()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context:
        s = context.wrap_socket(s, server_side=True)
    buffer = bytearray(1 << 20)
    while head := s.recv(64):
        if head[:1] == b"u":
            left = int(head[1:])
            while left:
                left -= s.recv_into(buffer, min(left, len(buffer)))
            s.sendall(b"k")
        elif head[:1] == b"d":
            left = int(head[1:])
            while left:
                n = min(left, len(buffer))
                s.sendall(memoryview(buffer)[:n])
                left -= n
        else:
            s.sendall(head)
"""

    def __init__(self, certificate: str | None = None):
        command = [sys.executable, "-c", self.PROGRAM, *([certificate] if certificate else [])]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self._process.stdout.readline())
        self._certificate = certificate
        self.socket = self.connect()

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._certificate:
            context = ssl.create_default_context(cafile=self._certificate)
            context.check_hostname = False
            s = context.wrap_socket(s)
        return s

    def echo(self):
        self.socket.sendall(b"e" * 64)
        self.socket.recv(64)

    def up(self, data: bytes):
        self.socket.sendall(b"u%063d" % len(data))
        self.socket.sendall(data)
        self.socket.recv(1)

    def down(self, size: int, buffer: bytearray):
        self.socket.sendall(b"d%063d" % size)
        view = memoryview(buffer)
        while size:
            n = self.socket.recv_into(view, min(size, MB))
            view, size = view[n:], size - n

    def close(self):
        self.socket.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def certificate_in(folder: str) -> str | None:
    """A self-signed certificate with its key, or None without the package `cryptography`."""
    if importlib.util.find_spec("cryptography") is None:
        return None
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False).sign(key, hashes.SHA256())
    )  # fmt: skip
    path = os.path.join(folder, "echo.pem")
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    Path(path).write_bytes(made.public_bytes(pem) + private)
    return path


@contextlib.contextmanager
def server(url: str):
    from baton.rpc.server import program

    process = subprocess.Popen([program(), "--listen", url, "--policy", "trusted"], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def measure(name: str, url: str, scale: float, rows: dict) -> None:
    """Figures of one transport into `rows`."""
    import numpy as np

    import baton
    from baton import rpc

    count = int(20000 * scale)
    with rpc.connect(url) as remote:
        call, device = remote.get_function("runtime.DeviceExists"), remote.cpu()
        rows[f"{name} call us"] = tuple(1e6 * t for t in percentiles(lambda: call(device), count))
        begin = time.perf_counter()
        for _ in range(max(1, count // 1000)):
            for one in [remote.call_async(call, device) for _ in range(1000)]:
                one.result()
        rows[f"{name} async calls/s"] = 1000 * max(1, count // 1000) / (time.perf_counter() - begin)
        x = np.random.default_rng(0).integers(0, 255, 64 * MB, dtype="uint8")
        a, out = baton.nd.empty(x.shape, "uint8", remote.cpu()), baton.nd.empty(x.shape, "uint8")
        local = baton.nd.array(x)
        best = {"up": 1e9, "down": 1e9}
        for _ in range(max(2, int(5 * scale))):
            for way, source, target in (("up", local, a), ("down", a, out)):
                begin = time.perf_counter()
                source.copyto(target)
                best[way] = min(best[way], time.perf_counter() - begin)
        assert hashlib.sha256(out.numpy()).digest() == hashlib.sha256(x).digest()
        for way, seconds in best.items():
            rows[f"{name} {way} GB/s"] = x.nbytes / seconds / 1e9
        data = x.tobytes()
        remote.upload(data, "f")
        begin = time.perf_counter()
        remote.upload(data, "f")
        rows[f"{name} second upload ms"] = 1e3 * (time.perf_counter() - begin)

        # Small calls of another thread while a file goes up.
        done = threading.Event()
        thread = threading.Thread(target=lambda: (remote.upload(os.urandom(int(256 * scale) * MB + MB), "large"), done.set()))
        thread.start()
        times = []
        while not done.is_set():
            begin = time.perf_counter()
            call(device)
            times.append(time.perf_counter() - begin)
        thread.join()
        times.sort()
        rows[f"{name} call during upload, p99 ms"] = 1e3 * times[int(0.99 * (len(times) - 1))]

    def session():
        with rpc.connect(url) as remote:
            remote.get_function("runtime.DeviceExists")

    times = []
    for _ in range(int(200 * scale) + 10):
        begin = time.perf_counter()
        session()
        times.append(time.perf_counter() - begin)
        time.sleep(0.01)  # one that is wanted now and then; the pool of processes is full
    rows[f"{name} session ready ms"] = 1e3 * statistics.median(times)
    begin, count = time.perf_counter(), int(300 * scale) + 20
    for _ in range(count):
        session()
    rows[f"{name} sessions/s, one client"] = count / (time.perf_counter() - begin)


def peers(rows: dict, folder: str, scale: float) -> None:
    """Plain TCP and bare TLS."""
    data, buffer = os.urandom(64 * MB), bytearray(64 * MB)
    for name, certificate in (("TCP", None), ("TLS", certificate_in(folder))):
        if name == "TLS" and certificate is None:
            print("bare TLS: needs the package cryptography", file=sys.stderr)
            continue
        echo = Echo(certificate)
        rows[f"{name} echo us"] = tuple(1e6 * t for t in percentiles(echo.echo, int(20000 * scale)))
        for way, action in (("up", lambda echo=echo: echo.up(data)), ("down", lambda echo=echo: echo.down(len(data), buffer))):
            best = 1e9
            for _ in range(3):
                begin = time.perf_counter()
                action()
                best = min(best, time.perf_counter() - begin)
            rows[f"{name} {way} GB/s"] = len(data) / best / 1e9
        echo.close()


def other_systems(rows: dict, folder: str, scale: float) -> None:
    """grpcio and apache-tvm, where they are installed."""
    count = int(5000 * scale)
    for name, found in (
        ("grpcio TLS call us", rpc_peers.grpc_call(certificate_in(folder), percentiles, count)),
        ("apache-tvm call us", rpc_peers.tvm_call(percentiles, count)),
    ):
        if found is None:
            print(f"{name.split()[0]}: not installed, not measured", file=sys.stderr)
        else:
            rows[name] = tuple(1e6 * t for t in found)


def bars(rows: dict) -> list[tuple[str, bool]]:
    """The bars of section 8 of the design."""
    found = [
        ("unix call at most 2 TCP echoes", rows["unix call us"][0] <= 2 * rows["TCP echo us"][0]),
        ("tls call at most 4 TCP echoes", rows["tls call us"][0] <= 4 * rows["TCP echo us"][0]),
        ("20,000 calls/s in one session", rows["unix async calls/s"] >= 20000),
        ("unix 64 MB up and down at least 1 GB/s", min(rows["unix up GB/s"], rows["unix down GB/s"]) >= 1),
        ("session ready at most 5 ms", max(rows["unix session ready ms"], rows["tls session ready ms"]) <= 5),
        ("p99 of calls during an upload below 1 ms", rows["unix call during upload, p99 ms"] < 1),
    ]
    if "grpcio TLS call us" in rows:
        found.append(("tls call at most 0.5 of grpcio's", rows["tls call us"][0] <= 0.5 * rows["grpcio TLS call us"][0]))
    if "apache-tvm call us" in rows:
        found.append(("unix call at most 1.25 of apache-tvm's over TCP, both in the clear", rows["unix call us"][0] <= 1.25 * rows["apache-tvm call us"][0]))
    for way in ("up", "down"):
        if f"TLS {way} GB/s" in rows:
            found.append((f"tls {way} at least 0.8 of bare TLS", rows[f"tls {way} GB/s"] >= 0.8 * rows[f"TLS {way} GB/s"]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    scale, rows = (0.05 if args.quick else 1.0), {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        peers(rows, folder, scale)
        other_systems(rows, folder, scale)
        for name, url in (("unix", f"unix:{folder}/s"), ("tls", "tls://127.0.0.1:0")):
            with server(url) as where:
                measure(name, where, scale, rows)
    for name, value in rows.items():
        shown = f"p50 {value[0]:.1f}  p99 {value[1]:.1f}" if isinstance(value, tuple) else f"{value:.2f}" if value < 1000 else f"{value:.0f}"
        print(f"{name:40} {shown}")
    missed = False
    for what, holds in bars(rows):
        print(f"{'holds ' if holds else 'MISSED'}  {what}")
        missed = missed or not holds
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
