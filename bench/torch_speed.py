# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(backend="baton")` beside Inductor and eager: a call, the first call, models with frozen weights, training.

    python bench/torch_speed.py                            all rows
    python bench/torch_speed.py call cold --check          exit code 1 where a bar is missed
    python bench/torch_speed.py models --only resnet50,encoder --rounds 9

sizes: one encoder for 16 pairs of batch and length: recompilations after the second pair (bar 0), time over those of a graph for each pair
(geometric mean 1.15). call: microseconds of a call of three small tensors over backend "eager" (bar 3). cold: seconds from a module to the result of its first call
over Inductor's with an empty cache (0.2). models: times with frozen weights over Inductor's with `freezing`, float32, two threads (geometric
mean 0.85, none above 1.0). training: a step of Adam over eager's (1.0) and Inductor's (1.1), and that losses of 20 steps are eager's
(1e-4). Each engine has its own process; they take turns. Inductor needs a C++ compiler; ResNet-50 and MobileNetV3 need torchvision.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch.nn import functional as F

THREADS = 2
ENGINES = ("baton", "inductor", "eager")


class Layer(torch.nn.Module):
    """A layer of a transformer's encoder or decoder."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)])
        self.inward, self.outward = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inward(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=self.causal)
        x = x + self.outward(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x))))


class Transformer(torch.nn.Module):
    """Embeddings of words and places, layers, and a head."""

    def __init__(self, words=1000, length=128, width=768, heads=12, layers=12, causal=False, classes=10):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = torch.nn.Sequential(*(Layer(width, heads, causal) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, classes)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.words(ids) + self.places[: ids.shape[1]])).mean(1))


class Patches(torch.nn.Module):
    """A vision transformer."""

    def __init__(self, side=224, patch=16, width=768, heads=12, layers=12, classes=10):
        super().__init__()
        self.cut = torch.nn.Conv2d(3, width, patch, patch)
        self.places = torch.nn.Parameter(torch.randn((side // patch) ** 2, width) * 0.02)
        self.layers = torch.nn.Sequential(*(Layer(width, heads, False) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.cut(x).flatten(2).transpose(1, 2) + self.places)).mean(1))


def small_cnn():
    """A network for images of 32 x 32."""
    layers, before = [], 3
    for width in (16, 32, 64):
        layers += [torch.nn.Conv2d(before, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        before = width
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 16, 10))


def of_torchvision(name):
    """A classifier of torchvision."""
    import torchvision

    return torchvision.models.get_model(name, weights=None)


def ids(batch, length):
    """Numbers of words."""
    return torch.randint(0, 1000, (batch, length))


OF_TORCHVISION = ("resnet50", "mobilenet_v3")
MODELS = {
    "resnet50": lambda: (of_torchvision("resnet50"), torch.randn(1, 3, 224, 224)),
    "mobilenet_v3": lambda: (of_torchvision("mobilenet_v3_large"), torch.randn(1, 3, 224, 224)),
    "vit_b_16": lambda: (Patches(), torch.randn(1, 3, 224, 224)),
    "encoder": lambda: (Transformer(), ids(1, 128)),
    "small_encoder": lambda: (Transformer(width=384, layers=6), ids(1, 64)),
    "decoder_prompt": lambda: (Transformer(causal=True), ids(1, 32)),
    "decoder_token": lambda: (Transformer(causal=True), ids(1, 1)),
}
TRAINED = {
    "cnn": lambda: (small_cnn(), torch.randn(16, 3, 32, 32)),
    "vit": lambda: (Patches(side=32, patch=8, width=64, heads=4, layers=2), torch.randn(16, 3, 32, 32)),
    "encoder": lambda: (Transformer(width=64, heads=4, layers=2), ids(16, 24)),
}


def three(a, b, c):
    """A function of three tensors."""
    return a * b + c


def compiled(function, engine, freeze=False):
    """The function by an engine."""
    if engine == "eager":
        return torch.compile(function, backend="eager")
    if engine == "inductor":
        import torch._inductor.config as config

        config.freezing, config.cpp.enable_kernel_profile = freeze, False
        return torch.compile(function, backend="inductor")
    from baton.contrib.torch import register

    register()
    return torch.compile(function, backend="baton", options={"freeze": freeze, "fallback": "error", "threads": THREADS})


def timed(call, seconds=0.3, most=2000):
    """The least time of a call, of as many as fit into so many seconds."""
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds and len(times) < most:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def frozen(name, engine):
    """(a function that times a call, the result) of a model with frozen weights."""
    torch.manual_seed(0)
    module, x = MODELS[name]()
    fast = compiled(module.eval(), engine, True)

    def call():
        with torch.no_grad():
            return fast(x)

    return lambda: timed(call, 1.0), call().flatten().tolist()


def trained(name, engine):
    """(a function that times a step, the losses of 20)"""
    torch.manual_seed(0)
    module, x = TRAINED[name]()
    labels = torch.randint(0, 10, (len(x),))
    fast = module.train() if engine == "eager" else compiled(module.train(), engine)
    adam = torch.optim.Adam(module.parameters(), lr=1e-3)

    def step():
        adam.zero_grad()
        loss = F.cross_entropy(fast(x), labels)
        loss.backward()
        adam.step()
        return loss.item()

    losses = [step() for _ in range(20)]
    return lambda: timed(step), losses


def small(_, engine):
    """(a function that times a call of three tensors, nothing)"""
    fast, given = compiled(three, engine), [torch.randn(8) for _ in range(3)]
    with torch.no_grad():
        for _ in range(200):
            fast(*given)

    def call():
        with torch.no_grad():
            for _ in range(100):
                fast(*given)

    return lambda: timed(call) / 100, []


def first(name, engine):
    """(nothing, the seconds from a module to its first result)"""
    module, x = MODELS[name]()
    begin = time.perf_counter()
    with torch.no_grad():
        compiled(module.eval(), engine, True)(x)
    return None, [time.perf_counter() - begin]


PAIRS = [(2, 16), (4, 40), *((b, n) for b in (2, 3, 4, 8) for n in (16, 40, 64, 128) if (b, n) not in ((2, 16), (4, 40)))]


def all_sizes(name, engine):
    """(a function that times open sizes over static ones, as a geometric mean; graphs compiled after the second pair, and after all)"""
    import baton

    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 2 * len(PAIRS)
    module, _ = MODELS[name]()
    module.eval()
    given, graphs = [ids(*pair) for pair in PAIRS], []
    with torch.no_grad():
        fast = compiled(module, engine, True)
        for x in given:
            fast(x)
            graphs.append(len(baton.torch.report()))
        static = torch.compile(module, backend="baton", options={"freeze": True, "fallback": "error", "threads": THREADS}, dynamic=False)
        for x in given:
            static(x)

        def measure():
            with torch.no_grad():
                return mean([timed(lambda x=x: fast(x)) / timed(lambda x=x: static(x)) for x in given])

    return measure, [graphs[1], graphs[-1]]


KINDS = {"call": small, "cold": first, "models": frozen, "training": trained, "sizes": all_sizes}


def serve(kind, name, engine):
    """The side of an engine: prepares, says what came out, then times as often as it is asked."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(THREADS)
    measure, found = KINDS[kind](name, engine)
    print(json.dumps(found), flush=True)
    for _ in sys.stdin:
        print(measure(), flush=True)


