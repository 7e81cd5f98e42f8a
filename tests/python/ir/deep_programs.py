# SPDX-License-Identifier: Apache-2.0
"""Every registered pass over programs that are very deep, in a thread with little stack: reliability figure 11.

    python tests/python/ir/deep_programs.py                              # 1,000,000 deep, 8 MiB and 512 KiB of stack, every shape
    python tests/python/ir/deep_programs.py --depth 100000 --stack 512 --shapes calls,lets --passes FuseOps

Prints a line of JSON before a pass starts and one when it has ended, so that what a crash ends is named. A pass may refuse a program with an
error; it may not crash.

    python tests/python/ir/deep_programs.py --stack 512 --linear         # and a tenth of each: time linear

--linear times a tenth of the program too, in turns, three times the tenth and once the whole, both in the time of the process (its own and
the system's work for it), the best of two turns. The whole is to take at most twelve times as long. A row above that gets up to four turns
more, since what else a machine does only adds to a time. The last line counts the rows and lists those above; the exit status is 1 if there
are any.
What a pass prints goes to the null device, in this and in all runs: how long a file system takes to keep it is no time of the pass. Of a
million nodes hardly any is in a cache of 32 MB, of 100,000 most are, so a pass that waits for each node does not get below twelve.
"""

import argparse
import contextlib
import json
import os
import sys
import threading
import time

import baton as tvm
from baton import relay, tir
from baton._ffi import get_global_func

# Chains of dataflow, bindings and data as text.
HEAD = '#[version = "0.0.5"]\n'
TYPE = "Tensor[(2), float32]"


def calls(n):
    lines = ["  %0 = add(%x, %x);", *(f"  %{i} = {'tanh(%' if i % 3 else 'add(%x, %'}{i - 1});" for i in range(1, n))]
    return HEAD + f"def @main(%x: {TYPE}) {{\n" + "\n".join(lines) + f"\n  exp(%{n - 1})\n}}\n"


def lets(n):
    lines = [f"  let %v{i} = add(%x, %{f'v{i - 1}' if i else 'x'});" for i in range(n)]
    return HEAD + f"def @main(%x: {TYPE}) {{\n" + "\n".join(lines) + f"\n  %v{n - 1}\n}}\n"


def tuples(n):
    """Tuples within tuples would have types that are as deep; half of them are taken apart again."""
    lines = ["  %0 = (%x, %x);"]
    for i in range(1, n):
        lines.append(f"  %{i} = " + (f"%{i - 1}.0;" if i % 2 else f"(%{i - 1}, %x);"))
    return HEAD + f"def @main(%x: {TYPE}) {{\n" + "\n".join(lines) + f"\n  %{n - 1}\n}}\n"


def nested_tuples(n):
    lines = ["  %0 = (%x, %x);", *(f"  %{i} = (%{i - 1}, %x);" for i in range(1, n))]
    return HEAD + f"def @main(%x: {TYPE}) {{\n" + "\n".join(lines) + f"\n  %{n - 1}\n}}\n"


# Nested 50,000 deep a text is refused, so these are made.


def _var():
    return relay.var("x", shape=(2,), dtype="float32")


def ifs(n):
    x, c = _var(), relay.var("c", shape=(), dtype="bool")
    e = x
    for _ in range(n):
        e = relay.If(c, x, e)
    return tvm.IRModule({"main": relay.Function([x, c], e)})


def functions(n):
    """Functions in functions, each called where it stands."""
    x = _var()
    e = x
    for _ in range(n):
        e = relay.Call(relay.Function([], e), [])
    return tvm.IRModule({"main": relay.Function([x], e)})


def nested_functions(n):
    """Functions that return functions: their types are as deep."""
    x = _var()
    e = x
    for _ in range(n):
        e = relay.Function([], e)
    return tvm.IRModule({"main": relay.Function([x], e)})


