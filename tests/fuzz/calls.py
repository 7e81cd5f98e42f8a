# SPDX-License-Identifier: Apache-2.0
"""Generated calls of models with open shapes: the result is NumPy's, or there is one error, and the next call works.

    python tests/fuzz/calls.py -n 20000
    python tests/fuzz/calls.py --first 1234 -n 1     # one call again
    ./dev fuzz calls                                 # saved models, by a runtime with AddressSanitizer and UBSan (--sanitize)

Call K is the same on every machine. About a third of the calls have something wrong: a dimension, a rank, a dtype, a value, an
argument too few. With --sanitize the runtime, the virtual machine and the functions of the host are built into build-fuzz; the
compiler is not there. Exit code 1 if a call was neither right nor refused.
"""

import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "open"))
LIBRARIES = ("baton_runtime", "baton_vm", "baton_host")


def spoiled(args, r):
    """The arguments with one thing wrong, or merely odd."""
    import numpy as np

    args = list(args)
    i = int(r.integers(len(args)))
    a = args[i]
    kind = int(r.integers(7))
    if kind == 0:
        del args[i]
    elif kind == 1:
        args[i] = a.astype(r.choice(["float64", "int32", "bool", "uint8"]))
    elif kind == 2:
        args[i] = a[None] if r.integers(2) else a.reshape(-1)
    elif kind == 3:
        args[i] = None if r.integers(2) else "text"
    elif a.dtype.kind == "i" and kind < 6:
        values = a.reshape(-1).copy()
        values[r.integers(values.size)] = r.choice([-1, 0, 1, 7, 8, 1 << 31, 1 << 40, 1 << 62, -(1 << 63), (1 << 63) - 1])
        args[i] = values.reshape(a.shape)
    elif a.ndim:
        shape = list(a.shape)
        axis = int(r.integers(a.ndim))
        shape[axis] = int(r.choice([0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 65, 200]))
        args[i] = np.zeros(shape, a.dtype)
    return args


def run(model, name, number):
    """One call -> right or refused; raises AssertionError where it is neither."""
    import models
    import numpy as np

    import baton

    r = np.random.default_rng(number)
    good = models.TAKES[name](r)
    wrong = r.integers(3) == 0
    args = spoiled(good, r) if wrong else good
    try:
        result = model(*args)
    except (ValueError, TypeError, MemoryError, baton.Error) as error:
        assert wrong, f"refused: {type(error).__name__}: {error}"
        assert not isinstance(error, baton.error.InternalError), f"an internal error: {error}"
        assert str(error).strip(), "an error without a text"
        models.agree(name, model(*good), good)
        return "refused"
    models.agree(name, result, args)
    return "right"


def bounded(gigabytes=6):
    """Bounds the memory of the process: a shape that it could have if all memory were free is one that it cannot have."""
    import resource

    limit = gigabytes << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def alone(folder, first, count):
    """The calls on saved models."""
    import models

    import baton

    names = sorted(models.MODELS)
    return calls({name: baton.load(os.path.join(folder, name + ".so")) for name in names}, first, count)


def calls(compiled, first, count):
    names = sorted(compiled)
    counts, failures = collections.Counter(), []
    for number in range(first, first + count):
        name = names[number % len(names)]
        try:
            counts[run(compiled[name], name, number)] += 1
        except Exception as error:  # noqa: BLE001 - what it is for
            counts["bad"] += 1
            failures.append((number, name, f"{type(error).__name__}: {error}"))
    return counts, failures


def report(counts, failures):
    for number, name, text in failures:
        print(f"call {number} of `{name}`: {text[:400]}\n  repeat: python tests/fuzz/calls.py --first {number} -n 1")
    print(f"calls: {sum(counts.values())} run, {counts['right']} right, {counts['refused']} refused with an error, {counts['bad']} bad", flush=True)
    return 1 if failures else 0


def sanitized(first, count):
    """Runs the calls in a process whose runtime has sanitizers."""
    import models

    import baton

    build = ROOT / "build-fuzz"
    if not (build / "build.ninja").exists():
        options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBATON_SANITIZE=address,undefined", "-DBATON_PYTHON=OFF"]
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "-j2", *LIBRARIES], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        for name in models.MODELS:
            models.compiled(name).save(os.path.join(folder, name + ".so"))
        package = pathlib.Path(baton.__file__).parent
        shutil.copytree(package, os.path.join(folder, "python", "baton"), ignore=shutil.ignore_patterns("__pycache__", "libbaton*.so"))
        for library in LIBRARIES:
            shutil.copy(next(build.rglob(f"lib{library}.so")), os.path.join(folder, "python", "baton", "lib"))
        find = ["g++", "-print-file-name=libasan.so"], ["g++", "-print-file-name=libstdc++.so"]  # the latter, so that throwing is intercepted
        preload = [subprocess.run(f, capture_output=True, text=True, check=True).stdout.strip() for f in find]
        preload.append(os.path.join(folder, "python", "baton", "lib", "libbaton_runtime.so"))  # its thread-locals are those of libbaton_vm, too
        env = {
            **os.environ,
            "PYTHONPATH": os.path.join(folder, "python"),
            "LD_PRELOAD": " ".join(preload),
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        }
        env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096"
        return subprocess.run([sys.executable, __file__, "--saved", folder, "--first", str(first), "-n", str(count)], env=env).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--count", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--saved", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.sanitize:
        return sanitized(args.first, args.count)
    if args.saved:
        return report(*alone(args.saved, args.first, args.count))
    import models

    bounded()
    return report(*calls({name: models.compiled(name) for name in models.MODELS}, args.first, args.count))


if __name__ == "__main__":
    sys.exit(main())
