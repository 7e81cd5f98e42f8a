# SPDX-License-Identifier: Apache-2.0
"""Code for machines of other kinds, run on emulated ones: examples/remote.py, models, rows of the operators' tables."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay, rpc

ROOT = Path(__file__).resolve().parents[2]
OPS = ROOT / "tests" / "relay" / "op"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load(ROOT / "examples" / "remote.py")


class Board:
    """An emulated machine: a session with it, and the target of code for it."""

    def __init__(self, machine):
        self.machine, self.target = machine, f"llvm -mtriple={example.MACHINES[machine][0]}"
        self.remote = rpc.connect(example.url_of(machine).replace("exec:", "exec:BATON_NUM_THREADS=3 "), connect_timeout=60)

    def run(self, what, *arrays, more=""):
        """The result there, as a list of arrays."""
        model = rpc.deploy(self.remote, baton.compile(what, target=self.target + more))
        return flat(model(*arrays))


def flat(value):
    return [value.numpy()] if hasattr(value, "numpy") else [y for x in value for y in flat(x)]


def require(machine):
    if command := example.missing(machine):
        pytest.skip(f"no {machine} machine can be emulated here; mend: {command}")


@pytest.fixture(scope="module", params=list(example.MACHINES))
def board(request):
    require(request.param)
    made = Board(request.param)
    yield made
    made.remote.close()


@pytest.mark.parametrize("machine", list(example.MACHINES))
def test_rpc_005_example(machine):  # RPC-005, RPC-006, RPC-012
    require(machine)
    run = subprocess.run([sys.executable, ROOT / "examples" / "remote.py", machine], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    assert f"{machine}: equal to this machine's" in run.stdout and "ms there" in run.stdout


def mlp(dtype, n=96):
    rng = np.random.default_rng(1)

    def weights(*shape):
        return relay.const(baton.nd.array((rng.normal(size=shape) / np.sqrt(shape[-1])).astype("float32")))

    def layer(x, *shape):
        w = weights(*shape)
        return relay.nn.dense(x, w if dtype == "float32" else relay.cast(w, dtype))

    x = relay.var("x", shape=(5, n), dtype=dtype)
    y = relay.nn.relu(layer(x, 64, n))
    return relay.Function([x], relay.nn.softmax(relay.cast(layer(relay.sigmoid(y), 10, 64), "float32")))


@pytest.mark.parametrize("dtype, tol", [("float32", 1e-5), ("float64", 1e-12), ("float16", 4e-3), ("bfloat16", 3e-2)])
def test_rpc_012_a_dense_network(board, dtype, tol):  # RPC-012
    x = baton.nd.array(np.random.default_rng(2).normal(size=(5, 96)).astype("float32"))
    if dtype != "float32":
        x = baton.compile(relay.Function([v := relay.var("v", shape=(5, 96))], relay.cast(v, dtype)))(x)
    (want,), (got,) = flat(baton.compile(mlp(dtype))(x)), board.run(mlp(dtype), x)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def test_rpc_012_open_shapes(board):  # RPC-012
    x = relay.var("x", shape=(relay.Any(), 8))
    func = relay.Function([x], relay.sum(relay.exp(x), axis=0))
    model = rpc.deploy(board.remote, baton.compile(func, target=board.target))
    for rows in (1, 7):
        value = np.random.default_rng(rows).normal(size=(rows, 8)).astype("float32")
        np.testing.assert_allclose(model(value).numpy(), np.exp(value).sum(0), rtol=1e-5)


def test_threads_there_take_their_parts(board):
    # Large enough to be shared by the three threads of the pool there.
    x = relay.var("x", shape=(300, 400))
    func = relay.Function([x], relay.tanh(relay.nn.dense(x, relay.const(np.ones((256, 400), "float32") / 400))))
    value = np.random.default_rng(0).normal(size=(300, 400)).astype("float32")
    np.testing.assert_allclose(board.run(func, value)[0], np.tanh(np.repeat(value.mean(1, keepdims=True), 256, 1)), rtol=1e-4, atol=1e-6)


def test_features_that_the_processor_there_has_or_lacks():
    require("aarch64")
    x = relay.var("x", shape=(4, 64), dtype="int8")
    w = relay.const(np.arange(32 * 64, dtype="int64").astype("int8").reshape(32, 64))
    func = relay.Function([x], relay.nn.dense(x, w, out_dtype="int32"))
    value = np.random.default_rng(0).integers(-128, 128, (4, 64)).astype("int8")
    model = baton.compile(func, target="llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod,+fullfp16")
    for cpu in ("max", "cortex-a53"):
        with rpc.connect(example.url_of("aarch64").replace("qemu-aarch64", f"qemu-aarch64 -cpu {cpu}"), connect_timeout=60) as remote:
            if cpu == "max":
                want = value.astype("int32") @ w.data.numpy().astype("int32").T
                np.testing.assert_array_equal(rpc.deploy(remote, model)(value).numpy(), want)
            else:
                with pytest.raises(RuntimeError, match="processor with `(dotprod|fullfp16)`"):
                    rpc.deploy(remote, model)


# Every nth row of these tables; `BATON_CROSS_ROWS=1` in the environment asks for all.
TABLES = {"test_unary": 9, "test_binary": 16, "test_fast_math": 3, "test_reduce": 12, "test_nn_conv": 16, "test_nn_pool": 12, "test_nn_matrix": 9,
          "test_nn_norm": 5, "test_quantized": 9, "test_transform": 16, "test_index": 12}  # fmt: skip


def rows(every=None):
    sys.path.insert(0, str(OPS))
    try:
        for name, step in TABLES.items():
            module = load(OPS / f"{name}.py")
            tables = [value.rows for value in vars(module).values() if isinstance(getattr(value, "rows", None), list)]
            found = [p for table in tables for case in table if hasattr(case, "rows") for p in case.rows()]
            yield from (p for p in found[:: every or step] if p.values[0].compiled)
    finally:
        sys.path.remove(str(OPS))


@pytest.fixture(scope="module")
def cases():
    sys.path.insert(0, str(OPS))
    import cases

    yield cases
    sys.path.remove(str(OPS))


def test_rpc_012_operators(board, cases):  # RPC-012
    wrong, count = [], 0
    for param in rows(int(os.environ.get("BATON_CROSS_ROWS", 0))):
        case, attrs = param.values
        rng = np.random.default_rng(zlib.crc32(case.op.encode()))
        inputs = [[m(rng) for m in i] if isinstance(i, list) else i(rng) for i in case.inputs]
        draws = [inputs]
        if case.special:
            draws += [arrays for what, arrays in cases.special_inputs(case.inputs, rng) if what != "empty"]
        for arrays in draws:
            with np.errstate(all="ignore"):
                want = case.value(*arrays, **attrs)
            expr, variables, values = cases.call(case.op, arrays, attrs, case.constant)
            count += 1
            try:
                got = board.run(relay.Function(variables, expr), *values)
                cases.agree(got, list(want) if isinstance(want, (tuple, list)) else [want], case.rtol, case.atol, case.op)
            except Exception as error:  # all rows are tried
                wrong.append(f"{param.id}: {type(error).__name__}: {str(error)[:400]}")
                if board.remote.lost:
                    board.__init__(board.machine)
    assert not wrong, f"{len(wrong)} of {count} differ:\n" + "\n".join(wrong)
    assert count > 100


def test_code_of_another_machine_is_refused_here(tmp_path):
    model = baton.compile(mlp("float32"), target="llvm -mtriple=aarch64-linux-gnu")
    assert [i.name for i in model.inputs] == ["x"] and model.outputs[0].shape == (5, 10)
    for refused in (model, lambda x: model.profile(x)):
        with pytest.raises(baton.UnsupportedError, match="aarch64 does not run on this machine.*deploy"):
            refused(np.zeros((5, 96), "float32"))
    model.save(tmp_path / "m.so")
    with pytest.raises(RuntimeError, match="compiled for aarch64, this machine is"):
        baton.load(tmp_path / "m.so")


@pytest.mark.parametrize("triple, kind, needed", [("aarch64-linux-gnu", (2, 183), ["libm.so.6", "libc.so.6"]), ("riscv64-linux-gnu", (2, 243), ["libm.so.6", "libc.so.6"]),
    ("arm-linux-gnueabihf", (1, 40), ["libm.so.6", "libgcc_s.so.1", "libc.so.6"]), ("aarch64-linux-android", (2, 183), ["libm.so", "libc.so"])])  # fmt: skip
def test_artifacts_are_linked_without_the_other_machines_libraries(tmp_path, triple, kind, needed):
    x = relay.var("x", shape=(4,))
    baton.compile(relay.Function([x], relay.asinh(x)), target=f"llvm -mtriple={triple}").save(tmp_path / "m.so")
    data = (tmp_path / "m.so").read_bytes()
    assert data[:4] == b"\x7fELF" and (data[4], int.from_bytes(data[18:20], "little")) == kind
    assert all(name.encode() + b"\0" in data for name in needed)
    at = data.rindex(b'{"format"')
    manifest = json.JSONDecoder().raw_decode(data[at:].decode(errors="replace"))[0]
    assert manifest["arch"] == {183: "aarch64", 243: "riscv64", 40: "arm"}[kind[1]]


def test_the_command_line_runs_on_another_machine(tmp_path):
    require("aarch64")
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, 1f)) }\n'
    (tmp_path / "in.relay").write_text(text)
    np.save(tmp_path / "x.npy", np.arange(-3, 3, dtype="float32").reshape(2, 3))
    common = [sys.executable, "-m", "baton", "run", "in.relay", "--input", "x=x.npy", "--json"]
    there = ["--target", "llvm -mtriple=aarch64-linux-gnu", "--remote", example.url_of("aarch64")]
    here, got = (json.loads(subprocess.run(c, check=True, cwd=tmp_path, capture_output=True, text=True).stdout)["outputs"] for c in (common, common + there))
    assert here == got
    command = [sys.executable, "-m", "baton", "bench", "in.relay", *there]
    assert "error" not in subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stderr


def test_the_command_line_compiles_for_another_machine(tmp_path):
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, 1f)) }\n'
    (tmp_path / "in.relay").write_text(text)
    command = f"{shlex.quote(sys.executable)} -m baton compile in.relay --target 'llvm -mtriple=riscv64-linux-gnu' -o m.so"
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    with pytest.raises(RuntimeError, match="compiled for riscv64"):
        baton.load(tmp_path / "m.so")