def called(n):
    lines = [f"  let %f{i} = fn (%y{i}: {TYPE}) {{ {'tanh' if i % 2 else 'exp'}(%y{i}) }};\n  let %v{i} = %f{i}(%{f'v{i - 1}' if i else 'x'});"
             for i in range(n // 2)]  # fmt: skip
    return HEAD + f"def @main(%x: {TYPE}) {{\n" + "\n".join(lines) + f"\n  %v{n // 2 - 1}\n}}\n"


def cases(n):
    """Not deep, but long: a match whose cases are told apart within tuples. A check of at most 100,000 takes n / 20."""
    n = max(2, n // 20)
    fields = ", ".join(f"C{i}({TYPE})" if i % 2 else f"C{i}" for i in range(n))
    clauses = ",\n".join(f"    (_, (C{i}(%y{i}), _)) => %y{i}" if i % 2 else f"    (_, (C{i}, %z{i})) => %z{i}" for i in range(n))
    return HEAD + f"type T {{\n  {fields}\n}}\ndef @main(%x: {TYPE}) {{\n  match ((%x, (C0, %x))) {{\n{clauses}\n  }}\n}}\n"


RELAY = {"calls": calls, "lets": lets, "tuples": tuples, "nested_tuples": nested_tuples, "ifs": ifs, "functions": functions,
         "called": called, "nested_functions": nested_functions, "cases": cases}  # fmt: skip


# PrimFuncs: nested expressions, bindings, branches, loops, and statements in a row.


def _func(body, params):
    return tvm.IRModule({"main": tir.PrimFunc(params, body)})


def sums(n):
    x = tir.Var("x", "int64")
    e = x
    for i in range(n):
        e = tir.Add(e, x) if i % 2 else tir.Mul(e, x)
    return _func(tir.Evaluate(e), [x])


def statements(n):
    x = tir.Var("x", "int64")
    return _func(tir.SeqStmt([tir.Evaluate(x + i) for i in range(n)]), [x])


def bindings(n):
    x = tir.Var("x", "int64")
    names = [tir.Var(f"v{i}", "int64") for i in range(n)]
    body = tir.Evaluate(names[-1])
    for i in range(n - 1, -1, -1):
        body = tir.LetStmt(names[i], (names[i - 1] if i else x) + 1, body)
    return _func(body, [x])


def branches(n):
    x = tir.Var("x", "int64")
    body = tir.Evaluate(x)
    for i in range(n):
        body = tir.IfThenElse(x > i, body, None)
    return _func(body, [x])


def loops(n):
    x = tir.Var("x", "int64")
    body = tir.Evaluate(x)
    for i in range(n):
        body = tir.For(tir.Var(f"i{i}", "int64"), 0, x, 0, body)
    return _func(body, [x])


def ones(n):
    """Loops that run once, and names of numbers: nothing is left of either."""
    x = tir.Var("x", "int64")
    names = [tir.Var(f"i{i}", "int64") for i in range(n)]
    body = tir.Evaluate(tir.call_extern("int32", "f", x + names[0] + names[-1]))
    for i in range(n):
        body = tir.LetStmt(names[i], tir.const(i, "int64"), body) if i % 4 == 3 else tir.For(names[i], 0, 1, 0, body)
    return _func(body, [x])


# What takes time with the square of the depth: text says the type of each function, which is as deep as the program, so what PrintIR prints
# is of that size. It runs 3,000 deep, which is more than either stack has room for one call after the other.
SQUARE = {"nested_functions": {"PrintIR"}}
SHALLOW = 3_000

LOOPS = {"sums": sums, "statements": statements, "bindings": bindings, "branches": branches, "loops": loops, "ones": ones}


def names(prim_funcs):
    every = [str(n) for n in get_global_func("transform.PassNames")() if not str(n).startswith("Test")]
    return [n for n in every if n.startswith("tir.") == prim_funcs]


QUIET = contextlib.redirect_stdout(open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process runs


def say(**row):
    print(json.dumps(row), file=sys.__stdout__, flush=True)


def module_of(shape, depth):
    if shape in LOOPS:
        return LOOPS[shape](depth)
    made = RELAY[shape](depth)
    return relay.transform.InferType()(relay.fromtext(made) if isinstance(made, str) else made)


def seconds_of(name, mod):
    """(seconds, what it was refused with)."""
    one, start = get_global_func("transform.GetPass")(name), time.process_time()
    try:
        with QUIET, tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
            out = one(mod)
        took = time.process_time() - start
        del out
        return took, None
    except tvm.Error as error:
        return time.process_time() - start, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"


TIMES = 12


def timed(name, small, mod):
    """(seconds of the whole, of the tenth, what it was refused with): the best of some turns."""
    tenth, whole, refused = [], [], None
    for turn in range(6):
        tenth += [seconds_of(name, small)[0] for _ in range(3)]
        took, refused = seconds_of(name, mod)
        whole.append(took)
        if turn and min(whole) <= TIMES * min(tenth):
            break
    return min(whole), min(tenth), refused


def run(shape, depth, passes, linear, rows):
    """Appends (shape, pass, how many times as long) to `rows` for what is timed."""
    small, mod = module_of(shape, depth // 10) if linear else None, module_of(shape, depth)
    shallow = module_of(shape, min(depth, SHALLOW)) if shape in SQUARE else None
    for name in passes or names(shape in LOOPS):
        if name.startswith("tir.") != (shape in LOOPS):
            continue
        say(shape=shape, start=name)
        row, square = {}, name in SQUARE.get(shape, ())
        if linear and not square:
            took, tenth, refused = timed(name, small, mod)
            row = {"tenth": round(tenth, 5), "times": round(took / tenth, 1), "ns": round(took / depth * 1e9)}
            rows.append((shape, name, round(took / tenth, 2)))
        else:
            took, refused = seconds_of(name, shallow if square else mod)
        say(shape=shape, done=name, seconds=round(took, 4), refused=refused, **row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, default=1_000_000)
    parser.add_argument("--stack", default="8192,512", help="KiB of stack of the thread that runs the passes, with commas")
    parser.add_argument("--shapes", default=",".join([*RELAY, *LOOPS]))
    parser.add_argument("--passes", help="names, with commas (default: all)")
    parser.add_argument("--linear", action="store_true", help="also time a tenth of it")
    args = parser.parse_args()
    sys.setswitchinterval(10)
    rows = []
    for kib in map(int, args.stack.split(",")):
        for shape in args.shapes.split(","):
            threading.stack_size(kib << 10)
            failed = []

            def work(shape=shape, failed=failed):
                try:
                    run(shape, args.depth, args.passes.split(",") if args.passes else None, args.linear, rows)
                except BaseException as error:  # noqa: BLE001 - is thrown where the exit code is made
                    failed.append(error)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            if failed:
                raise failed[0]
    above = [row for row in rows if row[2] > TIMES]
    if args.linear:
        say(rows=len(rows), above=above)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
