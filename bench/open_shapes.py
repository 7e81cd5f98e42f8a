# SPDX-License-Identifier: Apache-2.0
"""Models with open dimensions: one program for all shapes, beside code for each shape alone and beside the better of ONNX Runtime and OpenVINO.

    python bench/open_shapes.py                            # MiniLM over lengths and batches
    python bench/open_shapes.py --models minilm,bert --full   # 40 lengths, 16 batches
    python bench/open_shapes.py --models cnn --threads 1,2    # ResNet-50, SqueezeNet, MobileNet-v2 over batches and sides
    python bench/open_shapes.py --first                    # the first result of shapes that never came
    python bench/open_shapes.py --memory                   # a saved model over many shapes, by the runtime alone
    python bench/open_shapes.py --compile                  # what being open costs the compiler
    python bench/open_shapes.py --check                    # exit code 1 where a bar is missed

Engines take turns and sleep between runs; a ratio is of the least times, so that it means something on a machine with other work. With one thread
times are the processor's, which other work takes no part of. A row above its bar is run for as long again. OpenVINO counts where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import models
import numpy as np

CNNS = ("resnet50", "squeezenet", "mobilenet_v2")
WORST_BAR, FIRST_BAR_MS, COMPILE_BAR, MEMORY_BAR, FLAT_MB = 1.10, 1.0, 2.0, 1.1, 1.0
MEAN_BAR = {True: 1.05, False: 1.03}  # open over static: of image models, of encoders
PEER_BAR = {True: 1.0, False: 0.95}
MIB = 1 << 20

LENGTHS = sorted({1, 2, 7, 13, 509, 512, *map(int, np.linspace(3, 508, 34))})
TEXTS = [(1, n) for n in (1, 2, 7, 13, 31, 64, 128, 255, 384, 509)] + [(2, 17), (4, 33), (8, 64), (16, 13)]
ALL_TEXTS = [(1, n) for n in LENGTHS] + [(batch, 37 * batch % 61 + 4) for batch in range(1, 17)]
IMAGES = [(1, 224, 224), (1, 160, 160), (1, 161, 203), (1, 320, 320), (2, 224, 224), (3, 187, 241), (8, 160, 160)]
ALL_IMAGES = sorted({*IMAGES, *((1, side, side) for side in range(160, 321, 17)), *((batch, 224 - 9 * batch, 160 + 11 * batch) for batch in range(1, 9))})


class Case:
    """A model with its bounds, its shapes, and inputs of any of them."""

    def __init__(self, name: str, full: bool):
        import baton

        model = models.load(name)
        self.name, self.path, self.image = name, str(models.open_file(model)), "input_ids" not in model.inputs
        self.inputs = tuple(model.inputs)
        if self.image:
            self.dims = [baton.Dim("batch", 1, 8), baton.Dim("height", 160, 320), baton.Dim("width", 160, 320)]
            self.shapes, bounds = ALL_IMAGES if full else IMAGES, (self.dims[0], 3, *self.dims[1:])
        else:
            self.dims = [baton.Dim("batch", 1, 16), baton.Dim("seq", 1, 512)]
            self.shapes, bounds = ALL_TEXTS if full else TEXTS, tuple(self.dims)
        self.bounds = dict.fromkeys(self.inputs, bounds)

    def compile(self):
        import baton

        return baton.compile(self.path, shape=self.bounds)

    def shape(self, sizes) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.inputs, (sizes[0], 3, *sizes[1:]) if self.image else tuple(sizes))

    def feed(self, sizes) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(list(sizes))
        if self.image:
            return {name: rng.standard_normal(shape, np.float32) for name, shape in self.shape(sizes).items()}
        ids = rng.integers(1000, 30000, sizes)
        return {name: ids if name == "input_ids" else np.ones_like(ids) for name in self.inputs}

    def largest(self) -> dict[str, int]:
        """The lengths that all shapes of this case fit in."""
        return {dim.name: max(sizes[i] for sizes in self.shapes) for i, dim in enumerate(self.dims)}


def once(run) -> float:
    clock = time.process_time if os.environ.get("BATON_NUM_THREADS") == "1" else time.perf_counter
    time.sleep(0.03)  # threads of the engine before spin for a while, then sleep
    start = clock()
    run()
    return (clock() - start) * 1e3


def turns(runs: dict, rounds: int, best: dict[str, float]) -> None:
    """Brings the least milliseconds of each up to date, over so many turns; fewer of what takes seconds."""
    begin = time.perf_counter()
    for n in range(rounds):
        for name, run in runs.items():
            best[name] = min(best.get(name, float("inf")), once(run))
        if n >= 4 and time.perf_counter() - begin > 8:
            return


def mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def missed(case: Case, figures) -> list[str]:
    return [f"{case.name}: {what} {value:.2f}, the bar is {bar:.2f}" for what, value, bar in figures if not value <= bar]


def speed(case: Case, threads: int, rounds: int) -> list[str]:
    """A row a shape; what misses its bar, in words."""
    from engines import open_peers

    model, peers = case.compile(), open_peers(case.path, threads)
    own, beside, same = [], [], 0
    for sizes in case.shapes:
        feed = case.feed(sizes)
        order = [feed[info.name] for info in model.inputs]
        static = model.specialize(case.shape(sizes))
        got, want = model(*order).numpy(), static(*order).numpy()
        for run in peers.values():
            np.testing.assert_allclose(got, run(feed)[0], rtol=1e-3, atol=1e-3)
        runs = {"open": lambda a=order: model(*a), "static": lambda a=order, m=static: m(*a)}
        runs.update((name, lambda f=feed, run=run: run(f)) for name, run in peers.items())
        best: dict[str, float] = {}
        turns(runs, rounds, best)
        if best["open"] > WORST_BAR * best["static"]:
            turns({name: runs[name] for name in ("open", "static")}, rounds, best)
        own.append(best["open"] / best["static"])
        beside.append(best["open"] / min(best[name] for name in peers))
        equal = np.array_equal(got, want)
        same += equal
        times = "  ".join(f"{name} {best[name]:8.2f}" for name in runs)
        print(f"{case.name} {'x'.join(map(str, sizes)):>11}  {times} ms   ratios {own[-1]:.2f} {beside[-1]:.2f}{'' if equal else '   other bits'}", flush=True)
        del static
    print(
        f"{case.name}, {threads} threads: open over static {mean(own):.3f}, at worst {max(own):.2f}; over the better of {', '.join(peers)} {mean(beside):.3f}; "
        f"bits of {same} of {len(own)} shapes are the static ones",
        flush=True,
    )
    figures = [("open over static", mean(own), MEAN_BAR[case.image]), ("open over static, at worst", max(own), WORST_BAR)]
    return missed(case, [*figures, ("open over the better peer", mean(beside), PEER_BAR[case.image])])


def first(case: Case, rounds: int) -> list[str]:
    """The time that the first result of a shape takes beyond the steady state, once memory is reserved: of shapes that never came."""
    model = case.compile()
    model.reserve(**case.largest())
    order = sorted(case.shapes, key=np.prod)
    late = []
    feeds = [[case.feed(sizes)[info.name] for info in model.inputs] for sizes in order]
    model(*feeds[0])
    for sizes, feed in zip(order[1:], feeds[1:], strict=True):
        new, steady = once(lambda feed=feed: model(*feed)), {}
        turns({"open": lambda feed=feed: model(*feed)}, rounds, steady)
        late.append(new - steady["open"])
        print(f"{case.name} {'x'.join(map(str, sizes)):>11}  first {new:8.2f}  steady {steady['open']:8.2f} ms   later by {late[-1]:.2f}", flush=True)
    print(f"{case.name}: a first result after reserve comes later by {np.median(late):.2f} ms (median), {max(late):.2f} (worst)", flush=True)
    return missed(case, [("milliseconds that a first result comes later", float(np.median(late)), FIRST_BAR_MS)])


def size_of_code(model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.so"
        model.save(path)
        return path.stat().st_size - model.memory()["constants"]


def compiling(case: Case, rounds: int) -> list[str]:
    """Compile time and code of the open model over one static shape's."""
    import baton

    sizes = case.shapes[len(case.shapes) // 2]
    open_, static = case.compile(), baton.compile(case.path, shape=case.shape(sizes))  # the compiler is loaded, files are read
    code = size_of_code(open_) / size_of_code(static)
    del open_, static
    best: dict[str, float] = {}
    turns({"open": case.compile, "static": lambda: baton.compile(case.path, shape=case.shape(sizes))}, min(rounds, 5), best)
    ratio = best["open"] / best["static"]
    print(f"{case.name}: compile open {best['open']:.0f} ms, static {best['static']:.0f} ms, ratio {ratio:.2f}; code {code:.2f} times", flush=True)
    return missed(case, [("compile time over static", ratio, COMPILE_BAR), ("code over static", code, COMPILE_BAR)])


def resident() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


def over_shapes(path: str, count: int) -> None:
    """In a separate process: many calls of a saved model by the runtime alone; what they took, as JSON."""
    import baton

    before = resident()
    model = baton.load(path)
    low, high = ([getattr(dim, bound) for dim in model.dims] for bound in ("min", "max"))
    rng, marks = np.random.default_rng(0), []
    for n in range(count):
        # The largest shape comes early, and again.
        sizes = high if n % (count // 4) == 1 else [int(a + (b - a) * rng.random() ** 3) for a, b in zip(low, high, strict=True)]
        size = dict(zip((dim.name for dim in model.dims), sizes, strict=True))
        model(*[np.ones([size.get(d, d) for d in info.shape], info.dtype) for info in model.inputs])
        if n in (count // 2, count - 1):
            marks.append(resident())
    with open("/proc/self/maps", encoding="ascii") as file:
        maps = file.read()
    alone = "libbaton.so" not in maps and "libLLVM" not in maps
    print(json.dumps({"grown": marks[-1] - before, "late": marks[-1] - marks[0], "alone": alone, "plans": model.memory()["plans"]}))


def memory(case: Case, full: bool) -> list[str]:
    """Resident memory over many shapes, of lengths up to the largest of the case."""
    import baton

    count = 10_000 if full else 400
    most = {"batch": 4, "seq": 128} if not case.image else {"batch": 2, "height": 224, "width": 224}
    case.bounds = {name: tuple(d if isinstance(d, int) else d._replace(max=most[d.name]) for d in shape) for name, shape in case.bounds.items()}
    static = baton.compile(case.path, shape=case.shape(tuple(most.values()))).memory()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.so"
        case.compile().save(path)
        env = {**os.environ, "BATON_OPEN_SHAPES": f"{path}:{count}"}
        said = subprocess.run([sys.executable, __file__], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    got = json.loads(said.splitlines()[-1])
    room = 1.1 * (static["constants"] + static["workspace"]) / MIB + 16
    print(
        f"{case.name}: {count} shapes take {got['grown'] / MIB:.1f} MiB of {room:.1f}; the second half {got['late'] / MIB:.2f} MiB; "
        f"{got['plans']} plans; {'the runtime alone' if got['alone'] else 'the compiler was loaded'}",
        flush=True,
    )
    figures = [("MiB", got["grown"] / MIB, room), ("MiB of the second half", got["late"] / MIB, FLAT_MB), ("the compiler is loaded", not got["alone"], 0)]
    return missed(case, figures)


def measure(args, threads: int) -> int:
    chosen = [name for part in args.models.split(",") for name in (CNNS if part == "cnn" else (part,))]
    lines = []
    for name in chosen:
        case = Case(name, args.full)
        if args.first:
            lines += first(case, args.rounds)
        if args.compile:
            lines += compiling(case, args.rounds)
        if args.memory:
            lines += memory(case, args.full)
        if not (args.first or args.compile or args.memory):
            lines += speed(case, threads, args.rounds)
    print(*lines, sep="\n")
    return 1 if lines and args.check else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="minilm", help="with commas between: minilm, bert, cnn (three) or one of bench/models.py (default: %(default)s)")
    parser.add_argument("--full", action="store_true", help="40 lengths and 16 batches, 25 sizes of images, 10,000 shapes of --memory")
    parser.add_argument("--first", action="store_true", help="the first result of a new shape")
    parser.add_argument("--compile", action="store_true", help="compile time and size of code over a static shape's")
    parser.add_argument("--memory", action="store_true", help="resident memory over many shapes")
    parser.add_argument("--threads", default="2", help="with commas between (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=12, help="runs of each engine a shape (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    if "BATON_OPEN_SHAPES" in os.environ:  # the process without a compiler
        path, _, count = os.environ["BATON_OPEN_SHAPES"].rpartition(":")
        over_shapes(path, int(count))
        return 0
    if "BATON_NUM_THREADS" in os.environ and os.environ["BATON_NUM_THREADS"] == args.threads:
        return measure(args, int(args.threads))
    failed = 0
    for threads in args.threads.split(","):  # each number in a separate process: the pool is made once
        command = [sys.executable, *sys.argv, "--threads", threads]
        failed |= subprocess.run(command, env={**os.environ, "BATON_NUM_THREADS": threads}, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
