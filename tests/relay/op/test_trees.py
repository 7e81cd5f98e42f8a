# SPDX-License-Identifier: Apache-2.0
"""Operators of scikit-learn's models: decision trees, probabilities of classes from those of pairs."""

import numpy as np
from cases import Case, Reject, Value, each, f32, f64, rejects, table

# Two trees: x0 <= 0 ? (x1 == 1 ? a : b) : c, and x2 <= -0.5 ? d : (x0 <= 1 ? e : f). Columns: feature, true, false, flags, begin, end.
SPLITS = np.array([0, 1, 0, 0, 0, -0.5, 0, 1, 0, 0], "float32")
NODES = np.array(
    [
        [0, 1, 4, 0, 0, 0],
        [1, 2, 3, 2, 0, 0],
        [0, 2, 2, 0, 0, 2],
        [0, 3, 3, 0, 2, 3],
        [0, 4, 4, 0, 3, 4],
        [2, 6, 7, 1, 0, 0],
        [0, 6, 6, 0, 4, 5],
        [0, 8, 9, 0, 0, 0],
        [0, 8, 8, 0, 5, 6],
        [0, 9, 9, 0, 6, 6],
    ],
    "int32",
)
ROOTS = np.array([0, 5], "int32")
WITH_STEPS = np.array([[0, 2], [5, 2]], "int32")
TARGETS, WEIGHTS = np.array([0, 1, 1, 0, 1, 0], "int32"), np.array([0.5, -1, 2, 3, -4, 0.25], "float32")
JOIN = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def trees(x, splits, nodes, roots, targets, weights, num_targets=1, depth=1, flags=3, aggregate="sum"):
    roots = [(root, depth) for root in roots] if roots.ndim == 1 else [(root, min(steps, depth)) for root, steps in roots]
    out = np.zeros((len(x), num_targets), x.dtype)
    for n, row in enumerate(x):
        seen = set()
        for node, steps in roots:
            for _ in range(steps):
                feature, yes, no, has = nodes[node][:4]
                v, has = row[feature], has & flags
                goes = has & 1 if np.isnan(v) else v == splits[node] if has & 2 else v <= splits[node]
                node = yes if goes else no
            for k in range(nodes[node][4], nodes[node][5]):
                t = targets[k]
                out[n, t] = JOIN[aggregate](out[n, t], weights[k]) if t in seen or aggregate == "sum" else weights[k]
                seen.add(t)
    return out


def coupled(r):
    """Probabilities whose differences from the pairs' are least, solved directly: Qp = b 1, sum p = 1."""
    out = []
    for pairs in r.astype("float64"):
        n = len(pairs)
        q = -pairs.T * pairs
        for i in range(n):
            q[i, i] = sum(pairs[j, i] ** 2 for j in range(n) if j != i)
        whole = np.block([[q, -np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        out.append(np.linalg.solve(whole, [0] * n + [1])[:n])
    return np.array(out).astype(r.dtype)


def pairs(n, k, dtype):
    p = np.random.default_rng(3).uniform(0.05, 0.95, (n, k, k))
    return np.where(np.arange(k)[:, None] < np.arange(k), p, 1 - np.swapaxes(p, 1, 2)).astype(dtype)


X = np.array([[-1, 1, 0], [0, 2, -0.5], [0.5, 1, 3], [2, 0, 1], [np.nan, 1, np.nan], [-np.inf, np.nan, 0]], "float32")
TABLES = (Value(NODES), Value(ROOTS), Value(TARGETS), Value(WEIGHTS))
test_trees = table(
    Case("tree_ensemble", trees, Value(X), Value(SPLITS), *TABLES, num_targets=2, depth=2, aggregate=each("sum", "min", "max"), dynamic=True),
    Case("tree_ensemble", trees, f64(5, 4), Value(SPLITS.astype("float64")), *TABLES[:3], Value(WEIGHTS.astype("float64")), num_targets=3, depth=3),
    Case("tree_ensemble", trees, f32(0, 3), Value(SPLITS), *TABLES, num_targets=2, depth=2, fold=False, name="no rows"),
    # Rows in blocks, and what is left of them.
    *(Case("tree_ensemble", trees, Value(np.tile(X, (12, 1))[:n]), Value(SPLITS), *TABLES, num_targets=2, depth=2, name=f"{n} rows") for n in (1, 8, 10, 70)),
    Case("tree_ensemble", trees, Value(X), Value(SPLITS), Value(NODES), Value(WITH_STEPS), *TABLES[2:], num_targets=2, depth=2, dynamic=True, name="steps"),
    Case(
        "tree_ensemble",
        trees,
        Value(X),
        Value(SPLITS),
        Value(NODES),
        Value(np.array([[0, 0], [5, 9]], "int32")),
        *TABLES[2:],
        num_targets=2,
        depth=2,
        name="no steps, and too many",
    ),
    *(Case("tree_ensemble", trees, Value(X), Value(SPLITS), *TABLES, num_targets=2, depth=2, flags=f, name=f"flags {f}") for f in (0, 1, 2)),
    # The iteration ends within 0.005 / K of the solution.
    Case("pairwise_coupling", coupled, Value(pairs(7, 3, "float32")), rtol=0.02, atol=0.01),
    Case("pairwise_coupling", coupled, Value(pairs(4, 5, "float64")), rtol=0.02, atol=0.01, dynamic=True),
    Case("pairwise_coupling", coupled, Value(pairs(4, 2, "float64")), rtol=0.02, atol=0.01, name="two"),
)

F, I = "float32", "int32"  # noqa: E741
GOOD = [((5, 3), F), ((10,), F), ((10, 6), I), ((2,), I), ((6,), I), ((6,), F)]


def but(**other):
    return [other.get(f"x{i}", t) for i, t in enumerate(GOOD)]


test_rejects = rejects(
    Reject("tree_ensemble", "R1", *but(x0=((5, 3), I))),
    Reject("tree_ensemble", "R1", *but(x0=((5,), F))),
    Reject("tree_ensemble", "R2", *but(x1=((10,), "float64"))),
    Reject("tree_ensemble", "R2", *but(x2=((10, 6), F))),
    Reject("tree_ensemble", "R3", *but(x3=((2, 1), I))),
    Reject("tree_ensemble", "R3", *but(x3=((2, 2, 2), I))),
    Reject("tree_ensemble", "R3", *but(x2=((60,), I))),
    Reject("tree_ensemble", "R4", *but(x2=((10, 5), I))),
    Reject("tree_ensemble", "R4", *but(x4=((7,), I))),
    Reject("tree_ensemble", "R4", *but(x0=((5, 0), F))),
    Reject("tree_ensemble", "R5", *GOOD, aggregate="mean"),
    Reject("pairwise_coupling", "R1", ((2, 3), F)),
    Reject("pairwise_coupling", "R1", ((2, 3, 3), I)),
    Reject("pairwise_coupling", "R2", ((2, 3, 4), F)),
)
