# SPDX-License-Identifier: Apache-2.0
"""examples/c: a plain C99 program over the C header alone."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import baton

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples" / "c" / "embed.c"
HEADER = ROOT / "include" / "baton" / "runtime" / "c_runtime_api.h"
LIB = Path(baton.__file__).resolve().parent / "lib"
CC = os.environ.get("CC", "cc")


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    out = tmp_path_factory.mktemp("c") / "embed"
    # No extension of the language, and no warning.
    run(
        CC,
        "-std=c99",
        "-pedantic-errors",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{ROOT / 'include'}",
        SOURCE,
        f"-L{LIB}",
        "-lbaton_runtime",
        f"-Wl,-rpath,{LIB}",
        "-o",
        out,
    )
    return out


def test_functions_callbacks_errors_tensors(program):  # GE-010
    """PF-016 PF-017: register, call, callback, error, containers, tensor, from C99."""
    assert run(program).splitlines() == [
        "myadd(1, 2) = 3",
        "refused: global function `myadd` is registered already; ask for overriding to replace it",
        "TypeError: myadd takes two ints",
        "callback: hello world",
        "freed: yes",
        "array: first and a example.Image of 42",
        "TypeError: expected example.Sound, got example.Image",
        "tensor: 6 elements, sum 21",
    ]


def test_the_program_needs_the_runtime_alone(program):  # GE-011
    """PF-020: no compiler library, no Python, no C++ of the program's own."""
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", program))
    assert [n for n in needed if "baton" in n] == ["libbaton_runtime.so"]
    assert not [n for n in needed if "python" in n or "stdc++" in n]


def test_a_compiled_model(program, tmp_path):
    """PF-016 MO-011: a model that Python compiled is loaded and run by the C program."""
    from baton import relay

    x = relay.var("x", shape=(2, 3), dtype="float32")
    function = relay.Function([x], relay.add(relay.multiply(x, relay.const(np.float32(2))), relay.const(np.float32(1))))
    path = tmp_path / "model.baton"
    baton.compile(baton.IRModule.from_expr(function)).save(path)
    assert run(program, path).splitlines()[-1] == "model: 1 outputs, 6 elements, sum 18"


def test_a_broken_model_is_an_error(program, tmp_path):
    path = tmp_path / "broken.baton"
    path.write_bytes(b"no model")
    done = subprocess.run([str(program), str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "load: " in done.stderr
    assert "broken.baton" in done.stderr


@pytest.mark.parametrize("standard", ["c99", "c11", "c17"])
def test_the_header_stands_alone(standard, tmp_path):
    """PF-016: plain C, alone, and short enough to read in one sitting."""
    lines = HEADER.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400
    assert not [line for line in lines if line.startswith("#include") and "<std" not in line and "dlpack" not in line]
    source = tmp_path / "alone.c"
    source.write_text("#include <baton/runtime/c_runtime_api.h>\n")
    run(CC, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-fsyntax-only", source)


def test_layout_as_a_c_compiler_sees_it(tmp_path):
    """PF-022: sizes and offsets are the same in C as those pinned in C++ (tests/runtime/c_api.cpp)."""
    source = tmp_path / "layout.c"
    source.write_text("""
#include <baton/runtime/c_runtime_api.h>
#include <stddef.h>
#include <stdio.h>
int main(void) {
  printf("%d %d %d %d %d %d\\n", (int)sizeof(BatonValue), (int)offsetof(BatonValue, zero), (int)offsetof(BatonValue, v_obj),
         (int)sizeof(BatonByteArray), (int)sizeof(DLTensor), BATON_ABI_VERSION);
  return 0;
}
""")
    run(CC, "-std=c99", f"-I{ROOT / 'include'}", source, "-o", tmp_path / "layout")
    assert run(tmp_path / "layout") == "16 4 8 16 48 1\n"


def test_every_function_of_the_header_is_exported():
    """PF-016: what the header declares, the runtime library has."""
    declared = set(re.findall(r"BATON_DLL [\w* ]+?\b(Baton\w+)\(", HEADER.read_text(encoding="utf-8")))
    exported = set(re.findall(r" T (Baton\w+)", run("nm", "-D", LIB / "libbaton_runtime.so")))
    assert len(declared) > 25
    assert declared <= exported
