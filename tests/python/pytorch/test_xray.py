# SPDX-License-Identifier: Apache-2.0
"""`baton inspect --xray` of programs of `torch.export`."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402
from baton.contrib.torch import nodes_of  # noqa: E402
from baton.driver.xray import xray  # noqa: E402


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3))).sort(-1)[0]


class Found(torch.nn.Module):
    def forward(self, x):
        return torch.exp(torch.relu(x).t().contiguous()), torch.argsort(x, dim=1)


class Lacking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.linalg.eigh(self.layer(x))[1].abs() + torch.rand(3)


def saved(tmp_path, module, *args, **options):
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(module.eval(), args, **options), path)
    return path


N = torch.export.Dim("n", min=2, max=99)
MODELS = {
    "layers": (Layers(), (torch.randn(2, 3, 8, 8),), {}),
    "open layers": (Layers(), (torch.randn(2, 3, 8, 8),), {"dynamic_shapes": ({0: N},)}),
    "found": (Found(), (torch.randn(3, 4),), {}),
    "gru": (torch.nn.GRU(4, 6), (torch.randn(5, 2, 4),), {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_forecast_is_what_compiling_does(name, tmp_path):
    module, args, options = MODELS[name]
    path = saved(tmp_path, module, *args, **options)
    found = xray(path)
    assert found.rows and not found.unsupported
    places = {row["node"]: row["where"] for row in found.rows}
    # The same program, whose steps bear the names of nodes.
    steps = baton.compile(nodes_of(path)[1]).profile(*args, rounds=1)["steps"]
    host = {s["source"] for s in steps if not s["kernel"].startswith("fused_")}
    kernels = {s["source"] for s in steps if s["kernel"].startswith("fused_")} - {""}
    assert host == {n for n, place in places.items() if place == "host"}, steps
    assert kernels and kernels <= {n for n, place in places.items() if place in ("compiled", "host")}, steps  # a node may be both
    assert {n for n, place in places.items() if place == "folded"}.isdisjoint(host | kernels)
    baton.compile(path)


def test_numbers_and_places(tmp_path):
    found = xray(saved(tmp_path, Layers(), torch.randn(2, 3, 8, 8)))
    rows = {row["operator"]: row for row in found.rows}
    conv, norm, linear = (rows[f"aten.{name}.default"] for name in ("conv2d", "_native_batch_norm_legit_no_training", "linear"))
    assert conv["module"] == "conv" and conv["place"].startswith(__file__) and conv["flop"] >= 2 * 2 * 8 * 36 * 27
    assert norm["where"] == "folded" and rows["aten.sort.default"]["where"] == "host"
    assert linear["inputs"][0] == {"name": "mean", "dtype": "float32", "shape": [2, 8]} and linear["bytes"] == 4 * (16 + 40 + 5 + 10)


def test_what_is_not_supported(tmp_path):
    path = saved(tmp_path, Lacking(), torch.eye(3))
    found = xray(path)
    with pytest.raises(baton.UnsupportedError) as raised:
        baton.compile(path)
    assert [(r["operator"], r["why"]) for r in found.unsupported] == [(name, reason) for name, _, reason in raised.value.missing]
    assert [r["operator"] for r in found.rows if r["where"] == "compiled"] == ["aten.linear.default", "aten.abs.default", "aten.add.Tensor"]
    for row, stem in zip(found.unsupported, ("00_aten__linalg_eigh_default", "01_aten_rand_default"), strict=True):
        found.write_missing(tmp_path / "out")
        with pytest.raises(baton.UnsupportedError) as alone:
            baton.compile(tmp_path / "out" / f"{stem}.pt2")
        assert [(name, reason) for name, _, reason in alone.value.missing] == [(row["operator"], row["why"])]
        script = (tmp_path / "out" / f"{stem}.py").read_text()
        assert len(script.splitlines()) <= 10
        with pytest.raises(baton.UnsupportedError, match=row["operator"]):
            exec(compile(script, stem, "exec"), {})  # noqa: S102


def test_the_command(tmp_path):
    path = saved(tmp_path, Lacking(), torch.eye(3))
    run = lambda *args: subprocess.run([sys.executable, "-m", "baton", *map(str, args)], capture_output=True, text=True)  # noqa: E731
    done = run("inspect", "--xray", path, "--json")
    assert done.returncode == 3 and json.loads(done.stdout)["counts"] == {"compiled": 3, "unsupported": 2}, done.stderr
    done = run("inspect", "--xray", path, "--html", tmp_path / "x.html")
    assert done.returncode == 3 and "LAPACK's choice" in done.stdout and "LAPACK" in (tmp_path / "x.html").read_text()
    for verb in (["run"], ["bench"], ["compile", "-o", tmp_path / "m.so"]):
        done = run(verb[0], path, *verb[1:])
        assert done.returncode == 3 and "aten.rand.default" in done.stderr and "Traceback" not in done.stderr, done.stderr
