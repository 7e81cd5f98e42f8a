# SPDX-License-Identifier: Apache-2.0
"""Options for the dtype of float32 products and for storing their weights, and the fast dtypes of this processor."""

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


def with_weights(config: Mapping[str, object] | None, weights: str) -> dict[str, object]:
    """Options of passes that say too how weights are stored. The compiler checks the word."""
    out = dict(config or {})
    if weights != "exact":
        if out.get("weights", weights) != weights:
            raise ValueError(f"weights is {weights!r} and config says {out['weights']!r}; say it once")
        out["weights"] = weights
    return out


def offer() -> tuple[str, str] | None:
    """(a precision whose products this processor adds faster than those of float32, how it does); None where it has none."""
    made = get_global_func("relay.kernel.FastPrecision")(get_global_func("target.Target")("llvm"))
    return tuple(map(str, made)) if len(made) else None


def offered() -> str:
    """The offer in a line, empty where there is none: "this processor has bf16 dot products: --precision bf16"."""
    found = offer()
    return f"this processor has {found[0]} {found[1]}: --precision {found[0]}" if found else ""
