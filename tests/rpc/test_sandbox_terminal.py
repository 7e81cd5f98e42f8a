# SPDX-License-Identifier: Apache-2.0
"""The terminal that a server was started at, and its standard streams: hostile code types nothing there and forges no line."""

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import threading

import pytest
from hostility import KERNELS, LANDLOCK, REFUSED, Attacker, Row, Target, attacked, built
from processes import alive, until

from baton.rpc.server import program

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock"),
]

NONE = (*REFUSED, "ENOTTY", "ENXIO")
TYPED = "echo hostile\\n"

ROWS = [
    Row("open terminal", "landlock 1", "/dev/tty", out=NONE, free=None),
    Row("open terminal", "landlock 1", "{terminal}"),
    Row("open terminal", "landlock 1", "/dev/ptmx"),
    Row("open terminal", "landlock 1", "/dev/console", free=None),
    Row("type", text=TYPED, out=NONE, privileged=True),
    Row("type at terminal", "filter", TYPED, out=NONE, free=None),
    Row("paste", out=NONE, free=None),
    Row("leave terminal", out=NONE, free=None),
    Row("terminal size", out=NONE),
    Row("terminal modes", out=NONE),
    Row("has terminal", "supervisor", out=("ENOTTY",)),
    Row("has controlling terminal", "supervisor", out=("ENOTTY", *NONE), free=None),
    Row("read input", "supervisor", out=(*REFUSED, "ENODATA", "EBADF"), free="EAGAIN"),
]


class Terminal:
    """The other side of a server's terminal: all that the server, or one of its sessions, put there."""

    def __init__(self, master):
        self.master, self.text, self.over = master, bytearray(), threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                if select.select([self.master], [], [], 0.05)[0]:
                    self.text += os.read(self.master, 65536)

    def close(self):
        self.over.set()
        self.thread.join()
        os.close(self.master)


@contextlib.contextmanager
def at_terminal(folder, *options, kernel, terminals):
    """A server whose controlling terminal, input and output are a pseudo-terminal; as `hostility.attacked`."""
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    environment = {**os.environ, "TMPDIR": str(folder)}
    if kernel.landlock:
        environment |= {"LD_PRELOAD": built()[1], "HOSTILE_LANDLOCK": kernel.landlock}
    url = f"unix:{folder}/socket"
    command = [program(), "--listen", url, "--policy", "session", "--allow", "hostile.try", "--verbose", *options]
    # The first terminal that a leader of a session opens is the one that controls it.
    shell = ["sh", "-c", f'exec <>{name} >&0 2>&0 && exec "$@"', "sh", *command]
    process = subprocess.Popen(shell, env=environment, start_new_session=True, stdin=subprocess.DEVNULL)
    terminal = Terminal(master)
    terminals.update(terminal=name, seen=terminal)
    try:
        assert until(lambda: b"listening on" in terminal.text, 20)
        yield process, url
    finally:
        process.terminate()
        process.wait()
        terminal.close()
        os.close(slave)


@pytest.fixture(scope="module", params=KERNELS, ids=lambda kernel: kernel.name)
def confined(request, tmp_path_factory):
    names = {}
    with Target(tmp_path_factory.mktemp("tty"), kernel=request.param, start=at_terminal, terminals=names) as target:
        target.names = names
        yield target


@pytest.fixture(scope="module")
def unconfined(tmp_path_factory):
    names = {}
    with Target(tmp_path_factory.mktemp("tty"), "--no-sandbox", confined=False, start=at_terminal, terminals=names) as target:
        target.names = names
        yield target


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_attack_is_kept_away(row, confined):
    confined.check_kept_away(row)
    if confined.open is not None:
        assert b"echo hostile" not in confined.names["seen"].text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_attack_works_where_nothing_is_confined(row, unconfined):
    unconfined.check_let_through(row)


# ---- Lines on standard error ----------------------------------------------------------------------------------------

FORGED = "baton-rpc: session 4711 of key 0123456789abcdef admin begins"


