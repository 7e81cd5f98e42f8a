# SPDX-License-Identifier: Apache-2.0
"""The threats that docs/design/rpc.md names, a test or more a row."""

import contextlib
import os
import random
import socket
import ssl
import struct
import time

import pytest
from faulty_wire import FaultyWire
from frames import frame, hello, text
from processes import resident, served

from baton import rpc
from baton.rpc.library import function


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server's program at a TCP port, its process and its key."""
    folder = tmp_path_factory.mktemp("lab")
    key = str(folder / "lab.key")
    function("KeyNew")("lab", key, "session", ["runtime.DeviceExists"])
    with served(f"tls://127.0.0.1:0?key={key}", "--max-sessions", "16", folder=folder) as (process, url):
        yield process, int(url.rpartition(":")[2]), key


def works(lab, port=None):
    with rpc.connect("127.0.0.1", port or lab[1], key_file=lab[2]) as remote:
        return remote.get_function("runtime.DeviceExists")(remote.cpu())


def test_anyone_who_reaches_the_port_gets_nothing_parsed(lab):
    """Bytes before authentication: frames in the clear, garbage, another protocol. No session begins, and others work."""
    rng = random.Random(1)
    streams = [frame(1, hello()), b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(3000), b"", b"\x16\x03\x01" + rng.randbytes(300), bytes(5000)]
    streams += [rng.randbytes(rng.randint(1, 400)) for _ in range(150)]
    before = resident(lab[0].pid)
    for stream in streams:
        answer = b""
        with socket.create_connection(("127.0.0.1", lab[1])) as raw, contextlib.suppress(OSError):
            raw.settimeout(4)
            raw.sendall(stream)
            raw.shutdown(socket.SHUT_WR)
            while piece := raw.recv(4096):
                answer += piece
        assert len(answer) < 200 and b"BATONRPC" not in answer
    assert works(lab) and resident(lab[0].pid) - before < 1 << 20


def test_a_crowd_of_silent_peers_keeps_no_other_out(lab):
    silent = [socket.create_connection(("127.0.0.1", lab[1])) for _ in range(200)]
    begin = time.monotonic()
    ready = False
    while not ready and time.monotonic() - begin < 10:
        with contextlib.suppress(rpc.RPCError):  # it may be one of those that are cut off
            ready = works(lab)
    assert ready
    for one in silent:
        one.close()


@pytest.mark.parametrize("where", ["handshake", "header", "greeting", "frame"])
def test_slow_peers_are_cut(lab, where, tmp_path):
    """One byte at a time: 2 s for the handshake and the greeting."""
    if where in ("handshake", "header"):
        with socket.create_connection(("127.0.0.1", lab[1])) as raw:
            raw.settimeout(5)
            if where == "header":
                raw.sendall(b"\x16\x03\x01")
            begin = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while raw.recv(100):
                    pass
            assert time.monotonic() - begin < 4
        return
    with served(f"unix:{tmp_path}/s"), socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(40)
        raw.connect(f"{tmp_path}/s")
        raw.sendall(frame(1, hello())[:30] if where == "greeting" else frame(1, hello()) + frame(2, length=1000))
        begin = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while raw.recv(4096):
                pass
        assert time.monotonic() - begin < (4 if where == "greeting" else 35)


def test_the_network_reads_nothing(lab):
    """What passes on the wire has no byte of the content."""
    secret = b"a secret that is long enough to be told from chance"
    seen = bytearray()

    class Tap(FaultyWire):
        def _pass(self, source, sink):
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    seen.extend(data)
                    sink.sendall(data)
            self._end((source, sink))

    with Tap(lab[1]) as wire, rpc.connect("127.0.0.1", wire.port, key_file=lab[2]) as remote:
        remote.upload(secret * 100, "secret-name")
        assert bytes(remote.download("secret-name")) == secret * 100
    assert len(seen) > 10000 and secret not in seen and b"secret-name" not in seen and b"BATONRPC" not in seen


