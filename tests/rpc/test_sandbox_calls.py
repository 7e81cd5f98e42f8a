# SPDX-License-Identifier: Apache-2.0
"""What hostile code in a session can reach: a table of attacks, each with the layer that keeps it away.

Each row runs on the kernel that is there, on one whose Landlock is older, and with the filter of calls alone; and once where nothing
is confined, to show that it attacks something.
"""

import shutil

import pytest
from hostility import KERNELS, LANDLOCK, REFUSED, Row, Target

from baton.rpc.library import function

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock"),
]

CLONE_PARENT, CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x8000, 0x10000000, 0x20000, 0x20000000, 0x40000000
SIGKILL, SIGTERM = 9, 15

FILES = [
    # Contents: Landlock lets the session read and write in its folder alone.
    Row("read", "landlock 1", "{secret}"),
    Row("read", "landlock 1", "/etc/passwd"),
    Row("read", "landlock 1", "/proc/1/status"),
    Row("read", "landlock 1", "/proc/version"),
    Row("read", "landlock 1", "/proc/sys/kernel/random/boot_id"),
    Row("write", "landlock 1", "{secret}"),
    Row("write", "landlock 1", "{new}"),
    Row("write", "landlock 1", "/dev/shm/new", free=None),
    Row("append", "landlock 1", "{secret}"),
    Row("open truncating", "landlock 1", "{secret}"),
    Row("open creating", "landlock 1", "{secret}"),
    Row("read by path handle", "landlock 1", "{secret}"),
    Row("read by openat2", "landlock 1", "{secret}"),
    Row("read by root", "landlock 1", "{secret}"),
    Row("read by root of", "landlock 1", "{secret}", number="server"),
    Row("read by root of", "landlock 1", "{secret}", number="victim"),
    Row("read by thread", "landlock 1", "{secret}"),
    Row("read by dev fd", "landlock 1", "{secret}"),
    Row("read upwards", "landlock 1", "{secret}"),
    Row("read by working folder", "landlock 1", "{secret}"),
    Row("read descriptors of", "landlock 1", number="server"),
    Row("read descriptors of", "landlock 1", number="victim"),
    Row("list", "landlock 1", "{mine}"),
    Row("list", "landlock 1", "/"),
    Row("list", "landlock 1", "/tmp"),
    Row("list", "landlock 1", "{own}/.."),
    Row("list", "landlock 1", "{own}/../.."),
    Row("list", "landlock 1", "/proc"),
    Row("list", "landlock 1", "/dev"),
    Row("mkdir", "landlock 1", "{new}"),
    Row("unlink", "landlock 1", "{secret}"),
    Row("rmdir", "landlock 1", "{empty}"),
    Row("symlink outside", "landlock 1", "{new}"),
    Row("read through symlink", "landlock 1", "{secret}", "{own}/link"),
    Row("write through symlink", "landlock 1", "{secret}", "{own}/link"),
    Row("hard link in", "landlock 1", "{secret}", "{own}/hard", out=("EPERM", "EACCES", "EXDEV")),
    Row("hard link by handle", "landlock 1", "{secret}", "{own}/hard", out=("EPERM", "EACCES", "EXDEV", "ENOENT")),
    Row("hard link out", "landlock 1", "{new}", "{own}/hard", out=("EPERM", "EACCES", "EXDEV")),
    Row("rename in", "landlock 1", "{secret}", "{own}/moved", out=("EPERM", "EACCES", "EXDEV")),
    Row("rename out", "landlock 1", "{new}", "{own}/moved", out=("EPERM", "EACCES", "EXDEV")),
    Row("exchange", "landlock 1", "{secret}", "{own}/moved", out=("EPERM", "EACCES", "EXDEV")),
    Row("mkfifo", text="{new}"),
    Row("mknod device", more="{own}/device", privileged=True),
    Row("mknod socket", text="{new}"),
    # Attributes, and what Landlock does not look at.
    Row("truncate", text="{secret}"),
    Row("chmod", text="{secret}"),
    Row("fchmodat", text="{secret}"),
    Row("fchmodat2", text="{secret}"),
    Row("chmod by proc", text="{secret}"),
    Row("make setuid", more="{own}/program"),
    Row("chown", text="{secret}", privileged=True),
    Row("lchown", text="{secret}", privileged=True),
    Row("fchownat", text="{secret}", privileged=True),
    Row("utimensat", text="{secret}"),
    Row("setxattr", text="{secret}"),
    Row("lsetxattr", text="{secret}"),
    Row("getxattr", text="{secret}"),
    Row("listxattr", text="{secret}"),
    Row("removexattr", text="{secret}"),
    # The handler of refused calls answers these by opening the file.
    Row("stat", "landlock 1", "{secret}"),
    Row("lstat", "landlock 1", "{secret}"),
    Row("raw stat", "landlock 1", "{secret}"),
    Row("statx", text="{secret}"),
    Row("statfs", text="{secret}"),
    Row("stat by path handle", text="{secret}"),
    Row("access", "landlock 1", "{secret}"),
    Row("faccessat2", text="{secret}"),
    Row("readlink", text="{link}"),
    Row("chdir", text="{mine}"),
    Row("inotify", text="{secret}"),
    Row("inotify", text="{mine}"),
    Row("fanotify", privileged=True),
    Row("name to handle", text="{secret}"),
    Row("open by handle", free="ESTALE", privileged=True),
    Row("list mounts", free="done"),
    Row("lease", more="{own}/leased"),
]

