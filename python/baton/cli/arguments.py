# SPDX-License-Identifier: Apache-2.0
"""Options that mean the same in every verb, and how their values are read."""

from __future__ import annotations

import argparse
import os
import re
import sys

from .errors import Failure, UsageError, file_error


def _did_you_mean(name: str, known) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


class Parser(argparse.ArgumentParser):
    """argparse with errors of two lines and no guessing of half-written options."""

    def __init__(self, **kwargs):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **kwargs)

    def _print_message(self, message, file=None):
        # argparse keeps silent where help cannot be written; `main` reports it.
        if message:
            print(message, end="", file=file or sys.stderr)

    def _check_value(self, action, value):
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"there is no verb `{value}`{_did_you_mean(value, action.choices)}; there are {', '.join(action.choices)}")
        super()._check_value(action, value)

    def _every_option(self) -> list[str]:
        out = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                out += [option for parser in action.choices.values() for option in parser._every_option()]
        return out

    def parse_args(self, args=None, namespace=None):
        found, left = self.parse_known_args(args, namespace)
        if left:
            near = _did_you_mean(left[0].partition("=")[0], self._every_option()) if left[0].startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(left)}{near}")
        return found

    def error(self, message):
        try:
            print(f"error: {message}\n  help: `{self.prog} --help` shows the options", file=sys.stderr)
        except (AttributeError, OSError):
            pass  # stderr is unusable; the exit code remains
        raise SystemExit(2)


def add_verb(verbs, verb: str, text: str, examples: str) -> Parser:
    return verbs.add_parser(verb, help=text, description=text[:1].upper() + text[1:] + ".", epilog="examples:\n" + examples)


def add_remote(parser: Parser) -> None:
    """Another machine to run on, of the verbs that run a model."""
    parser.add_argument("--remote", metavar="URL", help="run on that machine: ssh://user@host, tls://host:port, unix:/path (see `baton rpc-server`)")


def positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1 or value > 1 << 20:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 on")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds above 0")
    return value


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`name=1,3,224,224`, also `name:[1,3,224,224]` and `name[1,3,224,224]` and `name:1x3x224x224`."""
    name, sep, dims = text.rpartition("=")
    if not sep and text.endswith("]"):
        name, sep, dims = text[:-1].partition("[")
        name = name.removesuffix(":")
    elif not sep:
        name, sep, dims = text.rpartition(":")
    parts = _parts(dims.replace("x", ","))
    if not sep or not name or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"`{text}` is not a shape; write it as name=1,3,224,224")
    return name, tuple(map(int, parts))


def _parts(dims: str) -> list[str]:
    dims = dims.strip().removeprefix("[").removesuffix("]").removeprefix("(").removesuffix(")")
    return [part for part in dims.replace(" ", "").split(",") if part]


def named_dim(text: str) -> tuple[str, int]:
    name, sep, size = text.rpartition("=")
    if not sep or not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a size of a dimension; write it as batch=8")
    return name, int(size)


_RANGE = re.compile(r"(\d+)?\.\.(\d+)?(?:/(\d+))?")


def _range(name: str, text: str):
    """The open dimension `1..512/8`: bounds, and what lengths are multiples of."""
    from ..driver.dims import MAX_EXTENT, Dim, checked

    low, high, multiple = _RANGE.fullmatch(text).groups()
    try:
        return checked(Dim(name, int(low or 0), MAX_EXTENT if high is None else int(high), int(multiple or 1)))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def open_shape(text: str) -> tuple[str, tuple]:
    """As named_shape, and dimensions that stay open: `ids=1,seq:1..512/8`, `x=batch,3,?,?`."""
    from ..driver.dims import Dim

    try:
        return named_shape(text)
    except argparse.ArgumentTypeError:
        name, sep, dims = text.partition("=")
    sizes = []
    for part in _parts(dims):
        word, colon, bounds = part.partition(":")
        if part.isdecimal():
            sizes.append(int(part))
        elif part == "?":
            sizes.append(None)
        elif word.isidentifier() and (not colon or _RANGE.fullmatch(bounds)):
            sizes.append(_range(word, bounds) if colon else Dim(word))
        else:
            sep = ""
    if not sep or not name:
        raise argparse.ArgumentTypeError(f"`{text}` is not a shape; write it as name=1,3,224,224, or with an open dimension name=1,seq:1..512")
    return name, tuple(sizes)


def open_dim(text: str):
    """As named_dim, and the bounds of a dimension that stays open: `seq=1..512/8`."""
    name, sep, size = text.rpartition("=")
    if sep and name and _RANGE.fullmatch(size):
        return name, _range("d" if not name.isidentifier() else name, size)
    try:
        return named_dim(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size of a dimension; write it as batch=8, or open as seq=1..512") from None


def named_value(text: str) -> tuple[str, str]:
    name, sep, value = text.partition("=")
    if not sep or not name or not value:
        raise argparse.ArgumentTypeError(f"`{text}` lacks a part; write it as name=VALUE")
    return name, value


def input_value(text: str) -> tuple[str, str]:
    """As named_value; a .npz file may stand alone, with an empty name."""
    return ("", text) if text.endswith(".npz") and "=" not in text else named_value(text)


def named_option(text: str) -> tuple[str, object]:
    """`key=value` with a value of Python's plain kinds: 1, 2.5, True, "text", [1, 2]; anything else is text as it is."""
    import ast

    name, value = named_value(text)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return name, {"true": True, "false": False}.get(value, value)