def test_the_network_alters_nothing(lab):
    """A byte that was changed ends the connection; the session goes on with another, and each result is right."""

    class Liar(FaultyWire):
        lies = 0

        def _pass(self, source, sink):
            rng, passed = random.Random(self.connections), 0
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    if passed > 5000 and rng.random() < 0.1 and self.lies < 20:  # a handshake is shorter
                        data = bytearray(data)
                        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                        Liar.lies += 1
                    sink.sendall(data)
                    passed += len(data)
            self._end((source, sink))

    data = os.urandom(20000)
    with Liar(lab[1]) as wire:
        right = 0
        for _ in range(20):
            # A handshake that was altered may end a session, as one typed error.
            with contextlib.suppress(rpc.RPCError):
                remote = rpc.connect("127.0.0.1", wire.port, key_file=lab[2])
                for n in range(60):
                    remote.upload(data[n:], f"f{n}")
                    assert bytes(remote.download(f"f{n}")) == data[n:]
                    right += 1
            if Liar.lies > 3 and right > 3:
                break
        assert Liar.lies > 3 and right > 3
    assert works(lab)


def test_the_network_replays_nothing(lab):
    """A recorded connection, sent again byte by byte, begins no session."""
    sent = bytearray()

    class Recorder(FaultyWire):
        def _accept(self):
            with contextlib.suppress(OSError):
                near, _ = self._listener.accept()
                self._near = near
                super_target = socket.create_connection(("127.0.0.1", self.target))
                import threading

                threading.Thread(target=self._record, args=(near, super_target), daemon=True).start()
                threading.Thread(target=self._pass, args=(super_target, near), daemon=True).start()

        def _record(self, source, sink):
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    sent.extend(data)
                    sink.sendall(data)
            self._end((source, sink))

    with Recorder(lab[1]) as wire:
        with rpc.connect("127.0.0.1", wire.port, key_file=lab[2]) as remote:
            remote.upload(b"x" * 100, "f")
    with socket.create_connection(("127.0.0.1", lab[1])) as raw, contextlib.suppress(ConnectionError):
        raw.settimeout(4)
        raw.sendall(sent)
        answer = b""
        while piece := raw.recv(4096):
            answer += piece
        assert len(answer) < 1000  # a first flight of the server's, with keys of its own, and an alert
    assert works(lab)