class Engine:
    """The process of an engine."""

    def __init__(self, kind, name, engine, cache):
        environment = {
            **os.environ,
            **{"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
            **{"BATON_CACHE_DIR": os.path.join(cache, "baton"), "OMP_NUM_THREADS": str(THREADS)},
        }
        command = [sys.executable, os.path.abspath(__file__), "--serve", kind, name, engine]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.found = json.loads(self._line())

    def _line(self):
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"error: {' '.join(self._process.args[2:])} ended with {self._process.wait()}")
        return line

    def time(self):
        """The time of a call."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()


def measured(kind, name, engines, rounds):
    """(least times by engine, what they found)"""
    with tempfile.TemporaryDirectory() as cache:
        running = {engine: Engine(kind, name, engine, cache) for engine in engines}
        times = dict.fromkeys(engines, math.inf)
        for turn in range(rounds):
            for engine in engines if turn % 2 else engines[::-1]:
                times[engine] = min(times[engine], running[engine].time())
        found = {engine: running[engine].found for engine in engines}
        for engine in running.values():
            engine.close()
    return times, found


def mean(values):
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def row_call(given):
    """How many microseconds a call is over backend "eager"."""
    times, _ = measured("call", "three", ("baton", "eager"), given.rounds)
    over = (times["baton"] - times["eager"]) * 1e6
    print(f"call of three tensors: {times['baton'] * 1e6:.1f} us, backend eager {times['eager'] * 1e6:.1f} us, over it {over:.1f} us (bar 3)")
    return over <= 3


def row_cold(given):
    """The first call over Inductor's."""
    ratios = []
    for name in given.names["cold"]:
        _, found = measured("cold", name, ("baton", "inductor"), 0)
        ratios.append(found["baton"][0] / found["inductor"][0])
        print(f"first call of {name}: {found['baton'][0]:.1f} s, inductor {found['inductor'][0]:.1f} s, ratio {ratios[-1]:.2f} (bar 0.2)")
    return all(ratio <= 0.2 for ratio in ratios)