def add_model(parser: Parser, what: str = "ONNX file, program of torch.export (.pt2), Relay text (.relay), or what `baton compile` wrote (.so)") -> None:
    parser.add_argument("model", metavar="MODEL", help=what).complete = "file"


def add_load_option(parser) -> None:
    parser.add_argument(
        "--load", action="append", default=[], metavar="FILE",
        help="run a Python file (.py) or load a shared library (.so) first, which registers passes, operators, pipelines",
    ).complete = "file"  # fmt: skip


def load(paths: list[str]) -> None:
    """Runs or loads the files of --load, in order."""
    for path in paths:
        if not os.path.isfile(path):
            raise Failure(f"cannot read `{path}`: {'is a directory' if os.path.isdir(path) else 'there is no such file'}")
        if path.endswith(".so"):
            import ctypes

            from .._ffi import load_compiler

            load_compiler()  # the library finds the compiler in this process
            try:
                ctypes.CDLL(os.path.abspath(path))
            except OSError as error:
                raise Failure(f"cannot load `{path}`: {error}", "build it against this version of Baton") from None
        else:
            import runpy

            try:
                runpy.run_path(path)
            except OSError as error:
                if os.path.abspath(str(error.filename)) != os.path.abspath(path):  # of the code in it
                    raise
                raise Failure(f"cannot read `{path}`: {error.strerror}") from None


def add_fp_option(parser) -> None:
    parser.add_argument(
        "--fp", choices=("strict", "contract", "fast"),
        help="what simplifying may change in floating values: nothing (strict, the default), NaN and the sign of zero "
        "(contract), rounding too (fast)",
    )  # fmt: skip


def add_precision_option(parser) -> None:
    parser.add_argument(
        "--precision", choices=("exact", "bf16", "f16"),
        help="what products and convolutions of float32 are computed in (default: exact, as they are); sums, softmax and norms stay float32",
    )  # fmt: skip


def add_weights_option(parser) -> None:
    parser.add_argument(
        "--weights", metavar="FORM",
        help="how weights of products are stored: exact (default), int8 or int4, in blocks of 32 weights of an output or of 16 to 256 (int4:128)",
    )  # fmt: skip
    parser.add_argument(
        "--activations", choices=("exact", "int8"),
        help="what such weights are multiplied by: exact (default), or int8, which rounds it with a scale for each block of a row",
    )  # fmt: skip


