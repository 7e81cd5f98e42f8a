# SPDX-License-Identifier: Apache-2.0
"""Instruments: the same as `baton.ir.instrument`."""

from .ir.instrument import (
    PassInstrument,
    PassTimingInstrument,
    PassWatchdog,
    PrintAfter,
    PrintAfterAll,
    PrintBefore,
    PrintBeforeAll,
    PrintIR,
    PrintIRAfter,
    PrintIRBefore,
    VerifyIR,
    pass_instrument,
)


def __getattr__(name):
    # The guard is a separate package, which most programs never load.
    if name in ("SemanticGuard", "SemanticGuardError"):
        from . import guard

        return getattr(guard, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PassInstrument",
    "PassTimingInstrument",
    "PassWatchdog",
    "PrintAfter",
    "PrintAfterAll",
    "PrintBefore",
    "PrintBeforeAll",
    "PrintIR",
    "PrintIRAfter",
    "PrintIRBefore",
    "VerifyIR",
    "pass_instrument",
]
