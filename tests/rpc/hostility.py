# SPDX-License-Identifier: Apache-2.0
"""Attacks from within a session: the library of `hostile/`, uploaded as a client uploads a model, and servers to attack."""

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import platform
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from processes import alive, children, name_of, served

from baton import rpc
from baton.rpc.library import path as library

SOURCES = Path(__file__).parent / "hostile"
INCLUDE = Path(__file__).parents[2] / "include"
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)  # its version in this kernel; -1: none

REFUSED = ("EPERM", "EACCES", "ENOSYS")
LOST = "lost"  # the process of the session was ended


def compiled(folder, name, sources, *options):
    """A shared library of C sources of `hostile/`."""
    out = os.path.join(folder, name)
    # LTO and such from the environment have no place here: what is attacked must be what is written.
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{INCLUDE}", *(SOURCES / s for s in sources), *options, "-o", out], check=True)
    return out


def as_model(code):
    """The bytes of a library as those of a compiled model without an entry: that is what servers load."""
    manifest = {"format": 1, "arch": platform.machine(), "entry": "", "target": "llvm", "features": [], "inputs": [], "outputs": []}
    text = json.dumps({**manifest, "arena_bytes": 0, "constants_bytes": 0, "io_alignment": 1}).encode()
    code += b"\0" * (-len(code) % 64)
    body = code + text + struct.pack("<4Q2I", len(code), 0, len(code), len(text), 1, 0)
    return body + hashlib.sha256(body).digest() + b"BATONART"


@functools.cache
def built():
    """(the model of all attacks, path of the library that makes kernels look older)."""
    folder = tempfile.mkdtemp(prefix="hostile-")
    lib = os.path.dirname(library("x"))
    sources = sorted(file.name for file in SOURCES.glob("*.c") if file.name != "old_kernel.c")
    attacks = compiled(folder, "hostile.so", sources, f"-L{lib}", "-lbaton_runtime", "-lpthread")
    return as_model(Path(attacks).read_bytes()), compiled(folder, "old_kernel.so", ["old_kernel.c"], "-ldl")


def all_capabilities():
    """Whether this process has each capability that the kernel knows."""
    with open("/proc/self/status") as file:
        status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/sys/kernel/cap_last_cap") as file:
        return int(status["CapEff"], 16) == (2 << int(file.read())) - 1


class Kernel(NamedTuple):
    """A kernel as servers see it: what `old_kernel.c` is told, and the version of Landlock that guarantees anything."""

    name: str
    landlock: str
    version: int


KERNELS = [
    Kernel("this kernel", "", LANDLOCK),
    Kernel("Landlock 5", "5", 5),
    Kernel("Landlock 1", "1", 1),
    Kernel("filter alone", "idle", 0),
]


@contextlib.contextmanager
def attacked(folder, *options, kernel=KERNELS[0], url=None, stderr=None, **environment):
    """A server whose sessions can attack; gives its process and its URL."""
    if kernel.landlock:
        environment |= {"LD_PRELOAD": built()[1], "HOSTILE_LANDLOCK": kernel.landlock}
    url = url or f"unix:{folder}/socket"
    with served(url, "--policy", "session", "--allow", "hostile.try", *options, folder=folder, stderr=stderr, **environment) as made:
        yield made


