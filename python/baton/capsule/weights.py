# SPDX-License-Identifier: Apache-2.0
"""The treatment of tensors in a capsule: kept, named by their hash, or replaced by others of the same shape, dtype and range."""

from __future__ import annotations

import base64
import hashlib
import json

MODES = ("auto", "inline", "hash", "synthetic")
CAP = 1 << 20
_SMALL = 512  # bytes; kept whatever the mode: indices, axes, scales
_HEAD = '{"type":"runtime.NDArray",'
_PLAIN = {"bool", "float16", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}


class WeightError(ValueError):
    """A tensor of a capsule that cannot be had."""


def _rows(text: str):
    """(line, its tensor or None) of JSON as Baton writes it: a node a line."""
    for line in text.split("\n"):
        tensor = None
        if line.startswith(_HEAD):
            try:
                node, end = json.JSONDecoder().raw_decode(line)
                tensor = node, line[end:]
            except ValueError:
                pass
        yield line, tensor


def _facts(data: bytes, dtype: str) -> dict:
    import numpy as np

    if dtype == "bfloat16":
        values = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    elif dtype in _PLAIN:
        values = np.frombuffer(data, dtype)
    else:
        return {"bytes": True}
    out = {}
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        for name, count in (("nan", np.isnan(values).sum()), ("inf", np.isposinf(values).sum()), ("-inf", np.isneginf(values).sum())):
            if count:
                out[name] = int(count)
        values = finite
    if values.size:
        low, high = values.min(), values.max()
        out |= {"min": low.item(), "max": high.item()}
    return out


def pack(text: str, mode: str, cap: int, seed: int) -> tuple[str, dict, list[str]]:
    """IR with its tensors as the mode wants them: (text, facts for the header, notes)."""
    lines, large = [], []
    for line, tensor in _rows(text):
        if tensor is not None and "data" in tensor[0]:
            size = len(tensor[0]["data"])
            if size > _SMALL:
                large.append((size, len(lines), tensor))
        lines.append(line)
    kept = sum(size for size, _, _ in large)
    facts = {"mode": mode, "seed": seed, "tensors": len(large), "replaced": 0}
    notes = []
    replace = mode in ("hash", "synthetic") or kept > cap
    if mode == "inline" and kept > cap:
        notes.append(f"weights: {kept} characters are more than the cap of {cap}, the largest were replaced by synthetic ones")
    for number, (size, place, (node, rest)) in enumerate(sorted(large, key=lambda one: (-one[0], one[1]))):
        if not replace or mode in ("auto", "inline") and kept <= cap:
            break
        data = base64.b64decode(node.pop("data"))
        node["sha256" if mode != "hash" else "hash"] = hashlib.sha256(data).hexdigest()
        if mode != "hash":
            node["synthetic"] = {"seed": seed + number, "size": len(data)} | _facts(data, str(node["dtype"]))
        else:
            node["size"] = len(data)
        lines[place] = json.dumps(node, separators=(",", ":")) + rest
        kept -= size
        facts["replaced"] += 1
    if facts["replaced"] and mode == "auto":
        facts["mode"] = "synthetic"
    elif not facts["replaced"]:
        facts["mode"] = "inline"
    return "\n".join(lines), facts, notes


def _make(node: dict, how: dict) -> bytes:
    """The stand-in of a tensor: same shape, dtype and range, equal at every call."""
    import numpy as np

    shape, dtype, size = node.get("shape"), str(node.get("dtype")), how.get("size")
    if not isinstance(size, int) or not 0 <= size <= 1 << 40 or not isinstance(how.get("seed"), int):
        raise WeightError(f"a synthetic tensor of shape {shape} says no size and seed")
    random = np.random.default_rng(how["seed"] & (1 << 63) - 1)
    if dtype != "bfloat16" and dtype not in _PLAIN:
        return random.bytes(size)
    item = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    count = size // item
    low, high = how.get("min", 0), how.get("max", 0)
    if not all(isinstance(x, (int, float, bool)) for x in (low, high)) or low > high:
        raise WeightError(f"a synthetic tensor of shape {shape} has no range: {low!r} to {high!r}")
    if dtype == "bfloat16" or np.dtype(dtype).kind == "f":
        values = low + random.random(count) * (high - low) if high - low < float("inf") else np.where(random.random(count) < 0.5, low, high)
        if count > 1:
            values[0], values[-1] = low, high
        at = 1
        for name, value in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
            n = how.get(name, 0)
            if not isinstance(n, int) or n < 0:
                raise WeightError(f"a synthetic tensor of shape {shape} has {n!r} of {name}")
            values[at : at + n] = value
            at += n
        if dtype == "bfloat16":
            return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        return values.astype(dtype).tobytes()
    if dtype == "bool":
        return (random.random(count) < 0.5 if low != high else np.full(count, bool(low))).astype(bool).tobytes()
    values = random.integers(int(low), int(high), count, dtype=dtype, endpoint=True)
    if count > 1:
        values[0], values[-1] = low, high
    return values.tobytes()


def unpack(text: str, given: dict[str, bytes] | None = None) -> tuple[str, list[str]]:
    """IR with all tensors in it again: (text, notes). given: bytes by SHA-256, for tensors that the capsule names by hash."""
    out, notes, missing = [], [], 0
    for line, tensor in _rows(text):
        if tensor is not None and "data" not in tensor[0]:
            node, rest = tensor
            how, digest, size = node.pop("synthetic", None), node.pop("sha256", None), node.pop("size", None)
            digest = node.pop("hash", digest)
            data = (given or {}).get(digest)
            if data is None:
                if how is None:
                    missing += 1
                    how = {"seed": int(str(digest)[:8] or "0", 16) if _is_hex(digest) else 0, "size": size, "min": -1, "max": 1}
                    if "int" in str(node.get("dtype")) or node.get("dtype") == "bool":
                        how |= {"min": 0, "max": 1}
                if not isinstance(how, dict):
                    raise WeightError("a tensor of the capsule has neither values nor a way to make them")
                data = _make(node, how)
            node["data"] = base64.b64encode(data).decode()
            line = json.dumps(node, separators=(",", ":")) + rest
        out.append(line)
    if missing:
        notes.append(f"{missing} tensors are in the capsule by hash alone; stand-ins were made (--weights FILE.npz has the true ones)")
    return "\n".join(out), notes


def _is_hex(text) -> bool:
    return isinstance(text, str) and len(text) >= 8 and all(c in "0123456789abcdef" for c in text)


def read_given(paths) -> dict[str, bytes]:
    """Bytes of the tensors in .npy and .npz files, by SHA-256."""
    import numpy as np

    out = {}
    for path in paths or ():
        loaded = np.load(path, allow_pickle=False)
        for array in loaded.values() if hasattr(loaded, "values") else [loaded]:
            data = np.ascontiguousarray(array).tobytes()
            out[hashlib.sha256(data).hexdigest()] = data
    return out
