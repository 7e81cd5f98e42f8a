# SPDX-License-Identifier: Apache-2.0
"""`baton cache`: the kernel cache from the command line."""

import json

import pytest


@pytest.fixture
def env(tmp_path):
    return {"BATON_CACHE": "1", "BATON_CACHE_DIR": str(tmp_path / "kept")}


@pytest.fixture
def cached(baton, compiler, env):
    """Runs `baton ARGS` with a cache of its own."""
    return lambda *args, **options: baton(*args, env=env, **options)


def test_empty(cached, tmp_path):
    assert str(tmp_path / "kept/kernels") in cached("cache").stdout
    assert cached("cache", "list").stdout == "" and cached("cache", "why").stdout == ""
    assert cached("cache", "clear").stdout == "removed 0 entries\n"
    assert json.loads(cached("cache", "list", "--json").stdout) == []


def test_compile_says_hit_or_why_not(cached, good):
    first = cached("compile", good, "-o", "a.so", "--verbose").stderr
    assert "miss  fused_" in first and ": new: " in first
    second = cached("compile", good, "-o", "a.so", "--verbose").stderr
    assert "hit   fused_" in second and "miss" not in second
    assert "hit   fused_" in cached("run", good, "--verbose").stderr
    why = cached("cache", "why").stdout.splitlines()
    assert why[0].startswith("miss  fused_") and why[-1].startswith("hit   fused_")


def test_verbose_where_it_is_off(cached, good, env):
    env["BATON_CACHE"] = "0"
    assert "kernel cache off: BATON_CACHE is 0" in cached("compile", good, "-o", "a.so", "--verbose").stderr
    assert "off         BATON_CACHE is 0" in cached("cache").stdout


def test_export_import_and_clear(cached, good, tmp_path):
    cached("compile", good, "-o", "a.so")
    stats = json.loads(cached("cache", "stats", "--json").stdout)
    assert stats["entries"] >= 1 and stats["misses"]["new"] >= 1
    n = stats["entries"]
    assert json.loads(cached("cache", "export", "all.tar", "--json").stdout) == {"wrote": n}
    assert json.loads(cached("cache", "clear", "--json").stdout) == {"removed": n}
    assert json.loads(cached("cache", "import", "all.tar", "--json").stdout) == {"took_in": n}
    assert len(json.loads(cached("cache", "list", "--json").stdout)) == n
    assert len(cached("cache", "list").stdout.splitlines()) == n


def test_wrong_usage_and_bad_files(cached, tmp_path):
    cached("cache", "export", code=2)
    cached("cache", "clear", "file", code=2)
    cached("cache", "import", "none.tar", code=1)
    (tmp_path / "text").write_text("no tar")
    assert "not an export" in cached("cache", "import", "text", code=1).stderr
    cached("cache", "export", "no/folder/all.tar", code=1)