class Attacker:
    """A session that runs attacks. Makes another one when the process of the one before is gone."""

    def __init__(self, url, folder, **options):
        self.url, self.folder, self.options, self.remote = url, folder, options, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.remote is not None:
            with contextlib.suppress(rpc.RPCError):
                self.remote.close()
            self.remote = None

    def connect(self):
        if self.remote is None or self.remote.lost:
            self.remote = rpc.connect(self.url, **self.options)
            self.remote.upload(built()[0], "hostile.so")
            self.module = self.remote.load_module("hostile.so")
            self.function = self.remote.get_function("hostile.try")
        return self.remote

    @property
    def pid(self):
        return self.connect().info["session"]

    @property
    def own(self):
        """The session's own folder: that of the server's to which a file is added now."""
        self.connect().upload(os.urandom(8), "mark")
        mine = bytes(self.remote.download("mark"))
        return next(file.parent for file in Path(self.folder).glob("baton-rpc-server-*/*/mark") if file.read_bytes() == mine)

    def __call__(self, name, text="", more="", number=0, other=0):
        """What came of an attack: "done", the name of an error, or "lost"."""
        self.connect()
        try:
            error = self.function(name, str(text), str(more), number, other)
        except rpc.SessionLost:
            self.remote = None
            return LOST
        assert error >= 0, f"there is no attack `{name}`"
        return errno.errorcode[error] if error else "done"


class Row(NamedTuple):
    """An attack, and the layer that keeps it from having its way: "filter", "landlock N" (from that version on), "supervisor".

    text, more, number, other: what it is given; `{name}` in a text, and a name in place of a number, are of the `World`.
    out: what comes out in a session. free: what comes out where nothing is confined, so that the row is known to attack something;
    None where that would do harm, or depends on the machine. privileged: it works only for users with all capabilities.
    """

    attack: str
    layer: str = "filter"
    text: str = ""
    more: str = ""
    number: object = 0
    other: object = 0
    out: tuple = REFUSED
    free: object = "done"
    privileged: bool = False

    @property
    def name(self):
        given = [str(v) for v in (self.text, self.number, self.other) if v]
        return " ".join([self.attack, *given]).replace("{", "").replace("}", "").replace("/", "|")

    @property
    def least_landlock(self):
        return int(self.layer.removeprefix("landlock ")) if self.layer.startswith("landlock") else 0


class Queues:
    """System V's memory, semaphores and messages, and POSIX's by name, as a program of the user has them."""

    def __init__(self):
        self.c = ctypes.CDLL(None, use_errno=True)
        self.name = f"/hostile-{os.getpid()}-{os.urandom(4).hex()}"
        self.key = int.from_bytes(os.urandom(3), "little") + 1
        self.shm = self.c.shmget(self.key, 4096, 0o1600)
        self.sem = self.c.semget(0, 1, 0o1600)
        self.msg = self.c.msgget(0, 0o1600)
        self.c.msgsnd(self.msg, struct.pack("l8s", 1, b"message"), 7, 0)
        os.close(os.open(f"/dev/shm{self.name}", os.O_CREAT | os.O_RDWR, 0o600))
        os.close(self.c.syscall(240 if platform.machine() == "x86_64" else 180, self.name[1:].encode(), os.O_CREAT | os.O_RDWR, 0o600, None))

    def intact(self):
        counts = ctypes.create_string_buffer(256)
        there = [self.c.shmctl(self.shm, 2, counts), self.c.semctl(self.sem, 0, 2, counts), self.c.msgctl(self.msg, 2, counts)]
        return there == [0, 0, 0] and os.path.exists(f"/dev/shm{self.name}") and self.c.semctl(self.sem, 0, 12) == 0

    def close(self):
        self.c.shmctl(self.shm, 0, None)
        self.c.semctl(self.sem, 0, 0)
        self.c.msgctl(self.msg, 0, None)
        with contextlib.suppress(OSError):
            os.unlink(f"/dev/shm{self.name}")
        self.c.syscall(241 if platform.machine() == "x86_64" else 181, self.name[1:].encode())


