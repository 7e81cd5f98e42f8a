# SPDX-License-Identifier: Apache-2.0
"""The golden programs of Relay's passes under the guard: special values, ties and open lengths too raise no alarm."""

import contextlib
import sys
from pathlib import Path

import pytest

from baton import relay
from baton.driver import passes
from baton.instrument import SemanticGuard
from baton.target import Target
from baton.transform import PassContext

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS / "golden"))
import golden  # noqa: E402

FILES = [path for path in sorted((TESTS / "relay" / "transform").glob("*.relay")) if golden.is_golden(path)]
# Tables of patterns are registered by the tests that use them.
FILES = [path for path in FILES if not any("pattern_table" in options for _, options in golden.read(path).passes)]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_no_alarm(path):
    file = golden.read(path)
    checked = 0
    for case in file.cases:
        if case.kind == "error":
            continue
        module = golden.parse(path, case.first)
        guard = SemanticGuard(mode="record", kinds=["ordinary", "grid", "special"], max_calls=256)
        target = Target(file.target) if file.target else contextlib.nullcontext()
        with PassContext(opt_level=3, instruments=[guard]), target:
            module = relay.transform.InferType()(module)
            for name, options in file.passes:
                module = passes.make(name, options)(module)
        assert not guard.findings, (case.title, guard.summary())
        checked += sum(guard.checked.values())
    assert checked or all(case.kind == "error" for case in file.cases)