def test_the_network_reflects_nothing(lab):
    """What a client says, sent back to it, is no server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        import threading

        def reflect():
            near, _ = listener.accept()
            with contextlib.suppress(OSError):
                while data := near.recv(4096):
                    near.sendall(data)

        threading.Thread(target=reflect, daemon=True).start()
        with pytest.raises(rpc.RPCError):
            rpc.connect("127.0.0.1", listener.getsockname()[1], key_file=lab[2], connect_timeout=3)


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_no_older_tls_and_no_certificate_of_an_unknown(lab, version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = getattr(ssl.TLSVersion, version)
    with socket.create_connection(("127.0.0.1", lab[1])) as raw, pytest.raises((ssl.SSLError, OSError)):
        raw.settimeout(4)
        with context.wrap_socket(raw) as s:
            s.sendall(frame(1, hello()))
            assert not s.recv(100)
            raise OSError("closed")


def test_a_server_with_a_certificate_is_none(lab, tmp_path):
    """A client with a key takes no server that has a certificate in its place."""
    pytest.importorskip("cryptography")
    import importlib.util
    import threading
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("bench_rpc", Path(__file__).resolve().parents[2] / "bench" / "rpc.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bench.certificate_in(str(tmp_path)))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            near, _ = listener.accept()
            with contextlib.suppress(OSError), context.wrap_socket(near, server_side=True) as s:
                s.recv(100)

        threading.Thread(target=accept, daemon=True).start()
        with pytest.raises(rpc.RPCError):
            rpc.connect("127.0.0.1", listener.getsockname()[1], key_file=lab[2], connect_timeout=3)


NAMES = ["../x", "/etc/passwd", "a/b", ".hidden", "..", ".", "", "a\0b", "x" * 300, "/", "//", "./x", "a/../../b", "\\..\\x/", "~/x", "proc/self/mem"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_hostile_names(lab, name):
    with rpc.connect("127.0.0.1", lab[1], key_file=lab[2]) as remote:
        for action in (lambda: remote.upload(b"x", name or "/"), lambda: remote.download(name), lambda: remote.remove(name)):
            with pytest.raises((ValueError, rpc.RPCError)):
                action()
        assert remote.get_function("runtime.DeviceExists")(remote.cpu())


def test_random_hostile_names(lab):
    rng = random.Random(5)
    parts = ["..", "/", ".", "a", "\0", "ü", " ", "\n", "%2e", "\\", "-rf", "$(x)", "`x`", "con", "*"]
    with rpc.connect("127.0.0.1", lab[1], key_file=lab[2]) as remote:
        for _ in range(200):
            name = "".join(rng.choice(parts) for _ in range(rng.randint(1, 6)))
            try:
                remote.upload(b"x", name)
            except (ValueError, rpc.RPCError):
                continue
            assert "/" not in name and not name.startswith(".") and bytes(remote.download(name)) == b"x"


def test_a_hostile_server_gets_no_more_than_an_error(tmp_path):
    """Garbage behind a right greeting: each stream is one typed error, within its time."""
    rng = random.Random(3)
    value = struct.pack("<Bq", 1, 5)
    greeting = frame(1, hello(policy="session"))
    theirs = struct.pack("<BQB", 65, 1 << 32, 3)
    bad = [
        frame(3, value, number=77), frame(3, b"", number=1), frame(3, b"\x10\xff\xff\xff\xff", number=1), frame(4, b"\xff\xff\xff\xff", number=1), frame(6, b"x" * 10, number=1),
        frame(3, struct.pack("<BQB", 64, 5, 0), number=1), frame(3, theirs, number=1), frame(3, struct.pack("<BQBQ", 66, 1, 2, 1 << 60), number=1), frame(2, b"\0" * 24, number=1),
        frame(2, struct.pack("<IQQI", 9, 0, 0, 0), number=1) + frame(9), frame(10, number=1 << 40), frame(8, number=3) + frame(9), frame(3, length=1 << 31), b"\xff" * 24,
        frame(3, b"\x10\x01\0\0\0" * 40 + b"\0", number=1), frame(3, b"\x09\x02\x20\x01\0\x02" + struct.pack("<qq", 1 << 62, 1 << 62), number=1),
    ]  # fmt: skip
    bad += [frame(3, rng.randbytes(rng.randint(1, 60)), number=1) for _ in range(100)]
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        import threading

        def serve():
            for stream in bad:
                near, _ = listener.accept()
                with near, contextlib.suppress(OSError):
                    near.recv(4096)
                    near.sendall(greeting)
                    near.recv(4096)
                    near.sendall(stream)
                    near.shutdown(socket.SHUT_WR)
                    while near.recv(4096):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        for _stream in bad:
            remote = rpc.connect(f"unix:{path}", call_timeout=5)
            begin = time.monotonic()
            with contextlib.suppress(rpc.RPCError, AttributeError, TypeError, ValueError):
                found = remote.get_function("f")
                assert found is not None
            assert time.monotonic() - begin < 6
            del remote
        thread.join(10)


def test_a_hostile_server_calls_no_function_of_the_client(tmp_path):
    """CALL of a function that was not handed over, and of what only servers answer: refused, and nothing is called."""
    greeting = frame(1, hello())
    answers = []
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        import threading

        def serve():
            near, _ = listener.accept()
            with near, contextlib.suppress(OSError):
                near.recv(4096)
                near.sendall(greeting)
                near.recv(4096)
                name = text("runtime.ListGlobalFuncNames")
                for op, handle, arguments in [(0, 1 << 32, []), (0, 0, []), (1, 0, [name]), (10, 0, [name]), (11, 0, [name]), (13, 0, [name])]:
                    near.sendall(frame(2, struct.pack("<IQQI", op, handle, 0, len(arguments)) + b"".join(arguments), number=5))
                    answers.append(near.recv(4096))
                near.sendall(frame(9))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        remote = rpc.connect(f"unix:{path}", call_timeout=5)
        with pytest.raises(rpc.RPCError):
            remote.get_function("f")
        thread.join(5)
    assert len(answers) == 6 and all(answer[4] == 4 for answer in answers)  # ERROR


def test_a_peer_of_another_user_is_named(lab):
    """A Unix socket is the user's alone: its mode says so, and SO_PEERCRED is asked."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, rpc.Server(url=f"unix:{folder}/s") as server:
        assert os.stat(f"{folder}/s").st_mode & 0o077 == 0
        with rpc.connect(server.url) as remote:
            assert f"uid {os.getuid()}" in remote.peer
