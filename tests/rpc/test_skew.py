# SPDX-License-Identifier: Apache-2.0
"""Peers of another release: recorded conversations go on as they did, and features that one side lacks are left out."""

import contextlib
import socket
import struct
from pathlib import Path

import pytest
from frames import frame, hello
from processes import served as served_at

from baton import rpc

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.txt"))
HELLO, CALL, REPLY, ERROR = 1, 2, 3, 4


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = f"{tmp_path_factory.mktemp('s')}/socket"
    with served_at(f"unix:{path}"):
        yield path


def frames(data):
    """(type, id, payload) of each frame of a stream."""
    at = 0
    while at < len(data):
        length, kind, _, _, number, _ = struct.unpack_from("<IBBHQQ", data, at)
        yield kind, number, data[at + 24 : at + 24 + length]
        at += 24 + length


def test_there_is_a_corpus():
    assert CORPUS


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_a_recorded_conversation_goes_on_as_it_did(served, path):
    lines = [(line[0], bytes.fromhex(line[2:])) for line in path.read_text().splitlines()]
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(10)
        raw.connect(served)
        want, got = b"", b""
        for mark, data in lines:
            if mark == ">":
                # The server's answers may come in other pieces than they did.
                while len(list(whole(got))) < len(list(whole(want))):
                    got += raw.recv(1 << 16)
                raw.sendall(data)
            else:
                want += data
        with contextlib.suppress(ConnectionError):
            while piece := raw.recv(1 << 16):
                got += piece
    before, now = list(frames(want)), list(frames(got))
    assert [f[:2] for f in now] == [f[:2] for f in before]
    for (kind, _, was), (_, _, payload) in zip(before, now, strict=True):
        if kind not in (HELLO, ERROR):  # these have texts in them
            assert payload == was


def whole(data):
    at = 0
    while len(data) - at >= 24:
        size = 24 + struct.unpack_from("<I", data, at)[0]
        if len(data) - at < size:
            return
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("features", [None, "", "credit", "resume", "credit resume", "credit resume teleport", "teleport", " credit  "])
@pytest.mark.parametrize("minor", [0, 1, 77])
def test_features_that_one_side_lacks(served, features, minor):
    """Whatever the features and the minor version, a call is answered; CREDIT comes only where it was asked for."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(10)
        raw.connect(served)
        raw.sendall(frame(HELLO, hello(minor=minor, **({} if features is None else {"features": features}))))
        size = 3 << 20
        raw.sendall(frame(CALL, struct.pack("<IQQI", 3, 0, 0, 2) + struct.pack("<Bii", 6, 1, 0) + struct.pack("<Bq", 1, size), number=1))
        raw.sendall(frame(CALL, struct.pack("<IQQI", 4, 1 << 32, size, 2) + struct.pack("<Bq", 1, 0) + struct.pack("<Bq", 1, size), number=2))
        for _ in range(3):
            raw.sendall(frame(6, bytes(1 << 20), number=2))
        raw.sendall(frame(9, b""))
        got = b""
        while piece := raw.recv(1 << 16):
            got += piece
    kinds = [kind for kind, _, _ in frames(got)]
    assert [kind for kind in kinds if kind not in (9, 10)] == [HELLO, REPLY, REPLY]
    assert (10 in kinds) == ("credit" in (features or "").split())


@pytest.mark.parametrize("major", [0, 2, 65535])
def test_another_major_version_is_named_on_both_sides(served, major, tmp_path):
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(5)
        raw.connect(served)
        raw.sendall(frame(HELLO, hello(major=major, minor=3)))
        answer = b""
        while piece := raw.recv(4096):
            answer += piece
    assert answer[4] == ERROR and b"rpc.VersionError" in answer and f"{major}.3".encode() in answer and b"version 1" not in answer[:24]
    # And a client that meets such a server.
    import threading

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def serve():
            near, _ = listener.accept()
            with near:
                near.recv(4096)
                near.sendall(frame(HELLO, hello(major=major, minor=3)))
                with contextlib.suppress(OSError):
                    near.recv(10)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(rpc.VersionError, match=rf"{major}\.3.*1\.0"):
            rpc.connect(f"unix:{tmp_path}/s")


def test_a_client_takes_a_server_without_features(tmp_path):
    """A server of the first release knows neither credit nor resumption."""
    import threading

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def serve():
            near, _ = listener.accept()
            with near, contextlib.suppress(OSError):
                near.recv(4096)
                near.sendall(frame(HELLO, hello()))
                near.recv(4096)
                near.sendall(frame(REPLY, struct.pack("<BQBB", 65, 1 << 32, 4, 0), number=1))
                near.recv(4096)
                near.sendall(frame(REPLY, struct.pack("<Bq", 1, 42), number=2))
                near.recv(10)

        threading.Thread(target=serve, daemon=True).start()
        with rpc.connect(f"unix:{tmp_path}/s") as remote:
            assert remote.get_function("anything")(1) == 42
