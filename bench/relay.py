# SPDX-License-Identifier: Apache-2.0
"""Times of Relay's passes: on generated programs of 10,000 and 100,000 nodes, on MiniLM and on ResNet-50.

    python bench/relay.py                          # the table, with exponents of growth
    python bench/relay.py --passes FuseOps,Inline --check
    python bench/relay.py --only folding           # constant folding of ResNet-50, and device planning

A program is a net of wide and deep parts: element-wise chains, reductions, matrix products, tuples, shared values, and lets
with branches and calls of functions. Each figure is the fastest of nine runs; a pass that refuses a program says why.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

BAR_SECONDS, BAR_EXPONENT = 2.0, 1.1


def program(nodes: int) -> str:
    """The text of a well-typed program of about this many expressions."""
    lines, count, at = [], 0, 0
    main = ["%x"]

    def value(text, cost):
        nonlocal count, at
        count += cost
        lines.append(f"  %{at} = {text};")
        at += 1
        return f"%{at - 1}"

    index = 0
    while count < nodes:
        last, other = main[-1], main[-(1 + index % min(len(main), 7))]
        kind = index % 9
        if kind == 0:
            main.append(value(f"add({last}, {other})", 1))
        elif kind == 1:
            main.append(value(f"nn.relu(multiply({last}, 0.5f))", 3))
        elif kind == 2:
            main.append(value(f"nn.dense({last}, %w, units=8)", 1))
        elif kind == 3:
            both = value(f"split({last}, indices_or_sections=2, axis=1)", 1)
            main.append(value(f"concatenate(({both}.1, {both}.0), axis=1)", 4))
        elif kind == 4:
            main.append(value(f"subtract({last}, mean({other}, axis=[1], keepdims=True))", 2))
        elif kind == 5:
            main.append(value(f"reshape(transpose({last}, axes=[1, 0]), newshape=[4, 8])", 2))
        elif kind == 6:
            main.append(value(f"add({other}, add(ones(shape=[8], dtype=\"float32\"), 2f))", 4))
        elif kind == 7:
            main.append(value(f"@twice({last})", 2))
        else:
            main.append(value(f"if (%c) {{ tanh({last}) }} else {{ sigmoid({last}) }}", 3))
        index += 1
    head = "%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32], %c: bool"
    twice = "def @twice(%v: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] { multiply(%v, 2f) }\n"
    return f'#[version = "0.0.5"]\n{twice}def @main({head}) {{\n' + "\n".join(lines) + f"\n  {main[-1]}\n}}\n"


def fastest(action, rounds: int) -> float:
    """Seconds of the fastest run."""
    best = math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
        if best > 1:
            break
    return best


def names() -> list[str]:
    """Every registered pass over Relay but those that print or need another program."""
    from baton._ffi import get_global_func

    return [n for n in map(str, get_global_func("transform.PassNames")()) if not n.startswith(("Test", "tir.")) and n != "PrintIR"]


def models() -> dict[str, object]:
    """The models that are installed, as typed modules."""
    import models as known

    from baton import relay
    from baton.driver.compiler import Source

    out = {}
    for name in ("minilm", "light_resnet50"):
        try:
            model = known.load(name)
            out[name] = relay.transform.InferType()(Source.of(str(model.path)).read(model.shape or {}))
        except Exception as error:  # noqa: BLE001 - an optional model, whatever is wrong with it
            print(f"{name} is left out: {error}", file=sys.stderr)
    return out


def table(passes: list[str], sizes=(10_000, 100_000)) -> int:
    """Prints a row a pass; the number of bars missed."""
    from baton import relay
    from baton.transform import PassContext, Sequential

    modules = {f"{n:,}": relay.transform.InferType()(relay.fromtext(program(n))) for n in sizes} | models()
    print(f"{'pass':<28}" + "".join(f"{name:>16}" for name in modules) + "  exponent (seconds; bar at 100,000: 2 s, 1.1)")
    missed = 0
    for name in passes:
        row, times = f"{name:<28}", {}
        for label, mod in modules.items():
            pass_ = getattr(relay.transform, name)()
            try:
                with PassContext(opt_level=4):
                    times[label] = fastest(lambda p=pass_, m=mod: Sequential([p])(m), 9)
                row += f"{times[label]:16.4f}"
            except Exception as error:  # noqa: BLE001 - what it says goes into the table
                row += f"{'refused':>16}"
                print(f"{name} on {label}: {str(error).splitlines()[0][:160]}", file=sys.stderr)
        small, large = (times.get(f"{n:,}") for n in sizes)
        if small and large:
            exponent = math.log(large / small) / math.log(sizes[1] / sizes[0])
            over = large > BAR_SECONDS or (exponent > BAR_EXPONENT and large > 0.02)
            missed += over
            row += f"  {exponent:8.2f}" + ("  missed" if over else "")
        print(row, flush=True)
    return missed


def folding() -> int:
    """Constant folding of ResNet-50 with its batch-normalisation arithmetic, and device planning a node."""
    from baton import relay
    from baton.transform import PassContext, Sequential

    missed = 0
    found = models().get("light_resnet50")
    if found is not None:
        with PassContext(opt_level=3):
            mod = Sequential([relay.transform.SimplifyInference(), relay.transform.InferType()])(found)
            seconds = fastest(lambda: relay.transform.FoldConstant()(mod), 3)
        missed += seconds > 1
        print(f"FoldConstant, ResNet-50 after SimplifyInference: {seconds:.3f} s (bar 1{', missed' if seconds > 1 else ''})")
    mod = relay.transform.InferType()(relay.fromtext(program(100_000)))
    nodes = sum(int(relay.analysis.count_nodes(f)) for f in mod.functions.values())
    rate = nodes / fastest(lambda: relay.transform.PlanDevices()(mod), 5)
    missed += rate < 500_000
    print(f"PlanDevices: {rate:,.0f} nodes a second (bar 500,000{', missed' if rate < 500_000 else ''})")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["table", "folding"], help="one part alone")
    parser.add_argument("--passes", help="names of passes, by commas (default: all)")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bar is missed")
    args = parser.parse_args()
    try:
        import baton

        _ = baton.compile
    except (ImportError, AttributeError) as error:
        print(f"error: Baton is not ready: {error}; build it first: ./dev build", file=sys.stderr)
        return 1
    known = names()
    chosen = args.passes.split(",") if args.passes else known
    for name in chosen:
        if name not in known:
            parser.error(f"there is no pass `{name}`; there are {', '.join(known)}")
    missed = 0
    if args.only != "folding":
        missed += table(chosen)
    if args.only != "table":
        missed += folding()
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
