# SPDX-License-Identifier: Apache-2.0
"""`baton profile`: a table, JSON, a page; in colour on terminals alone."""

import io
import json

import pytest

from baton.cli.terminal import painter


@pytest.fixture
def model(tmp_path):
    """relu of (n, 4)."""
    pytest.importorskip("onnx")
    from onnx_files import node, value, write

    return write(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], inputs=[value("x", ["n", 4])], outputs=[value("y", ["n", 4])])


def test_a_table_json_and_a_page(baton, compiler, model, tmp_path):
    done = baton("profile", model, "--dim", "n=3", "--rounds", "2", "--html", "p.html")
    assert "nn.relu" in done.stdout and "between the steps" in done.stdout and "wrote p.html" in done.stderr and "\x1b" not in done.stdout
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "nn.relu" in page and "m.onnx" in page
    baton("compile", model, "-o", "m.so")
    answer = json.loads(baton("profile", "m.so", "--dim", "n=3", "--json", "--rounds", "1").stdout)
    assert [step["operators"] for step in answer["steps"]] == ["nn.relu"] and answer["rounds"] == 1
    assert "profile" in json.loads(baton("bench", "m.so", "--dim", "n=3", "--rounds", "1", "--profile", "--json").stdout)


def test_a_page_goes_to_a_file(baton, model):
    assert "goes to a file" in baton("profile", model, "--html", "-", code=2).stderr


@pytest.mark.parametrize(
    ("terminal", "env", "colour"), [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals(monkeypatch, terminal, env, colour):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    assert ("\x1b[31m" in painter(Stream())("slow", "red")) == colour
    assert painter(Stream())("plain", "") == "plain"
