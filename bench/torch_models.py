# SPDX-License-Identifier: Apache-2.0
"""Models of `transformers`, torchvision and timm, and PyTorch's own table of modules, through Baton beside eager: how many are equal.

    python bench/torch_models.py transformers               60 types, shrunk, random weights
    python bench/torch_models.py torchvision timm modules   80 classifiers; a small model of each of 98 files; `module_db` in both modes
    python bench/torch_models.py detectors --door compile --fallback eager
    python bench/torch_models.py transformers --only bert,t5 --door compile
    python bench/torch_models.py timm --after hrnet         the models behind that one

Packages that are not installed are an error. `--door export` (default) compiles the program of `torch.export`, `--door compile` calls
`torch.compile(backend="baton")`. Exits with 1 where a result differs from eager's.
"""

import argparse
import collections
import copy
import json
import os
import sys
import time
import warnings

import torch
from torch.utils import _pytree as pytree
from torch_families import FAMILIES, ModuleSamples

import baton
from baton.contrib.torch import register
from baton.error import UnsupportedError

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def tensors(value):
    """The tensors of a result, in order."""
    value = value.to_tuple() if hasattr(value, "to_tuple") else value
    return [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def _bound(want):
    """How far elements of a tensor may be: eager's own rounding grows with depth, and with the largest element."""
    return 1e-4 * max(1.0, want.detach().abs().max().item()) if want.is_floating_point() and want.numel() else 0


def close(got, want):
    """None, or how far results are from eager's."""
    if len(got) != len(want):
        return f"{len(got)} results, eager {len(want)}"
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        try:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=_bound(b), equal_nan=True)
        except AssertionError as error:
            return f"result {index}: {' '.join(str(error).split())[:250]}"
    return None


def unlike(got, want):
    """None, or how far detections are from eager's: lists of dictionaries. Their order is one of scores, which rounding makes another among equal ones:
    each of eager's boxes has a partner of its label, with its score, its corners and its mask."""
    if [sorted(g) for g in got] != [sorted(w) for w in want] or any(g[k].shape != w[k].shape for g, w in zip(got, want, strict=True) for k in w):
        return "other fields or counts than eager's"
    for image, (a, b) in enumerate(zip(got, want, strict=True)):
        free = torch.ones(len(a["boxes"]), dtype=torch.bool)
        for i in range(len(b["boxes"])):
            near = free & (a["labels"] == b["labels"][i]) & ((a["scores"] - b["scores"][i]).abs() <= 1e-3)
            found = next((j for j in near.nonzero().flatten().tolist() if _is_partner(a, j, b, i)), None)
            if found is None:
                return f"image {image}: box {i} {b['boxes'][i].tolist()} of score {b['scores'][i]:.4f} has no partner"
            free[found] = False
    return None


def _is_partner(a, j, b, i):
    """Whether two detections are the same, by all but label and score. A key point is the place of a maximum: where two places have one score, either is right."""
    for key in set(b) - {"labels", "scores", "keypoints"}:
        if not torch.allclose(a[key][j], b[key][i], rtol=1e-3, atol=_bound(b[key])):
            return False
    if "keypoints" not in b:
        return True
    apart = (a["keypoints"][j] - b["keypoints"][i]).abs().amax(1) > _bound(b["keypoints"])
    return bool(((a["keypoints_scores"][j] - b["keypoints_scores"][i]).abs()[apart] <= 1e-3).all())


def run_export(module, args, kwargs):
    """The results of the compiled program of `torch.export`."""
    program = torch.export.export(module, args, kwargs, strict=False)
    model = baton.compile(program)
    flat = pytree.tree_leaves((args, kwargs))
    out = model(*[v for v in flat if isinstance(v, torch.Tensor)])
    return [torch.from_dlpack(v) for v in (out if isinstance(out, tuple) else (out,))]


def run_compile(module, args, kwargs, fallback):
    """The results of `torch.compile`."""
    register()
    torch._dynamo.reset()
    return torch.compile(module, backend="baton", options={"fallback": fallback})(*args, **kwargs)


def one(module, args, kwargs, door, fallback):
    """(how it went, why)"""
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            if any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in module.parameters()):
                module(*args, **kwargs)  # lazy modules learn their sizes
                torch.manual_seed(1)
            state = copy.deepcopy(module.state_dict())
            found = pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, module(*args, **kwargs))
            module.load_state_dict(state)
    except Exception as error:  # noqa: BLE001 - eager refuses it, too
        return "eager", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    try:
        torch.manual_seed(1)
        with torch.no_grad():
            got = run_compile(module, args, kwargs, fallback) if door == "compile" else run_export(module, args, kwargs)
    except UnsupportedError as error:
        return "unsupported", "; ".join(f"{n}: {r}" for n, _, r in getattr(error, "missing", [])[:4]) or " ".join(str(error).split())[:300]
    except Exception as error:  # noqa: BLE001 - counted
        cause = next((e for e in _chain(error) if isinstance(e, UnsupportedError)), None)
        if cause is not None:
            return "unsupported", "; ".join(f"{n}: {r}" for n, _, r in getattr(cause, "missing", [])[:4]) or str(cause)[:300]
        kind = "untraced" if type(error).__module__.startswith("torch") else "failed"
        return kind, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if door == "compile" and isinstance(found, list) and found and isinstance(found[0], dict) and "boxes" in found[0]:
        why = unlike(got, found)
    else:
        want = tensors(found)
        why = close(got[: len(want)], want) if door == "export" else close(tensors(got), want)
    return ("wrong", why) if why else ("right", "")


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def run(make, door, fallback="error"):
    """How a model went: the worst of its samples."""
    order = ("wrong", "failed", "unsupported", "untraced", "right", "eager")
    try:
        samples = list(make.samples()) if isinstance(make, ModuleSamples) else [make()]
    except Exception as error:  # noqa: BLE001
        return "eager", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    went = min((one(*sample, door, fallback) for sample in samples), key=lambda went: order.index(went[0]), default=("eager", "no sample"))
    if went[0] == "eager" and isinstance(make, ModuleSamples) and make.dtype != torch.float64:
        make.dtype = torch.float64
        return run(make, door, fallback)
    return went


def main(argv=None):
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--door", choices=["export", "compile"], default="export")
    parser.add_argument("--fallback", choices=["eager", "error"], default="error")
    parser.add_argument("--only", default="")
    parser.add_argument("--after", default="")
    parser.add_argument("--json", default="")
    given = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    wrong, table = 0, {}
    for family in given.families:
        begin, counts = time.perf_counter(), collections.Counter()
        models = FAMILIES[family](set(filter(None, given.only.split(","))))
        names = [name for name, _ in models]
        for name, make in models[names.index(given.after) + 1 if given.after in names else 0 :]:
            torch.manual_seed(0)
            start = time.perf_counter()
            how, why = run(make, given.door, given.fallback)
            counts[how] += 1
            table[f"{family}:{name}"] = (how, why)
            print(f"{how:12} {family}:{name} {time.perf_counter() - start:.1f} s {why}", flush=True)
        wrong += counts["wrong"]
        print(f"{family}, door {given.door}: {dict(counts)} of {sum(counts.values())}, {time.perf_counter() - begin:.0f} s", flush=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
