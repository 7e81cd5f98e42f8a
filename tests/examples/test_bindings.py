# SPDX-License-Identifier: Apache-2.0
"""examples/javascript and examples/java: bindings over the C header alone, run by Node.js and a JDK where there is one."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay

ROOT = Path(__file__).resolve().parents[2]
LIB = Path(baton.__file__).resolve().parent / "lib"
CC = os.environ.get("CC", "cc")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
LINK = [f"-L{LIB}", "-lbaton_runtime", f"-Wl,-rpath,{LIB}"]


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    x = relay.var("x", shape=(2, 3), dtype="float32")
    function = relay.Function([x], relay.add(relay.multiply(x, relay.const(np.float32(2))), relay.const(np.float32(1))))
    path = tmp_path_factory.mktemp("model") / "model.baton"
    baton.compile(baton.IRModule.from_expr(function)).save(path)
    return path


def headers_of_node():
    node = shutil.which("node")
    where = Path(node).resolve().parents[1] / "include" / "node" if node else Path("/nowhere")
    return next((p for p in (where, Path("/usr/include/node")) if (p / "node_api.h").exists()), None) if node else None


@pytest.mark.skipif(headers_of_node() is None, reason="needs Node.js with its headers")
def test_javascript(model, tmp_path):  # GE-010
    """PF-018 MO-009: values, callbacks, errors both ways and a compiled model, from JavaScript."""
    addon = tmp_path / "baton.node"
    run(CC, *STRICT, f"-I{ROOT / 'include'}", f"-I{headers_of_node()}", ROOT / "examples/javascript/baton_node.c", "-o", addon, *LINK)
    assert run("node", ROOT / "examples/javascript/example.js", addon, model) == [
        "myadd(1, 2) = 3",
        'myadd("a", "b") = ab',
        "large: 9007199254740993n 0.5 true null 1",
        "nothing of this name: null",
        "callback: hello world",
        "names: true true",
        "refused: global function `js.myadd` is registered already; ask for overriding to replace it",
        "thrown: RangeError: RangeError: too far",
        "model: [2,3] 1 3 5 7 9 11",
    ]


def home_of_java():
    javac = shutil.which("javac")
    home = Path(javac).resolve().parents[1] if javac else None
    return home if home and (home / "include" / "jni.h").exists() else None


@pytest.mark.skipif(home_of_java() is None, reason="needs a JDK")
def test_java(model, tmp_path):  # GE-010
    """PF-018 MO-009: the same from Java, from two threads."""
    include = home_of_java() / "include"
    run(
        CC,
        *STRICT,
        f"-I{ROOT / 'include'}",
        f"-I{include}",
        f"-I{include / 'linux'}",
        ROOT / "examples/java/baton_jni.c",
        "-o",
        tmp_path / "libbaton_jni.so",
        *LINK,
    )
    run("javac", "-d", tmp_path, ROOT / "examples/java/Baton.java", ROOT / "examples/java/Example.java")
    assert run("java", f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Example", model) == [
        "myadd(1, 2) = 3",
        'myadd("a", "b") = ab',
        "nothing of this name: null",
        "values: -9223372036854775808 0.5 true null",
        "callback: hello world",
        "names: true",
        "refused: global function `java.myadd` is registered already; ask for overriding to replace it",
        "thrown: RuntimeError: java.lang.IllegalStateException: too far",
        "another thread: 42",
        "model: [2, 3] [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]",
    ]