@contextlib.contextmanager
def said_by(folder, *options):
    """A session of a server whose standard error goes to a file; gives it, and the file."""
    folder.mkdir(exist_ok=True)
    with open(folder / "said", "wb") as said, attacked(folder, "--verbose", *options, stderr=said) as (process, url):
        with Attacker(url, folder) as attacker:
            yield attacker, process, folder / "said"


@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize(
    "text",
    ["\033[2J\033]0;title\007\033[6n", "\x9b31m", "\r", "\x08\x08\x08", "\x00", "\x7f", "\u202e", "\u2028"],
    ids=["csi", "c1", "cr", "backspace", "nul", "delete", "bidi", "separator"],
)
def test_no_control_character_of_a_session_arrives(tmp_path, stream, text):
    with said_by(tmp_path) as (attacker, _, said):
        attacker("say", f"before{text}after\n", number=stream)
        pid = attacker.pid
        attacker.close()
        assert until(lambda: b"calls" in said.read_bytes(), 20) and not alive(pid)
        line = said.read_bytes().decode("utf8", "surrogateescape")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", line), repr(line)


@pytest.mark.parametrize(
    "text",
    [FORGED + "\n", "\n" + FORGED + "\n", "x\r" + FORGED + "\n", "x" * 70000 + "\n" + FORGED, FORGED],
    ids=["line", "second line", "return", "long", "no end"],
)
def test_a_session_forges_no_line_of_the_audit(tmp_path, text):
    """Its own words are marked as such, and the server's own lines begin where lines begin."""
    with said_by(tmp_path) as (attacker, _, said):
        attacker("say", text, number=2)
        pid = attacker.pid
        attacker.close()
        assert until(lambda: f"session {pid} of ".encode() in said.read_bytes() and b"calls" in said.read_bytes(), 20)
        lines = re.split(r"[\r\n]", said.read_bytes().decode(errors="replace"))
    assert not [line for line in lines if line.startswith("baton-rpc: session 4711")], lines
    own = [line for line in lines if line.startswith(f"baton-rpc: session {pid} of ")]
    assert any(" begins" in line for line in own) and any(" calls, " in line for line in own), lines


def test_without_the_sandbox_lines_can_be_forged(tmp_path):
    with said_by(tmp_path, "--no-sandbox") as (attacker, _, said):
        assert attacker("say", FORGED + "\n", number=2) == "done"
        assert until(lambda: FORGED.encode() in said.read_bytes())


def test_a_flood_of_words_fills_no_disk(tmp_path):
    """64 MiB on standard error: a part of it is kept, the server goes on."""
    with said_by(tmp_path) as (attacker, process, said):
        attacker("say much", number=2, other=64 << 20)
        attacker.close()
        with Attacker(attacker.url, tmp_path) as other:
            assert other("descriptors", number=1) == "done"
        assert process.poll() is None and said.stat().st_size < 8 << 20


def test_a_session_goes_on_whose_words_are_not_read(tmp_path):
    """Its words fill the pipe that the server writes into: others get sessions, and this one ends with its client."""
    with attacked(tmp_path, "--verbose", stderr=subprocess.PIPE) as (process, url), Attacker(url, tmp_path, call_timeout=3) as attacker:
        pid = attacker.pid
        with contextlib.suppress(Exception):
            attacker("say much", number=2, other=16 << 20)
        with Attacker(url, tmp_path) as other:
            assert other("descriptors", number=1) == "done"
        attacker.close()
        assert until(lambda: not alive(pid), 20) and process.poll() is None


def test_a_session_changes_no_stream_of_the_server(tmp_path):
    """What processes share of an open file is more than the file: one that makes it non-blocking makes it so for all."""
    read, write = os.pipe()
    with open(read, "rb"), open(write, "wb") as said, attacked(tmp_path, stderr=said) as (process, url), Attacker(url, tmp_path) as attacker:
        for stream in (0, 1, 2):
            attacker("make non-blocking", number=stream)
        assert not [fd for fd in (1, 2) if flags_of(process.pid, fd) & os.O_NONBLOCK] and os.get_blocking(write)


def flags_of(pid, fd):
    with open(f"/proc/{pid}/fdinfo/{fd}") as file:
        return int(re.search(r"flags:\s+(\d+)", file.read())[1], 8)
