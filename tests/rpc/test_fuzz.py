# SPDX-License-Identifier: Apache-2.0
"""A few hundred mutants through each parser of remote sessions that is Python; `./dev fuzz rpc` runs many."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("fuzz_rpc", Path(__file__).resolve().parents[1] / "fuzz" / "rpc.py")
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


@pytest.fixture(autouse=True)
def own_seconds(monkeypatch):
    """What the fuzz program sets of the proxy's ends with the test."""
    for name in ("PAIR_SECONDS", "PING_SECONDS"):
        monkeypatch.setattr(fuzz.proxy, name, getattr(fuzz.proxy, name))
    monkeypatch.setattr(fuzz.proxy.secrets, "token_hex", fuzz.proxy.secrets.token_hex)


@pytest.mark.parametrize("kind", list(fuzz.KINDS))
def test_mutants_are_answered_or_refused(kind, capsys):
    assert fuzz.run(kind, 0, 600) == 0, capsys.readouterr().out
