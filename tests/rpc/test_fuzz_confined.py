# SPDX-License-Identifier: Apache-2.0
"""A few hundred of the sessions of `fuzz_confined.py`, which makes 100,000."""

import shutil
import subprocess

import fuzz_confined
import pytest
from hostility import KERNELS, LANDLOCK, Target

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock"),
]


@pytest.fixture(params=[KERNELS[0], KERNELS[-1]], ids=lambda kernel: kernel.name)
def target(request, tmp_path):
    with Target(tmp_path, kernel=request.param, client={"call_timeout": 1}, stderr=subprocess.DEVNULL) as made:
        yield made


def test_changed_conversations_are_answered_or_refused(target):
    assert fuzz_confined.converse_often(target, 500, 0) == -1


def test_calls_by_chance_change_nothing(target):
    assert fuzz_confined.attack_often(target, 60, 0) == -1
