# SPDX-License-Identifier: Apache-2.0
"""Hooks: what a lower layer asks of a higher one without knowing it."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

from baton._ffi import hook


def test_the_answer_is_imported_by_the_first_call(tmp_path, monkeypatch):
    (tmp_path / "answers_late.py").write_text("def double(x, *, times=2):\n    return x * times\n")
    monkeypatch.syspath_prepend(tmp_path)
    asked = hook.Hook("test.double")
    monkeypatch.setitem(hook._answers, "test.double", "answers_late:double")
    assert "answers_late" not in sys.modules
    assert (asked(2), asked(2, times=5), "answers_late" in sys.modules) == (4, 10, True)


def test_a_hook_that_nothing_answers_says_so():
    with pytest.raises(RuntimeError, match="no function answers the hook `test.nothing`"):
        hook.Hook("test.nothing")()


def test_every_answer_is_there():
    for where in hook._answers.values():
        module, _, name = where.partition(":")
        if ".contrib.torch" in module and importlib.util.find_spec("torch") is None:
            continue  # that answer needs PyTorch
        assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize(
    "text",
    [
        "print(type(baton.ir.GlobalVar('f')()).__name__)",
        "m = baton.ir.IRModule(); m.import_from_std('prelude.rly'); print('Call' if m.get_global_vars() else '')",
        "a = baton.te.placeholder((2,), name='a'); print('Call' if (a + 1).dtype == 'float32' else '')",
        "print('Call' if callable(baton.topi.add) else '')",
    ],
)
def test_lower_layers_work_without_anything_imported_above_them(text):
    done = subprocess.run([sys.executable, "-c", "import baton; " + text], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["Call"], done.stderr
