# SPDX-License-Identifier: Apache-2.0
"""The system's C++ compiler, for code of users; Baton itself links without one."""

import functools
import os
import shutil
import subprocess
import tarfile
import tempfile

from ..error import RuntimeError
from ..runtime.module import linked_archive
from ..runtime.object_file import finish_library
from .tar import untar


def get_cc():
    """Path of the C++ compiler: $CXX, else the first found; None if there is none."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        path = name and shutil.which(name)
        if path:
            return path
    return None


def _run(output, objects, options, cc):
    cc = cc or get_cc()
    if not cc:
        raise RuntimeError("no C++ compiler was found; set CXX")
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    done = subprocess.run([cc, "-o", os.fspath(output), *map(os.fspath, objects), *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{cc}` failed:\n{done.stderr}")


def create_shared(output, objects, options=None, cc=None):
    """Links objects or sources to a shared library. One of an object that `Module.save` wrote is read by `runtime.load_module`."""
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    _run(output, objects, ["-shared", "-fPIC", *(options or [])], cc)
    finish_library(output, objects)


def linked(data):
    """The bytes of the shared library that an object file, or an archive (`contrib.tar`, or what `export_library` wrote) of some, is linked to; those of a library are given back.
    Raises ValueError for other bytes."""
    kind = data[16:18] if data[:4] == b"\x7fELF" else b""
    if kind == b"\x03\x00":
        return data
    with tempfile.TemporaryDirectory() as folder:
        source, made, parts = (os.path.join(folder, name) for name in ("source.o", "library.so", "parts"))
        with open(source, "wb") as out:
            out.write(data)
        if (library := linked_archive(source)) is not None:
            return library
        if tarfile.is_tarfile(source):
            untar(source, parts)
            objects = sorted(os.path.join(parts, name) for name in os.listdir(parts))
            if len(objects) == 1:
                with open(objects[0], "rb") as only:
                    return linked(only.read())
        elif kind == b"\x01\x00":
            objects = [source]
        else:
            raise ValueError("neither a library nor an object file nor an archive of some")
        create_shared(made, objects)
        with open(made, "rb") as library:
            return library.read()


def create_executable(output, objects, options=None, cc=None):
    """Links objects or sources to a program."""
    _run(output, objects, list(options or []), cc)


def create_staticlib(output, inputs, ar=None):
    """Puts objects into an archive."""
    ar = ar or shutil.which("ar")
    if not ar:
        raise RuntimeError("`ar` was not found; give its path as ar=")
    inputs = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    done = subprocess.run([ar, "-crs", os.fspath(output), *map(os.fspath, inputs)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{ar}` failed:\n{done.stderr}")


create_staticlib.output_format = "a"


def get_target_by_dump_machine(compiler):
    """A function that gives the triple that a compiler makes code for; None where it does not tell."""

    def get_target_triple():
        done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=False) if compiler else None
        return done.stdout.strip() if done is not None and done.returncode == 0 else None

    return get_target_triple


create_shared.output_format = "so"
create_shared.get_target_triple = lambda: get_target_by_dump_machine(get_cc())()


def cross_compiler(compile_func, options=None, output_format=None, get_target_triple=None, add_files=None):
    """A function as `create_shared` that uses another compiler, by path or by function."""
    base = functools.partial(create_shared, cc=compile_func) if isinstance(compile_func, str) else compile_func

    def build(output, objects, options_=None):
        base(output, [*([objects] if isinstance(objects, str) else objects), *(add_files or [])], [*(options or []), *(options_ or [])])

    build.output_format = output_format or getattr(base, "output_format", "so")
    return build
