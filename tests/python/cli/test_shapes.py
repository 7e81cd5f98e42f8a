# SPDX-License-Identifier: Apache-2.0
"""--shape and --dim, in every verb that reads a model."""

import re

import numpy as np
import pytest

from baton.cli import build_parser

VERBS = ["run", "compile", "bench", "profile", "opt", "explain-pipeline", "explore", "explain-placement", "bisect", "inspect"]
TEXT = "def @main(%x: Tensor[(?, 3, ?), float32]) { nn.relu(%x) }\n"


@pytest.fixture
def model(tmp_path):
    """relu of (an extent without a name, n, 4)."""
    pytest.importorskip("onnx")
    from onnx_files import node, value, write

    shape = [None, "n", 4]
    return write(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], inputs=[value("x", shape)], outputs=[value("y", shape)])


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_them(verb):
    more = ["--passes", "InferType"] if verb in ("opt", "bisect") else []
    args = build_parser(verb).parse_args([verb, "m.onnx", "--dim", "n=2", "--shape", "x=1,2,4", *more])
    assert args.dim == [("n", 2)] and args.shape == [("x", (1, 2, 4))]


@pytest.mark.parametrize("dims", [("x[0]=2", "n=3"), ("x[0]=2", "x[1]=3")])
def test_a_dimension_is_named_by_its_place(baton, compiler, model, dims):
    flags = [word for dim in dims for word in ("--dim", dim)]
    assert "[2, 3, 4]" in baton("run", model, *flags).stdout
    assert "x float32[2, 3, 4]" in baton("inspect", model, *flags).stdout
    assert "Tensor[(2, 3, 4), float32]" in baton("opt", model, "--passes", "InferType", *flags).stdout
    assert "InferType" in baton("explain-pipeline", model, "--passes", "FuseOps", *flags).stdout
    baton("explain-placement", model, *flags)
    baton("compile", model, "-o", "m.so", *flags)
    assert "[2, 3, 4]" in baton("run", "m.so").stdout


def test_what_is_not_said_stays_open(baton, compiler, model):
    assert "Tensor[(x_0, 3, 4), float32]" in baton("opt", model, "--passes", "InferType", "--dim", "n=3").stdout
    assert "x float32[None, 3, 4]" in baton("inspect", model, "--dim", "n=3").stdout


def test_open_dimensions_are_called_as_compile_calls_them(baton, compiler, model):
    """The model that passes see is the one that is compiled."""
    text = baton("opt", model, "--passes", "default").stdout
    assert "Tensor[(x_0, n, 4), float32]" in text
    assert baton("compile", model, "--emit", "relay").stdout == text
    # Relay text stays as it is written, and so does a model all of whose lengths are given.
    assert "%x: Tensor[(?, 3, ?), float32]" in baton("opt", "-", "--passes", "InferType", stdin=TEXT).stdout
    closed = baton("opt", model, "--passes", "InferType", "--dim", "n=3", "--dim", "x[0]=2").stdout
    assert "Tensor[(2, 3, 4), float32]" in closed and "dims" not in closed


def test_sizes_of_relay_text(baton, compiler, tmp_path):
    (tmp_path / "in.relay").write_text(TEXT)
    assert "Tensor[(2, 3, ?), float32]" in baton("opt", "in.relay", "--passes", "InferType", "--dim", "x[0]=2").stdout
    assert "Tensor[(2, 3, 5), float32]" in baton("opt", "-", "--passes", "InferType", "--shape", "x=2,3,5", stdin=TEXT).stdout
    assert "[2, 3, 5]" in baton("run", "in.relay", "--dim", "x[0]=2", "--dim", "x[2]=5").stdout


@pytest.mark.parametrize("flags, words", [
    (["--dim", "m=3"], "no dimension `m`; it has n, x[0]"), (["--dim", "x[2]=3"], "`x[2]` is 4 in the model"),
    (["--dim", "n=3", "--dim", "x[1]=4"], "`n` is 3 and 4"), (["--shape", "xx=1"], "no input `xx`"),
    (["--dim", "m=1..3"], "no dimension `m`; it has n, x[0]"), (["--dim", "x[2]=1..4"], "`x[2]` is 4 in the model"),
    (["--dim", "n=5..3"], "no length is at least 5, at most 3"), (["--shape", "x=2,n:5,4"], "`x=2,n:5,4` is not a shape"),
    (["--shape", "x=2,n:1..5"], "has 3 dimensions, --shape gives 2"), (["--shape", "x=2,n:..9,5"], "has shape (x[0], n, 4), not (2, n:0..9, 5)"),
])  # fmt: skip
def test_wrong_sizes(baton, compiler, model, flags, words):
    assert words in baton("compile", model, "-o", "m.so", *flags, code=2).stderr


@pytest.mark.parametrize("verb", ["run", "bench", "explore"])
def test_sizes_that_nothing_says_are_supposed_and_said(baton, compiler, model, verb):
    more = {"run": [], "bench": ["--rounds", "1"], "explore": ["--no-profile"]}[verb]
    said = baton(verb, model, "--dim", "n=3", *more).stderr
    assert re.search(r"open dimensions: (x_0|x\[0\])=1; others with --dim", said), said
    if verb == "run":
        assert "open dimensions" not in baton("run", model, "--dim", "n=3", "--dim", "x[0]=2").stderr
        assert "open dimensions" not in baton("run", model, "-q").stderr


