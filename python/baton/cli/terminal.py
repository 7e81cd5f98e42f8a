# SPDX-License-Identifier: Apache-2.0
"""The display while work goes on: one line that overwrites itself, on a terminal only."""

from __future__ import annotations

import os
import sys
import threading
import time


class Progress:
    """`with Progress("compiling"):` shows the words and the seconds gone by; silent where standard error is not a
    terminal.
    """

    def __init__(self, what: str, quiet: bool = False):
        self.what, self._detail = what, ""
        self._shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._done = threading.Event()

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        if self._shown:
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def stage(self, what: str) -> None:
        """Says what is done now."""
        self.what, self._detail = what, ""

    def instruments(self) -> list:
        """An instrument that names the pass that runs, where that is shown."""
        if not self._shown:
            return []
        from ..ir.instrument import pass_instrument

        progress = self

        @pass_instrument
        class Stage:
            """Shows the pass that runs; code is generated behind the outermost one."""

            def __init__(self):
                self.depth = 0

            def run_before_pass(self, module, info):
                progress.stage(f"compiling: {info.name}")
                self.depth += 1

            def run_after_pass(self, module, info):
                self.depth -= 1
                if self.depth == 0:
                    progress.stage("generating code")

        return [Stage()]

    def step(self, done: int, total: int, what: str = "") -> None:
        self._detail = f" {done} of {total} {what}"

    def _tick(self) -> None:
        # The first second passes in silence: most work is done by then.
        while not self._done.wait(1.0 if not self._detail else 0.2):
            seconds = time.perf_counter() - self._start
            print(f"\r\x1b[K{self.what}{self._detail} {seconds:.0f} s", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_) -> None:
        self._done.set()
        if self._shown:
            self._thread.join()
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


_COLORS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "bold": 1, "dim": 2}


def painter(stream):
    """The function (text, colour) -> text for a stream; it adds nothing where the stream is not a terminal, TERM is dumb, or NO_COLOR is set."""
    shown = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")

    def paint(text: str, color: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if shown and color else text

    return paint


def note(text: str, quiet: bool = False) -> None:
    """Something worth knowing that is not the answer."""
    if not quiet:
        print(text, file=sys.stderr)