def row_models(given):
    """Models with frozen weights over Inductor's."""
    ratios = []
    for name in given.names["models"]:
        times, found = measured("models", name, ("baton", "inductor"), given.rounds)
        ratios.append(times["baton"] / times["inductor"])
        far = max(abs(a - b) for a, b in zip(found["baton"], found["inductor"], strict=True))
        print(f"{name}: {times['baton'] * 1e3:.2f} ms, inductor {times['inductor'] * 1e3:.2f} ms, ratio {ratios[-1]:.2f}, apart {far:.1e}", flush=True)
    print(f"models: geometric mean {mean(ratios):.2f} (bar 0.85), largest {max(ratios):.2f} (bar 1.0)")
    return mean(ratios) <= 0.85 and max(ratios) <= 1.0


def row_sizes(given):
    """One graph for 16 pairs of batch and length over a graph for each."""
    times, found = measured("sizes", "small_encoder", ("baton",), given.rounds)
    before, after = found["baton"]
    print(f"16 pairs of batch and length: {after - before} recompilations after the second, {times['baton']:.2f} of static time (bar 1.15)")
    return after == before and times["baton"] <= 1.15


def row_training(given):
    """Steps of Adam over eager's and Inductor's."""
    fine = True
    for name in given.names["training"]:
        times, found = measured("training", name, ENGINES, given.rounds)
        far = max(abs(a - b) for a, b in zip(found["baton"], found["eager"], strict=True))
        over = [times["baton"] / times[engine] for engine in ("eager", "inductor")]
        print(
            f"step of {name}: {times['baton'] * 1e3:.2f} ms, over eager {over[0]:.2f} (bar 1.0), over inductor {over[1]:.2f} (1.1), losses apart {far:.1e} (1e-4)"
        )
        fine = fine and far <= 1e-4 and over[0] <= 1.0 and over[1] <= 1.1
    return fine


ROWS = {"call": row_call, "cold": row_cold, "sizes": row_sizes, "models": row_models, "training": row_training}
COLD = ("small_encoder", "vit_b_16")


def chosen(parser, given):
    """The names that `--only` chooses for each row; ends with an error about names that no chosen row has, and about what is not installed."""
    has = {"cold": COLD, "models": tuple(MODELS), "training": tuple(TRAINED)}
    rows = [row for row in given.rows or ROWS if row in has]
    known = list(dict.fromkeys(name for row in rows for name in has[row]))
    if unknown := [name for name in given.only if name not in known]:
        parser.error(f"--only: no model {unknown[0]!r} in {', '.join(rows) or 'these rows'}" + (f"; there are {', '.join(known)}" if known else ""))
    found = {row: [name for name in has[row] if not given.only or name in given.only] for row in rows}
    vision = [name for names in found.values() for name in names if name in OF_TORCHVISION]
    if vision and importlib.util.find_spec("torchvision") is None:
        parser.error(f"{', '.join(vision)}: torchvision is not installed: pip install --no-deps torchvision, or choose others by --only")
    return found


def main(argv=None):
    """The command."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--serve"]:
        return serve(*argv[1:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--only", default="", help="names of models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(argv)
    given.only = list(filter(None, given.only.split(",")))
    if unknown := [row for row in given.rows if row not in ROWS]:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    given.names = chosen(parser, given)
    fine = [ROWS[row](given) for row in given.rows or ROWS if given.names.get(row, True)]
    return 1 if given.check and not all(fine) else 0


if __name__ == "__main__":
    sys.exit(main())