def add_shape_options(parser, stay_open: bool = False) -> None:
    """--shape and --dim; with `stay_open` dimensions may have bounds instead of a size."""
    more = ("; open ones by name and bounds, as seq:1..512", ", or the bounds of one that stays open, as seq=1..512") if stay_open else ("", "")
    parser.add_argument(
        "--shape", type=open_shape if stay_open else named_shape, action="append", default=[], metavar="NAME=1,3,224,224",
        help="an input's shape" + more[0],
    )  # fmt: skip
    parser.add_argument(
        "--dim", type=open_dim if stay_open else named_dim, action="append", default=[], metavar="NAME=8",
        help="a dimension's size, by its name or its place in an input, as x[0]=8" + more[1],
    )  # fmt: skip


def add_compile_options(parser: Parser, stay_open: bool = False) -> None:
    group = parser.add_argument_group("compiling")
    group.add_argument("--target", metavar="TARGET", help='what to compile for, such as "llvm -mcpu=skylake" or opencl (default: this machine)')
    group.add_argument(
        "-O", dest="opt_level", type=int, choices=range(5), default=3, help="how hard to optimise (default: 3; 4 adds what changes rounding, such as FastMath)"
    )
    add_shape_options(group, stay_open)
    group.add_argument("--pass-config", type=named_option, action="append", default=[], metavar="KEY=VALUE", help="an option of a pass")
    group.add_argument("--disable-pass", action="append", default=[], metavar="PASS", help="leave a pass out")
    group.add_argument("--verbose", dest="verbose_compile", action="store_true", help="say which code the kernel cache had, and why it lacked the other")
    add_load_option(group)
    add_fp_option(group)
    add_precision_option(group)
    add_weights_option(group)


def state_pair(text: str):
    """`past_*=present_*`, or `auto` for the usual names: True."""
    source, sep, target = text.partition("=")
    if text == "auto":
        return True
    if not sep or not source or not target:
        raise argparse.ArgumentTypeError(f"`{text}` names no state; write it as INPUT=OUTPUT, as past_*=present_*, or as auto for the usual names")
    return source, target


def add_state_option(parser: Parser) -> None:
    parser.add_argument(
        "--state", type=state_pair, action="append", default=[], metavar="INPUT=OUTPUT",
        help="an input that an output appends to, as the keys of a decoder: it stays from call to call. `*` stands for any text, `auto` for the "
        "usual names (past_*=present_*)",
    )  # fmt: skip


def add_donate_option(parser: Parser) -> None:
    parser.add_argument(
        "--donate", action="append", default=[], metavar="INPUT",
        help="an input whose memory an output takes, where a caller gives it away (baton.give)",
    )  # fmt: skip


def donate(args: argparse.Namespace, model, options) -> None:
    """Notes in a model (a `compiler.Source`) what --donate says."""
    from ..driver.compiler import set_donated

    try:
        set_donated(model, args.donate, (info.name for info in model.signature(args.shape)[0]), options)
    except ValueError as error:
        raise UsageError(f"--{error}") from None


def states_of(args: argparse.Namespace, model) -> dict[str, str] | None:
    """The states of a model (a `compiler.Source`) that --state says, input to output; None without it."""
    from ..driver.session import paired

    if not args.state:
        return None
    if True in args.state and len(args.state) > 1:
        raise UsageError("--state auto finds all states by their names; give either that, or each as INPUT=OUTPUT")
    rules: dict[str, str] = {}
    for source, target in [] if True in args.state else args.state:
        if source in rules:
            raise UsageError(f"--state names `{source}` twice")
        rules[source] = target
    inputs, outputs = model.signature(args.shape)
    try:
        return paired(rules or True, (info.name for info in inputs), (info.name for info in outputs))
    except ValueError as error:
        raise UsageError(f"--{error}") from None


