# SPDX-License-Identifier: Apache-2.0
"""Random programs: the bits that LLVM gives of the same loops, and C that no compiler warns of."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from strict import accept, both, needs_compiler, results, same_bits

from baton import relay
from baton.relay.testing import random_inputs, random_program

_ONE_FUNCTION = ("if", "closure", "global", "ref", "data", "recursion")


def _check(seed, folder):
    mod = relay.transform.InferType()(relay.fromtext(random_program(seed, skip=_ONE_FUNCTION, empty=seed % 5 == 0)))
    by_c, by_llvm = both(mod)
    path = folder / "program.c"
    path.write_text(by_c.get_source("c"))
    accept(path, folder)
    for special in (False, True):
        args = [np.asarray(a.numpy() if hasattr(a, "numpy") else a) for a in random_inputs(mod, seed, special)]
        got, want = results(by_c, args), results(by_llvm, args)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert same_bits(a, b), f"program {seed}, result {i}: {a.ravel()[:8]}, LLVM gives {b.ravel()[:8]}"


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_programs_have_the_bits_of_llvm(seed, tmp_path):
    _check(seed, tmp_path)


@needs_compiler
@pytest.mark.long
@pytest.mark.parametrize("seed", [s for s in range(300) if s % 10])
def test_more_programs_have_the_bits_of_llvm(seed, tmp_path):
    _check(seed, tmp_path)


SANITIZED = """
import sys
import numpy as np
from baton import relay
from baton.relay.testing import random_inputs, random_program
from strict import both, results

for seed in range(*map(int, sys.argv[1:])):
    text = random_program(seed, skip=("if", "closure", "global", "ref", "data", "recursion"), empty=seed % 5 == 0)
    mod = relay.transform.InferType()(relay.fromtext(text))
    print(seed, flush=True)
    for special in (False, True):
        results(both(mod)[0], [np.asarray(a.numpy() if hasattr(a, "numpy") else a) for a in random_inputs(mod, seed, special)])
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc: apt-get install gcc")
@pytest.mark.slow
def test_nothing_undefined_happens(tmp_path):
    """Code that ends the process where C leaves open what happens; special values are among the inputs."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nexec gcc "$@" -fsanitize=undefined -fsanitize-undefined-trap-on-error\n')
    compiler.chmod(0o755)
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "BATON_CC": str(compiler), "PYTHONPATH": os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = subprocess.run([sys.executable, "-c", SANITIZED, "3", "300", "15"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"program {done.stdout.split()[-1:]}: {done.returncode} {done.stderr[-2000:]}"
