# SPDX-License-Identifier: Apache-2.0
"""`baton bench --vs`: several peers in one run; one that is not installed says what to install."""

import importlib.util
import json

import numpy as np
import pytest

from baton.cli import peers
from baton.cli.bench import named_peers
from baton.cli.errors import Failure

PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "onnx2torch", "tvm": "tvm"}
HERE = [name for name in peers.PEERS if importlib.util.find_spec(PACKAGES[name])]


@pytest.fixture
def model(tmp_path):
    """(relu(x), x + x) of (n, 4)."""
    pytest.importorskip("onnx")
    from onnx_files import node, value, write

    nodes = [node("Relu", ["x"], ["y"]), node("Add", ["x", "x"], ["z"])]
    return write(tmp_path / "m.onnx", nodes, inputs=[value("x", ["n", 4])], outputs=[value("y", ["n", 4]), value("z", ["n", 4])])


@pytest.mark.parametrize("name", peers.PEERS)
def test_each_gives_the_outputs_in_order(model, name):
    if name not in HERE:
        with pytest.raises(Failure, match="is not installed") as raised:
            peers.load(name, str(model), {"x": np.ones((2, 4), "float32")}, 1)
        assert raised.value.help == f"python -m pip install {peers.PEERS[name].packages}"
        return
    x = np.array([[1, -2, 3, -4]], "float32")
    y, z = peers.load(name, str(model), {"x": x}, 1)()
    assert (np.asarray(y) == np.maximum(x, 0)).all() and (np.asarray(z) == x + x).all()


def test_several_in_one_run(baton, compiler, model):
    assert HERE, "onnxruntime is among the test requirements"
    done = baton("bench", model, "--dim", "n=2", "--rounds", "1", "--json", "--vs", ",".join(HERE))
    found = json.loads(done.stdout)["peers"]
    assert list(found) == HERE and all(peer["ratio_median"] > 0 and peer["difference"] == 0 for peer in found.values())
    shown = baton("bench", model, "--dim", "n=2", "--rounds", "1", "--vs", ",".join(HERE)).stdout
    assert all(f"times {name}'s median" in shown for name in HERE)


def test_names_of_peers():
    assert named_peers("onnxruntime, tvm,onnxruntime") == ["onnxruntime", "tvm"]


def test_a_model_that_a_peer_does_not_take_is_one_line(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(Failure, match="ONNX Runtime does not take") as raised:
        peers.load("onnxruntime", str(tmp_path / "bad.onnx"), {}, 1)
    assert "\n" not in str(raised.value)
