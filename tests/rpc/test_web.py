# SPDX-License-Identifier: Apache-2.0
"""Sessions over WebSocket: real servers and proxies, wires with faults, and peers that break the rules of RFC 6455."""

import asyncio
import base64
import contextlib
import hashlib
import os
import random
import signal
import socket
import ssl
import struct
import sys
import threading
import time

import numpy as np
import pytest
from faulty_wire import FaultyWire

import baton
from baton import rpc
from baton.rpc import proxy, web
from baton.rpc.library import function

counted = {}


@baton.register_func("test.web.count")
def _count(name):
    counted[name] = counted.get(name, 0) + 1
    return counted[name]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    pytest.importorskip("cryptography")
    from authority import Authority

    return Authority(tmp_path_factory.mktemp("web"), "lab")


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.give("gate", hosts=["127.0.0.1", "localhost"])


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("key") / "lab.key")
    function("KeyNew")("lab", path, "trusted", [])
    return path


@pytest.fixture(scope="module")
def gate(certificate, key):
    pytest.importorskip("websockets")
    with proxy.Proxy("127.0.0.1", 0, key_file=key, web_port=0, web_cert=certificate) as made:
        yield made


@pytest.fixture(scope="module")
def link(gate, key):
    """A server behind the proxy."""
    with rpc.Server("127.0.0.1", 0, key_file=key) as server, proxy.Link(gate.url, f"127.0.0.1:{server.port}", key) as made:
        yield made


def port_of(gate):
    return int(gate.web_url.rpartition(":")[2])


@pytest.fixture
def wire(gate):
    with FaultyWire(port_of(gate)) as made:
        yield made


def address(link, port, ca, host="127.0.0.1"):
    return f"wss://{host}:{port}/{link.ticket}?ca={ca.path}"


@pytest.fixture
def open_session(link, key, authority):
    def make(port, **options):
        return rpc.connect(address(link, port, authority), key_file=key, **options)

    return make


def test_a_session_over_a_web_socket(gate, open_session):
    with open_session(port_of(gate), key="board", session_timeout=60) as remote:
        assert remote.get_function("test.rpc.add")(1, 2) == 3
        data = np.random.default_rng(1).integers(0, 255, 5_000_000).astype("uint8")
        np.testing.assert_array_equal(baton.nd.array(data, remote.cpu()).numpy(), data)
        assert remote.get_function("test.rpc.apply")(lambda x: x + 1, 41) == 42
        with pytest.raises(ValueError, match="seven"):
            remote.get_function("test.rpc.fail")("ValueError", "seven")
        remote.upload(b"content", "a file")
        assert remote.download("a file") == b"content"
        assert remote.peer.startswith("key ")


def test_a_name_as_the_certificate_has_it(gate, link, key, authority):
    with rpc.connect(address(link, port_of(gate), authority, "localhost") + f"&key={key}") as remote:
        assert remote.get_function("test.rpc.echo")("x") == "x"


def test_the_other_proxy_address_is_one_of_connect(link, key):
    with rpc.connect(link.url, key_file=key) as remote:
        assert remote.get_function("test.rpc.echo")("x") == "x"


@pytest.mark.parametrize("fault", [{"pieces": 1}, {"pieces": 7, "delay": 0.0005}, {"delay": 0.02}], ids=["bytes", "slow pieces", "late"])
def test_bytes_that_come_in_pieces_and_late(wire, open_session, fault):
    for name, value in fault.items():
        setattr(wire, name, value)
    with open_session(wire.port, connect_timeout=20) as remote:
        assert bytes(remote.get_function("test.rpc.echo")(bytes(range(256)))) == bytes(range(256))


def test_each_effect_is_there_once_whatever_the_byte_of_the_cut(wire, open_session):
    rng, n = random.Random(3), 0
    with open_session(wire.port) as remote:
        count, echo = remote.get_function("test.web.count"), remote.get_function("test.rpc.echo")
        data = rng.randbytes(200_000)
        while wire.connections <= 25:
            n += 1
            wire.cut_after(rng.choice([rng.randint(1, 400), rng.randint(1, 150_000)]))
            assert count("cut") == n
            if n % 4 == 0:
                assert bytes(echo(data)) == data
    assert n > 10


