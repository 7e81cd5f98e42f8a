# SPDX-License-Identifier: Apache-2.0
"""Stubs to link against: glibc 2.28 and libstdc++ as of GCC 8, so that libraries made on Debian 12 load on any Linux since 2018.

glibc's stubs come from the PyPI package `ziglang`, which makes them for any version. libstdc++'s is made here from the symbol table of
the machine's own: every symbol up to GLIBCXX_3.4.25 and CXXABI_1.3.11, without code.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from .machine import base_python, program
from .step import ROOT, StepFailed, run, say, shown, stamp, stamped

ZIG = "ziglang==0.17.1"
GLIBC = "2.28"
NEWEST = {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}
FOLDER = ROOT / "build-portable" / "stubs"


def admitted(version):
    """Whether a version of libstdc++'s symbols is there since GCC 8: "GLIBCXX_3.4.21"."""
    name, _, digits = version.partition("_")
    return name in NEWEST and re.fullmatch(r"[0-9.]+", digits) is not None and tuple(map(int, digits.split("."))) <= NEWEST[name]


def symbols_of(library):
    """(name, version, kind) of the symbols that a shared library defines by default; kind is function, object or tls_object."""
    kinds = {"FUNC": "function", "IFUNC": "function", "OBJECT": "object", "TLS": "tls_object", "NOTYPE": "object"}
    text = subprocess.run(["readelf", "--wide", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit() and words[6] != "UND" and "@@" in words[7] and words[3] in kinds:
            name, _, version = words[7].partition("@@")
            yield name, version, kinds[words[3]], words[4] == "WEAK"


def stub_sources(symbols):
    """(assembly, version script) of a library without code that has these symbols."""
    versions = sorted({version for _, version, _, _ in symbols}, key=lambda v: (v.split("_")[0], [int(n) for n in re.findall(r"\d+", v)]))
    lines = []
    for section, kind in ((".text", "function"), (".data", "object"), ('.section .tdata,"awT",@progbits', "tls_object")):
        lines.append(f"\t{section}")
        for number, (name, version, own, weak) in enumerate(symbols):
            if own == kind:
                lines += [
                    f"\t.{'weak' if weak else 'globl'} s{number}",
                    f"\t.symver s{number}, {name}@@{version}, remove",
                    f"\t.type s{number}, @{kind}",
                    f"s{number}: .quad 0",
                    f"\t.size s{number}, 8",
                ]
    script = "\n".join(f"{version} {{ }};" for version in versions)
    return "\n".join(lines) + "\n", script + "\n"


def make_libstdcxx(out, linker):
    """Writes the stub of libstdc++.so.6 into the folder `out`."""
    path = subprocess.run(["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True).stdout.strip()
    symbols = sorted({s for s in symbols_of(path) if admitted(s[1])})
    if len(symbols) < 4000:
        raise StepFailed(f"portable: {path} has {len(symbols)} symbols of GCC 8, more than 4000 are wanted", None, "install g++ 12 of Debian 12")
    out.mkdir(parents=True, exist_ok=True)
    assembly, script = stub_sources(symbols)
    (out / "stub.s").write_text(assembly)
    (out / "stub.map").write_text(script)
    run(
        "portable",
        f"assembles a stub of libstdc++ with {len(symbols)} symbols",
        ["g++", "-c", out / "stub.s", "-o", out / "stub.o"],
        mend="binutils of Debian 12 know `.symver ..., remove`",
    )
    run(
        "portable",
        "links it",
        [linker, "-shared", "-soname", "libstdc++.so.6", "--version-script", out / "stub.map", out / "stub.o", "-o", out / "libstdc++.so.6"],
        mend="see the linker's message",
    )


def make_glibc(out, tools):
    """Has zig write its stubs of glibc and takes them from its cache into `out`."""
    cache = tools / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    (tools / "empty.c").write_text("int baton_empty;\n")
    run(
        "portable",
        f"zig makes stubs of glibc {GLIBC}",
        [
            tools / "venv/bin/python",
            "-m",
            "ziglang",
            "cc",
            "-target",
            f"x86_64-linux-gnu.{GLIBC}",
            "-shared",
            "-fPIC",
            tools / "empty.c",
            "-o",
            tools / "empty.so",
            "-lm",
            "-lpthread",
            "-ldl",
            "-lrt",
        ],
        env={"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)},
        mend="remove build-portable and repeat",
    )
    for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc_nonshared.a"):
        found = sorted(cache.rglob(name))
        if not found:
            raise StepFailed(f"portable: zig made no {name}", None, f"another version of {ZIG} keeps it elsewhere")
        shutil.copy(found[0], out / name)
    # The stub of the loader is named after what it is loaded as.
    shutil.copy(sorted(cache.rglob("libld.so.2"))[0], out / "ld-linux-x86-64.so.2")


def stubs():
    """Steps: everything that cmake/portable.cmake needs. Returns the folder for -DBATON_PORTABLE."""
    mark, value = FOLDER / ".dev-stubs", f"{ZIG} {GLIBC} 1"
    if stamped(mark, value):
        say("portable", f"{shown(FOLDER)} is there")
        return FOLDER
    tools = ROOT / "build-portable" / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    linker = program("ld.lld-19") or program("ld.lld")
    if not linker:
        raise StepFailed("portable: no ld.lld", None, "apt-get install lld-19")
    run("portable", f"installs {ZIG}", [base_python(), "-m", "venv", tools / "venv"], mend="apt-get install python3-venv")
    run(
        "portable",
        "with auditwheel",
        [tools / "venv/bin/pip", "install", "-q", "--disable-pip-version-check", ZIG, "auditwheel==6.8.2", "wheel"],
        mend="see that pip reaches its package index",
    )
    (FOLDER / "bin").mkdir(parents=True, exist_ok=True)
    (FOLDER / "lib").mkdir(exist_ok=True)
    link = FOLDER / "bin" / "ld.lld"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(linker).resolve())
    make_glibc(FOLDER / "lib", tools)
    make_libstdcxx(FOLDER / "lib" / "stdc++", os.fspath(link))
    stamp(mark, value)
    return FOLDER
