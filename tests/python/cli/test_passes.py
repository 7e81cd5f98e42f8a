# SPDX-License-Identifier: Apache-2.0
"""What the verbs that run passes say of mistakes: names that no pass has, levels, code of the user's own that fails."""

import os

import pytest

pytestmark = pytest.mark.usefixtures("compiler")

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { add(exp(%x), multiply(2f, 3f)) }
"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "in.relay").write_text(TEXT)
    return "in.relay"


@pytest.mark.parametrize("args", [
    ["opt", "--passes", "FuseOps", "--disable-pass", "FuseOp"],
    ["opt", "--passes", "FuseOps", "--print-before", "FuseOp"],
    ["opt", "--passes", "FuseOps", "--print-after", "FuseOp"],
    ["explain-pipeline", "--disable-pass", "FuseOp"],
    ["bisect", "--disable-pass", "FuseOp"],
    ["bisect", "--skip", "FuseOp"],
    ["explore", "-o", "p.html", "--no-profile", "--disable-pass", "FuseOp"],
    ["compile", "-o", "m.so", "--disable-pass", "FuseOp"],
    ["run", "--disable-pass", "FuseOp"],
], ids=" ".join)  # fmt: skip
def test_a_misspelt_pass_is_a_warning_said_once(baton, net, args):
    verb, *rest = args
    err = baton(verb, net, *rest).stderr
    assert err.count("there is no pass `FuseOp`; did you mean `FuseOps`?") == 1 and "UserWarning" not in err


def test_patterns_and_all_are_no_names(baton, net):
    err = baton("opt", net, "--passes", "FoldConstant", "--print-after", "Fold*", "--print-before", "all").stderr
    assert "warning" not in err and "IR after FoldConstant" in err


def test_level_four_is_there_for_those_who_ask(baton, net):
    assert "fast_exp" not in baton("opt", net, "--passes", "FastMath", "-O", "3").stdout
    assert "fast_exp" in baton("opt", net, "--passes", "FastMath", "-O", "4").stdout
    assert "needs opt_level 4" in baton("explain-pipeline", net).stdout
    assert "needs opt_level 4" not in baton("explain-pipeline", net, "-O", "4").stdout


PASSES = """import baton
from baton import relay

@baton.transform.module_pass(opt_level=0)
def boom(mod, ctx):
    raise KeyError("boom")

@baton.transform.module_pass(opt_level=0)
def asks_wrong(mod, ctx):
    return baton.transform.Sequential(3)(mod)
"""


@pytest.mark.parametrize(("name", "words", "line"), [
    ("boom", "error: KeyError: 'boom'", "mine.py:6, in boom"),
    ("asks_wrong", "error: TypeError: a sequence takes a list of passes, got 3", "mine.py:10, in asks_wrong"),
])  # fmt: skip
def test_code_of_the_user_s_own_is_no_bug_of_baton(baton, net, tmp_path, name, words, line):
    (tmp_path / "mine.py").write_text(PASSES)
    err = baton("opt", net, "--passes", f"InferType,python.mine.{name}", code=1, env={"PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}"}).stderr
    assert words in err and f"at {line}" in err and "code of yours" in err


JOINS = """import sys
import baton
from baton import relay

@baton.transform.module_pass(opt_level=0, name="SaysHello")
def says_hello(mod, ctx):
    print("hello from a file", file=sys.stderr)
    return mod

baton.register_func("relay._transform.SaysHello", lambda: says_hello)
baton.transform.join_pipeline("SaysHello", before="FuseOps")
"""


@pytest.mark.parametrize("args", [
    ["opt", "--passes", "SaysHello"],
    ["explain-pipeline"],
    ["explore", "-o", "p.html", "--no-profile"],
    ["bisect", "--passes", "SaysHello"],
    ["compile", "-o", "m.so"],
    ["compile", "-o", "m.so", "--isolate"],
    ["run"],
    ["bench", "--rounds", "1"],
], ids=" ".join)  # fmt: skip
def test_every_verb_that_runs_passes_loads_those_of_a_file(baton, net, tmp_path, args):
    (tmp_path / "mine.py").write_text(JOINS)
    verb, *rest = args
    assert "hello from a file" in baton(verb, net, *rest, "--load", "mine.py").stderr


def test_verbs_that_take_passes_take_files_too():
    """Whatever can leave a pass out, or reads text that may call operators of others, can load them."""
    from baton.cli import VERBS, build_parser
    from baton.cli.completion import _verbs

    has = {verb for verb, (_, actions) in _verbs(build_parser()).items() if any("--load" in a.option_strings and not a.choices for a in actions)}
    assert has == set(VERBS) - {"inspect", "sign", "doctor", "completion", "rpc-server", "rpc-key", "rpc-tracker", "rpc-proxy", "cache"}


def test_files_that_cannot_be_loaded(baton, net, tmp_path):
    (tmp_path / "broken.so").write_text("no library")
    for path, words in (("none.so", "cannot read `none.so`"), (".", "is a directory"), ("broken.so", "cannot load `broken.so`")):
        assert words in baton("opt", net, "--load", path, code=1).stderr
    baton("compile", net, "-o", "m.so")
    (tmp_path / "empty.py").touch()
    assert "--load comes with `baton compile`" in baton("run", "m.so", "--load", "empty.py", code=2).stderr


@pytest.mark.parametrize(("text", "words"), [
    ("raise ValueError('no')", ["error: ValueError: no", "at mine.py:1"]),
    ("def (", ["error: SyntaxError: invalid syntax", "at mine.py:1"]),
    ("import baton\nbaton.transform.module_pass(lambda m: m, opt_level=0)", ["takes (m)", "at mine.py:2"]),
])  # fmt: skip
def test_a_loaded_file_that_fails_is_named(baton, net, tmp_path, text, words):
    (tmp_path / "mine.py").write_text(text)
    err = baton("bisect", net, "--load", "mine.py", code=1).stderr
    assert all(word in err for word in words)
    assert "cannot read `none.py`" in baton("bisect", net, "--load", "none.py", code=1).stderr
