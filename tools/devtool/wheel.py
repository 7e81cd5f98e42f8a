# SPDX-License-Identifier: Apache-2.0
"""The wheels of `./dev wheel`: for this machine, for any Linux (`--portable`), and of the runtime alone (`--runtime`).

pip and scikit-build-core make a wheel for the Python that builds. For any Linux, the extension modules of the other Pythons, the
licences of what is linked in and the tags are added, and the files are packed in order with one date: the same bytes every time.
"""

import base64
import fnmatch
import hashlib
import os
import re
import zipfile
from pathlib import Path

from . import portable
from .build import ccache_environment
from .machine import cpus, jobs, venv_python
from .step import ROOT, StepFailed, probe, program, run, say, shown

FOLDER = ROOT / "build-portable"
PLATFORM = "manylinux_2_28_x86_64"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
LIMITS = {"baton_compiler": 30 * 2**20, "baton_runtime": 2**20}
DATE = (2020, 1, 1, 0, 0, 0)

# Libraries linked into a portable wheel: name -> (files as the linker's command line has them, licence, where Debian or pip keeps its text).
LINKED = {
    "LLVM": (["libLLVM*.a"], "Apache-2.0 WITH LLVM-exception", "/usr/share/doc/llvm-19-dev/copyright"),
    "lld": (["liblld*.a"], "Apache-2.0 WITH LLVM-exception", "/usr/share/doc/liblld-19-dev/copyright"),
    "zlib": (["libz.a"], "Zlib", "/usr/share/doc/zlib1g-dev/copyright"),
    "zstd": (["libzstd.a"], "BSD-3-Clause", "/usr/share/doc/libzstd-dev/copyright"),
    "fmt": ([], "MIT", "/usr/share/doc/libfmt-dev/copyright"),
    "nanobind": (["libnanobind*.a"], "BSD-3-Clause", "nanobind"),
    "gcc": (
        ["libstdc++.a", "libgcc.a", "crtbeginS.o", "crtendS.o", "libgcc_s.so.1"],
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        "/usr/share/doc/libgcc-12-dev/copyright",
    ),
    "glibc": (["libc_nonshared.a", "crti.o", "crtn.o"], "LGPL-2.1-or-later", "/usr/share/doc/libc6-dev/copyright"),
}
RUNTIME_LINKED = ("gcc", "glibc")
OURS = ("CMakeFiles/*", "libbaton*.so", "*/stubs/lib/*")  # objects of this build; stubs without code


def unlicensed(command):
    """Files of a linker's command line that no row of LINKED names: what is linked in needs its licence in the wheel."""
    patterns = [p for files, _, _ in LINKED.values() for p in files]
    command = re.sub(r"(^| )-o \S+", " ", command)
    inputs = [w for w in command.split() if re.search(r"\.(a|o|so(\.\d+)*)$", w) and not w.startswith("-")]
    named = [w for w in inputs if not any(fnmatch.fnmatch(w, p) or fnmatch.fnmatch(w, "*/" + p) for p in OURS)]
    named += [w for w in inputs if w.endswith("libc_nonshared.a")]
    return sorted({Path(w).name for w in named if not any(fnmatch.fnmatch(Path(w).name, p) for p in patterns)})


def licence_texts(names):
    """{name: text} of the licences of `names` of LINKED, as this machine's packages have them."""
    texts = {}
    for name in names:
        place = LINKED[name][2]
        if not place.startswith("/"):
            place = (
                probe(
                    [
                        venv_python(),
                        "-c",
                        "import importlib.metadata as m, sys; d = m.distribution(sys.argv[1]); "
                        "print(next(d.locate_file(f) for f in d.files if f.name == 'LICENSE'))",
                        place,
                    ]
                )
                or place
            )
        try:
            texts[name] = Path(place).read_text(encoding="utf-8")
        except OSError as error:
            raise StepFailed(
                f"wheel: the licence of {name} is not in {place}: {error.strerror}",
                None,
                "Debian's packages have it; a system that leaves documentation out has to install the package again",
            ) from None
    return texts


