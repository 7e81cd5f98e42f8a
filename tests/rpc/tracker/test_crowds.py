# SPDX-License-Identifier: Apache-2.0
"""Crowds at a tracker's door: peers that say nothing, or too little, keep no other out; what was refused is said."""

import contextlib
import re
import socket
import threading

import pytest
from processes import until

from baton.rpc import transport
from baton.rpc.errors import RPCError
from baton.rpc.library import function
from baton.rpc.tracker import connect_tracker
from baton.rpc.tracker import door as doors
from baton.rpc.tracker.process import Process

CROWD = 500


@pytest.fixture
def tracker(tmp_path):
    """(URL with the key, port, lines of its log) of a tracker that other machines could reach."""
    key, said = tmp_path / "lab.key", []
    function("KeyNew")("lab", str(key), "session", [])
    listener = transport.listen(f"tls://127.0.0.1:0?key={key}")
    process = Process([listener], log=said.append)
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        yield f"tls://127.0.0.1:{listener.port}?key={key}", listener.port, said
    finally:
        process.stop()
        thread.join(20)
        assert not thread.is_alive()


@contextlib.contextmanager
def crowd(port, words):
    """Connections that say `words` and then nothing, made again as fast as they are cut."""
    over, made = threading.Event(), []

    def come():
        while not over.is_set():
            with contextlib.suppress(OSError):
                made.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                made[-1].sendall(words)
            while len(made) > CROWD:
                made.pop(0).close()

    thread = threading.Thread(target=come)
    thread.start()
    try:
        assert until(lambda: len(made) >= CROWD, 30)
        yield
    finally:
        over.set()
        thread.join()
        for one in made:
            one.close()


@pytest.mark.parametrize("words", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n"], ids=["silent", "a byte", "a header", "another protocol"])
def test_a_crowd_keeps_no_client_out(tracker, words):
    url, port, _ = tracker

    def answered():
        with contextlib.suppress(RPCError), connect_tracker(url) as session:
            return session.summary()["queue_info"] == {}
        return False

    with crowd(port, words):
        for _ in range(3):
            assert until(answered, 30)
    assert until(answered, 30)


def test_a_peer_that_says_nothing_is_cut_off(tracker, monkeypatch):
    monkeypatch.setattr(doors, "SILENT_SECONDS", 0.2)
    _, port, said = tracker
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.settimeout(10)
        assert silent.recv(1) == b""
        assert until(lambda: said == [f"a connection was refused: 127.0.0.1 port {silent.getsockname()[1]} said nothing in 0.2 s"], 10), said


def test_a_refusal_says_whose_it_is_and_why(tracker):
    _, port, said = tracker
    with socket.create_connection(("127.0.0.1", port)) as other:
        name = f"127.0.0.1 port {other.getsockname()[1]}"
        other.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert until(lambda: said, 10)
    assert re.fullmatch(rf"a connection was refused: {name}: .+", said[0])


def test_a_wrong_key_is_refused(tracker, tmp_path):
    url, port, said = tracker
    wrong = tmp_path / "wrong.key"
    function("KeyNew")("lab", str(wrong), "session", [])
    with pytest.raises(RPCError):
        connect_tracker(f"tls://127.0.0.1:{port}?key={wrong}").summary()
    assert until(lambda: said, 10) and "127.0.0.1 port" in said[0]
