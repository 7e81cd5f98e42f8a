# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a model other than numbers to Python: strings, and rows that are maps. Compiled code has numbers alone."""

from __future__ import annotations

import json

_MASK = (1 << 64) - 1


def text_hash(text: str | bytes) -> int:
    """FNV-1a of 64 bits as a signed number, as the importer computes it for the strings of a model."""
    h = 0xCBF29CE484222325
    for byte in text if isinstance(text, bytes) else text.encode():
        h = (h ^ byte) * 0x100000001B3 & _MASK
    return h - (1 << 64) if h >> 63 else h


def _hashes_of(texts: list[bytes]) -> list[int]:
    """`text_hash` of each; many at a time, byte by byte."""
    import numpy as np

    if len(texts) < 8:
        return [text_hash(text) for text in texts]
    lengths = np.array([len(text) for text in texts])
    order = np.argsort(-lengths, kind="stable")
    data, starts = np.frombuffer(b"".join(texts), "uint8"), (np.cumsum(lengths) - lengths)[order]
    hashes, longest = np.full(len(texts), 0xCBF29CE484222325, "uint64"), lengths[order]
    count = len(texts)
    for at in range(int(longest[0]) if count else 0):
        count = int(np.searchsorted(-longest[:count], -at, side="left"))  # those that are longer than `at`
        hashes[:count] = (hashes[:count] ^ data[starts[:count] + at]) * np.uint64(0x100000001B3)
    out = np.empty(len(texts), "uint64")
    out[order] = hashes
    return out.view("int64").tolist()


class _Hashes(dict):
    """The hashes of texts that were seen; begins anew when there are many."""

    most = 1 << 16

    def of(self, texts: list) -> list[int]:
        """The hash of each; TypeError where one is neither str nor bytes."""
        found = list(map(self.get, texts))
        if None in found:
            new = {text for text, known in zip(texts, found, strict=True) if known is None}
            if len(self) + len(new) > self.most:
                self.clear()
                new = set(texts)
            new = list(new)
            # `encode` of what is neither raises TypeError.
            self.update(zip(new, _hashes_of([text if isinstance(text, bytes) else str.encode(text) for text in new]), strict=True))
            found = list(map(self.__getitem__, texts))
            if len(self) > self.most:
                self.clear()
        return found


