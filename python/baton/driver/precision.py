# SPDX-License-Identifier: Apache-2.0
"""What products of float32 are computed in, how their weights are stored, and what this processor would compute fast."""

from __future__ import annotations

from collections.abc import Mapping

from .._ffi import get_global_func

PRECISIONS = ("exact", "bf16", "f16")


def with_precision(config: Mapping[str, object] | None, precision: str) -> dict[str, object]:
    """Options of passes that say too what products are computed in."""
    out = dict(config or {})
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; it is {', '.join(map(repr, PRECISIONS[:-1]))} or {PRECISIONS[-1]!r}")
    if precision != "exact":
        if out.get("precision", precision) != precision:
            raise ValueError(f"precision is {precision!r} and config says {out['precision']!r}; say it once")
        out["precision"] = precision
    return out


def with_weights(config: Mapping[str, object] | None, weights: str, activations: str = "exact") -> dict[str, object]:
    """Options of passes that say too how weights are stored, and what they are multiplied by. The compiler checks the words."""
    out = dict(config or {})
    for name, word in (("weights", weights), ("activations", activations)):
        if word != "exact":
            if out.get(name, word) != word:
                raise ValueError(f"{name} is {word!r} and config says {out[name]!r}; say it once")
            out[name] = word
    return out


def offer() -> tuple[str, str] | None:
    """(a precision whose products this processor adds faster than those of float32, how it does); None where it has none."""
    made = get_global_func("relay.kernel.FastPrecision")(get_global_func("target.Target")("llvm"))
    return tuple(map(str, made)) if len(made) else None


def offered() -> str:
    """The offer in a line, empty where there is none: "this processor has bf16 dot products: --precision bf16"."""
    found = offer()
    return f"this processor has {found[0]} {found[1]}: --precision {found[0]}" if found else ""
