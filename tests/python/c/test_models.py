# SPDX-License-Identifier: Apache-2.0
"""Models as C99 for machines without a runtime: one file, one header, one function; strict compilers, UBSan, equal bits."""

import subprocess

import numpy as np
import pytest
from strict import COMPILERS, FLAGS, accept, both, lowered, needs_compiler, results, same_bits

import baton as tvm
from baton import relay


def network():
    """A small convolutional network with weights, in float32, and an integer beside it."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 8, 8))
    n = relay.var("n", shape=(2,), dtype="int64")
    weight = relay.const(rng.standard_normal((4, 3, 3, 3)).astype("float32"))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weight, padding=(1, 1)), relay.const(rng.standard_normal(4).astype("float32"))))
    y = relay.nn.batch_flatten(relay.nn.max_pool2d(y, (2, 2), strides=(2, 2)))
    y = relay.nn.softmax(relay.nn.dense(y, relay.const(rng.standard_normal((5, 64)).astype("float32"))))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, n], relay.Tuple([y, relay.multiply(n, relay.const(3, "int64"))]))))


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
int main(int argc, char** argv) {
  static float x[192], y[5];
  static int64_t n[2], m[2];
  struct net_inputs in = {x, n};
  struct net_outputs out = {y, m};
  FILE* f = fopen(argv[argc - 2], "rb");
  if (!f || fread(x, 4, 192, f) != 192 || fread(n, 8, 2, f) != 2) return 2;
  fclose(f);
  for (int round = 0; round < 2; ++round) {
    if (net_run(&in, &out) != 0) return 3;
  }
  f = fopen(argv[argc - 1], "wb");
  if (!f || fwrite(y, 4, 5, f) != 5 || fwrite(m, 8, 2, f) != 2) return 4;
  return fclose(f);
}
"""


@needs_compiler
def test_a_model_without_a_runtime(tmp_path):
    mod = network()
    by_c, by_llvm = both(mod)
    args = [np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32"), np.array([5, -7], "int64")]
    want = results(by_llvm, args)
    for a, b in zip(results(by_c, args), want, strict=True):
        assert same_bits(a, b)
    by_c.save(tmp_path / "net.c")
    text = (tmp_path / "net.c").read_text()
    assert "malloc(" not in text and "baton_backend_api" not in text
    accept(tmp_path / "net.c", tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "in").write_bytes(b"".join(a.tobytes() for a in args))
    sanitizers = [[], ["-fsanitize=undefined", "-fno-sanitize-recover=all"]]
    for compiler in COMPILERS:
        for more in sanitizers if compiler != "tcc" else [[]]:
            flags = [*FLAGS, *more] if compiler != "tcc" else ["-std=c99"]
            subprocess.run([compiler, *flags, "-O2", "net.c", "main.c", "-o", "net", "-lm"], cwd=tmp_path, check=True)
            subprocess.run(["./net", "in", "out"], cwd=tmp_path, check=True)
            raw = (tmp_path / "out").read_bytes()
            assert raw == want[0].tobytes() + want[1].tobytes()


@needs_compiler
def test_a_model_in_an_artifact(tmp_path):
    model = tvm.compile(network(), target="c")
    args = [np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32"), np.array([5, -7], "int64")]
    want = model(*args)
    model.save(tmp_path / "m.so")
    for a, b in zip(tvm.load(tmp_path / "m.so")(*args), want, strict=True):
        assert same_bits(a.numpy(), b.numpy())
    np.testing.assert_allclose(want[0].numpy(), tvm.compile(network())(*args)[0].numpy(), rtol=1e-5, atol=1e-6)


@needs_compiler
def test_a_program_with_control_flow(tmp_path):
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { if (less(sum(%x), 0f)) { negative(%x) } else { exp(%x) } }'
    model = tvm.compile(relay.fromtext(text), target="c")
    x = np.array([0.5, -2], "float32")
    np.testing.assert_array_equal(model(x).numpy(), -x)
    model.save(tmp_path / "m.so")
    np.testing.assert_array_equal(tvm.load(tmp_path / "m.so")(x).numpy(), -x)
    with pytest.raises(tvm.error.UnsupportedError, match="not as source"):
        model.save(tmp_path / "m.c", "c")


def test_two_models_in_one_program(tmp_path):
    """Nothing of a file is seen by others but its function."""
    for name in ("first", "second"):
        relay.build(network(), target="c").save(tmp_path / f"{name}.c")
    (tmp_path / "main.c").write_text('#include "first.h"\n#include "second.h"\nint main(void) { return first_run == 0 || second_run == 0; }\n')
    for compiler in COMPILERS:
        subprocess.run([compiler, "-std=c99", "first.c", "second.c", "main.c", "-o", "both", "-lm"], cwd=tmp_path, check=True)
        subprocess.run(["./both"], cwd=tmp_path, check=True)


@needs_compiler
def test_open_extents(tmp_path):
    x = relay.var("x", shape=(relay.Any(), 4))
    model = tvm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), target="c", shape={"x": ("n", 4)})
    a = np.random.default_rng(2).standard_normal((3, 4)).astype("float32")
    np.testing.assert_allclose(model(a).numpy().sum(1), 1, rtol=1e-6)
    with pytest.raises(tvm.error.UnsupportedError, match="open extents"):
        model.save(tmp_path / "m.c", "c")


def test_no_vectors_and_no_threads():
    """Loops as people write them."""
    text = "".join(str(f) for f in lowered(network()).functions.values())
    assert "parallel" not in text and "ramp" not in text.lower() and "vectorized" not in text
