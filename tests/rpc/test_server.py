# SPDX-License-Identifier: Apache-2.0
"""The server's program, its processes and policies."""

import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time

import pytest
from frames import frame, hello
from processes import alive, until

import baton
from baton import rpc
from baton.rpc.library import function
from baton.rpc.server import program


class Program:
    """baton-rpc-server on a socket of its own."""

    def __init__(self, folder, *options, listen=None):
        (folder / "tmp").mkdir(exist_ok=True)
        self.url = listen or f"unix:{folder}/socket"
        self.folder = folder / "tmp"
        command = [program(), "--listen", self.url, "--verbose", *options]
        environment = {**os.environ, "TMPDIR": str(self.folder)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.url = self.process.stdout.readline().split()[-1]

    def end(self):
        self.process.terminate()
        return self.process.communicate(timeout=5)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def test_a_live_server_is_poked_a_few_times_by_one_that_wants_its_socket(tmp_path):
    """Each connection may cost the live server a process; its socket stays."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(path))
        live.listen(128)
        start = time.monotonic()
        done = subprocess.run([program(), "--listen", f"unix:{path}"], capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and "cannot listen" in done.stderr
        assert time.monotonic() - start > 0.5  # of a server that was killed just now, processes may still be ending
        live.setblocking(False)
        pokes = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                live.accept()[0].close()
                pokes += 1
        assert 1 <= pokes <= 6 and path.exists()


def test_rpc_003_needs_runtime_and_library_alone():  # RPC-003
    out = subprocess.run(["ldd", program()], capture_output=True, text=True, check=True).stdout
    needed = {line.split()[0] for line in out.splitlines()}
    assert {name for name in needed if "baton" in name} == {"libbaton_rpc.so", "libbaton_runtime.so"}
    assert not [name for name in needed if any(word in name for word in ("LLVM", "python", "ssl"))]


def test_policy_session(tmp_path):
    with Program(tmp_path, "--policy", "session", "--allow", "runtime.Device*,runtime.ReadManifest") as server, rpc.connect(server.url) as remote:
        assert remote.info["policy"] == "session"
        assert remote.get_function("runtime.DeviceExists")(remote.cpu()) is True
        for name in ("runtime.ModuleLoadFromFile", "runtime.ListGlobalFuncNames", "rpc.Connect", "runtime.ReadManifestX", "absent"):
            with pytest.raises(rpc.Denied, match="--allow"):
                remote.get_function(name)
        audit = server.end()
        assert f"uid {os.getuid()}" in audit and "calls" in audit


def test_each_session_leaves_an_audit_line(tmp_path):
    """Who, how many calls, and how it ended: also of one that was killed, was refused, or broke off."""
    key, other = (str(tmp_path / f"{name}.key") for name in ("lab", "other"))
    for path in (key, other):
        function("KeyNew")("lab", path, "session", ["runtime.DeviceExists"])
    with Program(tmp_path, listen=f"tls://127.0.0.1:0?key={key}") as server:
        with rpc.connect(f"{server.url}?key={key}") as remote:
            key_id = remote.peer.split()[1]
            for _ in range(5):
                remote.get_function("runtime.DeviceExists")
        with pytest.raises(rpc.RPCError):
            rpc.connect(f"{server.url}?key={other}").get_function("runtime.DeviceExists")
        killed = rpc.connect(f"{server.url}?key={key}")
        pid = killed.info["session"]
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not alive(pid))
        cut = rpc.connect(f"{server.url}?key={key}", resume_timeout=0)
        broken = cut.info["session"]
        del cut
        assert until(lambda: not alive(broken))
        time.sleep(0.2)
        lines = server.end().splitlines()
    assert any(re.search(rf"of key {key_id} lab, policy session: 5 calls, [1-9]\d+ bytes in, [1-9]\d+ out; closed", line) for line in lines), lines
    assert any("refused: the handshake failed" in line for line in lines), lines
    assert any(f"session {pid} of key {key_id} lab begins" in line for line in lines), lines
    assert any(f"session {pid} died of signal 9" in line for line in lines), lines
    assert any(f"session {broken} of key {key_id}" in line for line in lines), lines


def test_policy_of_a_key(tmp_path):
    keys = {}
    for name, policy, allow in (("all", "trusted", []), ("few", "session", ["runtime.DeviceExists"])):
        keys[name] = str(tmp_path / f"{name}.key")
        function("KeyNew")(name, keys[name], policy, allow)
    for name in keys:
        with Program(tmp_path, listen=f"tls://127.0.0.1:0?key={keys[name]}") as server:
            with rpc.connect(f"{server.url}?key={keys[name]}") as remote:
                assert remote.get_function("runtime.DeviceExists")(remote.cpu())
                if name == "all":
                    assert remote.get_function("runtime.ListGlobalFuncNames")()
                else:
                    with pytest.raises(rpc.Denied):
                        remote.get_function("runtime.ListGlobalFuncNames")
            # The other key is unknown here, and without one there is none to be found.
            other = keys["few" if name == "all" else "all"]
            with pytest.raises(rpc.RPCError):
                rpc.connect(f"{server.url}?key={other}")
            with pytest.raises(rpc.Denied, match="key"):
                rpc.connect(server.url)


@pytest.mark.parametrize("words", [["--no-load"], ["--load", "none"]])
def test_modules_that_the_program_loads(tmp_path, words):
    with Program(tmp_path, *words) as server, rpc.connect(server.url) as remote:
        remote.upload(b"x", "m.so")
        with pytest.raises(rpc.Denied, match="loads no modules"):
            remote.load_module("m.so")


def test_modules_that_the_program_takes_when_they_are_signed(tmp_path):
    (tmp_path / "k.pub").write_text("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n")
    with Program(tmp_path, "--load", "signed", "--signers", str(tmp_path / "k.pub")) as server, rpc.connect(server.url) as remote:
        remote.upload(b"x", "m.so")
        with pytest.raises(rpc.Denied, match="not signed"):
            remote.load_module("m.so")


def test_no_modules(tmp_path):
    with Program(tmp_path, "--no-load") as server, rpc.connect(server.url) as remote:
        remote.upload(b"x", "m.so")
        with pytest.raises(rpc.Denied, match="loads no modules"):
            remote.load_module("m.so")


def test_quotas(tmp_path):
    with Program(tmp_path, "--disk", "1", "--memory", "1") as server, rpc.connect(server.url) as remote:
        remote.upload(b"x" * (1 << 19), "a")
        remote.upload(b"y" * (1 << 19), "a")  # in place of the first
        with pytest.raises(rpc.OutOfMemory, match="at most"):
            remote.upload(b"z" * ((1 << 19) + 1), "b")
        with pytest.raises(rpc.RPCError, match="at most"):
            baton.nd.empty((1 << 21,), "uint8", remote.cpu())
        assert remote.download("a") == b"y" * (1 << 19)


def test_rpc_011_killed_server(tmp_path):  # RPC-011
    with Program(tmp_path) as server:
        remote = rpc.connect(server.url)
        worker = remote.info["session"]
        os.kill(server.process.pid, signal.SIGKILL)
        begin = time.monotonic()
        with pytest.raises(rpc.SessionLost):
            for _ in range(1000):
                remote.get_function("runtime.DeviceExists")
                time.sleep(0.005)
        assert time.monotonic() - begin < 2 and until(lambda: not alive(worker))
    # What it left is removed by the next one.
    assert list(server.folder.iterdir())
    with Program(tmp_path) as server:
        rpc.connect(server.url).close()
        assert len(list(server.folder.iterdir())) == 1
        server.end()
    assert not list(server.folder.iterdir())


def test_rpc_011_killed_worker(tmp_path):  # RPC-011
    with Program(tmp_path) as server:
        one, two = rpc.connect(server.url), rpc.connect(server.url)
        os.kill(one.info["session"], signal.SIGKILL)
        with pytest.raises(rpc.SessionLost):
            one.get_function("runtime.DeviceExists")
            one.get_function("runtime.DeviceExists")
        assert two.get_function("runtime.DeviceExists")(two.cpu())
        two.close()
        assert until(lambda: not list(server.folder.glob("*/*")))


def test_rpc_011_killed_client_frees_the_server_within_a_call(tmp_path):  # RPC-011
    url = f"unix:{tmp_path}/socket"
    with rpc.Server(url=url):
        code = f"""
            from baton import rpc
            remote = rpc.connect({url!r})
            sleep = remote.get_function("test.rpc.sleep")
            print(remote.info["session"], flush=True)
            sleep(60.0)
        """
        client = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        worker = int(client.stdout.readline())
        time.sleep(0.1)
        client.kill()
        client.communicate()
        assert until(lambda: not alive(worker))


def test_server_ends_with_its_program(tmp_path):
    code = f"""
        import os, signal
        from baton import rpc
        server = rpc.Server(url="unix:{tmp_path}/socket")
        remote = rpc.connect(server.url)
        print(server.pid, remote.info["session"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, check=False)
    assert all(until(lambda pid=pid: not alive(int(pid))) for pid in done.stdout.split())


@pytest.mark.parametrize(
    "what",
    [os.urandom(200), frame(1, b"garbage!garbage!"), frame(1, length=2**31), frame(77), frame(2, b"\0" * 40), frame(1, hello()) + frame(3, b"\0"), b"GET / HTTP/1.1\r\n\r\n" * 9],
    ids=["random", "hello", "long", "type", "early", "reply", "http"],
)  # fmt: skip
def test_rpc_011_what_is_no_session_ends_and_disturbs_no_other(tmp_path, what):  # RPC-011
    with Program(tmp_path) as server, rpc.connect(server.url) as remote:
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(5)
            raw.connect(server.url.removeprefix("unix:"))
            raw.sendall(what)
            while raw.recv(4096):
                pass
        assert remote.get_function("runtime.DeviceExists")(remote.cpu())


def test_rpc_011_changed_conversations_end_without_a_crash(tmp_path):  # RPC-011
    """Recorded bytes of a session, changed at random places: the worker ends by itself, and the server serves others."""
    rng = random.Random(11)
    name = b"runtime.DeviceExists"
    call = struct.pack("<IQQI", 1, 0, 0, 1) + struct.pack("<BI", 7, len(name)) + name
    alloc = struct.pack("<IQQI", 3, 0, 0, 2) + struct.pack("<Bii", 6, 1, 0) + struct.pack("<Bq", 1, 4096)
    upload = struct.pack("<IQQI", 10, 0, 5, 3) + struct.pack("<BI", 7, 1) + b"f" + struct.pack("<Bq", 1, 5) + struct.pack("<BI", 8, 32) + bytes(32)
    whole = frame(1, hello()) + frame(2, call, number=1) + frame(2, alloc, number=2) + frame(2, upload, number=3) + frame(6, b"12345", number=3) + frame(9)
    with Program(tmp_path) as server:
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(data))
                choice = rng.randrange(3)
                if choice == 0:
                    data[at] = rng.randrange(256)
                elif choice == 1:
                    del data[at : at + rng.randint(1, 8)]
                else:
                    data[at:at] = rng.randbytes(rng.randint(1, 8))
            with socket.socket(socket.AF_UNIX) as raw:
                raw.settimeout(5)
                raw.connect(server.url.removeprefix("unix:"))
                try:
                    raw.sendall(data)
                    raw.shutdown(socket.SHUT_WR)
                    while raw.recv(4096):
                        pass
                except ConnectionError:
                    pass
        with rpc.connect(server.url) as remote:
            assert remote.get_function("runtime.DeviceExists")(remote.cpu())
        assert "signal" not in server.end()


def test_version_of_another_time(tmp_path):
    with Program(tmp_path) as server, socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(5)
        raw.connect(server.url.removeprefix("unix:"))
        raw.sendall(frame(1, hello(major=9)))
        answer = b""
        while piece := raw.recv(4096):
            answer += piece
        assert answer[4] == 4 and b"rpc.VersionError" in answer and b"9.0" in answer and b"1.0" in answer


def test_silent_connections_are_cut_and_keep_no_other_waiting(tmp_path):
    with Program(tmp_path) as server:
        silent = []
        for _ in range(300):  # more than there are places for such
            raw = socket.socket(socket.AF_UNIX)
            raw.connect(server.url.removeprefix("unix:"))
            silent.append(raw)
        begin = time.monotonic()
        with rpc.connect(server.url) as remote:
            assert remote.get_function("runtime.DeviceExists")(remote.cpu())
        assert time.monotonic() - begin < 5
        for raw in silent:
            raw.settimeout(5)
            try:
                while raw.recv(100):
                    pass
            except ConnectionError:
                pass
            raw.close()
        assert until(lambda: not list(server.folder.glob("*/*")))


def test_sessions_beyond_the_limit_wait(tmp_path):
    with Program(tmp_path, "--max-sessions", "1") as server:
        one = rpc.connect(server.url)
        with pytest.raises((rpc.Timeout, rpc.SessionLost)):
            rpc.connect(server.url, connect_timeout=0.3)
        with pytest.raises((rpc.Timeout, rpc.SessionLost)):
            rpc.connect(server.url, connect_timeout=3)
        one.close()
        with rpc.connect(server.url) as two:
            assert two.info["session"] != one.info["session"]


def test_exec_and_a_command_that_fails(tmp_path):
    with rpc.connect(f"exec:{program()} --stdio --policy session") as remote:
        assert remote.info["policy"] == "session"
        remote.upload(b"abc", "f")
        assert remote.download("f") == b"abc"
        worker = remote.info["session"]
    del remote
    assert until(lambda: not alive(worker))
    with pytest.raises(rpc.SessionLost):
        rpc.connect("exec:exit 3")


@pytest.mark.parametrize(
    "args, words",
    [
        (["--what"], "--what"),
        (["--listen"], "value is missing"),
        (["--idle", "soon"], "number above 0"),
        (["--listen", "host"], "is no address"),
        (["--listen", "tls://0.0.0.0:0"], "baton rpc-key new"),
        (["--listen", "unix:/nonexistent/x"], "cannot listen"),
        (["--policy", "none", "--listen", "unix:x"], "session and trusted"),
        (["--load", "signed", "--listen", "unix:x"], "--signers FILE"),
        (["--load", "some", "--listen", "unix:x"], "load=some"),
    ],
)
def test_wrong_usage_of_the_program(args, words, tmp_path):
    done = subprocess.run([program(), *args], capture_output=True, text=True, cwd=tmp_path, timeout=10, check=False)
    assert done.returncode in (1, 2) and words in done.stderr


def test_help_of_the_program():
    done = subprocess.run([program(), "--help"], capture_output=True, text=True, check=True)
    assert "--listen URL" in done.stdout and "--stdio" in done.stdout and done.stderr == ""


def test_python_m_exec_rpc_server(tmp_path):
    command = [sys.executable, "-m", "baton.exec.rpc_server", "--url", f"unix:{tmp_path}/s", "--policy", "session"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert "listening on unix:" in process.stdout.readline()
        with rpc.connect(f"unix:{tmp_path}/s") as remote:
            assert remote.info["policy"] == "session"
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "where", [["--host", "0.0.0.0"], ["--host", "::"], ["--url", "tls://0.0.0.0:0"], ["--url", "tls://[::]:0"], ["--proxy", "gate:1"]], ids=" ".join
)
def test_python_m_exec_rpc_server_confines_no_session_of_other_machines(where, tmp_path):
    """It says so, and is told to serve all the same."""
    command = [sys.executable, "-m", "baton.exec.rpc_server", *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "baton-rpc-server" in done.stderr and "--no-sandbox" in done.stderr
    done = subprocess.run([*command, "--no-sandbox"], capture_output=True, text=True, timeout=60)  # what is missing then is a key
    assert done.returncode == 1 and "key" in done.stderr


@pytest.mark.parametrize("last", ["server", "fork"])
def test_a_server_ends_while_a_process_that_was_started_after_it_lives(tmp_path, last):
    code = f"""
        import os, signal, time
        from baton import rpc
        one = rpc.Server(url="unix:{tmp_path}/one")
        if {last!r} == "server":
            two = rpc.Server(url="unix:{tmp_path}/two")
        elif (child := os.fork()) == 0:
            time.sleep(30)
            os._exit(0)
        begin = time.monotonic()
        one.terminate()
        print(time.monotonic() - begin, flush=True)
        if {last!r} == "server":
            assert rpc.connect(two.url).get_function("runtime.DeviceExists")
        else:
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 0 and float(done.stdout) < 5
