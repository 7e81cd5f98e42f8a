# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend tests by `baton.compile` alone: nothing of the inputs is known when a model is compiled.

python tests/python/frontend/onnx_alone.py [--alone] [--only PART] [--kinds KINDS] [--json FILE] [--workers N]

With --alone each model is saved, and loaded and run in a process that has the runtime alone: a case that maps the compiler does
not pass. Prints the counts and, for what does not pass, the reasons. Each case has processes of its own, so that none disturbs
another.
"""

import argparse
import collections
import glob
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
SECONDS = 120  # a case


def read(path, type_proto):
    """A value of a data set in a file."""
    import onnx
    from onnx import numpy_helper

    with open(path, "rb") as file:
        data = file.read()
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def plain(value):
    """A value of a data set in memory."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def model_of(case):
    import onnx

    return case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))


def data_sets(case, model):
    """[inputs, outputs] of each data set."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [plain(x) for x in inputs], [plain(x) for x in outputs]
        return
    for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*"))):
        values = []
        for kind, infos in (("input", model.graph.input), ("output", model.graph.output)):
            n = len(glob.glob(os.path.join(folder, f"{kind}_*.pb")))
            values.append([read(os.path.join(folder, f"{kind}_{i}.pb"), infos[i].type) for i in range(n)])
        yield values


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
        got = model(*inputs)
        got = list(got) if outputs != 1 else [got]
        try:
            runner.Runner.assert_similar_outputs(expected, [arrays(v) for v in got], rtol=rtol, atol=atol)
        except AssertionError as error:
            return ("mismatch", str(error)[:300])
    return ("pass", "")


def forked(work, *args):
    """(kind, text) that `work(*args)` gives in a process of its own."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.alarm(SECONDS)
        try:
            result = work(*args)
        except BaseException as error:  # noqa: BLE001 - what it is counts
            result = (type(error).__name__, str(error) or traceback.format_exc(limit=1))
        with os.fdopen(write_end, "w") as out:
            json.dump(result, out)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as given:
        text = given.read()
    _, status = os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ("crash", f"the process ended, status {status}")


def compile_one(case, folder, alone):
    import baton

    model = model_of(case)
    sets = [(list(i), list(o)) for i, o in data_sets(case, model)]
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


class RuntimeProcess:
    """A process that has never seen the compiler; it runs artifacts in children."""

    def __init__(self):
        ask_read, ask_write = os.pipe()
        tell_read, tell_write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(ask_write)
            os.close(tell_read)
            import onnx.backend.test.runner  # noqa: F401 - here, not in each child

            import baton.driver.executable  # noqa: F401 - loads the runtime

            with os.fdopen(ask_read) as asks, os.fdopen(tell_write, "w") as tells:
                for line in asks:
                    tells.write(json.dumps(forked(run_one, line.strip())) + "\n")
                    tells.flush()
            os._exit(0)
        os.close(ask_read)
        os.close(tell_write)
        self.asks, self.tells = os.fdopen(ask_write, "w"), os.fdopen(tell_read)

    def run(self, folder):
        self.asks.write(folder + "\n")
        self.asks.flush()
        return tuple(json.loads(self.tells.readline()))

    def close(self):
        self.asks.close()
        os.waitpid(self.child, 0)


def work(cases, taken, alone, folder, out):
    """Takes cases until none is left; a line for each goes to the file `out`."""
    runs = RuntimeProcess() if alone else None
    import baton

    baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }')  # loads the compiler
    with open(out, "w") as results:
        while True:
            with taken.get_lock():
                i = taken.value
                taken.value += 1
            if i >= len(cases):
                break
            here = os.path.join(folder, str(i))
            os.mkdir(here)
            name, case = cases[i]
            result = forked(compile_one, case, here, alone)
            if result[0] == "saved":
                result = runs.run(here)
            shutil.rmtree(here)
            results.write(json.dumps([name, *result]) + "\n")
            results.flush()
    if runs is not None:
        runs.close()


def outcomes(kinds=KINDS, only="", alone=False, workers=2):
    """{"kind:case": (outcome, why)}"""
    from onnx.backend.test import loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(f"{kind}:{c.name}", c) for kind in kinds for c in loader.load_model_tests(kind=kind) if re.search(only, c.name)]
    seen = collections.Counter()
    cases = []
    for name, case in found:  # some are there twice
        seen[name] += 1
        cases.append((name if seen[name] == 1 else f"{name}#{seen[name]}", case))
    context = multiprocessing.get_context("fork")
    taken = context.Value("q", 0)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, f"results.{k}") for k in range(workers)]
        processes = [context.Process(target=work, args=(cases, taken, alone, folder, file)) for file in files]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        for file in files:
            with open(file) as lines:
                for line in lines:
                    name, kind, text = json.loads(line)
                    results[name] = (kind, text)
    return {name: results.get(name, ("crash", "the worker ended")) for name, _ in cases}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if any(name == "baton" or name.startswith("baton.") for name in sys.modules):
        raise SystemExit("baton is loaded already: the processes that run artifacts would have the compiler")
    results = outcomes(args.kinds.split(","), args.only, args.alone, args.workers)
    counts = collections.Counter(kind for kind, _ in results.values())
    reasons = collections.defaultdict(list)
    for name, (kind, text) in results.items():
        if kind != "pass":
            reasons[(kind, re.sub(r"[0-9]+", "N", text)[:200])].append(name)
    for (kind, text), names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):5} {kind}: {text.strip()}\n      {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}")
    print(f"{counts['pass']} of {len(results)} pass; {dict(counts)}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=0)


if __name__ == "__main__":
    main()