PROCESSES = [
    Row("fork"),
    Row("raw fork"),
    Row("vfork"),
    Row("clone"),
    Row("clone", number=CLONE_PARENT),
    Row("clone", number=CLONE_NEWUSER),
    Row("clone", number=CLONE_NEWPID, privileged=True),
    Row("clone3"),
    Row("clone3", number=CLONE_NEWUSER),
    Row("unshare", number=CLONE_NEWNS, privileged=True),
    Row("unshare", number=CLONE_NEWNET, privileged=True),
    Row("unshare", number=0x400),  # its table of files
    Row("setns", text="mnt", free=None),
    Row("setns", text="net", privileged=True),
    Row("setns of", number="victim", privileged=True),
    Row("execve", text="/bin/true", free="lost"),
    Row("execve", text="/nosuch", free="ENOENT"),
    Row("execveat", text="/nosuch", free="ENOENT"),
    Row("exec memory", free="ENOEXEC"),
    *(Row("kill", number=who, other=SIGKILL) for who in ("victim", "server")),
    Row("kill", number="victim", other=0),
    Row("tkill", number="victim", other=SIGKILL),
    *(Row("tgkill", number=who, other=SIGKILL) for who in ("victim", "server")),
    Row("killpg", number="victim", other=SIGKILL),
    Row("kill all"),
    Row("sigqueue", number="victim", other=SIGKILL),
    Row("sigqueue", number="server", other=SIGTERM),
    Row("tgsigqueue", number="victim", other=SIGKILL),
    *(Row("pidfd open", number=who) for who in ("victim", "server", "self")),
    Row("pidfd signal", number="victim", other=SIGKILL),
    Row("pidfd signal", number="server", other=SIGTERM),
    Row("pidfd getfd", number="victim"),
    *(Row("owner signal", number=who, other=SIGKILL) for who in ("victim", "server")),
    Row("owner extended", number="victim"),
    Row("owner by socket", number="victim"),
    *(Row("ptrace attach", number=who) for who in ("victim", "server")),
    Row("ptrace seize", number="victim"),
    Row("ptrace me"),
    *(Row("read memory", number=who, free="EFAULT") for who in ("victim", "server", "self")),
    *(Row("write memory", number=who, free="EFAULT") for who in ("victim", "server")),
    *(Row("open memory", "landlock 1", number=who) for who in ("victim", "server")),
    *(Row("open file of", "landlock 1", name, number=who) for name in ("environ", "cmdline", "maps", "status", "stat", "comm") for who in ("victim", "server")),
    *(Row("write file of", "landlock 1", name, number=who) for name in ("oom_score_adj", "comm", "clear_refs") for who in ("victim", "server")),
    Row("process madvise", number="victim", free="done", privileged=True),
    Row("process mrelease", number="victim", free="EINVAL"),
    Row("move pages", number="victim"),
    Row("migrate pages", number="victim", free=None),
    *(Row("kcmp", number=who, free="done") for who in ("victim", "server")),
    *(Row("robust list", number=who) for who in ("victim", "server")),
    *(Row("prlimit", number=who) for who in ("victim", "server")),
    *(Row("read limits", number=who) for who in ("victim", "server")),
    *(Row("setpriority", number=who) for who in ("victim", "server")),
    Row("setpriority of user", number=123456, free="ESRCH"),
    *(Row("sched_setscheduler", number=who) for who in ("victim", "server")),
    Row("sched_setparam", number="victim"),
    Row("sched_setattr", number="victim"),
    *(Row("sched_setaffinity", number=who) for who in ("victim", "server")),
    Row("ioprio_set", number="victim"),
    Row("setpgid", number="victim", free="ESRCH"),
    Row("join group", number="victim", free="EPERM"),
]

PR = dict(
    PDEATHSIG=1, DUMPABLE=4, KEEPCAPS=8, SECCOMP=22, SECUREBITS=28, TIMERSLACK=29, TASK_PERF_EVENTS_DISABLE=31, CHILD_SUBREAPER=36, MM=35,
    THP_DISABLE=41, IO_FLUSHER=57, SYSCALL_USER_DISPATCH=59, PTRACER=0x59616D61, MCE_KILL=33,
)  # fmt: skip