def pythons():
    """{version: interpreter with its headers} of PYTHONS, as far as this machine has them: on PATH, of pyenv, of the system, and what
    BATON_PYTHONS names (paths, with colons between)."""
    ask = (
        "import os, sys, sysconfig; print('%d.%d' % sys.version_info[:2] if sys.implementation.name == 'cpython' and "
        "os.path.exists(os.path.join(sysconfig.get_paths()['include'], 'Python.h')) else '')"
    )
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {}
    for candidate in [
        venv_python(),
        *filter(None, os.environ.get("BATON_PYTHONS", "").split(":")),
        *sorted(pyenv.glob("3.*/bin/python3")),
        *(f"/usr/bin/python{v}" for v in PYTHONS),
        *(f"python{v}" for v in PYTHONS),
    ]:
        version = probe([candidate, "-I", "-c", ask])
        if version in PYTHONS:
            found.setdefault(version, str(candidate))
    return dict(sorted(found.items(), key=lambda row: PYTHONS.index(row[0])))


def tag_of(versions):
    """The tag of a wheel that has an extension module for each of these versions; of one that has none for an empty list."""
    names = ".".join("cp" + v.replace(".", "") for v in versions)
    return f"{names}-{names}-{PLATFORM}" if names else f"py3-none-{PLATFORM}"


def metadata(text, names):
    """METADATA with the licences of `names` added to its own."""
    expression = " AND ".join(dict.fromkeys(["Apache-2.0", *(f"({LINKED[n][1]})" if " WITH " in LINKED[n][1] else LINKED[n][1] for n in names)]))
    head, _, body = text.partition("\n\n")
    head = re.sub(r"^License-Expression: .*$", f"License-Expression: {expression}", head, count=1, flags=re.MULTILINE)
    lines = head.splitlines()
    at = max((i for i, line in enumerate(lines) if line.startswith(("License-File:", "License-Expression:"))), default=len(lines) - 1)
    ours = [] if "License-File: LICENSE" in lines else ["License-File: LICENSE"]
    lines[at + 1 : at + 1] = [*ours, *(f"License-File: third_party/{n}.txt" for n in sorted(names))]
    return "\n".join(lines) + "\n\n" + body


def pack(raw, out, tag, names, extra=()):
    """Writes `raw`, a wheel of pip's, again into the folder `out`: with this tag, the licences of `names`, and `extra`
    ((path in the wheel, bytes), ...). The same inputs give the same bytes. Returns the new file."""
    with zipfile.ZipFile(raw) as old:
        files = {i.filename: old.read(i) for i in old.infolist() if not i.is_dir()}
    info = next(name for name in files if name.endswith(".dist-info/WHEEL")).rpartition("/")[0]
    files.update(extra)
    files.pop(f"{info}/RECORD")
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for name, text in licence_texts(names).items():
        files[f"{info}/licenses/third_party/{name}.txt"] = text.encode()
    files[f"{info}/METADATA"] = metadata(files[f"{info}/METADATA"].decode(), names).encode()
    python, abi, platform = tag.split("-")
    pairs = zip(python.split("."), abi.split("."), strict=True)
    kept = [line for line in files[f"{info}/WHEEL"].decode().splitlines() if line and not line.startswith("Tag:")]
    files[f"{info}/WHEEL"] = "\n".join([*kept, *(f"Tag: {p}-{a}-{platform}" for p, a in pairs), ""]).encode()
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}" for name, data in sorted(files.items())
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = Path(out) / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        # The metadata last, as the format recommends.
        for name in sorted(files, key=lambda n: (n.startswith(info), n)):
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            new.writestr(entry, files[name], compresslevel=9)
    return path


