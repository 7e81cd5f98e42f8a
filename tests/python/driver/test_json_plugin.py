# SPDX-License-Identifier: Apache-2.0
"""Accelerators as plug-ins in C99: built out of tree, loaded, saved with a model, run by the runtime alone; and what goes wrong."""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay
from baton.config import include_dir
from baton.driver.external import maker_of
from baton.driver.json_graph import graph_of
from baton.driver.plugin import partition_for_plugin

SOURCE = Path(__file__).parents[3] / "examples" / "accelerator" / "plugin.c"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-fPIC", "-shared"]
X = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler: apt-get install gcc")


def built(folder, name="libtiny.so", **changes):
    """The example's library, with texts replaced."""
    text = SOURCE.read_text()
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    (folder / "plugin.c").write_text(text)
    subprocess.run(["cc", *FLAGS, f"-I{include_dir()}", "plugin.c", "-o", name], cwd=folder, check=True)
    return folder / name


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = built(tmp_path_factory.mktemp("tiny"))
    assert baton.runtime.load_plugin(path) == "tiny"
    return path


def program():
    """relu(x * w + w) goes to the chip, exp stays."""
    x, w = relay.var("x", shape=(2, 3)), relay.const(np.full((2, 3), 1.5, "float32"))
    y = relay.nn.relu(relay.add(relay.multiply(x, w), w))
    return baton.IRModule.from_expr(relay.Function([x], relay.exp(y)))


def test_a_chip_in_c(tiny, tmp_path):
    mod = partition_for_plugin(program(), "tiny")
    model = baton.compile(mod)
    assert [m.type_key for m in model.module.imported_modules] == ["tiny"]
    here = model(X).numpy()
    np.testing.assert_allclose(here, np.exp(np.maximum(X * 1.5 + 1.5, 0)), rtol=1e-6)
    model.save(tmp_path / "m.so")
    code = f"""
import baton, numpy as np
baton.runtime.load_plugin({str(tiny)!r})
x = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)
print(baton.load({str(tmp_path / "m.so")!r})(x).numpy().tobytes().hex())
from baton._ffi import compiler_loaded
assert not compiler_loaded()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == here.tobytes().hex()
    without = subprocess.run([sys.executable, "-c", code.replace("baton.runtime.load_plugin", "str")], capture_output=True, text=True, check=False)
    assert "no function `runtime.module.loadbinary_tiny` is registered" in without.stderr


def test_the_graph_is_of_relays_schema(tiny):
    mod = partition_for_plugin(program(), "tiny")
    (region,) = [f for v, f in mod.functions.items() if v.name_hint != "main"]
    text, constants = graph_of(region)
    graph = json.loads(text)
    assert set(graph) == {"nodes", "arg_nodes", "heads", "node_row_ptr"}
    assert [n["name"] for n in graph["nodes"] if n["op"] == "kernel"] == ["multiply", "add", "nn.relu"]
    assert graph["heads"] == [[len(graph["nodes"]) - 1, 0, 0]] and len(constants) == 1
    assert graph["nodes"][-1]["attrs"] == {"num_inputs": "1", "num_outputs": "1", "dtype": [["float32"]], "shape": [[[2, 3]]]}
    assert [graph["nodes"][i]["op"] for i in graph["arg_nodes"]].count("input") == 1
    module = maker_of("tiny")(region)
    assert module.type_key == "tiny" and json.loads(module.get_source("json")) == graph


def test_it_takes_what_it_says(tiny):
    x = relay.var("x", shape=(2, 3), dtype="float64")
    mod = partition_for_plugin(baton.IRModule.from_expr(relay.Function([x], relay.add(x, x))), "tiny")
    assert len(mod.functions) == 1, "float64 is not the chip's"


def test_composites_and_attributes():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    f = relay.Function([a := relay.var("a", shape=(1, 3, 8, 8)), b := relay.var("b", shape=(4, 3, 3, 3))], relay.nn.relu(relay.nn.conv2d(a, b, strides=(2, 1))))
    f = f.with_attr("Composite", "chip.conv_relu")
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x, w], f(x, w))))
    node = json.loads(graph_of(mod["main"])[0])["nodes"][-1]
    assert node["name"] == "chip.conv_relu" and node["attrs"]["strides"] == [["2", "1"]] and len(node["inputs"]) == 2


def test_a_file_that_is_cut_or_flipped_is_refused(tiny, tmp_path):
    path, bad = tmp_path / "m.so", tmp_path / "bad.so"
    baton.compile(partition_for_plugin(program(), "tiny")).save(path)
    good, rng = path.read_bytes(), random.Random(3)
    cases = [good[:n] for n in range(0, len(good), 1024)]
    for _ in range(2000):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        cases.append(bytes(data))
    for data in cases:
        bad.write_bytes(data)
        with pytest.raises(RuntimeError, match="cannot load"):
            baton.runtime.load_module(bad)


def test_damaged_graphs_are_refused(tiny, tmp_path):
    """What passes the artifact's digest and is no graph: a loader's own checks."""
    load = baton.get_global_func("runtime.module.loadbinary_tiny")
    (region,) = [f for v, f in partition_for_plugin(program(), "tiny").functions.items() if v.name_hint != "main"]
    maker_of("tiny")(region).save(tmp_path / "bytes")
    good, rng = (tmp_path / "bytes").read_bytes(), random.Random(4)
    assert load(good).type_key == "tiny"
    for n in range(len(good)):
        with pytest.raises(RuntimeError):
            load(good[:n])
    refused = 0
    for _ in range(2000):
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            load(bytes(data))
        except (RuntimeError, ValueError) as error:
            refused += bool(str(error))
    assert refused > 500


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("kBatonJsonPluginVersion, ", "7, "), "made for another version"),
        (('"tiny", init', '"a chip", init'), "lacks a name of letters"),
        (("const BatonJsonPlugin* baton_json_plugin(void) {", "const BatonJsonPlugin* other(void);\nconst BatonJsonPlugin* other(void) {"), "is no plug-in"),
    ],
)
def test_libraries_that_are_no_plugins(tmp_path, change, said):
    with pytest.raises(RuntimeError, match=said):
        baton.runtime.load_plugin(built(tmp_path, change=change))


def test_a_chip_that_fails(tmp_path):
    path = built(tmp_path, "libfails.so", key=('"tiny", init', '"fails", init'), more=("  (void)error;\n", '  *error = "the chip is hot";\n  return 5;\n'))
    baton.runtime.load_plugin(path)
    model = baton.compile(partition_for_plugin(program(), "fails"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"`fails` failed at run of `\S+`: the chip is hot"):
            model(X)
    x = relay.var("x", shape=(2, 3))
    f = relay.Function([x], relay.tanh(x)).with_attr("Compiler", "fails").with_attr("global_symbol", "no_tanh").with_attr("Primitive", 1)
    with pytest.raises(RuntimeError, match="no instruction for an operator"):
        maker_of("fails")(relay.transform.InferType()(baton.IRModule({"no_tanh": f}))["no_tanh"])


def test_a_library_that_is_not_there():
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        baton.runtime.load_plugin("/nowhere/libchip.so")
    with pytest.raises(ValueError, match="no plug-in `nothing` is loaded"):
        partition_for_plugin(program(), "nothing")


def test_the_header_is_short():
    text = Path(include_dir(), "baton", "runtime", "json_module.h").read_text()
    assert text.count("\n") < 160 and not re.search(r"\bnamespace\b|std::", text)
