# SPDX-License-Identifier: Apache-2.0
"""Inputs from files and recipes, shapes from names, comparisons, error texts: the parts of the command one by one."""

import argparse
import os
from typing import NamedTuple

import numpy as np
import pytest

from baton.cli import arguments, shapes, values
from baton.cli.errors import Failure, UsageError, report
from baton.cli.run import compare


class Info(NamedTuple):
    name: str
    dtype: str
    shape: tuple


X, IDS = Info("x", "float32", (1, 3)), Info("ids", "int64", ("batch", "seq"))
MASK = Info("mask", "bool", ("batch", "seq"))


@pytest.mark.parametrize("text", ["x=1,3,4", "x:[1,3,4]", "x[1,3,4]", "x:1x3x4", "x=1x3x4", "x=(1, 3, 4)"])
def test_shape_spellings(text):
    assert arguments.named_shape(text) == ("x", (1, 3, 4))


def test_shape_corner_cases():
    assert arguments.named_shape("a:0=2") == ("a:0", (2,))  # names may hold colons
    assert arguments.named_shape("x=") == ("x", ())
    for text in ("x", "=1", "x=1,-2", "x=1,2.5"):
        with pytest.raises(argparse.ArgumentTypeError):
            arguments.named_shape(text)


def test_pass_options():
    cases = {"k=1": 1, "k=2.5": 2.5, "k=true": True, "k=False": False, "k=[1, 2]": [1, 2], "k='a'": "a", "k=a b": "a b"}
    for text, value in cases.items():
        assert arguments.named_option(text) == ("k", value)


def test_recipes_are_repeatable():
    a = values.gather([X, IDS], {}, {}, {"batch": 2, "seq": 4}, seed=1)
    b = values.gather([X, IDS], {"x": "random:1"}, {"ids": (2, 4)}, {}, seed=1)
    np.testing.assert_array_equal(a["x"], b["x"])
    assert a["ids"].shape == (2, 4) and a["ids"].dtype == np.int64 and set(a["ids"].ravel()) <= {0, 1}
    assert a["x"].dtype == np.float32
    c = values.gather([X], {"x": "range"}, {}, {}, 0)["x"]
    np.testing.assert_array_equal(c, [[0, 1, 2]])
    assert (values.gather([X], {"x": "ones"}, {}, {}, 0)["x"] == 1).all()


def test_files_settle_named_dimensions(tmp_path):
    np.save(tmp_path / "ids.npy", np.zeros((2, 5), np.int64))
    got = values.gather([MASK, IDS], {"ids": str(tmp_path / "ids.npy"), "mask": "ones"}, {}, {}, 0)
    assert got["mask"].shape == (2, 5) and got["mask"].dtype == bool and got["mask"].all()


@pytest.mark.parametrize(
    "given, shapes, dims, words",
    [
        ({"y": "ones"}, {}, {}, "no input `y`"),
        ({}, {"idz": (1, 1)}, {}, "no input `idz`"),
        ({}, {}, {"bach": 1}, "no dimension `bach`"),
        ({}, {"ids": (1, 2, 3)}, {}, "2 dimensions"),
        ({}, {"ids": (1, 2)}, {"batch": 4}, "`batch` is 4"),
        ({}, {"x": (2, 3), "ids": (1, 1)}, {}, "not (2, 3)"),
    ],
)
def test_wrong_requests(given, shapes, dims, words):
    with pytest.raises(UsageError, match=words.replace("(", r"\(").replace(")", r"\)")):
        values.gather([X, IDS], given, shapes, dims, 0)


def test_wrong_files(tmp_path):
    def gather(array=None, data=None):
        path = tmp_path / "a.npy"
        path.write_bytes(data) if data is not None else np.save(path, array)
        return values.gather([X], {"x": str(path)}, {}, {}, 0)

    good = np.zeros((1, 3), np.float32)
    assert gather(good)["x"].shape == (1, 3)
    with pytest.raises(Failure, match="float32.*float64"):
        gather(good.astype(np.float64))
    with pytest.raises(Failure, match="shape"):
        gather(np.zeros((3, 1), np.float32))
    with pytest.raises(Failure, match="shape"):
        gather(np.zeros(3, np.float32))
    np.save(tmp_path / "whole.npy", good)
    whole = (tmp_path / "whole.npy").read_bytes()
    for size in range(len(whole)):
        with pytest.raises(Failure):
            gather(data=whole[:size])
    for data in (b"\x93NUMPY\x01\x00\xff\xff" + b"{" * 500, b"\x93NUMPY\x09\x00", os.urandom(300), b"PK\x03\x04"):
        with pytest.raises(Failure, match="not a usable"):
            gather(data=data)
    np.save(tmp_path / "evil.npy", np.array([print], object), allow_pickle=True)
    with pytest.raises(Failure, match="not a usable"):
        values.read_array(str(tmp_path / "evil.npy"))
    with pytest.raises(Failure, match="directory"):
        values.read_array(str(tmp_path))
    with pytest.raises(Failure, match="no such file"):
        values.read_array(str(tmp_path / "none.npy"))