SELF = [
    Row("prctl", number=PR["PDEATHSIG"], other=0),
    Row("prctl", number=PR["DUMPABLE"], other=1),
    Row("prctl", number=PR["PTRACER"], other="victim", free=None),
    Row("prctl", number=PR["CHILD_SUBREAPER"], other=1),
    Row("prctl", number=PR["SECCOMP"], other=1, free="lost"),
    Row("prctl", number=PR["SECUREBITS"], other=0, privileged=True),
    Row("prctl", number=PR["KEEPCAPS"], other=1),
    Row("prctl", number=PR["IO_FLUSHER"], other=1, free=None),
    Row("prctl", number=PR["MCE_KILL"], other=0),
    Row("prctl", number=PR["SYSCALL_USER_DISPATCH"], other=0),
    Row("prctl", number=PR["TASK_PERF_EVENTS_DISABLE"], other=0),
    Row("set memory map", free=None),
    Row("add filter", number=0, privileged=True),
    Row("add filter", number=8, privileged=True),  # with a listener
    Row("add filter by prctl", privileged=True),
    Row("ask filter"),
    Row("make landlock"),
    Row("enter landlock", free=None),
    Row("capset"),
    Row("has capabilities", privileged=True),
    Row("gains rights", free="done"),
    Row("setuid"),
    Row("setuid", number=1000, free=None),
    Row("setgid"),
    Row("setresuid"),
    Row("setgroups", privileged=True),
    Row("setsid", free=None),
    Row("personality", number=0x0040000),  # no addresses by chance
    Row("raise limit", number=1),  # the size of a file
    Row("raise limit", number=7, free=None),
    Row("raise limit", number=4),
    Row("high priority", privileged=True),
    Row("real time", privileged=True),
    Row("io real time", privileged=True),
    Row("oom score", "landlock 1", free=None),
    *(Row("write own file", "landlock 1", name) for name in ("mem", "comm", "clear_refs", "coredump_filter", "timerslack_ns", "oom_adj")),
    Row("write own file", "landlock 1", "setgroups", privileged=True),
    Row("shared mappings", "supervisor", out=("ENOENT",), free=None),
]

KERNEL = [
    Row("mount", more="{own}", free="ENODEV", privileged=True),
    Row("bind mount", more="{own}", free="ENOENT", privileged=True),
    Row("umount", free="ENOENT"),
    Row("pivot_root", free="ENOENT", privileged=True),
    Row("chroot", text="{mine}", privileged=True),
    Row("fsopen", privileged=True),
    Row("open_tree"),
    Row("clone tree", privileged=True),
    Row("move_mount", free=None),
    Row("mount_setattr", free=None),
    Row("fspick", free="ENOENT", privileged=True),
    Row("swapon", free="ENOENT", privileged=True),
    Row("swapoff", free="ENOENT", privileged=True),
    Row("quotactl", free=None),
    Row("acct", free="ENOENT", privileged=True),
    Row("io_uring_setup"),
    Row("io_uring_enter", free="EBADF"),
    Row("io_uring_register", free=None),
    Row("io_setup"),
    Row("bpf", privileged=True),
    Row("perf_event_open", privileged=True),
    Row("userfaultfd", privileged=True),
    Row("userfaultfd", number=1),
    Row("keyctl"),
    Row("add_key"),
    Row("request_key", free="ENOKEY"),
    Row("init_module", free="ENOEXEC"),
    Row("finit_module", free="EBADF"),
    Row("delete_module", free="ENOENT"),
    Row("kexec_load", free="EINVAL"),
    Row("reboot", free="EINVAL", privileged=True),
    Row("sethostname", free="EINVAL", privileged=True),
    Row("setdomainname", free="EINVAL", privileged=True),
    Row("settimeofday", privileged=True),
    Row("clock_settime", free="EINVAL"),
    Row("clock_adjtime"),
    Row("syslog", privileged=True),
    Row("set_mempolicy"),
    Row("mbind"),
    Row("lookup_dcookie", free="EFAULT"),
    Row("iopl"),
    Row("ioperm"),
    Row("modify_ldt"),
    Row("call", number=600, free="ENOSYS"),  # a number that no kernel has yet
    Row("call", number=153, free=None),  # vhangup
    Row("x32", number=39, out=("lost", "ENOSYS", "EPERM"), free="ENOSYS"),
    Row("x32", number=57, out=("lost", "ENOSYS", "EPERM"), free="ENOSYS"),
    Row("int 0x80", number=20, out=("lost", "ENOSYS", "EPERM")),
    Row("int 0x80", number=2, out=("lost", "ENOSYS", "EPERM"), free=None),
]

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK = 1, 2, 10, 16, 17, 38, 40

