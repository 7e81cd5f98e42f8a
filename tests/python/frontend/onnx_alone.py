# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend tests by `baton.compile` alone: nothing of the inputs is known when a model is compiled.

python tests/python/frontend/onnx_alone.py [--alone] [--only PART] [--json FILE] [--limit N]

With --alone each model is saved, and loaded and run in a process that has the runtime alone: a case that maps the compiler does
not pass. Prints the counts and, for what does not pass, the reasons.
"""

import argparse
import collections
import json
import os
import pickle
import re
import sys
import tempfile
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def forked(work, *args):
    """(kind, text) that `work(*args)` gives in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            result = work(*args)
        except BaseException as error:  # noqa: BLE001 - what it is counts
            result = (type(error).__name__, str(error) or traceback.format_exc(limit=1))
        with os.fdopen(write, "w") as out:
            json.dump(result, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as given:
        text = given.read()
    os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ("crash", "the process ended")


def arrays(value):
    """A result as NumPy arrays, lists and what forms decode to."""
    if hasattr(value, "numpy"):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return [arrays(v) for v in value]
    return value


def check(model, sets, outputs, rtol, atol):
    """Runs the data sets and compares as upstream does."""
    from onnx.backend.test import runner

    for inputs, expected in sets:
        got = model(*[v for v in inputs])
        got = list(got) if outputs != 1 else [got]
        try:
            runner.Runner.assert_similar_outputs(expected, [arrays(v) for v in got], rtol=rtol, atol=atol)
        except AssertionError as error:
            return ("mismatch", str(error)[:300])
    return ("pass", "")


def compile_one(case, folder, alone):
    import onnx
    import test_onnx_suite as suite

    import baton

    model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))
    sets = [(list(i), list(o)) for i, o in suite.data_sets(case, model)]
    made = baton.compile(model)
    if not alone:
        return check(made, sets, len(model.graph.output), case.rtol, case.atol)
    made.save(os.path.join(folder, "model.so"))
    with open(os.path.join(folder, "case.pickle"), "wb") as file:
        pickle.dump((sets, len(model.graph.output), case.rtol, case.atol), file)
    return ("saved", "")


def run_one(folder):
    import baton

    model = baton.load(os.path.join(folder, "model.so"))
    with open(os.path.join(folder, "case.pickle"), "rb") as file:
        sets, outputs, rtol, atol = pickle.load(file)
    result = check(model, sets, outputs, rtol, atol)
    with open("/proc/self/maps") as maps:
        mapped = re.findall(r"libbaton\.so|libLLVM", maps.read())
    return ("compiler", "it was loaded") if mapped and result[0] == "pass" else result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default="node,simple,pytorch-converted,pytorch-operator")
    parser.add_argument("--json")
    parser.add_argument("--limit", type=int, default=1 << 30)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    from onnx.backend.test import loader

    results = {}
    cases = [c for kind in args.kinds.split(",") for c in loader.load_model_tests(kind=kind) if args.only in c.name][: args.limit]
    # The process that runs artifacts has never seen the compiler.
    with tempfile.TemporaryDirectory() as folder:
        ask_read, ask_write = os.pipe()
        tell_read, tell_write = os.pipe()
        if os.fork() == 0:
            import baton.driver.executable  # noqa: F401 - loads the runtime

            with os.fdopen(ask_read) as asks, os.fdopen(tell_write, "w") as tells:
                os.close(ask_write)
                for line in asks:
                    tells.write(json.dumps(forked(run_one, line.strip())) + "\n")
                    tells.flush()
            os._exit(0)
        asks, tells = os.fdopen(ask_write, "w"), os.fdopen(tell_read)
        import baton

        baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }')  # loads the compiler
        for i, case in enumerate(cases):
            here = os.path.join(folder, str(i))
            os.mkdir(here)
            result = forked(compile_one, case, here, args.alone)
            if result[0] == "saved":
                asks.write(here + "\n")
                asks.flush()
                result = tuple(json.loads(tells.readline()))
            results[case.name] = result
            for name in os.listdir(here):
                os.unlink(os.path.join(here, name))
            if args.json and i % 50 == 0:
                json.dump(results, open(args.json, "w"))
        asks.close()
    counts = collections.Counter(kind for kind, _ in results.values())
    reasons = collections.defaultdict(list)
    for name, (kind, text) in results.items():
        if kind != "pass":
            reasons[(kind, re.sub(r"[0-9]+", "N", text)[:160])].append(name)
    for (kind, text), names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):5} {kind}: {text.strip()}\n      {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}")
    print(f"{counts['pass']} of {len(results)} pass; {dict(counts)}")
    if args.json:
        json.dump(results, open(args.json, "w"))


if __name__ == "__main__":
    main()
