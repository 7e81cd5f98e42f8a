# SPDX-License-Identifier: Apache-2.0
"""Processes: one that forks, one without a C++ compiler, one without PyTorch's own caches."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

ROOT = Path(__file__).resolve().parents[3]


def run(script, tmp_path, path):
    """Runs a script in a process whose PATH is `path`; it has to end with 0."""
    head = """
    import torch, baton
    from baton.contrib.torch import register
    register()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 36, 64))
    x = torch.randn(4, 3, 8, 8)
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "BATON", "LD_", "HOME", "LANG"))}
    environment = {**kept, "PATH": path, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    code = textwrap.dedent(head) + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_without_a_compiler_on_the_path(tmp_path):
    """Inference, other shapes, training, what stays with PyTorch, an exported program that is saved: nothing calls a compiler."""
    out = run(
        """
        import shutil
        assert not any(shutil.which(name) for name in ("cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as"))
        same = lambda a, b: torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        net.eval()
        with torch.no_grad():
            for options in ({}, {"freeze": True}, {"precision": "bf16"}):
                fast = torch.compile(net, backend="baton", options=options)
                for rows in (4, 2, 3):
                    torch.testing.assert_close(fast(x[:rows]), net(x[:rows]), rtol=2e-2, atol=2e-2)
                torch._dynamo.reset()
        islands = lambda x: torch.relu(torch.linalg.eigh(x @ x.T)[1].abs()) * 2
        square = torch.randn(5, 5)
        same(torch.compile(islands, backend="baton")(square), islands(square))
        model = baton.compile(torch.export.export(net, (x,)))
        model.save("net.so")
        same(torch.from_dlpack(baton.load("net.so")(x)), net(x))
        net.train()
        fast, step = torch.compile(net, backend="baton"), torch.optim.Adam(net.parameters())
        losses = []
        for _ in range(5):
            loss = (fast(x) ** 2).mean()
            step.zero_grad(); loss.backward(); step.step(); losses.append(loss.item())
        assert losses[-1] < losses[0]
        print("done")
        """,
        tmp_path,
        str(tmp_path),
    )
    assert out.endswith("done\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_forks(tmp_path):
    """The child calls what the parent compiled, and compiles for other shapes; the parent goes on."""
    run(
        """
        import os
        net.eval()
        torch.set_num_threads(1)  # PyTorch's own threads do not live on in a child
        with torch.no_grad():
            fast = torch.compile(net, backend="baton")
            fast(x)
            for _ in range(2):
                child = os.fork()
                if not child:
                    near = [torch.allclose(fast(v), net(v), atol=1e-4) for v in (x, torch.randn(7, 3, 8, 8), torch.randn(5, 3, 8, 8))]
                    os._exit(0 if all(near) else 3)
                assert os.waitpid(child, 0)[1] == 0
            assert torch.allclose(fast(x), net(x), atol=1e-4)
        """,
        tmp_path,
        os.environ["PATH"],
    )


def test_four_processes_of_a_pool(tmp_path):
    run(
        """
        import multiprocessing
        net.eval()
        torch.set_num_threads(1)
        fast = torch.compile(net, backend="baton")

        def work(rows):
            with torch.no_grad():
                return torch.allclose(fast(x[:rows]), net(x[:rows]), atol=1e-4)

        with torch.no_grad():
            fast(x)
        with multiprocessing.get_context("fork").Pool(4) as pool:
            assert all(pool.map(work, [4, 3, 2, 4, 3, 2, 1, 4]))
        """,
        tmp_path,
        os.environ["PATH"],
    )
