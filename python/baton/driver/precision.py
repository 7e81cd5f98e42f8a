# SPDX-License-Identifier: Apache-2.0
"""Options `precision` and `weights` of `compile`, and the narrow type that this processor computes fast."""

from __future__ import annotations

from collections.abc import Mapping

from .._ffi import get_global_func


def with_options(config: Mapping[str, object] | None, **options: str) -> dict[str, object]:
    """Returns `config` with each option that is not "exact". The compiler checks the words.

    Throws ValueError if `config` has the option with another value.
    """
    out = dict(config or {})
    for name, value in options.items():
        if value != "exact" and out.setdefault(name, value) != value:
            raise ValueError(f"{name} is {value!r} and config says {out[name]!r}; say it once")
    return out


def offer() -> tuple[str, str] | None:
    """Returns a precision whose products this processor adds faster than those of float32, and its name for them; None if it has none."""
    made = get_global_func("relay.kernel.FastPrecision")(get_global_func("target.Target")("llvm"))
    return tuple(map(str, made)) if len(made) else None


def offered() -> str:
    """Returns the offer as a line, as "this processor has bf16 dot products: --precision bf16"; an empty string if there is none."""
    found = offer()
    return f"this processor has {found[0]} {found[1]}: --precision {found[0]}" if found else ""
