# SPDX-License-Identifier: Apache-2.0
"""The command `baton`, the same as `python -m baton`.

Exit codes: 0 done, 1 failure (the model, a file, a check), 2 wrong usage. Data goes to standard output, everything else
to standard error. `BATON_DEBUG=1` shows tracebacks.
"""

from __future__ import annotations

import importlib
import os
import sys

from . import arguments
from .errors import Failure, exit_code, report

VERBS = {  # in the order that help shows them; each is the module of that name here, with _ for -
    "run": "compile a model in memory, or load a compiled one, and run it once",
    "compile": "write a compiled model, or a stage on the way to it, to a file",
    "bench": "time a model, alone or in turns with others that run it",
    "profile": "say where the time of a call goes: each kernel, its operators, the node of the model that it comes from",
    "opt": "run passes on Relay text: text in, text out",
    "explain-pipeline": "say of each pass why it ran, was inserted or was skipped",
    "explore": "write a page that shows what each pass did to a model",
    "explain-placement": "say on which device each expression of Relay text runs, and why",
    "bisect": "find the pass that breaks a model, and the smallest program that shows it",
    "inspect": "say what is in a model: inputs, outputs, operators, what is not supported",
    "cache": "show, clear, export or import the compiled code that is kept on disk, and say why code was not there",
    "sign": "sign a compiled model, or check its signature",
    "rpc-server": "serve this machine to others: they upload models and run them here",
    "rpc-key": "write a secret key for remote sessions, or say what one is",
    "rpc-tracker": "run a tracker, which shares devices among clients, or show what one knows",
    "rpc-proxy": "run a proxy for servers that no connection reaches, or put a server behind one",
    "replay": "do what a capsule of a failure says again, and tell whether it fails in the same way",
    "doctor": "say what this machine offers, what is missing, and how to mend it",
    "completion": "print the completion script of a shell",
}


def build_parser(only: str | None = None):
    """The argument parser; with `only`, the options of that verb alone are read in (the others' modules stay
    unloaded).
    """
    parser = arguments.Parser(
        prog="baton",
        description="Baton compiles deep-learning models to native code.",
        epilog="examples:\n"
        "  baton run model.onnx\n"
        "  baton compile model.onnx -o model.so && baton run model.so\n"
        "  baton bench model.onnx --vs onnxruntime\n"
        "`baton VERB --help` says more about each verb.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    verbs = parser.add_subparsers(metavar="VERB", parser_class=arguments.Parser)
    for verb, text in VERBS.items():
        if only in (None, verb):
            importlib.import_module("." + verb.replace("-", "_"), __name__).add_parser(verbs, verb, text)
        else:
            verbs.add_parser(verb, help=text)
    return parser


def _silence(stream) -> None:
    """Points a stream that cannot be written to at nothing: else Python tries again when it ends, and says so."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (AttributeError, OSError, ValueError):
        pass  # no file behind it


def main(argv: list[str] | None = None) -> int:
    """Runs the command and gives its exit code. Its output has reached its file by then, or the code is 1."""
    code = _run(sys.argv[1:] if argv is None else argv)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output closed the pipe.
        _silence(sys.stdout)
        code = 1
    except (OSError, ValueError) as error:
        _silence(sys.stdout)
        # One report is enough: a verb may have met the full disk itself.
        code = code if code else _report(error)
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        _silence(sys.stderr)
    return code


def _report(error: Exception) -> int:
    try:
        return report(error)
    except (AttributeError, OSError, ValueError):  # stderr is unusable
        return exit_code(error)


def _work(args) -> int:
    arguments.load(getattr(args, "load", []))
    code = args.run(args)
    if getattr(args, "verbose_compile", False):
        from .cache import tell

        tell()
    return code


def _run(argv: list[str]) -> int:
    verb = next((arg for arg in argv if not arg.startswith("-")), None)
    try:
        parser = build_parser(verb if verb in VERBS else None)
        args = parser.parse_args(argv)
        if args.version:
            from ..config import version

            print(f"baton {version()}")
            return 0
        if not hasattr(args, "run"):
            parser.error(f"a verb is needed: {', '.join(VERBS)}")
        arguments.settle(args)
        if hasattr(args, "isolate"):
            from .capsules import guarded

            return guarded(args, _work) or 0
        return _work(args) or 0
    except SystemExit as stop:  # argparse, after --help or wrong usage
        return stop.code if isinstance(stop.code, int) else 1
    except BrokenPipeError:
        _silence(sys.stdout)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("BATON_DEBUG") == "1":
            raise
        return _report(error)


__all__ = ["Failure", "VERBS", "build_parser", "main"]
