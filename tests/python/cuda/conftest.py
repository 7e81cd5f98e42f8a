# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's assembler, where it is installed, and the path of tools that the tests here share."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
for folder in (HERE, HERE.parent / "opencl", ROOT / "tools", ROOT / "tests/relay/op"):
    sys.path.append(str(folder))


def find_ptxas():
    found = shutil.which("ptxas")
    for name in ("nvidia.cuda_nvcc", "nvidia.cu13"):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        for place in spec.submodule_search_locations if spec and not found else ():
            path = Path(place) / "bin/ptxas"
            found = str(path) if path.exists() else found
    return found


@pytest.fixture(scope="session")
def ptxas(tmp_path_factory):
    """A function (PTX, chip) that gives what NVIDIA's assembler says of it."""
    path = find_ptxas()
    if not path:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc-cu12")
    folder = tmp_path_factory.mktemp("ptxas")

    def run(text, chip):
        (folder / "k.ptx").write_text(text)
        done = subprocess.run([path, "-v", f"-arch={chip}", "-o", str(folder / "k.cubin"), str(folder / "k.ptx")], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory):
    """The stand-in for the driver, as a path."""
    path = tmp_path_factory.mktemp("cuda") / "fake_cuda.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(path), str(HERE / "fake_cuda.c")], check=True)
    return path
