# SPDX-License-Identifier: Apache-2.0
"""`limits=`: what a call may take in seconds, bytes and rounds. Without them a call goes on; Ctrl-C ends it."""

import time

import numpy as np
import pytest

import baton

LOOP = """#[version = "0.0.5"]
def @main(%n: int64) -> int64 { if (equal(%n, 0i64)) { 0i64 } else { @main(subtract(%n, 1i64)) } }
"""
# Doubles a tensor n times.
GROW = """#[version = "0.0.5"]
def @grow(%n: int64, %x: Tensor[(?), float32]) -> Tensor[(?), float32] {
  if (equal(%n, 0i64)) { %x } else { @grow(subtract(%n, 1i64), concatenate((%x, %x))) }
}
def @main(%n: int64, %x: Tensor[(?), float32]) -> Tensor[(?), float32] { @grow(%n, %x) }
"""
# What a list of n tensors holds.
LIST = """#[version = "0.0.5"]
type Chain { Link(Tensor[(1000), float32], Chain), End }
def @make(%n: int64, %x: Tensor[(1000), float32], %rest: Chain) -> Chain {
  if (equal(%n, 0i64)) { %rest } else { @make(subtract(%n, 1i64), %x, Link(add(%x, 1f), %rest)) }
}
def @length(%n: int64, %list: Chain) -> int64 {
  match (%list) { End => %n, Link(_, %rest) => @length(add(%n, 1i64), %rest) }
}
def @main(%n: int64, %x: Tensor[(1000), float32]) -> int64 { @length(0i64, @make(%n, %x, End)) }
"""


def number(n):
    return np.array(n, "int64")


@pytest.fixture(scope="module")
def loop():
    return baton.compile(LOOP)


def test_seconds(loop):
    loop.limits = {"seconds": 0.3}
    start = time.perf_counter()
    with pytest.raises(TimeoutError, match="longer than `limits` allow"):
        loop(number(1 << 31))
    assert time.perf_counter() - start < 1
    assert loop(number(10)).numpy() == 0
    loop.limits = None
    assert loop(number(10)).numpy() == 0


def test_rounds(loop):
    loop.limits = baton.Limits(rounds=1000)
    with pytest.raises(baton.error.RuntimeError, match="in `main`: more rounds of loops and calls of functions than `limits` allow"):
        loop(number(1 << 31))
    assert loop(number(1000)).numpy() == 0
    with pytest.raises(baton.error.RuntimeError, match="more rounds"):
        loop(number(1001))
    loop.limits = None
    assert loop(number(100_000)).numpy() == 0


def test_bytes_of_one_array():
    grow = baton.compile(GROW, limits={"bytes": 1 << 20})
    x = np.ones(4, "float32")
    assert grow(number(10), x).shape == (4096,)
    for doublings in (40, 60):  # terabytes, exabytes
        with pytest.raises(MemoryError, match="more bytes than `limits` allow"):
            grow(number(doublings), x)
    assert grow(number(10), x).shape == (4096,)


def test_a_program_reads_inputs_where_they_are(tmp_path):
    """They are not copied, which would count."""
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1000000), float32]) { topk(%x, k=3, ret_type="values") }'
    largest = baton.compile(text, limits={"bytes": 1 << 20})
    largest.save(tmp_path / "largest.so")
    x = np.arange(1_000_000, dtype="float32")
    for program in (largest, baton.load(tmp_path / "largest.so", limits={"bytes": 1 << 20})):
        np.testing.assert_array_equal(program(x).numpy(), [999_999, 999_998, 999_997])
        with pytest.raises(MemoryError):  # elements with gaps are brought together
            program(np.ones((1_000_000, 2), "float32")[:, 0])


def test_bytes_of_many_arrays():
    chain = baton.compile(LIST, limits={"bytes": 10 << 20})
    x = np.ones(1000, "float32")
    assert chain(number(1000), x).numpy() == 1000
    with pytest.raises(MemoryError, match="more bytes than `limits` allow"):
        chain(number(100_000), x)
    for _ in range(5):  # what a call made is given back, by a call that failed too
        assert chain(number(2000), x).numpy() == 2000


def test_a_static_model():
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1), float32]) { broadcast_to(%x, shape=[1000000]) }'
    assert baton.compile(text, limits={"bytes": 8 << 20})(np.ones(1, "float32")).shape == (1_000_000,)
    with pytest.raises(MemoryError, match="more bytes than `limits` allow"):
        baton.compile(text, limits={"bytes": 1 << 20})


def test_a_loaded_model(loop, tmp_path):
    loop.save(tmp_path / "loop.so")
    loaded = baton.load(tmp_path / "loop.so", limits={"rounds": 10})
    assert loaded.limits == baton.Limits(None, None, 10)
    assert loaded(number(10)).numpy() == 0
    with pytest.raises(baton.error.RuntimeError, match="more rounds"):
        loaded(number(11))


@pytest.mark.parametrize(
    ("limits", "error", "says"),
    [
        ({"second": 1}, ValueError, "there is no limit `second`; there are seconds, bytes, rounds"),
        ({"bytes": -1}, ValueError, "the limit `bytes` is -1, must not be negative"),
        (3, TypeError, "a baton.Limits or a dict"),
    ],
)
def test_what_is_no_limit(loop, limits, error, says):
    with pytest.raises(error, match=says):
        loop.limits = limits
