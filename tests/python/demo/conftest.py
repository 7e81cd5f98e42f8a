# SPDX-License-Identifier: Apache-2.0
"""A small encoder of the same architecture with random weights, and the trained one where it is installed."""

import json

import numpy as np
import pytest

from baton.demo import DemoError
from baton.demo.minilm import MiniLM, find_minilm

SMALL = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3,
    "num_hidden_layers": 2, "max_position_embeddings": 32, "vocab_size": 50, "layer_norm_eps": 1e-12,
}  # fmt: skip


def write_model(folder, seed=0):
    """Writes config.json and model.safetensors of a small random encoder."""
    rng = np.random.default_rng(seed)
    hidden, inner = SMALL["hidden_size"], SMALL["intermediate_size"]
    shapes = {
        "word_embeddings": SMALL["vocab_size"],
        "position_embeddings": SMALL["max_position_embeddings"],
        "token_type_embeddings": 2,
    }
    shapes = {f"embeddings.{name}.weight": (rows, hidden) for name, rows in shapes.items()}
    linear = {f"attention.{name}": (hidden, hidden) for name in ("self.query", "self.key", "self.value", "output.dense")}
    linear |= {"intermediate.dense": (inner, hidden), "output.dense": (hidden, inner)}
    norms = ["embeddings.LayerNorm"]
    for i in range(SMALL["num_hidden_layers"]):
        for name, shape in linear.items():
            shapes[f"encoder.layer.{i}.{name}.weight"], shapes[f"encoder.layer.{i}.{name}.bias"] = shape, shape[:1]
        norms += [f"encoder.layer.{i}.attention.output.LayerNorm", f"encoder.layer.{i}.output.LayerNorm"]
    for name in norms:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (hidden,)
    header, data = {}, b""
    for name, shape in shapes.items():
        array = rng.normal(scale=0.4, size=shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(array)]}
        data += array
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(SMALL))
    return folder


@pytest.fixture
def small(tmp_path):
    return MiniLM(write_model(tmp_path))


@pytest.fixture(scope="session")
def trained():
    try:
        return find_minilm()
    except DemoError as error:
        pytest.skip(f"{error}; mend with: {error.help}")
