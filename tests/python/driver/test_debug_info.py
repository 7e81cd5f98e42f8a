# SPDX-License-Identifier: Apache-2.0
"""Compiled code says which Relay expression each instruction belongs to: in files by DWARF, in memory by a perf map."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

import baton  # noqa: E402

binutils = pytest.mark.skipif(not all(map(shutil.which, ("addr2line", "nm", "readelf"))), reason="binutils are not installed")
# Lines count from 1: the convolution stands in line 3, what is fused to it in lines 4 and 5, the softmax in 6.
TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 20, 20), float32], %w: Tensor[(16, 8, 3, 3), float32], %b: Tensor[(16), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.bias_add(%0, %b);
  %2 = nn.relu(%1);
  nn.softmax(%2)
}
"""


def tool(*args) -> str:
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, text=True).stdout


def functions(path) -> dict[str, tuple[int, int]]:
    """Symbol to (address, size) of the functions in a file."""
    rows = [line.split() for line in tool("nm", "-S", path).splitlines()]
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "tT"}


def lines_of(path, kernel: str) -> set[str]:
    """Each `file:line` that an address of a kernel or of a part of it belongs to."""
    found = set()
    for name, (start, size) in functions(path).items():
        if name == kernel or name.startswith(kernel + "."):
            places = tool("addr2line", "-e", path, *(hex(at) for at in range(start, start + size)))
            found |= {re.sub(r" \(discriminator \d+\)", "", place) for place in places.splitlines()}
    return found


def places(found: set[str], file: str) -> set[int]:
    """The lines of one file."""
    return {int(place.rsplit(":", 1)[1]) for place in found if place.rsplit(":", 1)[0].endswith(file) and place[-1].isdigit()}


@pytest.fixture
def relay_file(tmp_path):
    path = tmp_path / "small.relay"
    path.write_text(TEXT)
    return path


@binutils
def test_address_to_line_of_relay_text(relay_file, tmp_path):
    out = tmp_path / "small.so"
    baton.compile(relay_file, config={"llvm.debug_info": "lines"}, disabled_pass=["AlterOpLayout"]).save(out)
    kernels = {name for name in functions(out) if name.startswith("fused_") and "." not in name}
    assert kernels == {"fused_nn_conv2d_nn_bias_add_nn_relu", "fused_nn_softmax"}
    # Each stage of the fused kernel has its own line, and no line of another kernel is in it.
    assert places(lines_of(out, "fused_nn_conv2d_nn_bias_add_nn_relu"), "small.relay") >= {3, 4, 5}
    assert 6 not in places(lines_of(out, "fused_nn_conv2d_nn_bias_add_nn_relu"), "small.relay")
    assert places(lines_of(out, "fused_nn_softmax"), "small.relay") - {0} == {6}
    # The entry calls both.
    assert places(lines_of(out, "baton_entry"), "small.relay") >= {5, 6}


@binutils
def test_subprogram_says_the_operators(relay_file, tmp_path):
    out = tmp_path / "small.so"
    baton.compile(relay_file, disabled_pass=["AlterOpLayout"]).save(out)  # lines are the default
    info = tool("readelf", "--debug-dump=info", out)
    names = re.findall(r"DW_AT_name\s*:.*?([^\s:][^:]*)$", info, re.MULTILINE)
    assert {"nn.conv2d + nn.bias_add + nn.relu", "nn.softmax"} <= {name.strip() for name in names}
    assert re.search(r"DW_AT_linkage_name:.*fused_nn_softmax", info)


@binutils
def test_onnx_nodes_are_named_by_the_written_text(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="first_conv", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"], name="then_relu"),
        helper.make_node("Tanh", ["r"], ["t"], name="then_tanh"),
        helper.make_node("Concat", ["t", "t"], ["y"], name="joined", axis=1),
    ]
    weights = [
        numpy_helper.from_array(rng.standard_normal((16, 16, 3, 3), dtype=np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(16, dtype=np.float32), "b"),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [1, 16, 12, 12])], [info("y", TensorProto.FLOAT, [1, 32, 10, 10])], weights
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    source, out = tmp_path / "model.relay", tmp_path / "model.so"
    baton.compile(model, config={"llvm.debug_source": str(source)}).save(out)
    text = source.read_text().splitlines()
    conv = next(name for name in functions(out) if "conv2d" in name and "." not in name)
    named = " ".join(text[line - 1] for line in places(lines_of(out, conv), "model.relay") if line > 0)
    assert "first_conv" in named and "then_relu" in named and "then_tanh" in named and "joined" not in named
    # Every expression stands on a line of its own.
    assert sum("nn.relu(" in line for line in text) == 1


