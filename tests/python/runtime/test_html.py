# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: HTML that explains itself, in which names of strangers are text and nothing comes from elsewhere."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

import baton  # noqa: E402
from baton import relay  # noqa: E402
from baton.cli.measure import Timing  # noqa: E402
from baton.runtime import html  # noqa: E402

EVIL = "</title><script>alert(1)</script>\x00&\"'"
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Tags(HTMLParser):
    """All tags with their attributes, the text, and whether what opens is closed."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in ("p", "body", "html"):
            self.open.pop()
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def checked(text):
    """The text of some HTML without scripts, handlers and addresses."""
    tags = Tags(text)
    assert not {t for t, _ in tags.seen} & {"script", "iframe", "object", "embed", "link", "img"}
    assert not [k for _, attrs in tags.seen for k in attrs if k.startswith("on") or k in ("src", "href")]
    assert not re.search(r"https?://|url\(|@import", text.replace("http://www.w3.org/2000/svg", "")) and "\x00" not in text
    return "".join(tags.words)


@pytest.fixture(scope="module")
def model():
    x = relay.var("x", shape=(2, 8))
    y = relay.nn.softmax(relay.exp(x))
    return baton.IRModule.from_expr(relay.Function([x], y))


def test_programs_are_text_in_colour(model):
    words = checked(model._repr_html_())
    assert "def @main" in words and "nn.softmax" in words and "@main" in words.splitlines()[0] + words
    assert "exp" in checked(model["main"]._repr_html_())
    loops = next(f for f in relay.transform.LowerToTIR()(relay.transform.FuseOps()(relay.transform.InferType()(model))).functions.values())
    assert "float32" in checked(loops._repr_html_())


def test_names_of_strangers_are_text():
    x = relay.var(EVIL, shape=(2, 8))
    mod = baton.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    executable = baton.compile(mod)
    assert "script>alert(1)" in checked(executable._repr_html_()) + checked(mod._repr_html_())
    step = {"kernel": EVIL, "operators": EVIL, "source": EVIL, "count": 1, "us": 2.0, "min_us": 2.0, "median_us": 2.0, "share": 0.5}
    found = {"steps": [step], "total_us": 4.0, "call_us": 3.0, "steps_us": 2.0, "rest_us": 2.0, "rounds": 1, "peak_gflops": None}
    assert "alert(1)" in checked(html.page(EVIL, html.profile(found)))
    ElementTree.fromstring(html.profile_file(found))


def test_an_executable_shows_its_sides_and_dimensions(tmp_path):
    n = baton.tir.Var("n", "int64")
    x = relay.var("x", shape=(n, 8))
    executable = baton.compile(relay.Function([x], relay.exp(x)))
    words = checked(executable._repr_html_())
    assert "float32[n, 8]" in words and "dimension" in words
    executable.save(tmp_path / "m.so")
    words = checked(baton.load(tmp_path / "m.so")._repr_html_())
    assert "target" in words and "libbaton_runtime" in words and "m.so" in words


def test_a_profile_has_a_bar_for_each_step(model):
    profile = baton.compile(model).profile(np.ones((2, 8), "float32"), rounds=1)
    words = checked(profile.html("a & b"))
    assert "a & b" in words and all(step["operators"] in words for step in profile["steps"]) and "rest" in words
    svg = ElementTree.fromstring(profile.svg())
    assert svg.tag.endswith("svg") and len(profile.svg(top=1)) < 40_000
    assert checked(profile._repr_html_())


def test_times_are_spread(model):
    timing = Timing()
    timing.samples.extend([1.0, 1.1, 5.0])
    assert "median 1.100 ms" in checked(timing._repr_html_())
    assert "min 1.000 ms" in checked(baton.runtime.module.BenchmarkResult([0.001, 0.001])._repr_html_())
    assert "no samples" in checked(html.times([]))


def test_long_programs_are_cut():
    words = checked(html.program("\n".join(f"%{i} = f(%x);" for i in range(1000)), most=10))
    assert "990 more lines" in words and "%11" not in words
