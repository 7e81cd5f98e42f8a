# SPDX-License-Identifier: Apache-2.0
"""Steps of `./dev`: each says what it does in one line, and a failed one says how to repeat and how to mend it."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"
TAIL_LINES = 40


class StepFailed(Exception):
    """A step did not succeed. `command` repeats it, `mend` tells the reader what to do about it."""

    def __init__(self, what, command=None, mend=None, tail=""):
        super().__init__(what)
        self.what, self.command, self.mend, self.tail = what, command, mend, tail

    def report(self):
        """Prints the failure to stderr, the likely cause last so that it is what the reader sees."""
        if self.tail:
            print(self.tail.rstrip(), file=sys.stderr)
        print(f"\nerror: {self.what}", file=sys.stderr)
        if self.command:
            print(f"  repeat: {self.command}", file=sys.stderr)
        if self.mend:
            print(f"  mend:   {self.mend}", file=sys.stderr)


def say(step, message):
    """One line to stdout: which step, and what it does or that it is done already."""
    print(f"[{step}] {message}", flush=True)


def shown(path):
    """`path` as the reader would type it: relative to the repository where it is inside."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def as_typed(argv, env=None):
    """The command line for `argv`, to be pasted into a shell in the repository's root."""
    sets = [f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()]
    return " ".join(sets + [shlex.quote(shown(a) if str(a).startswith(str(ROOT) + os.sep) else str(a)) for a in argv])


def run(step, message, argv, *, mend, env=None, quiet=True):
    """Runs `argv` in the repository's root.

    quiet: output goes to build/logs/<step>.log and is shown only on failure; else it goes to the terminal.
    env: variables set on top of the current environment.
    Raises StepFailed with the repeatable command and `mend` on a non-zero exit, or if the program is missing.
    """
    say(step, message)
    command = as_typed(argv, env)
    started = time.monotonic()
    full_env = {**os.environ, **(env or {})}
    try:
        if quiet:
            LOGS.mkdir(parents=True, exist_ok=True)
            log = LOGS / f"{step.replace(' ', '-')}.log"
            with log.open("w", encoding="utf-8") as out:
                code = subprocess.run(
                    [str(a) for a in argv], cwd=ROOT, env=full_env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
                ).returncode
        else:
            log = None
            code = subprocess.run([str(a) for a in argv], cwd=ROOT, env=full_env, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise StepFailed(f"{step}: cannot run {argv[0]}: {error.strerror}", command, mend) from None
    if code != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log else []
        raise StepFailed(
            f"{step}: {Path(str(argv[0])).name} ended with exit code {code}" + (f" (whole log: {shown(log)})" if log else ""),
            command,
            mend,
            "\n".join(lines[-TAIL_LINES:]),
        )
    seconds = time.monotonic() - started
    if seconds >= 1:
        say(step, f"done in {seconds:.0f} s")


def probe(argv):
    """Standard output of `argv`, stripped; None where it cannot be run or fails. Prints nothing."""
    try:
        done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def program(name):
    """Path of a program that answers `--version`: what PATH finds, else the system's. A shim on PATH may lead nowhere."""
    for candidate in (shutil.which(name), f"/usr/bin/{name}"):
        if candidate and probe([candidate, "--version"]) is not None:
            return candidate
    return None


def digest(*parts):
    """A short fingerprint of strings and files' contents, for stamps."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else str(part).encode())
        total.update(b"\0")
    return total.hexdigest()[:16]


def stamped(path, value):
    """Whether the stamp file at `path` says `value`, that is, whether its step is done for these inputs."""
    try:
        return Path(path).read_text(encoding="utf-8") == value
    except OSError:
        return False


def stamp(path, value):
    """Records that the step of `path` is done for inputs with fingerprint `value`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value, encoding="utf-8")