def add_input_options(parser: Parser) -> None:
    group = parser.add_argument_group("inputs")
    option = group.add_argument(
        "-i", "--input", type=input_value, action="append", default=[], metavar="NAME=FILE.npy",
        help="an input's value: a .npy or .npz file, zeros, ones, random or random:SEED, range (default: random); FILE.npz alone: the inputs of its names",
    )  # fmt: skip
    option.complete = "file"
    group.add_argument("--seed", type=int, default=0, help="where random values start (default: 0)")


def add_run_options(parser: Parser) -> None:
    parser.add_argument("--threads", type=positive, metavar="N", help="threads to use (default: all this process may use)")
    parser.add_argument("--device", metavar="DEVICE", help="where to run, such as opencl or opencl:1 (default: cpu); compiles for it too")


def add_output_options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")


_NAMED = {"input": "--input", "shape": "--shape", "dim": "--dim", "pass_config": "--pass-config", "expect": "--expect"}


def settle(args: argparse.Namespace) -> None:
    """Makes dictionaries of the options that are lists of (name, value); a name given twice is wrong usage."""
    for attribute, option in _NAMED.items():
        pairs = getattr(args, attribute, None)
        if pairs is None:
            continue
        out = {}
        for name, value in pairs:
            if name in out:
                raise UsageError(f"{option} names `{name}` twice")
            out[name] = value
        setattr(args, attribute, out)
    for name in ("fp", "precision", "weights", "activations"):  # options of passes that have an option of the command line
        if getattr(args, name, None):
            if name in args.pass_config:
                raise UsageError(f"both --{name} and --pass-config {name}=... are given; give one of them")
            args.pass_config[name] = getattr(args, name)


def warn_of_passes(*lists: list[str]) -> None:
    """Names of passes that no pass has have no effect: says so, with the nearest. Patterns, and `all`, are not names."""
    import warnings

    warnings.filterwarnings("ignore", message=".*there is no pass ")  # of the library: said here
    names = [name for one in lists for name in one if name != "all" and not set(name) & set("*?")]
    if not names:
        return
    from ..driver import passes
    from .terminal import note

    for text in passes.unknown(names):
        note(f"warning: {text}")


def use_threads(threads: int | None) -> None:
    """Must come before the runtime library starts its pool."""
    if threads:
        os.environ["BATON_NUM_THREADS"] = str(threads)


def device_of(args: argparse.Namespace):
    """The device that --device names, or that --target runs on; None for this machine's processor."""
    from ..runtime import device

    text = getattr(args, "device", None)
    name, _, number = (text or (args.target or "cpu").split(" ")[0]).partition(":")  # a target runs on the device of its kind
    try:
        found = device(name, int(number or 0))
    except ValueError:
        if text is None:
            return None
        raise UsageError(f"--device: `{text}` is no device; write it as cpu, opencl or opencl:1") from None
    return found if found.device_type != 1 else None


def read_text(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        elif os.path.isdir(path):
            raise Failure(f"`{path}` is a directory; a file of Relay text is needed")
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise file_error(error, path) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(f"`{path}` is not text: byte {error.start} is not UTF-8") from None


def kind_of_file(path: str) -> str:
    """`artifact`, `relay`, `torch` or `onnx`, from the first bytes and, for text and PyTorch's archives, the name; errors for what cannot
    be a model."""
    try:
        if os.path.isdir(path):
            raise Failure(f"`{path}` is a directory; a model file is needed")
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise file_error(error, path) from None
    if not head:
        raise Failure(f"`{path}` is empty")
    if head.startswith(b"\x7fELF"):
        return "artifact"
    suffix = os.path.splitext(path)[1]
    if suffix == ".so":
        raise Failure(f"`{path}` is not a shared library", "compile the model again: baton compile MODEL -o FILE.so")
    if suffix in (".relay", ".txt") or head.lstrip().startswith((b"#[version", b"def @", b"//")):
        return "relay"
    return "torch" if suffix == ".pt2" else "onnx"