def _array_of_texts(value):
    """An array of objects of any kind of array or nested lists; each should be str or bytes."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in "USOT" and value.size:
            raise TypeError(f"strings are wanted, got an array of {value.dtype}")
        return np.asarray(value, object)
    try:
        return np.array(value, dtype=object)
    except ValueError as error:
        raise ValueError(f"the lists of strings differ in length: {error}") from None


def _bytes_of(texts):
    """The bytes of each string of an array of objects, row by row. Nothing else is made into strings."""
    import numpy as np

    flat = texts.reshape(-1).tolist()
    try:
        return [text if isinstance(text, bytes) else str.encode(text) for text in flat]
    except (TypeError, UnicodeEncodeError):
        pass
    for at, text in np.ndenumerate(texts):
        if not isinstance(text, (str, bytes)):
            where = f" at {list(at)}" if at else ""
            what = "; lists of strings that differ in length are not a tensor" if isinstance(text, (list, tuple)) else ""
            raise TypeError(f"strings are wanted, got {type(text).__name__}{where}: {text!r:.80}{what}")
        try:
            text if isinstance(text, bytes) else text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"a string that is not Unicode text{f' at {list(at)}' if at else ''}: {error}") from None
    raise AssertionError("unreachable: some string had no bytes")


class Form:
    """The meaning of an input's or output's numbers. `dtype`: the word for it in signatures."""

    def __init__(self, said: dict):
        self.kind = said["kind"]
        self._known = _Hashes()
        self.of = Form(said["of"]) if "of" in said else None
        self.shape = tuple(said["shape"]) if "shape" in said else None
        if self.kind == "list":  # a sequence whose length is known: a tuple of tensors to compiled code
            self.dtype = ""
            return
        if self.kind in ("tensor", "sequence", "optional", "text"):
            self.dtype = "string" if self.kind == "text" else said["dtype"] if self.of is None else f"{self.kind}({self.of.dtype})"
            return
        self.names = said.get("numbers") or said.get("texts") or []
        key = "int64" if said.get("numbers") else "string"
        self.dtype = f"seq(map({key}, float32))" if self.kind == "maps" else "string"

    @property
    def tensor(self) -> bool:
        """Whether it is a tensor to the model, of numbers or strings."""
        return self.of is None and self.kind != "text"

    def encode(self, value):
        """A value as compiled code takes it: an array of hashes for an array of strings of any kind, a list for a sequence, a list of
        one value or none for an optional."""
        if self.kind == "optional":
            return [] if value is None else [self.of.encode(value)]
        if self.kind == "sequence":
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"a list of arrays is wanted for a {self.dtype}, got {type(value).__name__}")
            return [self.of.encode(v) for v in value]
        if self.kind == "tensor":
            from ..runtime.values import constant_array

            array = constant_array(value)
            if self.dtype and array.dtype != self.dtype:
                raise TypeError(f"a tensor of {self.dtype} is wanted, got {array.dtype}")
            return array
        return self._text(value) if self.kind == "text" else self._hashes(value)

    def _text(self, value):
        """The bytes of all strings, where each ends, and the shape."""
        import numpy as np

        from ..runtime.ndarray import array

        texts = _array_of_texts(value)
        parts = _bytes_of(texts)
        if self.shape is not None and (len(self.shape) != texts.ndim or any(d is not None and d != n for d, n in zip(self.shape, texts.shape, strict=True))):
            raise ValueError(f"strings of shape {tuple('?' if d is None else d for d in self.shape)} are wanted, got {texts.shape}")
        ends = np.cumsum([len(p) for p in parts], dtype="int64") if parts else np.zeros(0, "int64")
        return [array(v) for v in (np.frombuffer(b"".join(parts), "uint8"), ends, np.array(texts.shape, "int64"))]

    def _hashes(self, value):
        import numpy as np

        texts = _array_of_texts(value)
        try:
            hashes = self._known.of(texts.reshape(-1).tolist())
        except (TypeError, UnicodeEncodeError):
            hashes = _hashes_of(_bytes_of(texts))  # which says what is wrong
        return np.array(hashes, "int64").reshape(texts.shape)

    def decode(self, value):
        """Labels as a NumPy array of strings; rows as a list of dicts; a sequence as a list; None for an optional without a value."""
        if self.kind == "tensor":
            return value
        if self.kind == "list":
            return list(value)
        if self.kind == "sequence":
            return [self.of.decode(v) for v in value]
        if self.kind == "optional":
            return self.of.decode(value[0]) if len(value) else None
        import numpy as np

        if self.kind == "text":
            data, ends, shape = (v.numpy() for v in value)
            bounds = [0, *ends.tolist()]
            texts = [data[a:b].tobytes().decode(errors="replace") for a, b in zip(bounds, bounds[1:], strict=False)]
            return np.array(texts, dtype=object).reshape(shape)

        array = value.numpy()
        if self.kind == "maps":
            return [dict(zip(self.names, row, strict=True)) for row in array.tolist()]
        return np.array(self.names, dtype=object)[array]


class Forms:
    """The forms of all inputs and outputs: None for each that is numbers."""

    def __init__(self, said: str):
        both = json.loads(said)
        self.inputs, self.outputs = ([Form(json.loads(row)) if row else None for row in both.get(key, [])] for key in ("inputs", "outputs"))

    @staticmethod
    def _beside(forms, values):
        """Each value with its form; a side of which nothing is said has none."""
        return zip(forms or [None] * len(values), values, strict=True)

    def encode(self, arrays, names):
        """The arguments of a call as compiled code takes them; errors name the input."""
        encoded = list(arrays)
        for i, (form, value) in enumerate(self._beside(self.inputs, arrays)):
            if form is None:
                continue
            try:
                encoded[i] = form.encode(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"input `{names[i]}`: {error}") from error
        return encoded

    def tensor(self, i: int) -> bool:
        """Whether input `i` is a tensor."""
        return not self.inputs or self.inputs[i] is None or self.inputs[i].tensor

    def dtypes(self, inputs, outputs):
        """(inputs, outputs) of a signature, with the words for all but numbers."""

        def said(infos, forms):
            if any(form is not None and form.kind == "list" for form in forms):
                return infos  # an entry for each element of a sequence
            return tuple(i if form is None else i._replace(dtype=form.dtype, shape=form.shape or (i.shape[:1] if form.kind == "maps" else i.shape))
                         for form, i in self._beside(forms, infos))  # fmt: skip

        return said(inputs, self.inputs), said(outputs, self.outputs)

    def decode(self, result):
        """The result of a call as Python shows it."""
        many = len(self.outputs) > 1 if self.outputs else isinstance(result, tuple)
        rows = [r if form is None else form.decode(r) for form, r in self._beside(self.outputs, result if many else [result])]
        return tuple(rows) if many else rows[0]


def of_module(module) -> str:
    """Returns a Relay module's forms of its inputs and outputs, as JSON; "" where they are numbers."""
    main = module["main"] if "main" in module else None
    attrs = getattr(main, "attrs", None)
    said = {key: [str(form) for form in attrs.get(f"{key[:-1]}_forms", [])] for key in ("inputs", "outputs")} if attrs is not None else {}
    return json.dumps(said) if any(said.values()) else ""