@pytest.mark.parametrize("seconds", [1.0, pytest.param(None, marks=pytest.mark.slow)], ids=["soon", "as it is"])
def test_a_half_open_connection_is_found(wire, open_session, monkeypatch, seconds):
    """The wire swallows everything and closes nothing: pings notice."""
    if seconds:
        monkeypatch.setattr(web, "PING_SECONDS", seconds)
    with open_session(wire.port, call_timeout=60, resume_timeout=0) as remote:
        add = remote.get_function("test.rpc.add")
        assert add(1, 1) == 2
        wire.silent, began = True, time.monotonic()
        with pytest.raises(rpc.SessionLost):
            add(2, 2)
        assert time.monotonic() - began < 10
        assert isinstance(remote.way.error, rpc.Timeout)
    wire.silent = False
    with open_session(wire.port) as remote:
        assert remote.get_function("test.rpc.add")(2, 2) == 4


def test_a_proxy_that_is_killed(certificate, key, authority):
    with proxy.Proxy("127.0.0.1", 0, key_file=key, web_port=0, web_cert=certificate) as gate:
        with rpc.Server("127.0.0.1", 0, key_file=key) as server, proxy.Link(gate.url, f"127.0.0.1:{server.port}", key) as link:
            with rpc.connect(address(link, port_of(gate), authority), key_file=key, resume_timeout=0) as remote:
                sleep = remote.get_function("test.rpc.sleep")
                timer = threading.Timer(0.3, os.kill, (gate.pid, signal.SIGKILL))
                timer.start()
                began = time.monotonic()
                with pytest.raises(rpc.SessionLost):
                    sleep(20)
                assert time.monotonic() - began < 2.3


# ---- A peer of the proxy that speaks by itself.


def frame(opcode, payload=b"", fin=True, masked=True, reserved=0, length=None):
    """A frame of RFC 6455, section 5.2; `length` in place of the true one."""
    size = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if masked:
        mask = b"\x11\x22\x33\x44"
        return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
    return head + payload


def read_frame(raw):
    """(opcode, payload) of the next frame; (None, b"") at the end."""
    head = raw.recv(2)
    if len(head) < 2:
        return None, b""
    size = head[1] & 0x7F
    if size == 126:
        size = struct.unpack(">H", exactly(raw, 2))[0]
    elif size == 127:
        size = struct.unpack(">Q", exactly(raw, 8))[0]
    return head[0] & 0x0F, exactly(raw, size)


def exactly(raw, size):
    got = b""
    while len(got) < size:
        more = raw.recv(size - len(got))
        assert more, "the connection ended within a frame"
        got += more
    return got


def open_tls(port, authority, **versions):
    context = ssl.create_default_context(cafile=authority.path)
    for name, value in versions.items():
        setattr(context, name, value)
    raw = context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10), server_hostname="127.0.0.1")
    raw.settimeout(10)
    return raw


def request(path, **changed):
    fields = {"Host": "gate", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
              "Sec-WebSocket-Version": "13", **changed}  # fmt: skip
    return f"GET {path} HTTP/1.1\r\n".encode() + "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v is not None).encode() + b"\r\n"


def answer_of(raw):
    got = b""
    while b"\r\n\r\n" not in got:
        more = raw.recv(1)
        if not more:
            break
        got += more
    return got