class World:
    """What attacks are aimed at: a user's files, a process, what processes share; and a server with sessions that attack.

    It is made anew for each attack, but for the server; `intact` says whether nothing of it was changed.
    """

    CONTENT = b"nobody's business"

    def __init__(self, target):
        self.target, self.folder, self.server = target, Path(target.folder), target.process.pid

    def __enter__(self):
        self.mine = Path(tempfile.mkdtemp(prefix="user-", dir=self.folder))
        self.secret, self.empty, self.link = self.mine / "secret", self.mine / "empty", self.mine / "link"
        self.secret.write_bytes(self.CONTENT)
        self.secret.chmod(0o640)
        os.utime(self.secret, (1_000_000_000, 1_000_000_000))
        os.setxattr(self.secret, "user.mark", b"1")
        self.empty.mkdir()
        self.link.symlink_to("secret")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.mine / "service"))
        self.listener.listen()
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.shared = Queues()
        self.victim = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.before = self.state()
        self.attacker = Attacker(self.target.url, self.folder, **self.target.client)
        return self

    def __exit__(self, *_):
        self.attacker.close()
        self.victim.kill()
        self.victim.wait()
        self.shared.close()
        self.listener.close()
        self.tcp.close()
        shutil.rmtree(self.mine)

    def state(self):
        info = os.lstat(self.secret)
        pid = self.victim.pid
        return (
            sorted(os.listdir(self.mine)), self.secret.read_bytes(), info.st_mode, info.st_mtime, info.st_uid, info.st_nlink, os.listxattr(self.secret), os.readlink(self.link),
            alive(pid), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), os.sched_getaffinity(pid), os.getpgid(pid), resource.prlimit(pid, resource.RLIMIT_NOFILE),
        )  # fmt: skip

    def intact(self):
        return alive(self.victim.pid) and self.state() == self.before and self.shared.intact() and alive(self.server)

    def attack(self, row):
        names = {
            "secret": self.secret, "empty": self.empty, "link": self.link, "mine": self.mine, "new": self.mine / "new", "service": self.mine / "service",
            "victim": self.victim.pid, "server": self.server if self.target.confined else self.victim.pid, "self": self.attacker.pid, "own": self.attacker.own,
            "port": self.tcp.getsockname()[1], "shared": self.shared.name, "key": self.shared.key, "shm": self.shared.shm, "sem": self.shared.sem, "msg": self.shared.msg,
            **self.target.names,
        }  # fmt: skip
        fronts = [pid for pid in children(self.attacker.pid) if name_of(pid) == "baton-front"]
        names["front"] = fronts[0] if fronts else 0
        number, other = (names[v] if isinstance(v, str) else v for v in (row.number, row.other))
        return self.attacker(row.attack, row.text.format(**names), row.more.format(**names), number, other)


class Target:
    """A server that attacks are tried at. One that an attack has had its way with is replaced.

    client: options of the sessions. names: what texts of rows may name besides. start: what starts the server, as `attacked`.
    """

    def __init__(self, folder, *options, kernel=KERNELS[0], confined=True, client=(), names=(), start=attacked, **more):
        self.folder, self.kernel, self.confined, self.open = folder, kernel, confined, None
        self.client, self.names = dict(client), dict(names)
        self.start = functools.partial(start, folder, *options, kernel=kernel, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.open is not None:
            self.open.close()
            self.open = None

    def world(self):
        if self.open is None:
            self.open = contextlib.ExitStack()
            self.process, self.url = self.open.enter_context(self.start())
        return World(self)

    def check_kept_away(self, row):
        """Checks a row where sessions are confined, as far as the kernel lets them be."""
        if row.least_landlock > self.kernel.version:
            pytest.skip(f"{row.layer} keeps it away")
        with contextlib.ExitStack() as broken:
            broken.callback(self.close)
            with self.world() as world:
                got = world.attack(row)
                assert got in row.out, f"came out: {got}"
                assert world.intact(), f"came out: {got}, and something was changed"
            broken.pop_all()

    def check_let_through(self, row):
        """Checks a row where nothing is confined: an attack that fails there, too, would show nothing elsewhere."""
        if row.free is None:
            pytest.skip("would do harm where it is not kept away")
        with self.world() as world:
            got = world.attack(row)
        if got in ("ENOSYS", "EOPNOTSUPP"):
            pytest.skip("this kernel has no such call")
        if row.privileged and got in REFUSED and not all_capabilities():
            pytest.skip("this user may not, anyway")
        assert got == row.free, f"came out: {got}"