SOCKETS = [
    *(Row("socket", number=family, other=1) for family in (AF_UNIX, AF_INET, AF_INET6)),
    *(Row("socket", number=family, other=2) for family in (AF_UNIX, AF_INET)),
    Row("socket", number=AF_NETLINK, other=3),
    Row("socket", number=AF_PACKET, other=3, privileged=True),
    Row("any socket"),
    *(Row("socketpair", number=kind) for kind in (1, 2, 5)),
    Row("connect unix", text="{service}"),
    Row("connect tcp", number="port"),
    Row("send udp", number="port"),
    Row("listen"),
    Row("connect inherited", text="{service}", free="EISCONN"),
    Row("bind inherited", more="{own}/socket", free=None),
    Row("listen inherited", free="EINVAL"),
    Row("listens inherited", out=("ENOENT",), free="ENOENT"),
    Row("accept inherited", free="EINVAL"),
    Row("pass credentials"),
    Row("grow buffers", privileged=True),
]

SHARED = [
    Row("shmget"),
    Row("shmget of key", other="key"),
    Row("shmat", number="shm"),
    Row("shm stat", number="shm"),
    Row("shm info"),
    Row("shm remove", number="shm"),
    Row("semget"),
    Row("semop", number="sem"),
    Row("sem remove", number="sem"),
    Row("msgget"),
    Row("msgsnd", number="msg"),
    Row("msgrcv", number="msg"),
    Row("msg remove", number="msg"),
    Row("shm_open", "landlock 1", "{shared}"),
    Row("shm_open new", "landlock 1", "{shared}-new"),
    Row("shm_unlink", "landlock 1", "{shared}"),
    Row("sem_open", "landlock 1", "{shared}-sem"),
    Row("mq_open", text="{shared}"),
    Row("mq_open new", text="{shared}-new"),
    Row("mq_unlink", text="{shared}"),
    Row("memfd_secret"),
]

ROWS = [*FILES, *PROCESSES, *SELF, *KERNEL, *SOCKETS, *SHARED]


# Over TLS the session has a socket of the server's, and beside it a process that has the keys.
TLS = [
    Row("read", "landlock 1", "{key_file}"),
    Row("stat", "landlock 1", "{key_file}"),
    Row("pass descriptor", out=(*REFUSED, "ENOTSOCK")),
    Row("connect inherited", text="{service}", free="EISCONN"),
    Row("listens inherited", out=("ENOENT",), free="ENOENT"),
    Row("shared mappings", "supervisor", out=("ENOENT",), free=None),
    *(Row("kill", number="front", other=signal, free=None) for signal in (0, SIGTERM)),
    Row("ptrace attach", number="front", free=None),
    Row("read memory", number="front", free=None),
    Row("open memory", "landlock 1", number="front", free=None),
    Row("open file of", "landlock 1", "environ", number="front", free=None),
    Row("prlimit", number="front", free=None),
    Row("kcmp", number="front", free=None),
    Row("pidfd open", number="front", free=None),
    Row("sched_setaffinity", number="front", free=None),
]


@pytest.fixture(scope="module", params=KERNELS, ids=lambda kernel: kernel.name)
def confined(request, tmp_path_factory):
    with Target(tmp_path_factory.mktemp("confined"), kernel=request.param) as target:
        yield target


@pytest.fixture(scope="module")
def unconfined(tmp_path_factory):
    with Target(tmp_path_factory.mktemp("free"), "--no-sandbox", confined=False) as target:
        yield target


def over_tls(folder, *options, **more):
    key = str(folder / "lab.key")
    function("KeyNew")("lab", key, "session", [])
    return Target(folder, *options, url=f"tls://127.0.0.1:0?key={key}", client={"key_file": key}, names={"key_file": key}, **more)


@pytest.fixture(scope="module", params=KERNELS, ids=lambda kernel: kernel.name)
def confined_tls(request, tmp_path_factory):
    with over_tls(tmp_path_factory.mktemp("tls"), kernel=request.param) as target:
        yield target


@pytest.fixture(scope="module")
def unconfined_tls(tmp_path_factory):
    with over_tls(tmp_path_factory.mktemp("freetls"), "--no-sandbox", confined=False) as target:
        yield target


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_attack_is_kept_away(row, confined):
    confined.check_kept_away(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_attack_works_where_nothing_is_confined(row, unconfined):
    unconfined.check_let_through(row)


@pytest.mark.parametrize("row", TLS, ids=lambda row: row.name)
def test_an_attack_is_kept_away_over_tls(row, confined_tls):
    confined_tls.check_kept_away(row)


@pytest.mark.parametrize("row", TLS, ids=lambda row: row.name)
def test_an_attack_works_over_tls_where_nothing_is_confined(row, unconfined_tls):
    unconfined_tls.check_let_through(row)
