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

__all__ = ["PassInstrument", "PassTimingInstrument", "PassWatchdog", "PrintAfter", "PrintAfterAll", "PrintBefore",
           "PrintBeforeAll", "PrintIR", "PrintIRAfter", "PrintIRBefore", "VerifyIR", "pass_instrument"]
