# SPDX-License-Identifier: Apache-2.0
"""Instruments: the same as `baton.ir.instrument`."""

from .ir.instrument import (
                            PassInstrument,
                            PassTimingInstrument,
                            PrintAfter,
                            PrintAfterAll,
                            PrintBefore,
                            PrintBeforeAll,
                            PrintIRAfter,
                            PrintIRBefore,
                            pass_instrument,
)

__all__ = ["PassInstrument", "PassTimingInstrument", "PrintAfter", "PrintAfterAll", "PrintBefore", "PrintBeforeAll",
           "PrintIRAfter", "PrintIRBefore", "pass_instrument"]
