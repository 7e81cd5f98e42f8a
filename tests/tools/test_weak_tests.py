# SPDX-License-Identifier: Apache-2.0
"""No test of this repository is one that cannot fail, as far as its text shows it, and the finder finds those that are."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "tools"))
from weak_tests import main, weak  # noqa: E402


def test_there_are_none(capsys):
    assert main([TESTS]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "body, what",
    [
        ("f(1)", "test_it checks nothing"),
        ("assert (x == 1, 'one')", "a display that is not empty"),
        ("assert x == 1 or 'x is not one'", "something that is always true"),
        ("assert (y == 1 for y in x)", "something that is always true"),
        ("assert len(x) >= 0", "a length that is not negative"),
        ("assert x.shape == x.shape", "compared with itself"),
        ("assert structural_equal(x['a'], x['a'])", "compared with itself"),
        ("np.testing.assert_array_equal(x, x)", "compared with itself"),
        ("done = [y for y in x if f(y) or True]; assert done", "a condition that always holds"),
        ("try:\n        assert f()\n    except Exception as e:\n        pytest.skip(str(e))", "skips on any exception"),
        ("try:\n        assert f()\n    except (ValueError, Exception):\n        pass", "passes over any exception"),
        ("if hasattr(x, 'a'):\n        assert x.a == 1", "checks only what is there"),
        ("if not hasattr(x, 'a'):\n        pytest.skip('no a')\n    assert x.a", "checks only what is there"),
        ("if 'a' in op.list_op_names():\n        assert f(x)", "checks only what is there"),
        ("with pytest.raises(Exception):\n        f()", "expects any exception"),
    ],
)
def test_weak_ones_are_found(body, what):
    assert any(what in found for _, found in weak(f"def test_it(x):\n    {body}\n")), body


@pytest.mark.parametrize(
    "body",
    [
        "assert f(x) == f(x)",
        "assert x is not x.copy()",
        "check(x)",
        "own(x)",
        "assert len(x) >= 1",
        "assert x == []",
        "with pytest.raises(ValueError):\n        f()",
        "with pytest.raises(Exception, match='no'):\n        f()",
        "try:\n        f()\n    except KeyError:\n        pass\n    assert x",
        "subprocess.run(x, check=True)",
        "with pytest.raises(TypeError):\n        assert_similar(x, x)",
    ],
)
def test_others_are_not(body):
    assert weak(f"def own(x):\n    assert x\n\n\ndef test_it(x):\n    {body}\n") == [], body
