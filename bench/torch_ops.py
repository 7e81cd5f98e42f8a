# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own table of operators (`op_db`) through Baton: what is right, what is not supported, and what is wrong.

    python bench/torch_ops.py                        float32, 8 samples an entry
    python bench/torch_ops.py --dtype int64 --samples 4 --only index_put,scatter
    python bench/torch_ops.py --json ops.json
    python bench/torch_ops.py --fallback eager --peer inductor,openvino --samples 1

With `--fallback eager` operators without a rule stay with PyTorch, and what is not a graph goes through `torch.compile`. `--peer` counts other
compilers on the same samples: Inductor by `torch.compile`, OpenVINO by its converter of `torch.export`'s programs.
Each sample is traced to functional ATen calls, converted, compiled and compared with eager. An entry is right when all its samples
are. Random operators, and entries whose results PyTorch leaves open (`empty`), are compared by shape and dtype. Exits with 1 where
anything is wrong.
"""

import argparse
import collections
import itertools
import json
import logging
import sys
import time
import warnings

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from baton.contrib.torch import register
from baton.contrib.torch.compiled import compile_graph
from baton.contrib.torch.decompose import house_rows
from baton.contrib.torch.islands import split
from baton.contrib.torch.reports import GraphReport
from baton.error import UnsupportedError

SEED = 42  # the one that PyTorch's table gives its random operators
NARROW = (torch.bfloat16, torch.float16)
# Values that PyTorch does not define: shapes and dtypes alone are compared.
# Which of equal elements comes first is left open, too: what the places point at is compared.
OPEN_ORDER = {"sort", "argsort", "topk", "kthvalue", "median", "nanmedian", "mode", "msort"}
OPEN_VALUES = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
# Relative and absolute bounds by dtype; float32 as `torch.testing` has them, loosened where sums are longer than eager's blocks.
BOUNDS = {
    torch.float64: (1e-6, 1e-7),
    torch.float32: (1e-4, 1e-5),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float16: (5e-3, 5e-3),
    torch.complex128: (1e-6, 1e-7),
    torch.complex64: (1e-4, 1e-5),
}


def table():
    """The decompositions of the house as a dict, for `make_fx`."""
    rows = house_rows()
    # `functionalize` does not know that it changes statistics in place; AOTAutograd takes it apart before.
    from torch._decomp.decompositions import native_batch_norm_decomposition

    rows[torch.ops.aten.native_batch_norm.default] = native_batch_norm_decomposition
    return rows


def traced(function, args, rows):
    """(the graph of a function of tensors, as functional calls of ATen)"""
    graph = make_fx(torch.func.functionalize(function), decomposition_table=rows, tracing_mode="fake")(*args)
    # Decompositions write in place; a second round makes that functional, too.
    graph = make_fx(torch.func.functionalize(graph), decomposition_table=rows, tracing_mode="fake")(*args)
    for node in list(graph.graph.nodes):
        # A value written back into an argument at the end is not a result; AOTAutograd does it outside of graphs, too.
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            node.replace_all_uses_with(node.args[1])
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()
    return graph


def as_function(op, sample, tensors_alone=True):
    """(a function of the sample's tensors, the tensors). It gives a list of its results, but for those that are not tensors."""
    flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]

    def call(*tensors):
        values = list(flat)
        for i, tensor in zip(places, tensors, strict=True):
            values[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(values, spec)
        return [v for v in pytree.tree_leaves(op.op(first, *args, **kwargs)) if isinstance(v, torch.Tensor) or not tensors_alone]

    return call, [flat[i].detach() for i in places]


def differs(got, want):
    """Returns the difference between a result and eager's; None if nothing is."""
    if tuple(got.shape) != tuple(want.shape):
        return f"shape {tuple(got.shape)}, eager {tuple(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, eager {want.dtype}"
    rtol, atol = BOUNDS.get(want.dtype, (0, 0))
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return None


def pointed_at(places, source, sample):
    """The elements at places along the sample's axis; values as they are."""
    if places.dtype != torch.int64:
        return places
    numbers = [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, int) and not isinstance(v, bool)]
    for axis in (sample.kwargs.get("dim"), *numbers[::-1], -1):
        if axis is None or not -source.ndim <= axis < source.ndim:
            continue
        wide = places if places.ndim == source.ndim else places.unsqueeze(axis)
        fits = all(a == b for d, (a, b) in enumerate(zip(wide.shape, source.shape, strict=True)) if d != axis % source.ndim)
        if fits and wide.numel() and 0 <= int(wide.min()) and int(wide.max()) < source.shape[axis]:
            return torch.take_along_dim(source, wide, axis)
    return places


