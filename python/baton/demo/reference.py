# SPDX-License-Identifier: Apache-2.0
"""The encoder in NumPy, in float64 and without padding: what the compiled model is compared with.

It reads the weights directly and shares nothing with the ONNX file but them. Source: BERT (arXiv 1810.04805) and the
pooling of sentence-transformers (arXiv 1908.10084).
"""

from __future__ import annotations

import math

import numpy as np

from .minilm import MiniLM

_erf = np.frompyfunc(math.erf, 1, 1)  # exact to the last digit; NumPy has none


class Reference:
    """`embed(ids)` gives the embedding of one sentence: float64 (hidden,), of length 1."""

    def __init__(self, model: MiniLM):
        self.config = model.config
        self._model, self._wide = model, {}

    def _weight(self, name: str) -> np.ndarray:
        if name not in self._wide:
            self._wide[name] = self._model.weight(name).astype(np.float64)
        return self._wide[name]

    def _linear(self, x, name):
        return x @ self._weight(f"{name}.weight").T + self._weight(f"{name}.bias")

    def _norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(-1, keepdims=True) + self.config.layer_norm_eps)
        return centred / deviation * self._weight(f"{name}.weight") + self._weight(f"{name}.bias")

    def _attention(self, x, layer):
        config = self.config

        def split(name):  # (seq, hidden) -> (heads, seq, head)
            out = self._linear(x, f"{layer}.attention.self.{name}")
            return out.reshape(len(x), config.num_attention_heads, config.head_size).transpose(1, 0, 2)

        scores = split("query") @ split("key").transpose(0, 2, 1) / math.sqrt(config.head_size)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ split("value")).transpose(1, 0, 2).reshape(len(x), config.hidden_size)

    def embed(self, ids) -> np.ndarray:
        ids = np.asarray(ids)
        words = self._model.weight("embeddings.word_embeddings.weight")[ids].astype(np.float64)
        x = words + self._weight("embeddings.position_embeddings.weight")[: len(ids)]
        x = self._norm(x + self._weight("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
        for i in range(self.config.num_hidden_layers):
            layer = f"encoder.layer.{i}"
            out = self._linear(self._attention(x, layer), f"{layer}.attention.output.dense")
            x = self._norm(x + out, f"{layer}.attention.output.LayerNorm")
            inner = self._linear(x, f"{layer}.intermediate.dense")
            gelu = 0.5 * inner * (1.0 + _erf(inner / math.sqrt(2.0)).astype(np.float64))
            x = self._norm(x + self._linear(gelu, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)