@binutils
def test_levels(relay_file, tmp_path):
    sizes, outputs = {}, []
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s, dtype=np.float32) for s in ((1, 8, 20, 20), (16, 8, 3, 3), (16,))]
    for level in ("none", "names", "lines"):
        out = tmp_path / f"{level}.so"
        model = baton.compile(relay_file, config={"llvm.debug_info": level})
        model.save(out)
        sections = tool("readelf", "-S", "-W", out)
        assert (".debug_line" in sections) == (level == "lines")
        assert (".symtab" in sections) == (level != "none")
        sizes[level] = out.stat().st_size
        outputs.append(baton.load(out)(*arrays).numpy())
    assert sizes["none"] < sizes["names"] < sizes["lines"]
    assert (outputs[0] == outputs[1]).all() and (outputs[0] == outputs[2]).all()


@binutils
def test_command_keeps_the_text_beside_the_artifact(relay_file, tmp_path):
    run = [sys.executable, "-m", "baton", "compile", relay_file, "-o", tmp_path / "a.so", "--debug-info", "source"]
    subprocess.run(run, check=True, capture_output=True)
    assert "nn.conv2d" in (tmp_path / "a.so.relay").read_text()
    run[-1] = "none"
    subprocess.run(run, check=True, capture_output=True)
    assert ".debug_line" not in tool("readelf", "-S", "-W", tmp_path / "a.so")


def test_unknown_level_is_an_error():
    """PI-017: the option is registered; a value of it that means nothing says what does."""
    with pytest.raises(ValueError, match="none, names, lines"):
        baton.compile(TEXT, config={"llvm.debug_info": "much"})
    with pytest.raises(baton.BatonError, match="llvm.debug_inf"):
        baton.compile(TEXT, config={"llvm.debug_inf": "lines"})


CHILD = """
import os, sys, numpy as np, baton
model = baton.compile(sys.argv[1], disabled_pass=["AlterOpLayout"])
rng = np.random.default_rng(1)
out = model(*[rng.standard_normal(s, dtype=np.float32) for s in ((1, 8, 20, 20), (16, 8, 3, 3), (16,))]).numpy()
print(os.getpid(), repr(float(out.sum())))
"""


def child(relay_file, perf: str, **env):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(relay_file)],
        capture_output=True, text=True, env={**os.environ, "BATON_PERF": perf, **env},
    )  # fmt: skip
    return done, *(done.stdout.split() if done.returncode == 0 else (None, None))


def test_perf_map_names_code_in_memory(relay_file):
    done, pid, _ = child(relay_file, "map")
    assert done.returncode == 0, done.stderr
    path = f"/tmp/perf-{pid}.map"
    try:
        with open(path) as file:
            rows = [line.split(" ", 2) for line in file.read().splitlines()]
    finally:
        os.unlink(path)
    names = {name for _, _, name in rows}
    assert "nn.softmax [fused_nn_softmax]" in names and "baton_entry" in names
    assert any(name.startswith("nn.conv2d + nn.bias_add + nn.relu [") for name in names)
    spans = sorted((int(start, 16), int(start, 16) + int(size, 16)) for start, size, _ in rows)
    assert all(a < b for a, b in spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False)), "functions overlap"


def test_debugger_interface_changes_no_result(relay_file, tmp_path):
    want = child(relay_file, "")[2]
    assert want is not None
    assert child(relay_file, "gdb")[2] == want
    done, _, got = child(relay_file, "jitdump", JITDUMPDIR=str(tmp_path))
    if done.returncode:
        assert "built without support of perf" in done.stderr
    else:
        assert got == want
        assert list(tmp_path.rglob("jit-*.dump")), "no dump was written"


def test_unknown_tool_is_an_error(relay_file):
    done = child(relay_file, "vtune")[0]
    assert done.returncode != 0 and "a list of map, jitdump and gdb" in done.stderr
