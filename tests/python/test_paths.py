# SPDX-License-Identifier: Apache-2.0
"""Paths of modules under which programs of 0.8 import: `paths.txt` lists them. Each leads to a module, under another name of the package too, and
none is loaded twice."""

import subprocess
import sys
from pathlib import Path

import pytest

import baton as tvm
import baton.compat
from baton import relay, te, topi

PATHS = (Path(__file__).parent / "paths.txt").read_text().split()
_EACH = """
import importlib, sys
import baton
{how}
import tvm
assert tvm is baton
for path in {paths!r}:
    assert importlib.import_module("tvm." + path) is importlib.import_module("baton." + path), path
assert not [name for name, module in sys.modules.items() if getattr(module, "__name__", "").startswith("tvm")]
for path in ("tvm.nothing", "tvm.topi.nothing"):
    try:
        importlib.import_module(path)
    except ModuleNotFoundError as e:
        assert path in str(e)
    else:
        raise AssertionError(path)
assert callable(tvm.topi.nn.conv2d) and callable(tvm.relay.debug) and tvm.topi.vision is not tvm.topi
"""


def test_paths_are_listed_once():
    assert PATHS == sorted(set(PATHS)) and len(PATHS) > 500


@pytest.mark.parametrize("how", ["import baton.compat; assert baton.compat.serve() is baton", "sys.modules['tvm'] = baton"], ids=["served", "entered"])
def test_paths_under_another_name(how):
    subprocess.run([sys.executable, "-W", "error::ImportWarning", "-c", _EACH.format(how=how, paths=PATHS)], check=True)


def test_a_name_that_is_taken_is_not_served():
    with pytest.raises(ImportError, match="`json` is loaded already"):
        baton.compat.serve("json")


def test_paths_are_attributes_where_nothing_has_their_name():
    assert te.hybrid.runtime.HYBRID_GLOBALS is te.hybrid.HYBRID_GLOBALS
    assert callable(topi.nn.conv2d) and callable(relay.debug) and callable(topi.sort)
    with pytest.raises(AttributeError, match="nothing"):
        _ = topi.nn.nothing


@pytest.mark.parametrize("height, tile", [(16, 4), (8, 4), (12, 2), (7, 2)])
def test_tiles_of_winograd_convolutions(height, tile):
    from baton.topi.cuda.conv2d_winograd import _infer_tile_size as of_two
    from baton.topi.cuda.conv3d_winograd import _infer_tile_size

    kernel = te.placeholder((4, 3, 3, 3, 3))
    assert _infer_tile_size(te.placeholder((1, 3, 5, height, 9)), kernel) == of_two(te.placeholder((1, 3, height, 9)), kernel) == tile
    assert of_two(te.placeholder((1, height, 9, 3)), kernel, layout="NHWC") == tile


def test_random_matrices_of_blocks():
    pytest.importorskip("scipy")
    from baton.topi.sparse.utils import random_bsr_matrix

    for density in (0.0, 0.2, 1.0):
        made = random_bsr_matrix(32, 64, 4, 2, density, "float32")
        assert made.shape == (32, 64) and made.blocksize == (4, 2) and made.data.dtype == "float32" and made.indices.dtype == made.indptr.dtype == "int32"
        assert len(made.data) == min(int(density * 2048) // 8 + 1, 256) and made.has_sorted_indices
        assert tvm.nd.array(made.todense()).shape == (32, 64)
    with pytest.raises(ValueError, match="do not fill"):
        random_bsr_matrix(30, 64, 4, 2, 0.5, "float32")