def leaves(values):
    """All that comes out, tensors or not."""
    return pytree.tree_leaves(values)


def whole(function, backend, tensors, **given):
    """Returns the results of `torch.compile` for a function that breaks graphs or gives no tensors."""
    torch._dynamo.reset()
    torch.manual_seed(SEED)
    return leaves(torch.compile(function, backend=backend, **given)(*[t.clone() for t in tensors]))


def by_baton(call, tensors, rows, fallback):
    """Returns Baton's results for a function of tensors. Raises Untraced where PyTorch makes no graph of it."""
    try:
        graph = traced(call, tensors, rows)
    except Exception as error:  # PyTorch itself cannot trace it
        if fallback == "eager":
            return whole(call, "baton", tensors)
        raise Untraced(" ".join(repr(error).split())[:200]) from None
    if fallback == "error":
        return compile_graph(graph)(*tensors)
    run = split(graph, lambda part, held: compile_graph(part, held), {}, fallback, GraphReport("inference", len(graph.graph.nodes)))
    torch.manual_seed(SEED)
    return list(run(*[t.clone() for t in tensors]))


class Untraced(Exception):
    """PyTorch makes no graph of a function."""


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return tuple(self.function(*tensors))


def by_openvino(call, tensors, *_):
    """Returns OpenVINO's results; its converter refuses an operator that it lacks."""
    import openvino

    made = openvino.convert_model(torch.export.export(Function(call), tuple(tensors)))
    out = openvino.compile_model(made, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([t.detach().contiguous().numpy() for t in tensors])
    return [torch.from_numpy(np.array(out[i])) for i in range(len(out))]


def by_inductor(call, tensors, *_):
    """Returns Inductor's results for the whole function as one graph."""
    return whole(call, "inductor", tensors, fullgraph=True)


ENGINES = {"baton": by_baton, "openvino": by_openvino, "inductor": by_inductor}


def run_sample(op, sample, rows, fallback="error", engine="baton"):
    """(how it went, why)"""
    call, tensors = as_function(op, sample)
    torch.manual_seed(SEED)
    try:
        want = call(*[t.clone() for t in tensors])
    except Exception as error:  # noqa: BLE001 - eager refuses it, too
        return "eager", repr(error)[:200]
    if not want and fallback == "error":
        return "eager", "no tensor comes out"
    try:
        if want:
            out = ENGINES[engine](call, tensors, rows, fallback)
        else:
            call, _ = as_function(op, sample, False)
            torch.manual_seed(SEED)
            want, out = call(*tensors), whole(call, "baton", tensors)
    except Untraced as error:
        return "untraced", str(error)
    except UnsupportedError as error:
        missing = getattr(error, "missing", None)
        return "unsupported", "; ".join(sorted({f"{n}: {r}" for n, _, r in missing})) if missing else " ".join(str(error).split())[:300]
    except Exception as error:  # noqa: BLE001 - counted
        # A peer says no in many ways; none of them is a wrong number.
        return "failed" if engine == "baton" else "unsupported", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if len(out) != len(want):
        return "wrong", f"{len(out)} results, eager {len(want)}"
    if op.name in OPEN_VALUES:
        return ("right", "") if [v.shape for v in out] == [v.shape for v in want] else ("wrong", "shapes")
    if op.name in OPEN_ORDER and tensors[0].ndim:
        out, want = ([pointed_at(v, tensors[0], sample) for v in values] for values in (out, want))
    for index, (got, wanted) in enumerate(zip(out, want, strict=True)):
        if not isinstance(wanted, torch.Tensor):
            if got != wanted:
                return "wrong", f"{got}, eager {wanted}"
            continue
        why = differs(got, wanted)
        if why and not (wanted.dtype in (*NARROW, torch.float32) and no_worse(call, tensors, index, got, wanted)):
            return "wrong", why
    return "right", ""


def no_worse(call, tensors, index, got, want):
    """Whether a result is as near as eager's own to that of a wider dtype: a narrow one to twice eager's error, float32 to just that."""
    narrow = want.dtype in NARROW
    wide = torch.float32 if narrow else torch.float64
    exact = call(*[t.to(wide) if t.dtype in (*NARROW, torch.float32) else t for t in tensors])[index].double()
    got, want = got.double(), want.double()
    if got.shape != exact.shape or not torch.equal(torch.isfinite(got), torch.isfinite(exact)):
        return False
    finite = torch.isfinite(exact) & torch.isfinite(want)
    ours, eagers = ((v[finite] - exact[finite]).abs().max().item() if finite.any() else 0.0 for v in (got, want))
    return ours <= (2 if narrow else 1) * eagers


def run(dtype, samples, only=None, verbose=False, fallback="error", engine="baton"):
    """entry -> list of (how it went, why) of its samples"""
    rows, found = table(), {}
    for op in op_db:
        if dtype not in op.supported_dtypes("cpu") or only and not any(o == op.full_name or o == op.name for o in only):
            continue
        found[op.full_name] = went = []
        try:
            made = op.sample_inputs("cpu", dtype)
            given = list(itertools.islice(made, samples))
            getattr(made, "close", list)()
        except Exception as error:  # noqa: BLE001
            went.append(("eager", repr(error)[:200]))
            continue
        for sample in given:
            if verbose:
                print(op.full_name, sample, flush=True)
            went.append(run_sample(op, sample, rows, fallback, engine))
    return found


def verdict(went):
    """How an entry went: the worst of its samples."""
    kinds = {kind for kind, _ in went}
    for kind in ("wrong", "failed", "unsupported", "untraced"):
        if kind in kinds:
            return kind
    return "right" if "right" in kinds else "eager"


def main(argv=None):
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--fallback", default="error", choices=["error", "eager"])
    parser.add_argument("--peer", default="", help="inductor, openvino")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args(argv)
    peers = list(filter(None, given.peer.split(",")))
    if unknown := [name for name in peers if name not in ENGINES]:
        parser.error(f"--peer: no {unknown[0]!r}; there are inductor, openvino")
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch's and OpenVINO's pages about what they refuse
    register()
    counts = [counted(engine, given) for engine in ("baton", *peers)]
    return 1 if counts[0]["wrong"] else 0


def counted(engine, given):
    """Prints what an engine does; gives how many entries went which way."""
    torch.manual_seed(0)
    np.random.seed(0)
    begin = time.perf_counter()
    only = set(filter(None, given.only.split(",")))
    found = run(getattr(torch, given.dtype), given.samples, only, given.verbose, given.fallback if engine == "baton" else "error", engine)
    counts = collections.Counter(verdict(went) for went in found.values())
    lacking = collections.Counter()
    for name, went in found.items() if engine == "baton" or given.only else ():
        kind = verdict(went)
        for k, why in dict.fromkeys((k, w) for k, w in went if k not in ("right", "eager")):
            if kind in ("wrong", "failed") or given.only:
                print(f"{kind:12} {name}: {k}: {why}")
            elif k == "unsupported":
                lacking[why] += 1
    for why, count in lacking.most_common():
        print(f"{count:4} entries: {why}")
    head = f"{engine}, fallback {given.fallback}" if engine == "baton" else engine
    samples = sum(map(len, found.values()))
    print(f"{head}: {given.dtype}: {dict(counts)} of {len(found)} entries, {samples} samples, {time.perf_counter() - begin:.0f} s", flush=True)
    if given.json:
        with open(given.json if engine == "baton" else f"{engine}_{given.json}", "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return counts


if __name__ == "__main__":
    sys.exit(main())
