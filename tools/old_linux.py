# SPDX-License-Identifier: Apache-2.0
"""A root file system with an old glibc, a Python, and neither compiler nor LLVM: for trying wheels (tools/try_wheel.py). Needs root.

Ubuntu 18.04 has glibc 2.27, the oldest that a public mirror still gives, and the libstdc++ of GCC 8. It has no Python that is new
enough, so CPython is built from Debian's source package in a copy of the system that has a compiler. Made once, a quarter of an hour.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

SUITE, MIRROR = "bionic", "http://archive.ubuntu.com/ubuntu"
# The archive's key comes with a package of the archive itself, hence the hash.
KEYRING = (
    MIRROR + "/pool/main/u/ubuntu-keyring/ubuntu-keyring_2018.09.18.1~18.04.2_all.deb",
    "5d8609563fb3074026b254d7d5248f90d393c7dbafcac48916f333bf3c90fed9",
)
PYTHON = (
    "http://deb.debian.org/debian/pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
    "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
)
TOOLS = ["gcc", "libc6-dev", "make", "zlib1g-dev", "libffi-dev", "pkg-config"]
BUILD = """set -e
cd /opt/src
CFLAGS=-O1 ./configure -q --prefix=/opt/python --disable-test-modules --without-ensurepip --without-doc-strings --without-static-libpython
make -s -j{jobs}
make -s install
"""


def run(argv, **options):
    """Runs a program; ends this one where it fails."""
    print("$", " ".join(map(str, argv)), flush=True)
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def fetch(source, folder):
    """The file of (address, SHA-256) in `folder`, downloaded where it is not there."""
    address, digest = source
    path = folder / address.rpartition("/")[2]
    if not path.exists():
        print("$ fetch", address, flush=True)
        with urllib.request.urlopen(address, timeout=60) as answer:
            path.write_bytes(answer.read())
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        path.unlink()
        sys.exit(f"{address} is not the file that it was: its SHA-256 differs")
    return path


def make(folder):
    """The root in `folder`/root, with /opt/python; made where it is not there yet. Returns its path."""
    folder = Path(folder)
    root, workshop, done = folder / "root", folder / "workshop", folder / "done"
    if done.exists():
        return root
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("an old Linux is made by root, with Debian's package `debootstrap`")
    folder.mkdir(parents=True, exist_ok=True)
    for old in (root, workshop):
        shutil.rmtree(old, ignore_errors=True)
    run(["dpkg-deb", "-x", fetch(KEYRING, folder), folder / "keyring"])
    run(["debootstrap", "--variant=minbase", f"--keyring={folder}/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg", SUITE, root, MIRROR])
    shutil.copytree(root, workshop, symlinks=True, ignore=shutil.ignore_patterns("dev", "proc", "sys"))
    for name in ("dev", "proc", "sys"):
        (workshop / name).mkdir()
    (workshop / "dev" / "null").touch(mode=0o666)
    sources = workshop / "etc/apt/sources.list"
    sources.write_text(sources.read_text().replace(" main", " main universe"))
    shutil.copy("/etc/resolv.conf", workshop / "etc/resolv.conf")
    run(["chroot", workshop, "apt-get", "update", "-q"])
    run(["chroot", workshop, "apt-get", "install", "-q", "-y", "--no-install-recommends", *TOOLS], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    (workshop / "opt/src").mkdir()
    run(["tar", "-C", workshop / "opt/src", "--strip-components=1", "-xf", fetch(PYTHON, folder)])
    (workshop / "opt/build.sh").write_text(BUILD.format(jobs=len(os.sched_getaffinity(0))))
    run(["chroot", workshop, "sh", "/opt/build.sh"])
    shutil.copytree(workshop / "opt/python", root / "opt/python", symlinks=True)
    for library in (workshop / "usr/lib/x86_64-linux-gnu").glob("libffi.so.6*"):
        shutil.copy(library, root / "usr/lib/x86_64-linux-gnu", follow_symlinks=False)
    shutil.rmtree(workshop)
    done.touch()
    return root
