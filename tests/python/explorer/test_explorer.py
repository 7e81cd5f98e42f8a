# SPDX-License-Identifier: Apache-2.0
"""The page that `baton explore` writes: its data, and what a browser makes of it."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import zlib

import numpy as np
import pytest

import baton
from baton import relay
from baton.explorer import collect, explore, render

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
  %1 = nn.relu(add(%0, multiply(2f, 3f)));
  add(%1, %1)
}
"""


def _data(page):
    packed = re.search(r'id="data">([^<]*)<', page).group(1)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("explore") / "net.relay"
    path.write_text(TEXT)
    return explore(path)


def test_the_data_tells_each_step(page):
    data = _data(page)
    steps = {s["name"]: s for s in data["steps"]}
    assert {"DefaultPipeline", "InferType", "FoldConstant", "FuseOps"} <= set(steps)
    for s in data["steps"]:
        assert -1 <= s["parent"] < len(data["steps"]) and s["a"] < len(data["states"]) and s["b"] < len(data["states"])
        assert (s["plus"], s["minus"]) == (0, 0) or s["a"] != s["b"]
    fuse = steps["FuseOps"]
    before, after = ("\n".join(data["lines"][i][0] for i in data["states"][fuse[k]]) for k in "ab")
    assert "Primitive=1" not in before and "Primitive=1" in after
    assert "/*" not in before, "the marks of spans are taken out again"


def test_an_expression_leads_back_to_its_source_and_on_to_its_kernel(page):
    data = _data(page)
    conv = next(line for line in data["lines"] if "nn.conv2d(" in line[0])
    assert data["spans"][conv[1]].endswith("net.relay:3")
    kernels = [k for k in data["kernels"] if conv[1] in k["spans"]]
    assert len(kernels) == 1 and "conv2d" in kernels[0]["ops"] and kernels[0]["us"] > 0


def test_onnx_nodes_are_named(tmp_path):
    from onnx import TensorProto, helper, save

    nodes = [helper.make_node("Relu", ["x"], ["y"], name="first"), helper.make_node("Exp", ["y"], ["z"], name="second")]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xz"]
    save(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    data = _data(explore(tmp_path / "m.onnx", profile=False))
    assert any("`first`" in s for s in data["spans"]) and any("`second`" in s for s in data["spans"])
    assert data["kernels"] == []


def test_lines_are_kept_once():
    mod = relay.fromtext(TEXT)
    with baton.History() as h:
        for _ in range(3):
            relay.transform.EliminateCommonSubexpr()(relay.transform.InferType()(mod))
    data = collect(h, "m")
    assert len(data["states"]) <= 4 and len({(t, s) for t, s, _ in data["lines"]}) == len(data["lines"])


def test_a_failing_pass_is_shown(tmp_path):
    @relay.transform.function_pass(opt_level=0, name="Breaks")
    def breaks(func, mod, ctx):
        raise ValueError("no luck <script>")

    mod = relay.transform.InferType()(relay.fromtext(TEXT))
    with baton.History() as h, pytest.raises(ValueError, match="no luck"):
        breaks(mod)
    data = _data(render(collect(h, "a </script> name", {"error": "no luck"})))
    assert data["steps"][-1]["status"] == "failed" and "no luck" in data["steps"][-1]["error"]
    assert "a &lt;/script> name" in render(collect(h, "a </script> name"))


def test_the_command_line(tmp_path):
    """A page; and for a shape that does not fit, an error that is no bug of ours, and no page."""
    (tmp_path / "net.relay").write_text(TEXT)

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "baton", "explore", "net.relay", "--no-profile", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = command("-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert _data((tmp_path / "page.html").read_text())["title"] == "net.relay"
    wrong = command("-o", "other.html", "--shape", "x=1,3,8,8")
    assert wrong.returncode in (1, 2) and "x" in wrong.stderr and "internal error" not in wrong.stderr
    assert not (tmp_path / "other.html").exists()


# ---- In a browser

_CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    """Runs a script in the page once it is ready; gives what it returns, and takes a picture of the page if asked."""
    if not _CHROMIUM:
        pytest.skip("chromium is not there; `./dev setup` installs it")
    folder = tmp_path_factory.mktemp("browser")

    def run(page, script, size="1400,900", dark=False):
        wrapped = f"""<script>addEventListener("DOMContentLoaded", () => {{ const wait = setInterval(async () => {{
            if (!document.body.dataset.ready) return; clearInterval(wait);
            let out; try {{ out = JSON.stringify(await (async () => {{ {script} }})()); }} catch (e) {{ out = JSON.stringify("failed: " + e); }}
            const pre = document.createElement("pre"); pre.id = "answer"; pre.textContent = out; document.body.append(pre); }}, 20); }});</script>"""
        path = folder / "page.html"
        path.write_text(page.replace("</head>", wrapped + "</head>"), encoding="utf-8")
        command = [
            _CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={size}",
            "--virtual-time-budget=20000",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            *(["--force-dark-mode"] if dark else []),
            path.as_uri(),
        ]
        dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        found = re.search(r'<pre id="answer">(.*?)</pre>', dom, re.S)
        assert found, dom[-2000:]
        import html

        return json.loads(html.unescape(found.group(1)))

    return run


def test_the_page_in_a_browser(page, browse):
    answer = browse(
        page,
        """
        const names = () => [...document.querySelectorAll("nav .row")].map(r => r.querySelector(".name").textContent.slice(1));
        const out = { few: names().length };
        document.getElementById("unchanged").click();
        out.all = names().length;
        const fuse = D.steps.findIndex(s => s.name === "FuseOps");
        choose(fuse);
        out.lines = document.querySelectorAll("#rows .line").length;
        out.plus = [...document.querySelectorAll("#rows .plus")].map(e => e.textContent).join("\\n");
        const cell = [...document.querySelectorAll("#rows .line > span")].find(e => e.textContent.includes("conv2d"));
        cell.click();
        out.about = document.getElementById("about").textContent;
        out.traced = document.querySelectorAll("#rows .trace").length;
        const box = document.getElementById("search");
        box.value = "nn.relu"; box.dispatchEvent(new Event("input"));
        out.found = document.getElementById("found").textContent;
        out.marks = document.querySelectorAll("#rows mark").length;
        return out;
    """,
    )
    assert 3 <= answer["few"] < answer["all"]
    assert answer["lines"] > 5 and "Primitive=1" in answer["plus"]
    assert "net.relay:3" in answer["about"] and "conv2d" in answer["about"] and "µs" in answer["about"] and answer["traced"] >= 1
    assert re.fullmatch(r"1 of [1-9]\d*", answer["found"]) and answer["marks"] >= 1


def test_it_opens_at_the_pass_that_changes_most(page, browse):
    answer = browse(
        page,
        """
        const s = D.steps[S.step], inner = new Set(D.steps.filter(changed).map(s => s.parent));
        return { name: s.name, size: s.plus + s.minus, most: Math.max(...D.steps.filter((s, i) => !inner.has(i)).map(s => s.plus + s.minus)),
                 about: document.getElementById("about").textContent };
    """,
    )
    assert answer["size"] == answer["most"] > 0
    assert "the program changed" in answer["about"] and "came of it" not in answer["about"]


def test_a_difference_far_to_the_right_is_seen(browse):
    """A line of some thousand characters of which the last few change."""
    long = relay.Tuple([relay.const(np.float32(i)) for i in range(300)])
    before = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([], relay.Tuple([long, relay.const(np.float32(7))]))))
    change = relay.transform.function_pass(lambda f, m, c: relay.Function([], relay.Tuple([long, relay.const(np.float32(8))])), opt_level=0, name="Changes")
    with baton.History() as h:
        change(before)
    answer = browse(
        render(collect(h, "long")),
        """
        const shown = cls => [...document.querySelectorAll("#rows ." + cls)].map(e => e.textContent);
        const press = key => dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const out = { minus: shown("minus"), plus: shown("plus") };
        press("ArrowRight"); out.moved = shown("minus").concat(shown("number"), [S.shift]);
        press("ArrowLeft"); out.shift = S.shift;
        return out;
    """,
    )
    shown = answer["minus"] + answer["plus"]
    assert any("7f" in line for line in answer["minus"]) and any("8f" in line for line in answer["plus"]), shown
    assert all(len(line) < 400 or "… " in line for line in shown)
    assert answer["moved"][-1] == 20 and answer["shift"] == 0


