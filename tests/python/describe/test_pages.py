# SPDX-License-Identifier: Apache-2.0
"""The reference: everything registered has an entry, links lead somewhere, examples are right."""

import html.parser
import re
import subprocess
import sys
from pathlib import Path

import pytest

import baton
from baton import relay
from baton._ffi import get_global_func
from baton.describe import model
from baton.describe.pages import write_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reference")
    write_pages(out)
    return out


@pytest.fixture(scope="module")
def text(folder):
    return {p.stem: p.read_text(encoding="utf-8") for p in folder.glob("*.md")}


def headings(text, prefix):
    """Names that have an entry on pages whose names begin so."""
    return {m for stem, page in text.items() if stem.startswith(prefix) for m in re.findall(r"^#+ `([^`]+)` \{#", page, re.MULTILINE)}


def test_every_operator_has_an_entry(text):
    assert headings(text, "op-") == set(model.operators())
    entry = text["op-nn"].split("## `nn.leaky_relu`")[1].split("\n## ")[0]
    assert "relay.nn.leaky_relu(data, alpha=" in entry and "| `alpha` | `float` |" in entry and "**Result.**" in entry and "**Example.**" in entry


def test_every_type_has_an_entry_with_its_fields(text):
    listed = {str(row[0]): row for row in get_global_func("node.ListTypes")()}
    assert headings(text, "type-") | headings(text, "attrs") == set(listed)
    for key, row in listed.items():
        page = next(p for s, p in text.items() if f"`{key}` {{#type-" in p and s.startswith(("type-", "attrs")))
        entry = page.split(f"## `{key}` {{#")[1].split("\n## ")[0]
        assert all(f"| `{f[0]}` |" in entry for f in row[4]), key
        assert "No description." not in entry, f"{key} says nothing of itself: a `_doc` in C++ or a docstring in Python"


def test_defaults_and_bounds(text):
    entry = text["attrs"].split("## `relay.attrs.LRNAttrs`")[1].split("\n## ")[0]
    [size] = [line for line in entry.splitlines() if "| `size` |" in line]
    fields = {f.name: f for f in model.node_types()["relay.attrs.LRNAttrs"].fields}
    assert f"`{fields['size'].default}`" in size and f"at least {fields['size'].lower:.0f}" in size
    entry = text["attrs"].split("## `relay.attrs.CompilerAttrs`")[1].split("\n## ")[0]
    assert "| required |" in entry


def test_every_pass_has_an_entry(text):
    passes = model.passes()
    assert headings(text, "passes") == set(passes) and "FoldConstant" in passes
    assert "No description." not in text["passes"]
    entry = text["passes"].split("## `FuseOps`")[1].split("\n## ")[0]
    assert "InferType" in entry and "- level 0" in entry


def test_every_option_has_an_entry(text):
    assert headings(text, "options") == set(map(str, baton.transform.PassContext.list_configs()))
    assert "No description." not in text["options"]
    assert "| `auto_max_step` | `int` | `0` | at least 0 |" in text["options"]


def test_every_instrument_has_an_entry(text):
    assert headings(text, "instruments") == set(baton.instrument.__all__)
    assert "No description." not in text["instruments"]


def test_every_function_of_c_has_an_entry(text):
    from baton.config import include_dir

    header = Path(include_dir(), "baton/runtime/c_runtime_api.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^BATON_DLL .*?\b(Baton\w+)\(", header, re.MULTILINE))
    assert len(declared) > 30
    assert not [n for n in declared if f'<a id="c-{n}"></a>' not in text["c-api"]]
    assert all(n in text["functions"] for n in model.packed_functions("ir."))


def test_python_names(text):
    page = text["python-baton-ir-transform"]
    assert "`PassContext`" in page and "`module_pass`" in page
    assert "baton.relay.expr.var(" in text["python-baton-relay-expr"]


def test_docstrings_are_there(text):
    """Each public function and class of Python says what it does."""
    bare = [f"{stem}: {m}" for stem, page in text.items() if stem.startswith("python-") for m in re.findall(r"```python\n(.*)\n```\n\nNo description\.", page)]
    assert not bare


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets, self.open = set(), [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "a" and "href" in attrs:
            self.targets.append(attrs["href"])
        for name in ("src", "href"):
            assert not attrs.get(name, "").startswith(("http", "//")), "pages need no network"


def test_links_of_the_pages_resolve(folder):
    pytest.importorskip("markdown")
    found = {}
    for path in folder.glob("*.html"):
        found[path.name] = links = Links()
        links.feed(path.read_text(encoding="utf-8"))
    assert len(found) > 100
    dead = [
        f"{name}: {t}"
        for name, links in found.items()
        for t in links.targets
        if (t.partition("#")[0] or name) not in found or t.partition("#")[2] and t.partition("#")[2] not in found[t.partition("#")[0] or name].ids
    ]
    assert not dead
    assert sum(len(links.targets) for links in found.values()) > 10000
    index = (folder / "search.js").read_text(encoding="utf-8")
    targets = re.findall(r'"([\w.\-]+\.html)#([^"]+)"', index)
    assert len(targets) > 1500 and not [t for t in targets if t[1] not in found[t[0]].ids]


def test_links_of_the_markdown_resolve(text):
    for stem, page in text.items():
        for target, anchor in re.findall(r"\]\(([\w.\-]+)\.md(?:#([\w.\-]+))?\)", page):
            assert target in text, f"{stem}: {target}"
            assert not anchor or f"{{#{anchor}}}" in text[target] or f'id="{anchor}"' in text[target], f"{stem}: {anchor}"


def test_examples_run(text):
    """What the pages show, with the types that they show."""
    count = 0
    for stem, page in text.items():
        for code in re.findall(r"\*\*Example\.\*\*\n\n```python\n(.*?)\n```", page, re.DOTALL) if stem.startswith("op-") else ():
            *setup, last = code.splitlines()
            call, kind = last.rsplit("  # ", 1)
            names = {"relay": relay}
            exec("\n".join([*setup, f"result = {call}"]), names)
            inputs = [v for v in names.values() if isinstance(v, relay.Var)]
            result = names["result"]
            result = result.astuple() if isinstance(result, relay.TupleWrapper) else result
            mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(inputs, result)))
            count += str(mod["main"].ret_type) == kind
    assert count >= 0.9 * len(model.operators())


def test_command(tmp_path):
    done = subprocess.run([sys.executable, "-m", "baton.describe", "reference", "--out", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and (tmp_path / "index.md").exists(), done.stderr
