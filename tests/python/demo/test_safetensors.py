# SPDX-License-Identifier: Apache-2.0
"""The safetensors reader: whole files come out as written, every broken one is an error that says what is wrong."""

import json

import numpy as np
import pytest

from baton.demo.safetensors import SafetensorsError, read_safetensors


def save(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def tensor(begin, end, shape=None, dtype="F32"):
    return {"dtype": dtype, "shape": [(end - begin) // 4] if shape is None else shape, "data_offsets": [begin, end]}


def test_reads_what_was_written(tmp_path):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-1, 1 << 40], np.int64)
    header = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "none": {"dtype": "F32", "shape": [0, 5], "data_offsets": [40, 40]},
        "scalar": {"dtype": "F16", "shape": [], "data_offsets": [40, 42]},
    }
    path = save(tmp_path / "m", header, a.tobytes() + b.tobytes() + np.float16(2.5).tobytes())
    got = read_safetensors(path)
    assert sorted(got) == ["a", "b", "none", "scalar"]
    np.testing.assert_array_equal(got["a"], a)
    np.testing.assert_array_equal(got["b"], b)
    assert got["none"].shape == (0, 5) and got["scalar"].shape == () and got["scalar"] == 2.5
    with pytest.raises(ValueError):
        got["a"][0, 0] = 1  # the file is mapped read-only


@pytest.mark.parametrize(
    "header, data, what",
    [
        (b"{", b"", "not JSON"),
        (b"\xff\xfe", b"", "not JSON"),
        (b"[" * 100_000, b"", "not JSON"),
        (b"[]", b"", "not a JSON object"),
        (b'{"a": 1, "a": 2}', b"", "twice"),
        ({"a": 3}, b"", "lacks dtype"),
        ({"a": {"dtype": "F32", "shape": [1]}}, b"", "lacks dtype"),
        ({"a": tensor(0, 4, dtype="F31")}, bytes(4), "'F31'"),
        ({"a": tensor(0, 4, dtype=["F32"])}, bytes(4), "dtype"),
        ({"a": tensor(0, 4, shape=[-1])}, bytes(4), "shape"),
        ({"a": tensor(0, 4, shape=[True])}, bytes(4), "shape"),
        ({"a": tensor(0, 4, shape=[1.0])}, bytes(4), "shape"),
        ({"a": tensor(0, 4, shape="1")}, bytes(4), "shape"),
        ({"a": tensor(0, 4, shape=[2])}, bytes(4), "needs 8 bytes"),
        ({"a": tensor(0, 4, shape=[1 << 40, 1 << 40])}, bytes(4), "needs"),
        ({"a": tensor(0, 8)}, bytes(4), "outside"),
        ({"a": tensor(4, 0, shape=[0])}, bytes(4), "outside"),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4), "data_offsets"),
        ({"a": tensor(0, 4), "b": tensor(0, 4)}, bytes(4), "overlaps"),
        ({"a": tensor(0, 8), "b": tensor(4, 12)}, bytes(12), "overlaps"),
        ({"a": tensor(0, 4), "b": tensor(8, 12)}, bytes(12), "hole"),
        ({"a": tensor(4, 8)}, bytes(8), "hole"),
        ({"a": tensor(0, 4)}, bytes(5), "belong to no tensor"),
    ],
)
def test_broken_header(tmp_path, header, data, what):
    with pytest.raises(SafetensorsError, match=what):
        read_safetensors(save(tmp_path / "m", header, data))


def test_length_is_not_believed(tmp_path):
    for length in (3, 1 << 40, (1 << 64) - 1):
        with pytest.raises(SafetensorsError):
            read_safetensors(save(tmp_path / "m", b"{}", length=length))


def test_every_cut_is_an_error(tmp_path):
    whole = save(tmp_path / "whole", {"a": tensor(0, 12)}, bytes(12)).read_bytes()
    for size in range(len(whole)):
        path = tmp_path / "cut"
        path.write_bytes(whole[:size])
        with pytest.raises(SafetensorsError):
            read_safetensors(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(OSError):
        read_safetensors(tmp_path / "none")
    with pytest.raises(OSError):
        read_safetensors(tmp_path)
