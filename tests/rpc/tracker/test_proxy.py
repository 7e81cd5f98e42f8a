# SPDX-License-Identifier: Apache-2.0
"""The proxy: bytes go through it by ticket, and nothing else does."""

import os
import random
import signal
import socket
import threading
import time
from contextlib import suppress

import pytest

from baton.rpc import proxy
from baton.rpc.errors import Denied, ProtocolError, RPCError, SessionLost


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "gate.key"
    path.write_text("key=" + "5a" * 32 + "\n")
    return path


class Echo:
    """A server that sends back what it gets, and then its end."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.seen = bytearray()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                one, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(one,), daemon=True).start()

    def _echo(self, one):
        with one:
            while data := one.recv(65536):
                self.seen += data[:100]
                one.sendall(data)

    def close(self):
        self._socket.close()


@pytest.fixture
def echo():
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def gate(key_file):
    with proxy.Proxy("127.0.0.1", 0, key_file=key_file) as gate:
        yield gate


def reach(port):
    found = socket.create_connection(("127.0.0.1", port), timeout=15)
    found.settimeout(15)
    return found


def talk(port, data):
    """What comes back until the end."""
    with reach(port) as one:

        def send():
            with suppress(OSError):
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        got = bytearray()
        with suppress(ConnectionResetError):
            while more := one.recv(65536):
                got += more
        sender.join()
        return bytes(got)


def test_bytes_go_through_unchanged(gate, key_file, echo):
    with proxy.Link(gate.url, echo.address, key_file) as link, proxy.Forward(link.url) as way:
        assert link.url == f"{gate.url}/{link.ticket}"
        rng = random.Random(1)
        for size in (0, 1, 100, 3_000_000):
            data = rng.randbytes(size)
            assert talk(way.port, data) == data
        # What looks like a line of the proxy is bytes like any other.
        assert talk(way.port, b"BATON-PROXY 1 JOIN\nOPEN\n") == b"BATON-PROXY 1 JOIN\nOPEN\n"


def test_many_connections_at_once(gate, key_file, echo):
    with proxy.Link(gate.url, echo.address, key_file) as link, proxy.Forward(link.url) as way:
        wrong = []

        def one(number):
            data = str(number).encode() * 1000
            if talk(way.port, data) != data:
                wrong.append(number)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not wrong


def test_an_end_is_passed_on(gate, key_file, echo):
    with proxy.Link(gate.url, echo.address, key_file) as link, proxy.Forward(link.url) as way, reach(way.port) as one:
        one.sendall(b"x")
        assert one.recv(1) == b"x"
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""


@pytest.mark.parametrize("key", [None, "other"])
def test_a_server_without_the_key_is_refused(gate, echo, tmp_path, key):
    if key:
        (tmp_path / key).write_text("key=" + "17" * 32)
    with pytest.raises(Denied, match="key of this proxy is another one"):
        proxy.Link(gate.url, echo.address, tmp_path / key if key else None)


def test_a_proxy_beyond_this_machine_needs_a_key():
    with pytest.raises(RPCError, match="a proxy at 0.0.0.0 needs --key-file"):
        proxy.Proxy("0.0.0.0", 0)


def refusal(gate, data):
    with reach(gate.port) as one:
        one.sendall(data)
        got = b""
        while more := one.recv(4096):
            got += more
        return got


BAD = [
    (b"GET / HTTP/1.1\r\n", b"ERROR ProtocolError"), (b"BATON-PROXY 2 JOIN\n", b"ERROR ProtocolError"), (b"BATON-PROXY 1 CONNECT x\n", b"ERROR ProtocolError"),
    (b"BATON-PROXY 1 CONNECT " + b"0" * 32 + b"\n", b"ERROR SessionLost no server with this ticket"),
    (b"BATON-PROXY 1 ACCEPT " + b"0" * 32 + b"\n", b"ERROR SessionLost nothing waits"),
    (b"x" * 300 + b"\n", b"ERROR ProtocolError"), (b"\xff\0\n", b"ERROR ProtocolError"),
    (b"BATON-PROXY 1 JOIN\nPROOF\n", b"CHALLENGE"), (b"BATON-PROXY 1 JOIN\nPROOF " + b"0 " * 3 + b"\n", b"CHALLENGE"),
    (b"", b"ERROR Timeout"), (b"BATON-PROXY 1 CON", b"ERROR Timeout"), (b"BATON-PROXY 1 JOIN\n", b"CHALLENGE"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "answer"), BAD, ids=range(len(BAD)))
def test_a_bad_line_is_answered_by_one_error(gate, data, answer):
    began = time.monotonic()
    got = refusal(gate, data)
    assert got.startswith(answer) and got.count(b"ERROR") == 1
    assert time.monotonic() - began < 4.5


def test_a_proof_is_of_its_challenge(gate, key_file, echo):
    """What another server said is of no use: the challenge differs."""
    secret, name, own = proxy.secret_of(key_file), b"a" * 32, b"b" * 32
    old = proxy._mac(secret, b"join", b"c" * 32, own, name)
    assert b"ERROR Denied" in refusal(gate, b"BATON-PROXY 1 JOIN\nPROOF " + old + b" " + own + b" " + name + b"\n")


def test_a_hostile_proxy_is_noticed(echo, key_file):
    server = socket.create_server(("127.0.0.1", 0))

    def pretend():
        one, _ = server.accept()
        with one:
            one.recv(100)
            one.sendall(b"CHALLENGE " + b"0" * 32 + b"\n")
            name = one.recv(300).split()[-1]
            one.sendall(b"JOINED " + proxy._ticket(name) + b" " + b"0" * 64 + b"\n")
            one.recv(1)

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(Denied, match="does not have the key"):
        proxy.Link(f"proxy://127.0.0.1:{server.getsockname()[1]}", echo.address, key_file)
    thread.join(10)
    server.close()


def test_a_link_comes_back_with_its_ticket(key_file, echo):
    gate = proxy.Proxy("127.0.0.1", 0, key_file=key_file)
    with proxy.Link(gate.url, echo.address, key_file) as link, proxy.Forward(link.url) as way:
        assert talk(way.port, b"one") == b"one"
        os.kill(gate.pid, signal.SIGKILL)
        gate._process.wait()
        assert talk(way.port, b"") == b"" and isinstance(way.error, SessionLost)
        with proxy.Proxy("127.0.0.1", gate.port, gate.port + 1, key_file=key_file) as again:
            assert again.port == gate.port
            end = time.monotonic() + 10
            while talk(way.port, b"two") != b"two":
                assert time.monotonic() < end, way.error
                time.sleep(0.1)
    gate.terminate()


def test_a_server_that_is_gone_is_an_error(gate, key_file, echo):
    with proxy.Link(gate.url, echo.address, key_file) as link:
        url = link.url
    end = time.monotonic() + 10
    while True:
        with proxy.Forward(url) as way:
            assert talk(way.port, b"") == b""
            if way.error is not None and "no server with this ticket" in str(way.error):
                break
        assert time.monotonic() < end, way.error


URLS = ["proxy://x", "http://x:1", "proxy://x:0/" + "0" * 32, "proxy://x:70000", "proxy://x:1/short", "proxy://a b:1", "proxy://u@x:1"]


@pytest.mark.parametrize("url", URLS)
def test_a_wrong_address_says_what_to_write(url, echo):
    with pytest.raises(RPCError, match="write proxy://HOST:PORT"):
        proxy.Link(url, echo.address)


def test_other_wrong_arguments(gate, echo, tmp_path):
    with pytest.raises(RPCError, match="lacks the ticket"):
        proxy.Forward(gate.url)
    with pytest.raises(RPCError, match="write HOST:PORT"):
        proxy.Link(gate.url, "9090")
    (tmp_path / "short").write_text("x")
    with pytest.raises(RPCError, match="is not a key file"):
        proxy.Link(gate.url, echo.address, tmp_path / "short")
    with pytest.raises(TypeError, match="no argument colour"):
        proxy.Proxy(colour=1)
    with pytest.raises(ProtocolError, match="not a proxy of Baton's"):
        raise proxy._error(b"HTTP/1.1 400 Bad Request")
