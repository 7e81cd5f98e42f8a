# SPDX-License-Identifier: Apache-2.0
"""Authenticated connections that carry messages."""

import os
import socket
import threading
import time

import pytest

import baton
from baton import rpc
from baton.rpc import wire
from baton.rpc.library import function


@pytest.fixture(autouse=True)
def runtime_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("BATON_RPC_KEY", raising=False)


def pair(url):
    listener = wire.listen(url)
    made = []
    thread = threading.Thread(target=lambda: made.append(listener.accept(5)))
    thread.start()
    client = wire.connect(listener.url, 5)
    thread.join()
    return listener, client, made[0]


@pytest.mark.parametrize("kind", ["unix", "tls"])
def test_messages_both_ways(kind, tmp_path):
    listener, client, server = pair(f"unix:{tmp_path}/s" if kind == "unix" else "tls://127.0.0.1:0")
    with listener:
        for message in (b"", b"hello", os.urandom(1 << 20)):
            thread = threading.Thread(target=client.send, args=(message,))
            thread.start()
            assert server.recv(5) == message
            thread.join()
        server.send(b"back")
        assert client.recv(5) == b"back"
        assert ("key" if kind == "tls" else f"uid {os.getuid()}") in server.peer
        client.close()
        assert server.recv(5) is None


def test_deadline_loses_nothing(tmp_path):
    listener, client, server = pair(f"unix:{tmp_path}/s")
    begin = time.monotonic()
    with pytest.raises(rpc.Timeout):
        server.recv(0.2)
    assert 0.15 < time.monotonic() - begin < 2
    client.send(b"late")
    assert server.recv(5) == b"late"
    listener.close()


def test_message_over_the_limit_is_refused(tmp_path):
    listener, client, server = pair(f"unix:{tmp_path}/s")
    with pytest.raises(ValueError, match="limit"):
        client.send(b"x" * (wire.LIMIT + 1))
    raw = socket.socket(fileno=os.dup(client.fileno()))
    raw.send((wire.LIMIT + 1).to_bytes(4, "little"))
    with pytest.raises(rpc.ProtocolError, match="limit"):
        server.recv(5)
    listener.close()


def listen_with(key, tmp_path, name):
    path = str(tmp_path / name)
    function("KeyNew")(name, path, "session", [])
    return path


def test_wrong_key_is_denied(tmp_path):
    mine, other = (listen_with(None, tmp_path, name) for name in ("mine.key", "other.key"))
    listener = wire.listen(f"tls://127.0.0.1:0?key={mine}")
    refused = []

    def accept():
        try:
            listener.accept(5)
        except rpc.Denied as error:
            refused.append(error)

    thread = threading.Thread(target=accept)
    thread.start()
    with pytest.raises(rpc.RPCError):
        # The client may learn of the refusal with its first message.
        client = wire.connect(f"{listener.url}?key={other}", 5)
        client.send(b"x")
        client.recv(5)
    thread.join()
    assert refused
    listener.close()


def test_garbage_instead_of_a_handshake(tmp_path):
    listener = wire.listen("tls://127.0.0.1:0")
    with socket.create_connection(("127.0.0.1", listener.port)) as raw:
        raw.sendall(os.urandom(4096))
        with pytest.raises(rpc.RPCError):
            listener.accept(5)
    # A peer that says nothing is cut off.
    with socket.create_connection(("127.0.0.1", listener.port)):
        begin = time.monotonic()
        with pytest.raises(rpc.Timeout):
            listener.accept(5)
        assert time.monotonic() - begin < 4
    listener.close()


def test_beyond_this_machine_a_key_is_needed():
    with pytest.raises(rpc.Denied, match="rpc-key new"):
        wire.listen("tls://0.0.0.0:0")


def test_loopback_key_is_the_users_alone_and_goes_with_the_listener(tmp_path):
    listener = wire.listen("tls://127.0.0.1:0")
    path = tmp_path / "baton-rpc" / f"{listener.port}.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(rpc.Denied, match="chmod 600"):
        wire.connect(listener.url, 2)
    listener.close()
    with pytest.raises(rpc.SessionLost):
        listener.accept(1)
    assert not path.exists()


@pytest.mark.parametrize("url", ["", "host", "host:", "tls://h:99999", "unix:", "tls://h/x:1", "unix:" + "x" * 200])
def test_what_is_no_address(url):
    with pytest.raises(ValueError):
        wire.connect(url)


def test_no_server():
    with pytest.raises(rpc.SessionLost, match="running"):
        wire.connect("unix:/nonexistent/socket")


@pytest.mark.parametrize("url", ["wss://gate:443/x", "ws://h:1"])
def test_web_sockets_are_those_of_proxies(url):
    with pytest.raises(baton.UnsupportedError, match="--web-port"):
        wire.connect(url)
