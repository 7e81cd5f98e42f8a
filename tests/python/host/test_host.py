# SPDX-License-Identifier: Apache-2.0
"""Operators that run on the host, in saved models: by the runtime alone."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay

HEAD = '#[version = "0.0.5"]\n'
PROGRAMS = {
    "topk": "def @main(%x: Tensor[(3, 9), float32]) { let %t = topk(nn.relu(%x), k=2); (add(%t.0, 1f), %t.1) }",
    "sort": "def @main(%x: Tensor[(3, 9), float32]) { multiply(sort(negative(%x), axis=0), 2f) }",
    "argwhere": "def @main(%x: Tensor[(3, 9), float32]) { argwhere(greater(%x, 0f)) }",
    "unique": "def @main(%x: Tensor[(3, 9), float32]) { unique(round(%x), is_sorted=False) }",
    "det": "def @main(%x: Tensor[(3, 3), float32]) { exp(linalg.det(add(%x, %x))) }",
    "roi_align": "def @main(%x: Tensor[(1, 2, 9, 9), float32], %r: Tensor[(3, 5), float32]) "
    "{ vision.roi_align(%x, abs(multiply(%r, 0f)), pooled_size=[2, 2], spatial_scale=0.5, mode=\"max\") }",
    "nms": "def @main(%b: Tensor[(1, 6, 4), float32], %s: Tensor[(1, 2, 6), float32]) "
    "{ vision.all_class_non_max_suppression(%b, sigmoid(%s), 3i64, 0.5f, 0.1f) }",
    "bernoulli": "def @main(%x: Tensor[(3, 9), float32]) { random.bernoulli(sigmoid(%x), seed=3) }",
    "open topk": "def @main(%x: Tensor[(?, 9), float32]) { topk(%x, k=2, ret_type=\"values\") }",
}  # fmt: skip


def arguments(name):
    f = baton.relay.parse(HEAD + PROGRAMS[name])["main"]
    random = np.random.default_rng(5)
    return [random.standard_normal([4 if isinstance(d, relay.Any) else int(d) for d in p.type_annotation.shape]).astype("float32") for p in f.params]


def flat(value):
    return [v.numpy() for v in (value if isinstance(value, tuple | list) else [value])]


def run_alone(code, env=None):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


ALONE = """
import numpy as np, baton
m = baton.load({model!r})
given = np.load({given!r})
out = m(*[given[k] for k in sorted(given)])
out = list(out) if isinstance(out, (tuple, list)) else [out]
np.savez({got!r}, *[v.numpy() for v in out])
maps = open("/proc/self/maps").read()
assert "libbaton_host.so" in maps
assert "libbaton.so" not in maps and "libLLVM" not in maps
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_and_run_by_the_runtime_alone(name, tmp_path):
    m = baton.compile(HEAD + PROGRAMS[name])
    given = arguments(name)
    want = flat(m(*given))
    files = {k: str(tmp_path / f) for k, f in (("model", "m.so"), ("given", "in.npz"), ("got", "out.npz"))}
    m.save(files["model"])
    np.savez(files["given"], **{f"a{i}": x for i, x in enumerate(given)})
    run_alone(ALONE.format(**files))
    got = np.load(files["got"])
    assert len(got) == len(want)
    for key, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(got[key], w)


def without_the_library(tmp_path):
    """The package without libbaton_host."""
    package = Path(baton.__file__).parent
    leave = shutil.ignore_patterns("libbaton.so", "libbaton_host.so", "libbaton_opencl.so", "libbaton_cuda.so", "__pycache__", "include")
    shutil.copytree(package, tmp_path / "here" / "baton", ignore=leave)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "here")}


def test_a_missing_library_is_named(tmp_path):
    m = baton.compile(HEAD + PROGRAMS["sort"])
    m.save(tmp_path / "m.so")
    said = run_alone(
        f"""
        import baton
        try:
            baton.load({str(tmp_path / "m.so")!r})
        except baton.Error as error:
            print(error)
        """,
        without_the_library(tmp_path),
    )
    assert "the model calls `host.sort` and needs the library libbaton_host.so of this version beside libbaton_runtime.so" in said


def test_parameters_are_json():
    topk = baton.get_global_func("host.topk")
    f = topk('{"k": 2, "axis": -1, "ret_type": "values", "is_ascend": false, "dtype": "int32"}')
    assert f(baton.nd.array(np.array([3.0, 9.0, 5.0], "float32"))).numpy().tolist() == [9, 5]
    for text, why in [
        ('{"k": 2}', "topk: parameter `ret_type` is missing"),
        ('{"k": "2", "axis": -1, "ret_type": "values", "is_ascend": false, "dtype": "int32"}', 'topk: parameter `k` is "2", where an integer is wanted'),
        ('{"k": 2, "axis": 7, "ret_type": "values", "is_ascend": false, "dtype": "int32"}', "topk: axis is 7 for a tensor of rank 1"),
        ('{"k": 2, "axis": 0, "ret_type": "values", "is_ascend": false, "dtype": "i"}', 'topk: parameter `dtype` is "i", where a data type is wanted'),
        ("[]", "topk: its parameters are no object of JSON"),
        ("{", "topk: parameters:1:2"),
    ]:
        with pytest.raises(baton.Error, match=why):
            topk(text)(baton.nd.array(np.array([3.0, 9.0, 5.0], "float32")))
