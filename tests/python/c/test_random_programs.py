# SPDX-License-Identifier: Apache-2.0
"""Random programs: the bits that LLVM gives of the same loops, and C that no compiler warns of."""

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
