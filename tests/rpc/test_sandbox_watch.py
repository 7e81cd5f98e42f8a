# SPDX-License-Identifier: Apache-2.0
"""Hostile code does not outlive its session: what watches it is not in its process.

Whatever a session does to its own threads, signals and descriptors, it ends with its client, its time and its server.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hostility import LANDLOCK, LOST, Attacker, attacked, built
from processes import alive, children, until

from baton import rpc
from baton.rpc.library import function
from baton.rpc.tracker import Tracker, connect_tracker
from baton.rpc.tracker.session import open_session

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock"),
]

STAYS = ["freeze and stay", "spin and stay", "freeze afterwards", "close all", "ignore term", "spin ignoring", "stop", "leave main"]
CASES = [*((attack, "unix") for attack in STAYS), *((attack, "tls") for attack in ("freeze and stay", "leave main"))]
ENDS = 30  # seconds; what watches looks more often


def tree(pid):
    """A process and all below it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [pid, *(one for child in children(pid) for one in tree(child))]
    return []


@contextlib.contextmanager
def client(url, attack, options=()):
    """A client in a process of its own, whose session attacks; gives its process, and the session's."""
    text = (
        "import sys, time\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), os.path.dirname(os.path.dirname(rpc.__path__[0]))]!r}\n"
        "from baton import rpc\n"
        f"remote = rpc.connect({url!r}, call_timeout=600, **{dict(options)!r})\n"
        "remote.upload(sys.stdin.buffer.read(), 'hostile.so')\n"
        "module = remote.load_module('hostile.so')\n"
        "print(remote.info['session'], flush=True)\n"
        f"print(remote.get_function('hostile.try')({attack!r}, '', '', 1, 0), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(built()[0])
        process.stdin.close()
        try:
            pid = int(process.stdout.readline())
            time.sleep(1)  # it does what it does
            yield process, pid
        finally:
            process.kill()


@pytest.mark.parametrize("attack, scheme", CASES)
def test_it_ends_with_its_client(attack, scheme, tmp_path):
    with opened(tmp_path, scheme) as (process, url, options), client(url, attack, options) as (peer, pid):
        below = tree(pid)
        peer.kill()
        peer.wait()
        # Over TLS the client has 30 s to come back.
        assert until(lambda: not any(alive(one) for one in below), 2 * ENDS)
        assert process.poll() is None
        with rpc.connect(url, **options) as other:
            assert other.info["session"] != pid


@pytest.mark.parametrize("attack", STAYS)
def test_it_ends_when_its_time_is_over(attack, tmp_path):
    with opened(tmp_path, "tls", "wall=3") as (process, url, options), client(url, attack, options) as (_, pid):
        below = tree(pid)
        assert until(lambda: not any(alive(one) for one in below), ENDS)
        assert process.poll() is None


def test_it_ends_when_it_is_idle(tmp_path):
    with attacked(tmp_path, "--idle", "2") as (process, url), client(url, "freeze afterwards") as (_, pid):
        assert until(lambda: not alive(pid), ENDS) and process.poll() is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told"])
@pytest.mark.parametrize("attack, scheme", CASES)
def test_it_ends_with_its_server(attack, scheme, how, tmp_path):
    with opened(tmp_path, scheme) as (process, url, options), client(url, attack, options) as (_, pid):
        below = tree(process.pid)
        assert pid in below
        process.send_signal(how)
        process.wait(60)
        assert until(lambda: not any(alive(one) for one in below), ENDS), [one for one in below if alive(one)]


@contextlib.contextmanager
def opened(folder, scheme, *caveats):
    """A server, its URL, and what a client has to say."""
    if scheme == "unix":
        with attacked(folder) as (process, url):
            yield process, url, {}
        return
    key, token = str(folder / "lab.key"), str(folder / "job.token")
    function("KeyNew")("lab", key, "session", ["hostile.try"])
    function("KeyNarrow")(key, token, [*caveats, "allow=hostile.try"])
    with attacked(folder, url=f"tls://127.0.0.1:0?key={key}") as (process, url):
        yield process, url, {"key_file": token}


@pytest.mark.parametrize("attack, number", [("crash", signal.SIGSEGV), ("crash", signal.SIGABRT), ("exit", 0), ("exit", 7), ("close all", 0)])
def test_one_that_ends_by_itself_is_counted_off(attack, number, tmp_path):
    """As often as there are places, and one time more."""
    with attacked(tmp_path, "--max-sessions", "3") as (process, url):
        for _ in range(5):
            with Attacker(url, tmp_path, call_timeout=2) as attacker:
                with contextlib.suppress(rpc.RPCError):
                    attacker(attack, number=int(number))
        with Attacker(url, tmp_path) as other:
            assert other("descriptors", number=1) == "done" and process.poll() is None


@pytest.mark.parametrize("name", ["baton-idle", "baton-front", "baton-warm", ""])
def test_a_name_frees_no_place(name, tmp_path):
    """A process may call itself as it likes: its session is a session all the same."""
    with attacked(tmp_path, "--max-sessions", "1") as (_, url), Attacker(url, tmp_path) as attacker:
        attacker("set name", name)
        with pytest.raises(rpc.RPCError):
            rpc.connect(url, connect_timeout=3)
        assert attacker("descriptors", number=1) == "done"


def test_a_name_frees_no_lease(tmp_path, monkeypatch):
    """The tracker gives a device to no other while a session that calls itself otherwise is on it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Tracker("127.0.0.1", 0) as tracker:
        leased = ("--tracker", f"tls://127.0.0.1:{tracker.port}", "--key", "board")
        with attacked(tmp_path, *leased, url="tls://127.0.0.1:0"), connect_tracker("127.0.0.1", tracker.port) as session:
            lease = session.lease("board", timeout=20)
            remote = open_session(lease)
            remote.upload(built()[0], "hostile.so")
            module = remote.load_module("hostile.so")
            pid = remote.info["session"]
            remote.get_function("hostile.try")("set name", "baton-idle", "", 0, 0)
            lease.release()
            # The device is looked after before it is given again; its old session may not be on it then.
            session.lease("board", timeout=20)
            assert not alive(pid) and module is not None


def test_a_session_reads_no_environment(tmp_path):
    """The server's environment has secrets: neither names nor values are in a session's memory, and no file of /proc has them."""
    secret = f"swordfish-{os.urandom(8).hex()}"
    hidden = "".join(chr(ord(c) ^ 1) for c in secret)
    with attacked(tmp_path, HOSTILE_SECRET=secret) as (process, url), Attacker(url, tmp_path) as attacker:
        assert attacker("environment", "HOSTILE_SECRET") == "ENOENT"
        assert attacker("search memory", hidden) == "ENOENT"
        assert attacker("environment file", hidden, "/proc/self/environ") != "done"
        assert attacker("environment file", hidden, f"/proc/{process.pid}/environ") == "EACCES"
    with attacked(tmp_path, "--no-sandbox", HOSTILE_SECRET=secret) as (process, url), Attacker(url, tmp_path) as attacker:
        assert attacker("environment file", hidden, f"/proc/{process.pid}/environ") == "done"


def test_a_session_finds_no_other(tmp_path):
    """Neither the folder of another session nor a file of it, by its name; and no error says a name of the server's."""
    with attacked(tmp_path) as (_, url), Attacker(url, tmp_path) as one, Attacker(url, tmp_path) as other:
        other.connect().upload(b"theirs", "theirs")
        theirs = other.own
        assert one("list", theirs) == "EACCES" and one("read", theirs / "theirs") == "EACCES"
        assert one("write", theirs / "new") == "EACCES" and one("chdir", theirs) in ("EACCES", "EPERM")
        assert one("stat", theirs / "theirs") in ("EACCES", "EPERM", "ENOSYS")
        said = []
        for action in (
            lambda: one.remote.download("nosuch"), lambda: one.remote.remove("nosuch"), lambda: one.remote.load_module("nosuch"), lambda: one.remote.load_module("mark"),
            lambda: one.remote.upload(b"x", "../x"), lambda: one.remote.get_function("nosuch"), lambda: one.remote.download("../theirs"),
        ):  # fmt: skip
            with pytest.raises((rpc.RPCError, OSError, ValueError, AttributeError)) as caught:
                action()
            said.append(str(caught.value))
        assert one.own
        for text in said:
            assert not re.search(rf"baton-rpc-server-|{re.escape(str(tmp_path))}", text), text


@pytest.mark.parametrize("mode", ["none"])
def test_a_kernel_without_landlock_confines_nothing(mode, tmp_path):
    """A server that others can reach does not start there; on this machine, a session is refused."""
    old = {"LD_PRELOAD": built()[1], "HOSTILE_LANDLOCK": mode}
    key = str(tmp_path / "lab.key")
    function("KeyNew")("lab", key, "session", [])
    command = [rpc.server.program(), "--listen", f"tls://0.0.0.0:0?key={key}"]
    done = subprocess.run(command, env={**os.environ, **old, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no Landlock" in done.stderr
    with attacked(tmp_path, **old) as (_, url), pytest.raises(rpc.RPCError):
        rpc.connect(url)


def test_what_one_does_in_the_time_of_its_end_is_nothing(tmp_path):
    """Sessions that end by their own hand while others begin: each new one works."""
    with attacked(tmp_path) as (process, url):
        over = threading.Event()

        def crash():
            while not over.is_set():
                with contextlib.suppress(rpc.RPCError, OSError), Attacker(url, tmp_path) as attacker:
                    assert attacker("crash", number=int(signal.SIGSEGV)) == LOST

        thread = threading.Thread(target=crash)
        thread.start()
        try:
            for _ in range(20):
                with Attacker(url, tmp_path) as attacker:
                    assert attacker("descriptors", number=1) == "done"
        finally:
            over.set()
            thread.join()
        assert process.poll() is None
