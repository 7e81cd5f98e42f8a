# SPDX-License-Identifier: Apache-2.0
"""`.pt2` files in the verbs of the command line."""

import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

import baton  # noqa: E402


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    path = tmp_path_factory.mktemp("torch") / "net.pt2"
    torch.export.save(torch.export.export(module, (torch.ones(2, 4),), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=8)},)), path)
    return path, module


def run(*args):
    return subprocess.run([sys.executable, "-m", "baton", *map(str, args)], capture_output=True, text=True)


def test_inspect(program):
    done = run("inspect", program[0])
    assert done.returncode == 0, done.stderr
    assert re.search(r"net.pt2 +torch", done.stdout) and "nn.dense" in done.stdout, done.stdout


def test_compile_saves_what_the_runtime_runs(program, tmp_path):
    path, module = program
    done = run("compile", path, "-o", tmp_path / "net.so")
    assert done.returncode == 0, done.stderr
    x = torch.randn(5, 4)
    np.testing.assert_allclose(baton.load(tmp_path / "net.so")(x).numpy(), module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_opt_prints_relay(program):
    done = run("opt", program[0], "--passes", "InferType,SimplifyExpr")
    assert done.returncode == 0 and "nn.dense(%input" in done.stdout, done.stderr


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "bad.pt2").write_bytes(b"nothing of the kind")
    done = run("compile", tmp_path / "bad.pt2", "-o", tmp_path / "net.so")
    assert done.returncode != 0 and "bad.pt2` is no program that torch.export.save wrote" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_unsupported_operators_are_all_named(tmp_path):
    class Lacking(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigh(x)[1].abs() + torch.rand(3)

    torch.export.save(torch.export.export(Lacking(), (torch.eye(3),)), tmp_path / "bad.pt2")
    done = run("compile", tmp_path / "bad.pt2", "-o", tmp_path / "net.so")
    assert (
        done.returncode == 3
        and not (tmp_path / "net.so").exists()
        and "_linalg_eigh" in done.stderr
        and "aten.rand" in done.stderr
        and "Traceback" not in done.stderr
    ), done.stderr
