# SPDX-License-Identifier: Apache-2.0
"""Weights of `torch.compile`: arguments of the graph that compiled code has packed for the processor, and that are packed again when they change."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import torch

from ..._ffi import get_global_func
from ...runtime import ndarray as nd
from .registry import name_of
from .sizes import known

# Operators whose kernels read a weight from panels or blocks, with the place of the weight among their arguments.
_PACKED_BY = {
    **dict.fromkeys((f"aten.conv{n}d.default" for n in (1, 2, 3)), 1),
    **{"aten.convolution.default": 1, "aten.linear.default": 1, "aten.addmm.default": 2, "aten.mm.default": 1},
}
_TURNED_BY = ("aten.t.default", "aten.permute.default", "aten.transpose.int")
# Smaller arrays are not made again by constant folding: they stay arguments.
_FEWEST_BYTES = 64 << 10


def packable(graph, weights) -> list[int]:
    """Places of the inputs that are weights which kernels pack: of float32, large enough, and used as nothing else."""
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    return [i for i in weights if i < len(placeholders) and _is_packed(placeholders[i], weights[i])]


def _is_packed(node, tensor):
    fake = node.meta.get("val")
    if not isinstance(fake, torch.Tensor) or fake.dtype is not torch.float32 or not all(map(known, fake.shape)):
        return False
    if fake.numel() * 4 < _FEWEST_BYTES or tensor.is_inference():
        return False
    return _is_read_packed(node)


def _is_read_packed(node) -> bool:
    """Whether kernels read the value of a node, a weight or a transposed one, in an order of their own, and nothing else reads it."""
    return bool(node.users) and all(_reads_packed(user, node) for user in node.users)


def _reads_packed(user, node) -> bool:
    name = name_of(user.target) if user.op == "call_function" else ""
    if name in _TURNED_BY:
        return _is_read_packed(user)
    return [i for i, a in enumerate(user.args) if a is node] == [_PACKED_BY.get(name)]


class Weights:
    """The weights of one compiled graph, by the place of the input.

    While the graph is compiled their elements are random, so that nothing in the code depends on values. `packed`: how often they were packed.
    """

    def __init__(self, graph, places):
        self.places, self.packed = list(places), 0
        placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self._shapes = {i: tuple(map(int, placeholders[i].meta["val"].shape)) for i in self.places}
        self._tensors: list | None = None  # what is being packed; None while the graph is compiled
        self._owners: list = []
        self._read: set[int] = set()
        self._stamp = self._latest = None
        self._changes = 0
        self._lock = threading.Lock()
        self._sample_of = get_global_func("driver.SampleOf")
        self._lent: tuple = ((), None)

    def arrays(self) -> dict:
        """Arrays that stand for the weights in the program: their elements are read when they are packed."""
        later = get_global_func("driver.LaterArray")
        return {i: later(list(self._shapes[i]), "float32", lambda i=i: self._elements(i)) for i in self.places}

    def _elements(self, place):
        if self._tensors is None:
            return nd.array(_random(self._shapes[place], place))
        self._read.add(place)
        return nd.from_dlpack(self._tensors[self.places.index(place)].detach().contiguous())

    def fit(self, inputs, repack) -> bool:
        """Sees to it that the code has the weights among these inputs; `repack` packs. Returns False where the call should take them as arguments:
        those of another module, or such that change from call to call."""
        tensors = [inputs[i] for i in self.places]
        stamp = self._stamp_of(tensors)
        if stamp == self._stamp:
            return True
        with self._lock:
            if stamp == self._stamp:
                return True
            self._changes = self._changes + 1 if stamp != self._latest else 0
            self._latest = stamp
            others = any(owner() is not t and owner() is not None for owner, t in zip(self._owners, tensors, strict=False))
            if others or self._changes > 2:
                return False
            self._tensors = tensors
            try:
                with torch.no_grad():
                    repack()
            finally:
                self._tensors = []
            self._owners = [weakref.ref(t) for t in tensors]
            self._stamp = stamp
            self.packed += 1
        return True

    def lost(self) -> list[int]:
        """Places of weights that packing did not read: the code has something else that was made of them."""
        return [i for i in self.places if i not in self._read]

    def _stamp_of(self, tensors):
        """Another value where weights were replaced, where PyTorch counted a change, or where elements differ that it did not count, as those of
        `weight.data`."""
        stamp = tuple([(t.data_ptr(), t._version) for t in tensors])
        places, lent = self._lent
        pointers = [p for p, _ in stamp]
        if places != pointers:
            from ...ir import Array

            lent = Array([nd.from_dlpack(t.detach()) for t in tensors])
            self._lent = (pointers, lent)
        return stamp, int(self._sample_of(lent))


def _random(shape, seed):
    """Numbers that differ from place to place, of both signs."""
    block = np.random.default_rng(seed).standard_normal(1 << 14).astype("float32")
    return np.resize(block, shape)
