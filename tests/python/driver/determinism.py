# SPDX-License-Identifier: Apache-2.0
"""What compiling random programs gives, as hashes: of the text after the default pipeline, of the artifact. Twice in one process.

python tests/python/driver/determinism.py FIRST COUNT [THREADS]
"""

import hashlib
import json
import os
import sys
import tempfile

import baton as tvm
from baton import relay
from baton.relay.testing import random_program


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else str(data).encode()).hexdigest()[:24]


def attempt(work):
    """A hash of what it gives, or of what it is refused with."""
    try:
        return digest(work())
    except tvm.Error as error:
        return f"{type(error).__name__}: {digest(error)}"


def compiled(text, threads, build):
    """The text after the default pipeline, and the artifact if asked for, of a program that is read anew for each. (JSON is not among them: it
    says which nodes share a type, and with several threads that depends on which thread infers it first.)"""
    target = tvm.target.Target("llvm -mcpu=x86-64-v2" if os.uname().machine == "x86_64" else "llvm")

    def optimized():
        with target, tvm.transform.PassContext(opt_level=3, num_threads=threads):
            return tvm.get_global_func("driver.Optimize")(relay.fromtext(text), target)

    def artifact():
        with tempfile.TemporaryDirectory() as folder:
            with tvm.transform.PassContext(opt_level=3, num_threads=threads):
                tvm.compile(relay.fromtext(text), target=target).save(os.path.join(folder, "m.so"))
            with open(os.path.join(folder, "m.so"), "rb") as file:
                return file.read()

    out = [attempt(lambda: optimized().astext())]
    return [*out, attempt(artifact)] if build else out


def main(first, count, threads=1):
    rows = {}
    for seed in range(first, first + count):
        text = random_program(seed)
        build = seed % 5 == 0
        rows[seed] = [digest(text), *compiled(text, threads, build), *compiled(text, threads, build)]
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