def test_supposed_sizes(capsys):
    from baton.cli.shapes import gather_shapes
    from baton.cli.values import gather
    from baton.driver.dims import Dim
    from baton.driver.executable import TensorInfo

    infos = [
        TensorInfo("image", "float32", ("b", 3, "h", "w")),
        TensorInfo("past", "float32", ("b", 2, "past", 8)),
        TensorInfo("mask", "float32", ("b", "past + seq")),
    ]
    assert gather_shapes(infos, {}, {"h": 5}) == {"image": (1, 3, 5, 224), "past": (1, 2, 16, 8), "mask": (1, 32)}
    assert "b=1, w=224, past=16, seq=16; others with --dim b=..." in capsys.readouterr().err
    made = gather(infos[1:2], {}, {}, {}, 0, (Dim("b", 3, 9, 2), Dim("past", 0, 10, 4)), True)
    assert made["past"].shape == (4, 2, 8, 8) and capsys.readouterr().err == ""


@pytest.mark.parametrize("flags, dims", [
    ([], "n, x_0"), (["--dim", "n=1..8/2"], "n:1..8/2, x_0"), (["--shape", "x=?,n:..5,4", "--dim", "x[0]=2..3"], "n:0..5, x_0:2..3"), (["--dim", "n=3"], "x_0"),
    (["--shape", "x=batch:1..,2,4"], "batch:1.."),
])  # fmt: skip
def test_a_file_serves_every_size(baton, compiler, model, tmp_path, flags, dims):
    import baton as package

    baton("compile", model, "-o", "open.so", *flags)
    loaded = package.load(tmp_path / "open.so")
    assert ", ".join(sorted(map(str, loaded.dims))) == dims
    shape = "2,3,4" if flags == ["--dim", "n=3"] else "2,2,4"
    assert f"[{shape.replace(',', ', ')}]" in baton("run", "open.so", "--shape", f"x={shape}").stdout
    assert "nn.relu" in baton("compile", model, "--emit=relay", *flags).stdout


def test_two_extents_without_names_differ(baton, compiler, tmp_path):
    (tmp_path / "in.relay").write_text(TEXT)
    assert "x_0=1, x_2=16" in baton("run", "in.relay").stderr


def test_an_input_without_a_rank_has_that_of_its_shape(baton, compiler, tmp_path):
    pytest.importorskip("onnx")
    from onnx_files import node, value, write

    path = write(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], inputs=[value("x", None)], outputs=[value("y", None)])
    assert "[2, 3]" in baton("run", path, "--shape", "x=2,3").stdout
    assert "has no rank" in baton("run", path, code=1).stderr


def test_a_dimension_that_is_a_formula_follows_from_others(baton, compiler, tmp_path):
    (tmp_path / "in.relay").write_text(
        "def @main(%past: Tensor[(n, 2), float32], %new: Tensor[(m, 2), float32], %mask: Tensor[(n + m*2), float32]) { (%past, %new, %mask) }\n"
    )
    baton("compile", "in.relay", "-o", "m.so")
    out = baton("run", "m.so", "--dim", "n=3", "--dim", "m=2").stdout
    assert "[3, 2]" in out and "[2, 2]" in out and "float32[7]" in out
    assert "open dimensions: m=1" in baton("run", "m.so", "--dim", "n=3").stderr


@pytest.mark.parametrize(
    "formula, value", [("n", 6), ("n + m*2", 10), ("max(n - 7, 1)", 1), ("floordiv(n + 1, m)", 3), ("n + k", None), ("n(", None), ("min(n)", None)]
)
def test_values_of_formulas(formula, value):
    from baton.cli.shapes import evaluate

    assert evaluate(formula, {"n": 6, "m": 2}) == value


def test_inputs_from_an_archive(baton, compiler, model, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.full((2, 3, 4), -1, "float32"))
    np.savez(tmp_path / "other.npz", z=np.ones((2, 3, 4), "float32"))
    for given in ("in.npz", "x=in.npz"):
        assert "[2, 3, 4]  min 0" in baton("run", model, "-i", given).stdout
    assert "[2, 3, 4]  min 1" in baton("run", model, "-i", "x=other.npz").stdout  # it has one array
    assert "the model has no input `z`" in baton("run", model, "-i", "other.npz", code=2).stderr
    (tmp_path / "bad.npz").write_text("no archive")
    assert "not a usable .npz file" in baton("run", model, "-i", "bad.npz", code=1).stderr


def test_an_ending_that_says_nothing_is_refused(baton, compiler, model, tmp_path):
    said = baton("compile", model, "-o", "out.txt", code=2).stderr
    assert "the ending .txt of `out.txt` does not say what to write" in said and "--emit" in said and not (tmp_path / "out.txt").exists()
    baton("compile", model, "-o", "out.txt", "--emit", "relay")
    assert "nn.relu" in (tmp_path / "out.txt").read_text()
