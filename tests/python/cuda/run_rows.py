# SPDX-License-Identifier: Apache-2.0
"""Runs rows of `tests/relay/op` on a CUDA device that the stand-in gives: `run_rows.py PART PARTS`. Prints, as JSON, how many rows ran, how
many launches that took, the rows without a kernel, those too large for an interpreter, and those that differ from NumPy."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "opencl"), str(HERE.parents[2] / "tools"), str(HERE.parents[1] / "relay/op")]

import numpy as np  # noqa: E402
import on_interpreter  # noqa: E402
from cases import _flat, agree, call  # noqa: E402
from test_ptxas import compiled_rows, drawn  # noqa: E402

import baton  # noqa: E402
from baton import relay  # noqa: E402

MOST_ELEMENTS = 60_000  # of an input


def elements(array):
    return sum(map(elements, array)) if isinstance(array, list) else array.size


def main(part, parts):
    on_interpreter.install()
    device, ran, without, large, wrong = baton.cuda(0), 0, 0, 0, []
    for number, (case, attrs) in enumerate(compiled_rows()):
        if number % parts != part:
            continue
        name = f"{case.op} {attrs}"[:300]
        arrays = drawn(case)
        if elements(arrays) > MOST_ELEMENTS:
            large += 1
            continue
        with np.errstate(all="ignore"):
            want = case.value(*arrays, **attrs)
        want = list(want) if isinstance(want, (tuple, list)) else [want]
        expr, variables, values = call(case.op, arrays, attrs, case.constant)
        on_interpreter.FAULTS.clear()
        launches = len(on_interpreter.LAUNCHES)
        try:
            executor = relay.create_executor("graph", baton.IRModule.from_expr(relay.Function(variables, expr)), device=device, target="cuda")
            got = [x.numpy() for x in _flat(executor.evaluate()(*values))]
            if on_interpreter.FAULTS:
                raise on_interpreter.FAULTS[0]
            agree(got, want, case.rtol, case.atol, name)
        except (AssertionError, Exception) as e:  # noqa: BLE001
            wrong.append(f"{name}: {type(e).__name__}: {str(e)[:400]}")
            continue
        ran += 1
        without += len(on_interpreter.LAUNCHES) == launches
    print(json.dumps({"ran": ran, "without": without, "large": large, "launches": len(on_interpreter.LAUNCHES), "wrong": wrong}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
