# SPDX-License-Identifier: Apache-2.0
"""Why regions end, as `baton explain-pipeline` says it: the operator, its place, the reason."""

import json

import pytest

from baton import relay
from baton.driver import passes

HEAD = '#[version = "0.0.5"]\n'
FLOW = "regions, since the program has control flow or closures"
SHAPES = "regions, since a value of the program has a shape that its inputs' shapes do not decide, or is no tensor"
END = "the end of the function"
ROWS = {
    "one function": ("def @main(%x: Tensor[(n, 8), float32]) { nn.softmax(nn.relu(%x)) }", "the program is one region", []),
    "branches": (
        """def @main(%x: Tensor[(n, 8), float32]) {
          if (greater(sum(%x), 0f)) { nn.softmax(nn.softmax(%x)) } else { negative(%x) }
        }""",
        FLOW + " (relay.If)",
        [
            "region 0 (sum, greater) ends at an if (from_string:3): control goes one of two ways",
            "region 1 (nn.softmax, nn.softmax) ends at the end of a branch",
            "region 2 (negative) ends at the end of a branch",
        ],
    ),
    "a function of the host": (
        """def @main(%x: Tensor[(4), float32]) {
          let %u = unique(nn.relu(%x));
          nn.relu(%u.0)
        }""",
        SHAPES + " (from_string)",
        ["region 0 (nn.relu) ends at `unique` (from_string:3): it runs on the host", f"region 1 (nn.relu) ends at {END}"],
    ),
    "an extent that is an input's value": (
        "def @main(%k: Tensor[(1), int64]) { nn.relu(dyn.full(2f, add(%k, 1i64))) }",
        SHAPES + " (from_string)",
        [f"region 0 (add, dyn.full, nn.relu) ends at {END}"],
    ),
    "an extent that is computed": (
        """def @main(%x: Tensor[(n), float32]) {
          let %k = cast(expand_dims(sum(%x), axis=0), dtype="int64");
          nn.relu(dyn.full(2f, %k))
        }""",
        SHAPES + " (from_string)",
        [
            "region 0 (sum, expand_dims, cast) ends at `dyn.full` (from_string:4): the shape of its result follows from values that are computed before it",
            f"region 1 (dyn.full, nn.relu) ends at {END}",
        ],
    ),
    "a reference": (
        "def @main(%x: Tensor[(4), float32]) { let %r = ref(nn.relu(%x)); ref_read(%r) }",
        FLOW + " (relay.RefRead)",
        [
            "region 0 (nn.relu) ends at a reference (from_string:2): references are read and written in the order of the program",
            "no region has a reference (from_string:2): references are read and written in the order of the program",
        ],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_why_regions_end(name):
    source, first, rows = ROWS[name]
    module = relay.fromtext(HEAD + source)
    assert passes.explain_compilation(module, False).split("\n\n")[-1].splitlines() == [first, *(f"  @main: {row}" for row in rows)]
    told = [row for row in json.loads(passes.explain_compilation(module, True)) if row["action"] == "region"]
    assert [row["why"] for row in told] == [first, *(f"@main: {row}" for row in rows)]
    assert {row["pass"] for row in told} == {"LowerToTIR"}