def test_shapes_alone():
    assert shapes.gather_shapes([X, IDS], {}, {"batch": 2, "seq": 7}) == {"x": (1, 3), "ids": (2, 7)}
    assert shapes.gather_shapes([Info("s", "float32", ())], {}, {}) == {"s": ()}
    assert shapes.gather_shapes([IDS], {}, {"batch": 2}) == {"ids": (2, 16)}
    with pytest.raises(UsageError, match="`n // 2`") as error:  # no formula of extents
        shapes.gather_shapes([Info("x", "float32", ("n // 2",))], {}, {})
    assert "--shape x=" in error.value.help


def test_absurd_size_is_refused():
    with pytest.raises(Failure, match="bytes"):
        values.make("zeros", (1 << 40, 1 << 40), "float32", 0)


def test_save(tmp_path):
    out = {"a": np.arange(3), "b": np.ones((2, 2), np.float32)}
    values.save_arrays(str(tmp_path / "o.npz"), out)
    with np.load(tmp_path / "o.npz") as back:
        np.testing.assert_array_equal(back["b"], out["b"])
    values.save_arrays(str(tmp_path / "o.npy"), {"a": out["a"]})
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), out["a"])
    assert (tmp_path / "o.npy").stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(UsageError, match="one array"):
        values.save_arrays(str(tmp_path / "p.npy"), out)
    with pytest.raises(UsageError, match="npz"):
        values.save_arrays(str(tmp_path / "p.txt"), out)
    with pytest.raises(Failure, match="cannot write"):
        values.write_file(str(tmp_path / "none" / "x"), b"")
    with pytest.raises(Failure, match="directory"):
        values.write_file(str(tmp_path), b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.npy", "o.npz"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    "got, wanted, same",
    [
        (np.float32([1, 2]), np.float32([1, 2.001]), True),
        (np.float32([1, 2]), np.float32([1, 2.1]), False),
        (np.float32([1, np.nan]), np.float32([1, 2]), False),
        (np.float32([np.nan]), np.float32([np.nan]), True),
        (np.float32([np.inf]), np.float32([np.inf]), True),
        (np.float32([np.inf]), np.float32([-np.inf]), False),
        (np.float32([1]), np.float64([1]), False),
        (np.float32([1]), np.float32([[1]]), False),
        (np.array(["a"]), np.array(["a"]), True),
        (np.array(["a"]), np.array(["b"]), False),
    ],
)
def test_compare(got, wanted, same):
    assert (compare("y", got, wanted, 1e-3, 1e-5) is None) == same


def test_describe():
    text = values.describe("y", np.float32([[1, np.nan]]))
    assert text.startswith("y  float32[1, 2]") and "not finite: 1" in text
    assert values.describe("s", np.array(3)).splitlines() == ["s  int64[]  min 3  mean 3  max 3", "  3"]
    assert "float32[0, 4]" in values.describe("e", np.zeros((0, 4), np.float32))
    assert len(values.describe("l", np.zeros((100, 100, 100))).splitlines()) < 60
    assert "values" not in values.as_json(np.zeros(5000)) and values.as_json(np.zeros(2))["values"] == [0, 0]


def test_json_has_no_bare_nan():
    import json

    out = values.as_json(np.float32([[1, np.nan], [np.inf, -np.inf]]))
    assert json.loads(json.dumps(out, allow_nan=False))["values"] == [[1, "nan"], ["inf", "-inf"]]


def test_error_texts(capsys):
    class Located(Exception):
        __module__ = "baton.error"
        help = "h"

    assert report(Located("m.relay:1:2: error: bad\n" + "\n".join("abcdefgh"))) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "m.relay:1:2: error: bad" and len(lines) == 6 and lines[-1] == "  help: h"
    assert report(UsageError("u")) == 2
    assert capsys.readouterr().err == "error: u\n"
    assert report(FileNotFoundError(2, "No such file or directory", "f")) == 1
    assert capsys.readouterr().err == "error: `f`: no such file or directory\n"
    assert report(KeyError("k")) == 1
    assert capsys.readouterr().err.startswith("internal error: KeyError")
    assert report(MemoryError()) == 1
    assert "out of memory" in capsys.readouterr().err


def test_kind_of_file(tmp_path):
    def kind(name, data):
        (tmp_path / name).write_bytes(data)
        return arguments.kind_of_file(str(tmp_path / name))

    assert kind("a.onnx", b"\x08\x08") == "onnx" and kind("a", b"\x08\x08") == "onnx"
    assert kind("a.so", b"\x7fELF") == "artifact" and kind("b", b"\x7fELF\x02") == "artifact"
    assert kind("a.relay", b"x") == "relay" and kind("c", b'#[version = "0.0.5"]\ndef @main() {}') == "relay"
