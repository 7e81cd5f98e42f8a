# SPDX-License-Identifier: Apache-2.0
"""`baton run`: one run of a model, from an ONNX file, Relay text, or a compiled artifact (which needs no compiler)."""

from __future__ import annotations

import argparse
import json
import sys
import time

from . import arguments, capsules, steps
from .errors import Failure, UsageError
from .terminal import Progress, note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  baton run model.onnx\n"
        "  baton run model.onnx -i input_ids=ids.npy -i attention_mask=ones --save out.npz\n"
        "  baton run model.onnx --dim batch=1 --expect y=want.npy --atol 1e-5\n"
        "  baton run model.so --threads 2\n"
        "  baton run decoder.onnx --state auto --dim batch=1 --dim seq=16 --steps 8 --step-dim seq=1\n"
        "  baton run model.onnx --device opencl\n"
        "  baton run model.onnx --remote ssh://pi@board --target 'llvm -mtriple=aarch64-linux-gnu'",
    )  # fmt: skip
    arguments.add_model(parser)
    arguments.add_input_options(parser)
    parser.add_argument("--save", metavar="FILE.npz", help="write the outputs there (.npy where there is one)").complete = "file"
    option = parser.add_argument(
        "--expect", type=arguments.named_value, action="append", default=[], metavar="NAME=FILE.npy",
        help="compare an output with a file; exit code 1 where they differ",
    )  # fmt: skip
    option.complete = "file"
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative tolerance of --expect (default: %(default)g)")
    parser.add_argument("--atol", type=float, default=1e-5, help="absolute tolerance of --expect (default: %(default)g)")
    steps.add_options(parser)
    arguments.add_run_options(parser)
    arguments.add_remote(parser)
    arguments.add_compile_options(parser)
    arguments.add_output_options(parser)
    capsules.add_options(parser)
    parser.set_defaults(run=run)


def obtain(args: argparse.Namespace):
    """The executable of the model that was named, compiled or loaded, with the seconds that took."""
    kind = arguments.kind_of_file(args.model)
    arguments.use_threads(args.threads)
    start = time.perf_counter()
    if kind == "artifact":
        from ..driver.executable import load

        executable = load(args.model, arguments.device_of(args))
        settled = ("target", "precision", "weights", "activations", "fp", "pass_config", "disable_pass", "load", "state") + (
            () if executable.dynamic else ("shape", "dim")
        )
        given = [name for name in settled if getattr(args, name, None)]
        if given:
            raise UsageError(f"`{args.model}` is compiled already; --{given[0].replace('_', '-')} comes with `baton compile`")
        return executable, time.perf_counter() - start
    from ..driver.compiler import Source, compile

    state = arguments.states_of(args, Source.of(args.model)) if getattr(args, "state", None) else None
    with Progress("importing", args.quiet) as progress:
        options = {**compile_options(args), "instruments": progress.instruments()}
        executable = compile(args.model, **options, state=state, shape=_of_unranked(args), device=arguments.device_of(args))
    return executable, time.perf_counter() - start


def _of_unranked(args: argparse.Namespace) -> dict:
    """The shapes of --shape for inputs whose rank the model leaves open."""
    from ..driver.compiler import Source

    source = Source.of(args.model)
    if not args.shape or source.kind != "onnx":
        return {}
    return {row["name"]: args.shape[row["name"]] for row in source.facts()["inputs"] if row["shape"] is None and row["name"] in args.shape}


def compile_options(args: argparse.Namespace) -> dict:
    """The options of `add_compile_options` as keyword arguments of `baton.compile`, shapes left out."""
    arguments.warn_of_passes(args.disable_pass)
    device = arguments.device_of(args)
    return {
        "target": args.target or (device and device.device_name_of_kind),
        "opt_level": args.opt_level,
        "config": args.pass_config,
        "disabled_pass": args.disable_pass,
    }


def prepare(args: argparse.Namespace, executable, quiet: bool):
    """(executable for these shapes, inputs, seconds): a model with dynamic dimensions is compiled here."""
    from .values import gather

    inputs = gather(
        executable.inputs, args.input, args.shape,
        args.dim, args.seed, executable.dims, quiet,
    )  # fmt: skip
    start = time.perf_counter()
    if executable.dynamic:
        return executable, inputs, 0.0
    with Progress("compiling", quiet):
        executable = executable.specialize({name: array.shape for name, array in inputs.items()})
    return executable, inputs, time.perf_counter() - start


def on_remote(url: str, executable):
    """The model on another machine, as (executable, session)."""
    from ..rpc import connect, deploy

    session = connect(url)
    return deploy(session, executable), session


def outputs_of(executable, result) -> dict:
    """An executable's result by output name, as NumPy arrays; tuples within tuples in a row."""
    from ..runtime.vm import flat

    return {info.name: array.numpy() for info, array in zip(executable.outputs, flat([result]), strict=True)}


def compare(name: str, got, wanted, rtol: float, atol: float) -> str | None:
    """Returns the fault of an output, or None."""
    import numpy as np

    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"output `{name}` is {got.dtype}{list(got.shape)}, expected is {wanted.dtype}{list(wanted.shape)}"
    if got.dtype.kind not in "fiub":
        return None if (got == wanted).all() else f"output `{name}` differs"
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    bad = ~np.isclose(a, b, rtol, atol, equal_nan=True)
    if not bad.any():
        return None
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    place = tuple(int(i) for i in np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(apart, nan=np.inf), -1)), a.shape))
    return f"output `{name}` differs in {int(bad.sum())} of {bad.size} values, most at {list(place)}: {a[place]:.8g}, expected {b[place]:.8g}"


def run(args: argparse.Namespace) -> int:
    expected = args.expect
    executable, seconds = obtain(args)
    unknown = [name for name in expected if name not in [info.name for info in executable.outputs]]
    if unknown:
        names = ", ".join(info.name for info in executable.outputs)
        raise UsageError(f"--expect: the model has no output `{unknown[0]}`; its outputs are {names}")
    from .values import as_json, describe, read_array, save_arrays

    wanted = {name: read_array(path) for name, path in expected.items()}
    more, taken = 0.0, []
    steps.check(args, executable)
    if executable.states:
        result, taken = steps.run(args, executable)
        ran = sum(step["run_seconds"] for step in taken)
    else:
        executable, inputs, more = prepare(args, executable, args.quiet)
        if args.remote:
            executable = on_remote(args.remote, executable)[0]
        start = time.perf_counter()
        result = executable(**inputs)
        ran = time.perf_counter() - start
    outputs = outputs_of(executable, result)
    if args.save:
        save_arrays(args.save, outputs)
    wrong = list(filter(None, (compare(name, outputs[name], wanted[name], args.rtol, args.atol) for name in wanted)))
    if args.json:
        answer = {"outputs": {name: as_json(array) for name, array in outputs.items()}}
        answer |= {"prepare_seconds": seconds + more, "run_seconds": ran}
        if taken:
            answer["steps"] = taken
        if wanted:
            answer["mismatches"] = wrong
        json.dump(answer, sys.stdout, indent=1)
        print()
    else:
        for name, array in outputs.items():
            print(describe(name, array))
    verb = "loaded" if executable.artifact else "compiled"
    note(f"{verb} in {seconds + more:.2f} s, ran in {ran * 1e3:.2f} ms{steps.summary(taken)}", args.quiet)
    if wrong:
        raise Failure("\n".join(wrong[:5]))
    return 0
