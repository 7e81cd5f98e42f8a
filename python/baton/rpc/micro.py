# SPDX-License-Identifier: Apache-2.0
"""Models for `src/micro`, the server of machines without a system: written as C and an object file, and linked into a program."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from ..error import RuntimeError as BatonRuntimeError
from ..error import UnsupportedError

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


def sources():
    """The C files of the server, to be compiled with `include_folders()` for the machine that it is for."""
    return [path for path in sorted(_folder("src/micro").glob("*.c")) if path.name != "host.c"]


def host_program():
    """The C file of a program that serves on standard input and output."""
    return _folder("src/micro") / "host.c"


def include_folders():
    """Folders of headers that the C files need."""
    return [_folder("include"), _folder("src/micro")]


def _folder(path):
    """A folder of Baton's sources: beside the package's files where it is installed, else of the checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / path, package.parents[1] / path):
        if folder.is_dir():
            return folder
    raise BatonRuntimeError(f"the folder `{path}` of Baton's sources was not found beside {package}")


def serial_key(key_file):
    """The 32 bytes that a microcontroller is given to know clients with this key by (`BatonMicroSerial.key`); not the key itself."""
    from .library import function

    return bytes.fromhex(str(function("SerialKey")(os.fspath(key_file))))


def write_model(module, folder):
    """Writes model.o and model.c, which defines `baton_micro_model`, into a folder; gives both paths.

    module: what `relay.build` or `baton.compile` gave for a model with fixed shapes, for the target of the microcontroller, as
    "llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4".
    """
    module = getattr(module, "module", module)
    folder = Path(folder)
    with tempfile.TemporaryDirectory(prefix="baton-micro-") as temporary:
        library = os.path.join(temporary, "model.so")
        module.save(library, "lib")
        data = Path(library).read_bytes()
    # The end of the file, as src/runtime/artifact_format.h says.
    constants_at, constants_size, manifest_at, manifest_size = struct.unpack_from("<4Q", data, len(data) - 80)
    facts = json.loads(data[manifest_at : manifest_at + manifest_size])
    if facts.get("program") or facts.get("dynamic"):
        raise UnsupportedError("a micro server runs models with fixed shapes and without control flow; give the shapes when it is compiled")
    objects = folder / "model.o"
    module.save(os.fspath(objects), "obj")
    text = folder / "model.c"
    text.write_text(_model_text(facts, data[constants_at : constants_at + constants_size]), encoding="utf-8")
    return objects, text


def _model_text(facts, constants):
    tensors = facts["inputs"] + facts["outputs"]
    shapes, rows = [], []
    for i, t in enumerate(tensors):
        kind = t["dtype"].rstrip("0123456789x")
        bits = int(t["dtype"][len(kind) :] or 8)
        shapes.append(f"static const int64_t shape{i}[] = {{{', '.join(map(str, [*t['shape'], 0]))}}};")
        rows.append(f"    {{{json.dumps(t['name'])}, {{{_CODES[kind]}, {bits}, 1}}, {len(t['shape'])}, shape{i}}},")
    numbers = [", ".join(map(str, constants[at : at + 32])) for at in range(0, len(constants), 32)] or ["0"]
    return "\n".join(
        [
            "/* Written by baton.rpc.micro. */",
            '#include "micro.h"',
            f"int32_t {facts['entry']}(void**, const uint8_t*, uint8_t*, const int64_t*);",
            "extern const BatonBackendApi* baton_backend_api;",
            "static const _Alignas(64) uint8_t constants[] = {" + ",\n".join(numbers) + "};",
            *shapes,
            "static const BatonMicroTensorInfo tensors[] = {",
            *rows,
            "};",
            f"const BatonMicroModel baton_micro_model = {{{facts['entry']}, &baton_backend_api, constants, {facts['arena_bytes']}u, "
            f"{len(facts['inputs'])}, {len(facts['outputs'])}, tensors}};",
            "",
        ]
    )


def compile_c(files, output, cc=None, options=()):
    """Compiles C files to one object file, for this machine or by another compiler for another."""
    cc = cc or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not cc:
        raise BatonRuntimeError("no C compiler was found; on Debian: apt-get install gcc")
    flags = ["-std=gnu11", "-O2", "-ffunction-sections", "-fdata-sections", *(f"-I{folder}" for folder in include_folders()), *options]
    with tempfile.TemporaryDirectory(prefix="baton-micro-") as folder:
        parts = []
        for i, file in enumerate(files):
            parts.append(os.path.join(folder, f"{i}.o"))
            _run([cc, *flags, "-c", os.fspath(file), "-o", parts[-1]])
        _run([cc, "-nostdlib", "-r", *parts, "-o", os.fspath(output)])


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BatonRuntimeError(f"`{' '.join(command)}` failed:\n{done.stderr}")


class Linked:
    """A `fcompile` for `export_library`: the file that it writes is a program, a micro server with the model, for `PopenSession`."""

    def __init__(self, compile_func):
        if compile_func is None:
            raise TypeError('with_minrpc(runtime="micro") needs a function that links, as baton.contrib.cc.create_executable')
        self.compile_func = compile_func

    def export_model(self, module, path):
        """Writes the program."""
        with tempfile.TemporaryDirectory(prefix="baton-micro-") as folder:
            model, text = write_model(module, folder)
            server = os.path.join(folder, "server.o")
            compile_c([text, *sources(), host_program()], server)
            self.compile_func(os.fspath(path), [os.fspath(model), server], options=["-lm"])
