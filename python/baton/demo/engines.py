# SPDX-License-Identifier: Apache-2.0
"""Engines for the encoder: Baton, ONNX Runtime, and the NumPy reference, behind one face.

`run(ids, mask)` takes int64 arrays (1, seq) and gives float32 (1, hidden); `prepare(seq)` comes before it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from . import DemoError
from .minilm import MiniLM
from .reference import Reference

BUCKETS = (16, 32, 64, 128, 256)  # tokens; sentences are padded to these, so few shapes are compiled


def bucket(length: int) -> int:
    """The smallest bucket that holds `length` tokens."""
    return next(size for size in BUCKETS if length <= size)


def pad(ids: list[int], seq: int) -> tuple[np.ndarray, np.ndarray]:
    """One sentence as (input_ids, attention_mask), each int64 (1, seq)."""
    row, mask = np.zeros((1, seq), np.int64), np.zeros((1, seq), np.int64)
    row[0, : len(ids)], mask[0, : len(ids)] = ids, 1
    return row, mask


class Engine:
    """`name` is what the user types; `used` holds the sentence lengths run so far; `compile_seconds` says what took
    how long.
    """

    name = ""

    def __init__(self):
        self.used: set[int] = set()
        self.compile_seconds: dict[str, float] = {}

    @property
    def version(self) -> str:
        """Changes when results may change: part of the key of cached embeddings."""
        raise NotImplementedError

    def prepare(self, seq: int) -> None:
        """Makes the engine ready for one sentence padded to `seq` tokens."""
        self.used.add(seq)

    def run(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def embed(self, ids: list[int]) -> np.ndarray:
        """One sentence, padded to its bucket: float32 (hidden,)."""
        row, mask = pad(ids, bucket(len(ids)))
        self.prepare(row.shape[1])
        return self.run(row, mask)[0]


class BatonEngine(Engine):
    """The ONNX file compiled by Baton, an executable for each shape."""

    name = "baton"

    def __init__(self, model: MiniLM, threads: int | None = None):
        super().__init__()
        if threads:
            os.environ["BATON_NUM_THREADS"] = str(threads)  # read when the pool starts
        try:
            import baton

            if not hasattr(baton, "compile"):
                raise ImportError("its libraries are not built")
        except ImportError as error:
            raise DemoError(f"Baton is not ready: {error}", "build it first: ./dev build (or pip install .)") from None
        self._baton, self._file, self._executables = baton, model.onnx_file(), {}

    @property
    def version(self) -> str:
        # A rebuilt library may give other digits under the same version number.
        library = Path(self._baton.__file__).parent / "lib" / "libbaton.so"
        stamp = library.stat() if library.exists() else None
        version = getattr(self._baton, "__version__", "0")
        return f"{version}-{stamp.st_size}-{stamp.st_mtime_ns}" if stamp else version

    def prepare(self, seq):
        super().prepare(seq)
        if seq not in self._executables:
            shape = {"input_ids": (1, seq), "attention_mask": (1, seq)}
            start = time.perf_counter()
            self._executables[seq] = self._baton.compile(str(self._file), shape=shape)
            self.compile_seconds[f"{seq:>3} tokens"] = time.perf_counter() - start

    def run(self, ids, mask):
        out = self._executables[ids.shape[1]](input_ids=ids, attention_mask=mask)
        return (out[0] if isinstance(out, (tuple, list)) else out).numpy()


class OnnxRuntimeEngine(Engine):
    """ONNX Runtime: a peer to compare with; one session takes every shape."""

    name = "onnxruntime"

    def __init__(self, model: MiniLM, threads: int | None = None):
        super().__init__()
        try:
            import onnxruntime
        except ImportError:
            raise DemoError("ONNX Runtime is not installed", "python -m pip install onnxruntime") from None
        self._version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or len(os.sched_getaffinity(0))
        options.log_severity_level = 3
        start = time.perf_counter()
        self._session = onnxruntime.InferenceSession(str(model.onnx_file()), options, providers=["CPUExecutionProvider"])
        self.compile_seconds["every length"] = time.perf_counter() - start

    @property
    def version(self) -> str:
        return self._version

    def run(self, ids, mask):
        return self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


class NumpyEngine(Engine):
    """The reference as an engine: slow and exact."""

    name = "numpy"

    def __init__(self, model: MiniLM, threads: int | None = None):
        super().__init__()
        self._reference = Reference(model)

    @property
    def version(self) -> str:
        return np.__version__

    def run(self, ids, mask):
        return np.stack([self._reference.embed(row[: kept.sum()]) for row, kept in zip(ids, mask, strict=True)]).astype(np.float32)


ENGINES = {engine.name: engine for engine in (BatonEngine, OnnxRuntimeEngine, NumpyEngine)}


def installed(name: str) -> bool:
    """Whether an engine's package can be found, without importing it."""
    import importlib.util

    return importlib.util.find_spec(name) is not None
