# SPDX-License-Identifier: Apache-2.0
"""The made-up accelerator of `examples/accelerator`: partitioned networks here, and by the runtime alone."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay
from baton.config import include_dir
from baton.driver.plugin import partition_for_plugin

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "accelerator"))
import toy  # noqa: E402

RNG = np.random.default_rng(0)
CC = os.environ.get("CC", "cc")


def weight(*shape):
    return relay.const((RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))


def conv(x, filters, channels, size, stride=1, groups=1):
    x = relay.nn.conv2d(
        x,
        weight(filters, channels // groups, size, size),
        channels=filters,
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(size // 2,) * 4,
        groups=groups,
    )
    return relay.nn.bias_add(x, weight(filters))


def small_cnn():
    x = relay.var("x", shape=(1, 3, 16, 16))
    y = relay.nn.relu(conv(x, 8, 3, 3))
    y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = relay.nn.relu(relay.add(conv(y, 8, 8, 3, groups=2), y))
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), weight(10, 8))
    return relay.Function([x], relay.nn.softmax(y))


def block(x, channels, inner, stride):
    """A bottleneck of ResNet-50."""
    out = inner * 4
    y = relay.nn.relu(conv(x, inner, channels, 1))
    y = relay.nn.relu(conv(y, inner, inner, 3, stride))
    y = conv(y, out, inner, 1)
    side = x if stride == 1 and channels == out else conv(x, out, channels, 1, stride)
    return relay.nn.relu(relay.add(y, side)), out


def resnet50(size=32, width=8):
    """ResNet-50's shape: 53 convolutions in 16 blocks, with few channels and a small picture."""
    x = relay.var("x", shape=(1, 3, size, size))
    y, channels = relay.nn.relu(conv(x, width, 3, 7, 2)), width
    y = relay.nn.max_pool2d(y, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            y, channels = block(y, channels, width << stage, 2 if stage and not i else 1)
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), weight(10, channels))
    return relay.Function([x], y)


@pytest.mark.parametrize("net", [small_cnn, resnet50])
def test_networks_run_in_part_on_the_accelerator(tmp_path, net):
    mod = baton.IRModule.from_expr(net())
    x = RNG.standard_normal([int(d) for d in mod["main"].params[0].type_annotation.shape]).astype("float32")
    want = baton.compile(mod)(x).numpy()
    parts = toy.partition(mod)
    assert any("Compiler" in (f.attrs or {}) for v, f in parts.functions.items() if v.name_hint != "main")
    model = baton.compile(parts)
    assert {m.type_key for m in model.module.imported_modules} == {"toy"}
    here = model(x).numpy()
    np.testing.assert_allclose(here, want, rtol=2e-3, atol=1e-4)
    model.save(tmp_path / "m.so")
    np.save(tmp_path / "x.npy", x)
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import baton, numpy as np, toy
from baton._ffi import compiler_loaded
np.save("y.npy", baton.load("m.so")(np.load("x.npy")).numpy())
assert not compiler_loaded()
"""
    done = subprocess.run([sys.executable, "-c", code, toy.__file__.rpartition("/")[0]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "y.npy").view("uint32") == here.view("uint32")).all()


def test_without_the_accelerator_loading_says_what_to_import(tmp_path):
    baton.compile(toy.partition(baton.IRModule.from_expr(small_cnn()))).save(tmp_path / "m.so")
    done = subprocess.run([sys.executable, "-c", "import baton; baton.load('m.so')"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no function `runtime.module.loadbinary_toy` is registered" in done.stderr


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The accelerator in C99, loaded here."""
    if not shutil.which(CC):
        pytest.skip("no C compiler: apt-get install gcc")
    folder = tmp_path_factory.mktemp("tiny")
    source = ROOT / "examples" / "accelerator" / "plugin.c"
    subprocess.run([CC, "-std=c99", "-O2", "-fPIC", "-shared", f"-I{include_dir()}", source, "-o", "libtiny.so"], cwd=folder, check=True)
    baton.runtime.load_plugin(folder / "libtiny.so")
    return folder / "libtiny.so"


@pytest.mark.slow
def test_resnet50_in_part_on_the_accelerator_in_c(tiny, tmp_path):
    """MO-011: the residual additions and relus of 16 blocks go to the plug-in; the runtime alone gives the same bits; damage is an error."""
    mod = baton.IRModule.from_expr(resnet50())
    x = RNG.standard_normal((1, 3, 32, 32)).astype("float32")
    want = baton.compile(mod)(x).numpy()
    parts = partition_for_plugin(mod, "tiny")
    regions = [f for f in parts.functions.values() if f.attrs and "Compiler" in f.attrs.keys()]
    assert len(regions) >= 33 and sum(relay.analysis.list_op_freqs(f).get("add", 0) for f in regions) == 16
    model = baton.compile(parts)
    assert [m.type_key for m in model.module.imported_modules] == ["tiny"] * len(regions)
    here = model(x).numpy()
    np.testing.assert_allclose(here, want, rtol=2e-3, atol=1e-4)
    path = tmp_path / "m.so"
    model.save(path)
    np.save(tmp_path / "x.npy", x)
    code = f"""
import baton, numpy as np
from baton._ffi import compiler_loaded
baton.runtime.load_plugin({str(tiny)!r})
np.save("y.npy", baton.load("m.so")(np.load("x.npy")).numpy())
assert not compiler_loaded()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "y.npy").view("uint32") == here.view("uint32")).all()
    good, rng, bad = path.read_bytes(), random.Random(7), tmp_path / "bad.so"
    bad.write_bytes(good)
    for n in range((len(good) - 1) // 1024 * 1024, -1, -1024):
        os.truncate(bad, n)
        with pytest.raises(RuntimeError, match=r"cannot load `\S+bad.so`"):
            baton.runtime.load_module(bad)
    bad.write_bytes(good)
    with open(bad, "r+b") as file:
        for at in (rng.randrange(len(good)) for _ in range(2000)):
            file.seek(at)
            file.write(bytes([good[at] ^ 1 << rng.randrange(8)]))
            file.flush()
            with pytest.raises(RuntimeError, match=r"cannot load `\S+bad.so`"):
                baton.runtime.load_module(bad)
            file.seek(at)
            file.write(good[at : at + 1])
            file.flush()
    np.testing.assert_array_equal(baton.load(bad)(x).numpy(), here)
