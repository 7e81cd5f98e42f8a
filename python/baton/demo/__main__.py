# SPDX-License-Identifier: Apache-2.0
"""`python -m baton.demo ["question" ...]`: search the Python standard library by meaning."""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import platform
import sys
import time

import numpy as np

from ..cli.measure import interleave
from . import DemoError
from .corpus import standard_library
from .engines import ENGINES, Engine, bucket, installed, pad
from .minilm import MAX_TOKENS, MiniLM, cache_dir, find_minilm, write_whole
from .reference import Reference
from .tokenize import load_tokenizer

# https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 and the quick start of sentence-transformers print
# these.
KNOWN_SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
KNOWN_ANSWER = {(0, 1): 0.6660, (0, 2): 0.1046, (1, 2): 0.1411}
KNOWN_TOLERANCE = 1e-4
LARGEST_DIFFERENCE = 1e-4  # of an embedding's coordinate from the reference; float32 gives about 1e-7

QUESTIONS = (
    "compress a file",
    "what day of the week is it",
    "read and write comma separated spreadsheets",
    "send e-mail",
    "run another program and capture its output",
)


class Progress:
    """One line that overwrites itself, on a terminal only; `with` clears it."""

    def __init__(self, what: str, total: int):
        self.what, self.total, self.shown = what, total, sys.stderr.isatty()

    def __enter__(self):
        return self

    def step(self, done: int, detail: str = "") -> None:
        if self.shown:
            print(f"\r\x1b[K{self.what} {done} of {self.total} {detail}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_):
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def row(title: str, text: str) -> None:
    print(f"{title:<14}{text}", flush=True)


def largest(differences) -> float:
    """The largest magnitude in some arrays; NaN if there is one, which no limit accepts (the built-in max would drop
    it).
    """
    return float(np.max([np.abs(array).max() for array in differences]))


def check_known_answer(engine: Engine, tokenizer, reference: Reference) -> bool:
    """Prints the known answer and the engine's; false where they differ by more than 1e-4."""
    tokens = [tokenizer.encode(text) for text in KNOWN_SENTENCES]
    vectors = [engine.embed(ids) for ids in tokens]
    good = True
    for number, text in enumerate(KNOWN_SENTENCES, 1):
        row("known answer" if number == 1 else "", f"{number}  {text}")
    for (a, b), wanted in KNOWN_ANSWER.items():
        got = float(vectors[a] @ vectors[b])
        right = abs(got - wanted) <= KNOWN_TOLERANCE  # false for NaN
        good &= right
        row("", f"{a + 1} with {b + 1}: {got:.4f}, the model's page says {wanted:.4f}   {'ok' if right else 'WRONG'}")
    difference = largest(v - reference.embed(ids) for v, ids in zip(vectors, tokens, strict=True))
    good &= difference <= LARGEST_DIFFERENCE
    row(
        "",
        f"largest difference from the NumPy reference: {difference:.1e}{'' if difference <= LARGEST_DIFFERENCE else '   WRONG'}",
    )
    return good


def _digest(*parts) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(str(part).encode() + b"\0")
    return digest.hexdigest()[:16]


def _load(path, count: int, width: int) -> np.ndarray | None:
    """Cached embeddings, or None where the file is not there or not as it was written."""
    try:
        with open(path, "rb") as file:
            vectors = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    usable = vectors.shape == (count, width) and vectors.dtype == np.float32 and np.isfinite(vectors).all()
    return vectors if usable else None


def embed_corpus(engine: Engine, model: MiniLM, tokens: list[list[int]], fresh: bool) -> np.ndarray:
    """The embeddings of all texts, float32 (texts, hidden); from the cache where it has them."""
    name = f"corpus-{_digest(model.digest, tokens, engine.name, engine.version)}.npy"
    path = cache_dir() / name
    vectors = None if fresh else _load(path, len(tokens), model.config.hidden_size)
    if vectors is not None:
        row("corpus", f"{len(tokens)} modules, embedded in an earlier run (--fresh does it again)")
        return vectors
    sizes = sorted({bucket(len(ids)) for ids in tokens})
    with Progress("preparing shape", len(sizes)) as progress:
        for done, size in enumerate(sizes, 1):
            progress.step(done, f"({size} tokens)")
            engine.prepare(size)
    vectors = np.empty((len(tokens), model.config.hidden_size), np.float32)
    start = time.perf_counter()
    with Progress("embedding", len(tokens)) as progress:
        for i, ids in enumerate(tokens):
            progress.step(i + 1)
            vectors[i] = engine.embed(ids)
    seconds = time.perf_counter() - start
    row("corpus", f"{len(tokens)} modules embedded in {seconds:.2f} s, {seconds / len(tokens) * 1e3:.1f} ms a sentence")
    try:
        write_whole(path, lambda file: np.save(file, vectors))
    except OSError as error:
        print(f"note: the embeddings are not kept: {error.strerror}: {path}", file=sys.stderr)
    return vectors


def answer(question: str, vector: np.ndarray, names: list[str], texts: list[str], vectors: np.ndarray, top: int) -> None:
    scores = vectors @ vector
    print(f"\n{question}")
    for i in np.argsort(-scores, kind="stable")[:top]:
        summary = texts[i] if len(texts[i]) <= 72 else texts[i][:69] + "..."
        print(f"  {scores[i]:.2f}  {names[i]:<22} {summary}")


def compare(engine: Engine, peer: Engine | None, reference: Reference, tokens: list[list[int]]) -> bool:
    """Times the engines in turns on a sentence of each length, and compares their embeddings with the reference."""
    engines = [engine, peer] if peer else [engine]
    apart: dict[str, list[np.ndarray]] = {e.name: [] for e in engines}
    between = []
    print()
    for size in sorted(engine.used):
        ids = max((ids for ids in tokens if bucket(len(ids)) == size), key=len)  # all are padded to the same size
        inputs, wanted = pad(ids, size), reference.embed(ids)
        outputs = {e.name: e.run(*inputs)[0] for e in engines}
        timings = interleave({e.name: functools.partial(e.run, *inputs) for e in engines}, 4, block_seconds=0.1)
        for e in engines:
            apart[e.name].append(outputs[e.name] - wanted)
        text = ", ".join(f"{name} {timing.min:.2f} (median {timing.median:.2f})" for name, timing in timings.items())
        if peer:
            between.append(outputs[engine.name] - outputs[peer.name])
            text += f", ratio {timings[engine.name].median / timings[peer.name].median:.2f}"
        row("ms a sentence" if size == min(engine.used) else "", f"{size:>3} tokens: {text}")
    for e in engines:
        row("difference", f"{e.name} from the NumPy reference at most {largest(apart[e.name]):.1e}")
    if peer:
        row("", f"{engine.name} from {peer.name} at most {largest(between):.1e}")
    if not largest(apart[engine.name]) <= LARGEST_DIFFERENCE:
        print(f"error: {engine.name} differs from the reference by more than {LARGEST_DIFFERENCE:.0e}", file=sys.stderr)
        return False
    return True


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="python -m baton.demo",
        description="Searches the Python standard library by meaning, with a sentence encoder compiled by Baton.",
        epilog='examples:\n  python -m baton.demo\n  python -m baton.demo "how do I compress a file" --top 5',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("question", nargs="*", help="what to look for (default: five questions)")
    out.add_argument("--engine", choices=ENGINES, default="baton", help="what runs the encoder (default: baton)")
    out.add_argument("--top", type=int, default=3, metavar="N", help="matches to print for each question (default: 3)")
    out.add_argument("--threads", type=int, metavar="N", help="threads to use (default: all this process may use)")
    out.add_argument("--fresh", action="store_true", help="do not use embeddings of an earlier run")
    out.add_argument("--no-compare", action="store_true", help="do not time and compare at the end")
    return out


def run(args: argparse.Namespace) -> int:
    model = find_minilm()
    tokenizer = load_tokenizer(model.folder, MAX_TOKENS)
    engine = ENGINES[args.engine](model, args.threads)
    row("model", f"all-MiniLM-L6-v2, {model.num_parameters / 1e6:.1f} million parameters, run by {engine.name}")
    reference = Reference(model)
    if not check_known_answer(engine, tokenizer, reference):
        print(f"error: {engine.name} does not give the known answer; nothing after it could be believed", file=sys.stderr)
        return 1

    library = standard_library()
    names, texts = list(library), list(library.values())
    tokens = [tokenizer.encode(text) for text in texts]
    row("text", f"docstrings of {len(names)} modules of Python {platform.python_version()}")
    vectors = embed_corpus(engine, model, tokens, args.fresh)
    asked = []
    for question in args.question or QUESTIONS:
        asked.append(tokenizer.encode(question))
        answer(question, engine.embed(asked[-1]), names, texts, vectors, args.top)

    print()
    if engine.compile_seconds:
        row(
            "compiled",
            ", ".join(f"for {what} in {seconds:.2f} s" for what, seconds in sorted(engine.compile_seconds.items())),
        )
    if args.no_compare:
        return 0
    peer = None
    if engine.name != "onnxruntime" and installed("onnxruntime"):
        peer = ENGINES["onnxruntime"](model, args.threads)
    known = [tokenizer.encode(text) for text in KNOWN_SENTENCES]
    return 0 if compare(engine, peer, reference, known + asked + tokens) else 1


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    if args.top < 1 or (args.threads is not None and args.threads < 1):
        parser().error("--top and --threads take numbers from 1 on")
    if not all(question.strip() for question in args.question):
        parser().error("a question needs words")
    try:
        return run(args)
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.help:
            print(f"  help: {error.help}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes
        return 1
    except Exception as error:  # an error of Baton's is a message, not a traceback
        if os.environ.get("BATON_DEBUG") == "1" or not type(error).__module__.startswith("baton"):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