class Echo:
    """A server behind a proxy that sends back what it gets."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.ended = threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._echo, args=(self._socket.accept()[0],), daemon=True).start()

    def _echo(self, one):
        with one, contextlib.suppress(OSError):
            while data := one.recv(65536):
                one.sendall(data)
        self.ended.release()

    def close(self):
        self._socket.close()


@pytest.fixture(scope="module")
def echo(gate, key):
    server = Echo()
    with proxy.Link(gate.url, server.address, key) as link:
        server.ticket = link.ticket
        yield server
    server.close()


@pytest.fixture
def raw(gate, authority, echo):
    """A WebSocket that is open, to frame by hand."""
    with open_tls(port_of(gate), authority) as found:
        found.sendall(request(f"/{echo.ticket}"))
        assert answer_of(found).startswith(b"HTTP/1.1 101 ")
        assert read_frame(found) == (2, b"OK\n")
        yield found


BINARY, TEXT, CLOSE, PING, PONG = 2, 1, 8, 9, 10
GOOD = {
    "one frame": (frame(BINARY, b"abc"), b"abc"),
    "fragments": (frame(BINARY, b"ab", fin=False) + frame(0, b"c", fin=False) + frame(0, b"d"), b"abcd"),
    "a ping between fragments": (frame(BINARY, b"a", fin=False) + frame(PING, b"?") + frame(0, b"b"), b"ab"),
    "a pong that was not asked for": (frame(PONG, b"x") + frame(BINARY, b"y"), b"y"),
    "nothing in it": (frame(BINARY) + frame(BINARY, b"z"), b"z"),
    "many fragments of nothing": (frame(BINARY, fin=False) + 200 * frame(0, fin=False) + frame(0, b"end"), b"end"),
    "lengths of 16 bits": (frame(BINARY, b"q" * 300), b"q" * 300),
    "lengths of 64 bits": (frame(BINARY, b"r" * 70000), b"r" * 70000),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_frames_that_are_right(raw, name):
    sent, expected = GOOD[name]
    raw.sendall(sent)
    got, pongs = b"", []
    while len(got) < len(expected):
        opcode, payload = read_frame(raw)
        assert opcode in (BINARY, PING, PONG)
        if opcode == BINARY:
            got += payload
        elif opcode == PONG:
            pongs.append(payload)
    assert got == expected
    assert pongs == ([b"?"] if "ping" in name else [])


# What is sent, and the code that the proxy closes with (RFC 6455, section 7.4.1).
BAD = {
    "not masked": (frame(BINARY, b"abc", masked=False), 1002),
    "an opcode that does not exist": (frame(3, b"abc"), 1002),
    "a control opcode that does not exist": (frame(11), 1002),
    "reserved bits": (frame(BINARY, b"abc", reserved=4), 1002),
    "a ping in fragments": (frame(PING, b"abc", fin=False), 1002),
    "a ping that is too long": (frame(PING, b"p" * 126), 1002),
    "a continuation of nothing": (frame(0, b"abc"), 1002),
    "a message within a message": (frame(BINARY, b"a", fin=False) + frame(BINARY, b"b"), 1002),
    "text": (frame(TEXT, b"abc"), 1003),
    "text that is no UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "a frame of a terabyte": (frame(BINARY, b"abc", length=1 << 40), 1009),
    "a length with its highest bit": (frame(BINARY, b"abc", length=1 << 63), 1009),
    "fragments without an end": (frame(BINARY, b"a" * 60000, fin=False) + 20 * frame(0, b"a" * 60000, fin=False), 1009),
    "a close of one byte": (frame(CLOSE, b"x"), 1002),
    "a close with a code that does not exist": (frame(CLOSE, struct.pack(">H", 999)), 1002),
    "garbage": (b"\xff" * 64, 1002),
}  # fmt: skip


def end_of(raw):
    """The code of the close that comes; None when the connection ends without one."""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while True:
            opcode, payload = read_frame(raw)
            if opcode is None:
                return None
            if opcode == CLOSE:
                return struct.unpack(">H", payload[:2])[0] if payload else 1005
    return None


@pytest.mark.parametrize("name", BAD)
def test_frames_that_are_wrong_end_this_connection_and_no_other(raw, echo, gate, authority, name):
    sent, code = BAD[name]
    while echo.ended.acquire(blocking=False):
        pass
    began = time.monotonic()
    with contextlib.suppress(OSError):
        raw.sendall(sent)
    assert end_of(raw) == code
    assert echo.ended.acquire(timeout=5), "the server behind the proxy was not told"
    assert time.monotonic() - began < 5
    with open_tls(port_of(gate), authority) as other:
        other.sendall(request(f"/{echo.ticket}"))
        assert answer_of(other).startswith(b"HTTP/1.1 101 ")


def test_garbage_ends_in_two_seconds_whatever_it_is(gate, echo, authority):
    """Bytes at random in place of the request, and in place of frames; the proxy goes on."""
    rng = random.Random(5)
    for n in range(40):
        began = time.monotonic()
        with open_tls(port_of(gate), authority) as one, contextlib.suppress(OSError):
            if n % 2:
                one.sendall(request(f"/{echo.ticket}"))
                assert answer_of(one).startswith(b"HTTP/1.1 101 ")
                assert read_frame(one) == (2, b"OK\n")
            one.sendall(rng.randbytes(rng.randint(1, 3000)))
            one.sendall(frame(CLOSE, struct.pack(">H", 1000)))
            while one.recv(65536):
                pass
        assert time.monotonic() - began < 4
    with open_tls(port_of(gate), authority) as one:
        one.sendall(request(f"/{echo.ticket}"))
        assert answer_of(one).startswith(b"HTTP/1.1 101 ")


TICKET = "0" * 32
REQUESTS = {
    "no ticket": (request("/"), b"HTTP/1.1 404 "),
    "a ticket of another length": (request("/abc"), b"HTTP/1.1 404 "),
    "another folder": (request(f"/x/{TICKET}"), b"HTTP/1.1 404 "),
    "no upgrade": (request(f"/{TICKET}", Upgrade=None), b"HTTP/1.1 426 "),
    "another version": (request(f"/{TICKET}", **{"Sec-WebSocket-Version": "8"}), b"HTTP/1.1 4"),
    "no key": (request(f"/{TICKET}", **{"Sec-WebSocket-Key": None}), b"HTTP/1.1 4"),
    "another method": (b"POST" + request(f"/{TICKET}")[3:], b""),
    "no HTTP": (b"BATON-PROXY 1 JOIN\n\r\n\r\n", b""),
    "a header without an end": (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b""),
    "a thousand headers": (request("/")[:-2] + b"".join(b"X%d: 1\r\n" % n for n in range(1000)) + b"\r\n", b""),
    "half a request": (b"GET / HTT", b""),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_wrong_is_answered_by_http(gate, authority, name):
    sent, expected = REQUESTS[name]
    began, got = time.monotonic(), b""
    with open_tls(port_of(gate), authority) as raw, contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLError):
        raw.sendall(sent)
        got = answer_of(raw)
    assert got.startswith(expected) and b"101" not in got.split(b"\r\n")[0]
    assert time.monotonic() - began < 4


def test_a_server_that_is_not_there_is_one_error(gate, key, authority, link):
    url = address(link, port_of(gate), authority).replace(link.ticket, TICKET)
    with pytest.raises(rpc.SessionLost, match="no server with this ticket"):
        rpc.connect(url, key_file=key)


def test_nothing_older_than_tls_1_3(gate, authority):
    with pytest.raises(ssl.SSLError):
        open_tls(port_of(gate), authority, maximum_version=ssl.TLSVersion.TLSv1_2).recv(1)


def test_a_peer_that_is_silent_before_its_request_is_cut(gate, authority):
    for connect in (lambda: socket.create_connection(("127.0.0.1", port_of(gate)), timeout=10), lambda: open_tls(port_of(gate), authority)):
        began = time.monotonic()
        with connect() as raw, contextlib.suppress(ConnectionResetError):
            assert raw.recv(1) == b""
        assert time.monotonic() - began < 4


# ---- A proxy that is hostile, or none.


class Hostile:
    """Listens with TLS, opens a WebSocket if it is told to, and says what it was given."""

    def __init__(self, certificate, said, opens=True):
        self._said, self._opens = said, opens
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._one, args=(self._socket.accept()[0],), daemon=True).start()

    def _one(self, plain):
        with contextlib.suppress(OSError), self._context.wrap_socket(plain, server_side=True) as raw:
            asked = answer_of(raw)
            if self._opens:
                key = next(line.split()[1] for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
                accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
                raw.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            raw.sendall(self._said)
            raw.settimeout(10)
            while raw.recv(65536):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


def own(opcode, payload=b"", **options):
    return frame(opcode, payload, masked=False, **options)


OK = own(BINARY, b"OK\n")
HOSTILE = {
    "masked": (frame(BINARY, b"OK\n"), rpc.ProtocolError),
    "text": (own(TEXT, b"OK\n"), rpc.ProtocolError),
    "no line": (own(BINARY, b"OK"), rpc.ProtocolError),
    "another answer": (own(BINARY, b"WELL\n"), rpc.ProtocolError),
    "two lines": (own(BINARY, b"OK\nOK\n"), rpc.ProtocolError),
    "an error": (own(BINARY, b"ERROR Denied not you\n"), rpc.Denied),
    "an error of no kind": (own(BINARY, b"ERROR Nothing at all\n"), rpc.RPCError),
    "a frame of a terabyte": (own(BINARY, b"O", length=1 << 40), rpc.ProtocolError),
    "reserved bits": (own(BINARY, b"OK\n", reserved=2), rpc.ProtocolError),
    "garbage": (b"\xf7" * 100, rpc.ProtocolError),
    "a close": (own(CLOSE, struct.pack(">H", 1000)), rpc.SessionLost),
    "a close for a fault": (own(CLOSE, struct.pack(">H", 1002)), rpc.ProtocolError),
    "garbage after it": (OK + b"\xf7" * 100, rpc.ProtocolError),
    "text after it": (OK + own(TEXT, b"abc"), rpc.ProtocolError),
    "the end after it": (OK + own(CLOSE, struct.pack(">H", 1000)), rpc.RPCError),
    "bytes that are no TLS after it": (OK + own(BINARY, b"x" * 200), rpc.RPCError),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_proxy_is_one_typed_error(link, key, authority, certificate, name):
    pytest.importorskip("websockets")
    said, kind = HOSTILE[name]
    began = time.monotonic()
    with Hostile(certificate, said) as hostile, pytest.raises(kind):
        rpc.connect(address(link, hostile.port, authority), key_file=key)
    assert time.monotonic() - began < 5


ANSWERS = {
    "not found": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", rpc.ProtocolError),
    "no HTTP": (b"\xff" * 50 + b"\r\n\r\n", rpc.ProtocolError),
    "another key": (b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n", rpc.ProtocolError),
    "a header without an end": (b"HTTP/1.1 101 X\r\nX: " + b"x" * 100_000, rpc.ProtocolError),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_no_web_socket_is_one_typed_error(link, key, authority, certificate, name):
    said, kind = ANSWERS[name]
    with Hostile(certificate, said, opens=False) as hostile, pytest.raises(kind):
        rpc.connect(address(link, hostile.port, authority), key_file=key)


def test_a_certificate_that_is_not_trusted(gate, link, key, authority, tmp_path):
    from authority import Authority

    other = Authority(tmp_path, "other")
    with pytest.raises(rpc.Denied, match=r"certificate of the proxy.*\?ca=FILE"):
        rpc.connect(address(link, port_of(gate), other), key_file=key)
    with pytest.raises(rpc.Denied, match="certificate of the proxy"):
        rpc.connect(f"wss://127.0.0.1:{port_of(gate)}/{link.ticket}", key_file=key)
    for name, options in {"late": {"hosts": ["127.0.0.1"], "days": (-2, -1)}, "elsewhere": {"hosts": ["elsewhere"]}}.items():
        with Hostile(authority.give(name, **options), OK) as hostile, pytest.raises(rpc.Denied, match="certificate of the proxy"):
            rpc.connect(address(link, hostile.port, authority), key_file=key)


def test_the_proxy_knows_no_key_of_the_session(gate, link, authority, tmp_path):
    """The key of a session is proved to the server: another one is refused there, through the same proxy."""
    other = str(tmp_path / "other.key")
    function("KeyNew")("other", other, "trusted", [])
    with pytest.raises(rpc.Denied):
        rpc.connect(address(link, port_of(gate), authority), key_file=other)


# ---- Arguments.

URLS = ["wss://gate:443/x", "wss://gate", f"wss://gate:0/{TICKET}", f"wss://gate:70000/{TICKET}", f"wss://u@gate/{TICKET}", f"wss://a b/{TICKET}"]


@pytest.mark.parametrize("url", URLS)
def test_a_wrong_address_says_what_to_write(url):
    with pytest.raises(rpc.RPCError, match="write wss://HOST:PORT/TICKET"):
        web.parse(url)


def test_options_of_an_address():
    assert web.parse(f"wss://[::1]:9443/a/b/{TICKET}?ca=x&key=y") == (f"wss://[::1]:9443/a/b/{TICKET}", {"ca": "x", "key": "y"})
    assert web.parse(f"wss://gate/{TICKET}") == (f"wss://gate/{TICKET}", {})
    with pytest.raises(rpc.RPCError, match="an option `cert`"):
        web.parse(f"wss://gate/{TICKET}?cert=x")


def test_without_the_package_an_error_says_what_to_type(monkeypatch, certificate):
    for name in ("websockets", "websockets.asyncio", "websockets.asyncio.client", "websockets.asyncio.server"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(rpc.RPCError, match="pip install websockets"):
        rpc.connect(f"wss://gate/{TICKET}")
    with pytest.raises(rpc.RPCError, match="pip install websockets"):
        proxy.serve("127.0.0.1", 0, 0, web_port=0, web_cert=certificate)


def test_other_wrong_arguments(tmp_path, certificate):
    pytest.importorskip("websockets")
    (tmp_path / "empty.pem").write_text("")
    for port, file, message in (
        (0, None, "go together"),
        (None, certificate, "go together"),
        (0, "none.pem", "none.pem"),
        (0, str(tmp_path / "empty.pem"), "PEM"),
    ):
        with pytest.raises(rpc.RPCError, match=message):
            proxy.serve("127.0.0.1", 0, 0, web_port=port, web_cert=file)
    with pytest.raises(rpc.RPCError, match="certificates of authorities"):
        rpc.connect(f"wss://gate/{TICKET}?ca={tmp_path / 'empty.pem'}")


def test_both_ends_of_a_stream_in_one_loop():
    """The end of one direction ends both, and what was written before arrives."""
    websockets = pytest.importorskip("websockets.asyncio.server")
    from websockets.asyncio.client import connect

    async def run():
        got = []

        async def handle(one):
            stream = web.Stream(one)
            while data := await stream.read(10):
                got.append(data)
            stream.close()

        async with websockets.serve(handle, "127.0.0.1", 0) as server:
            stream = web.Stream(await connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            stream.write(b"0123456789abc")
            await stream.drain()
            stream.write_eof()
            assert stream.is_closing() and await stream.read(10) == b""
        assert got == [b"0123456789", b"abc"]

    asyncio.run(asyncio.wait_for(run(), 20))