def pip_wheel(project, folder, defines):
    """Step: pip makes the wheel of `project` with its build in `folder`. Returns the file."""
    out = FOLDER / "raw"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.whl"):
        old.unlink()
    settings = [word for key, value in defines.items() for word in ("--config-settings", f"cmake.define.{key}={value}")]
    run(
        "wheel",
        f"pip builds {shown(folder)} with {jobs()} jobs",
        [venv_python(), "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", out, "--config-settings", f"build-dir={folder}", *settings, project],
        env={**ccache_environment(), "CC": "cc", "CXX": "c++", "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs())},
        mend="the first `error:` in the log is the cause",
    )
    return next(out.glob("*.whl"))


def extension(version, interpreter, stubs, nanobind):
    """Step: `_core` for another Python. Returns (path in the wheel, bytes)."""
    folder = FOLDER / ("cp" + version.replace(".", ""))
    run(
        "wheel",
        f"configures the extension module of CPython {version}",
        [
            program("cmake") or "cmake",
            "-S",
            ROOT,
            "-B",
            folder,
            "-G",
            "Ninja",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DPython_EXECUTABLE={interpreter}",
            f"-DBATON_PORTABLE={stubs}",
            "-DBATON_COMPILER=OFF",
            "-DBATON_TESTS=OFF",
            f"-Dnanobind_DIR={nanobind}",
        ],
        env={"CC": "cc", "CXX": "c++"},
        mend="BATON_PYTHONS names the interpreters to build for",
    )
    run(
        "wheel",
        "builds it",
        [program("ninja") or "ninja", "-C", folder, f"-j{min(jobs(), cpus())}", "_core"],
        env=ccache_environment(),
        mend="the first `error:` in the log is the cause",
    )
    path = next((folder / "baton").glob("_core*.so"))
    run("wheel", "strips it", ["strip", "--strip-unneeded", path], mend="binutils are part of g++'s packages")
    return f"baton/{path.name}", path.read_bytes()


def check_linked(folder):
    """StepFailed where the build in `folder` links something whose licence the wheel would lack."""
    commands = probe([program("ninja") or "ninja", "-C", folder, "-t", "commands", "all"]) or ""
    missing = unlicensed(" ".join(line for line in commands.splitlines() if " -shared " in line or " -fuse-ld=lld" in line))
    if missing or "libgcc.a" not in commands:
        raise StepFailed(f"wheel: no licence is known of {', '.join(missing) or 'what is linked'}", None, "add a row to LINKED of tools/devtool/wheel.py")


def oldest_glibc(said):
    """The version of glibc in what `auditwheel show` says of a wheel's contents, as (2, 28); None if it is not a manylinux wheel."""
    found = re.search(r"platform\s+tag:\s+\"manylinux_(\d+)_(\d+)_x86_64\"", said)
    return found and (int(found[1]), int(found[2]))


def check(path):
    """Steps: auditwheel's word on the platform; the size."""
    said = probe([FOLDER / "tools/venv/bin/python", "-m", "auditwheel", "show", path]) or ""
    older = oldest_glibc(said)
    if older is None or older > (2, 28):
        raise StepFailed(f"wheel: auditwheel does not call {shown(path)} {PLATFORM}", None, "see the symbols that it names", said)
    size, limit = path.stat().st_size, LIMITS[path.name.split("-")[0]]
    if size > limit:
        raise StepFailed(f"wheel: {shown(path)} has {size} bytes, {limit} are allowed", None, "see what has grown: the linker's -Map tells")
    say("wheel", f"{shown(path)}: {size / 2**20:.2f} MiB, needs glibc {older[0]}.{older[1]}")


def compiler(dist):
    """The wheel `baton-compiler` for any Linux, with LLVM inside. Returns its path."""
    stubs = portable.stubs()
    found = pythons()
    lacking = [v for v in PYTHONS if v not in found]
    if lacking:
        say("wheel", f"this machine has no CPython {', '.join(lacking)} with headers: the wheel will not serve it (BATON_PYTHONS names more)")
    own = probe([venv_python(), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    nanobind = probe([venv_python(), "-m", "nanobind", "--cmake_dir"])
    raw = pip_wheel(ROOT, FOLDER / "compiler", {"BATON_PORTABLE": stubs})
    check_linked(FOLDER / "compiler")
    extra = [extension(v, interpreter, stubs, nanobind) for v, interpreter in found.items() if v != own]
    path = pack(raw, dist, tag_of([v for v in PYTHONS if v in found]), sorted(LINKED), extra)
    check(path)
    return path


def runtime(dist):
    """The wheel `baton-runtime` for any Linux and any Python. Returns its path."""
    stubs = portable.stubs()
    raw = pip_wheel(ROOT / "packaging" / "runtime", FOLDER / "runtime", {"BATON_PORTABLE": stubs})
    check_linked(FOLDER / "runtime")
    path = pack(raw, dist, tag_of([]), RUNTIME_LINKED)
    check(path)
    return path