def test_keys(page, browse):
    answer = browse(
        page,
        """
        const press = key => dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const first = S.step;
        press("j"); const next = S.step; press("k");
        press("t"); const theme = document.documentElement.dataset.theme;
        press("u"); const all = S.all; press("/");
        return { moved: next !== first, back: S.step === first, theme, all, focus: document.activeElement.id };
    """,
    )
    assert answer["moved"] and answer["back"] and answer["theme"] in ("dark", "light") and answer["all"] and answer["focus"] == "search"


def test_aligned_rows_are_a_true_alignment(page, browse):
    """Each line of both programs stands in one row, in order; rows that are called equal have equal keys."""
    assert (
        browse(
            page,
            """
        const random = (seed => () => (seed = seed * 16807 % 2147483647) / 2147483647)(7);
        D.lines = Array.from({ length: 12 }, (_, i) => ["l" + i, 0, i]);
        for (let round = 0; round < 300; round++) {
          const draw = () => Array.from({ length: Math.floor(random() * 30) }, () => Math.floor(random() * 12)), a = draw(), b = draw();
          const rows = align(a, b), xs = rows.map(r => r[0]).filter(x => x >= 0), ys = rows.map(r => r[1]).filter(y => y >= 0);
          if (xs.join() !== a.map((_, i) => i).join() || ys.join() !== b.map((_, i) => i).join()) return "order " + JSON.stringify([a, b, rows]);
          if (rows.some(([x, y, k]) => !k && a[x] !== b[y])) return "equal " + JSON.stringify([a, b, rows]);
        }
        return "ok";
    """,
        )
        == "ok"
    )


def test_a_large_program(browse):
    """Three thousand operators: the page opens, and draws no more rows than there is room for."""
    x = y = relay.var("x", shape=(4,), dtype="float32")
    for i in range(3000):
        y = relay.add(relay.tanh(y), relay.const(np.float32(i)))
    with baton.History() as h:
        relay.transform.ToANormalForm()(relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], y))))
    answer = browse(
        render(collect(h, "long")),
        """
        choose(D.steps.length - 1);
        return { rows: S.rows.length, drawn: document.querySelectorAll("#rows .line").length };
    """,
    )
    assert answer["rows"] >= 6000 and 10 < answer["drawn"] < 200
