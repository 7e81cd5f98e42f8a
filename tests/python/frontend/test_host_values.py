# SPDX-License-Identifier: Apache-2.0
"""Sequences, optionals and strings that come with a call: by `baton.compile`, saved, and by the runtime alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

HERE = Path(__file__).parent
F, INT, B, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
info, node = helper.make_tensor_value_info, helper.make_node


def sequence(name, elem=F, shape=None):
    return helper.make_tensor_sequence_value_info(name, elem, shape)


def optional(name, elem=F, shape=None):
    return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(elem, shape)))


def model(nodes, inputs, outputs, opset=20):
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def f32(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape).astype("float32")


def saved(m, tmp_path):
    """The model, and the same from its file."""
    compiled = baton.compile(m)
    compiled.save(tmp_path / "m.so")
    return compiled, baton.load(tmp_path / "m.so")


def test_a_sequence_of_any_length(tmp_path):
    m = model(
        [node("SequenceInsert", ["s", "x", "at"], ["longer"]), node("SequenceLength", ["longer"], ["n"]), node("SequenceAt", ["longer", "at"], ["first"])],
        [sequence("s", F, [None, 2]), info("x", F, [3, 2]), info("at", INT, [])],
        [sequence("longer"), info("n", INT, []), info("first", F, [None, 2])],
    )
    for run in saved(m, tmp_path):
        assert [i.dtype for i in run.inputs] == ["sequence(float32)", "float32", "int64"]
        assert [o.dtype for o in run.outputs] == ["sequence(float32)", "int64", "float32"]
        for count in (0, 1, 5):
            given = [f32(i, 2) for i in range(count)]
            for at in {0, count}:
                longer, n, first = run(given, f32(3, 2), np.array(at))
                want = [*given[:at], f32(3, 2), *given[at:]]
                assert int(n.numpy()) == count + 1 and len(longer) == count + 1
                for a, b in zip(longer, want, strict=True):
                    np.testing.assert_array_equal(a.numpy(), b)
                np.testing.assert_array_equal(first.numpy(), want[at])
        with pytest.raises(baton.Error, match="SequenceInsert: the position is 9, in a sequence of 0"):
            run([], f32(3, 2), np.array(9))
        with pytest.raises(TypeError, match="a list of arrays is wanted for a sequence"):
            run(f32(3, 2), f32(3, 2), np.array(0))
        with pytest.raises(TypeError, match="a tensor of float32 is wanted, got int64"):
            run([np.array([[1, 2]])], f32(3, 2), np.array(0))
        assert len(run([f32(1, 2)], f32(3, 2), np.array(0))[0]) == 2


def test_a_map_over_sequences(tmp_path):
    body = helper.make_graph(
        [node("Add", ["a", "b"], ["c"]), node("Relu", ["c"], ["d"])], "b", [info("a", F, ["n"]), info("b", F, ["n"])], [info("d", F, ["n"])]
    )
    m = model([node("SequenceMap", ["s", "t"], ["u"], body=body)], [sequence("s", F, ["n"]), sequence("t", F, ["n"])], [sequence("u", F, ["n"])])
    for run in saved(m, tmp_path):
        for lengths in ([], [4], [1, 7, 0]):
            s, t = [f32(n) for n in lengths], [f32(n) + 1 for n in lengths]
            out = run(s, t)
            assert len(out) == len(lengths)
            for a, b, c in zip(s, t, out, strict=True):
                np.testing.assert_allclose(c.numpy(), np.maximum(a + b, 0), rtol=1e-6)


def test_a_loop_that_makes_a_sequence(tmp_path):
    body = helper.make_graph(
        [node("Identity", ["go"], ["again"]), node("Cast", ["i"], ["f"], to=F), node("Unsqueeze", ["f", "axes"], ["row"]), node("SequenceInsert", ["s", "row"], ["t"]),
         node("Constant", [], ["axes"], value=onnx.numpy_helper.from_array(np.array([0])))][::-1],
        "b", [info("i", INT, []), info("go", B, []), sequence("s")], [info("again", B, []), sequence("t")],
    )  # fmt: skip
    m = model([node("SequenceEmpty", [], ["none"]), node("Loop", ["n", "", "none"], ["all"], body=body)], [info("n", INT, [])], [sequence("all")])
    for run in saved(m, tmp_path):
        for n in (0, 1, 6):
            assert [float(v.numpy()[0]) for v in run(np.array(n))] == list(range(n))


def test_optionals(tmp_path):
    m = model(
        [node("OptionalHasElement", ["x"], ["has"]), node("Identity", ["x"], ["y"])], [optional("x", F, [2])], [info("has", B, []), optional("y", F, [2])]
    )
    for run in saved(m, tmp_path):
        has, y = run(None)
        assert not has.numpy() and y is None
        has, y = run(f32(2))
        assert has.numpy()
        np.testing.assert_array_equal(y.numpy(), f32(2))
    m = model([node("OptionalGetElement", ["x"], ["y"]), node("Neg", ["y"], ["z"])], [optional("x", F, [2])], [info("z", F, [2])])
    for run in saved(m, tmp_path):
        with pytest.raises(baton.Error, match="OptionalGetElement: the optional has no value"):
            run(None)
        np.testing.assert_array_equal(run(f32(2)).numpy(), -f32(2))


def test_branches_of_several_lengths(tmp_path):
    def branch(name, count):
        return helper.make_graph([node("SequenceConstruct", ["x"] * count, [name])], name, [], [sequence(name)])

    nodes = [node("If", ["c"], ["s"], then_branch=branch("a", 1), else_branch=branch("b", 3)), node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    m = model(nodes, [info("c", B, []), info("x", F, [2])], [info("y", F, [None])])
    for run in saved(m, tmp_path):
        for c, count in [(True, 1), (False, 3)]:
            np.testing.assert_array_equal(run(np.array(c), f32(2)).numpy(), np.tile(f32(2), count))


def test_strings(tmp_path):
    nodes = [
        node("StringNormalizer", ["x"], ["low"], case_change_action="LOWER", stopwords=["und", "ODER"], is_case_sensitive=0),
        node("StringConcat", ["low", "tail"], ["joined"]),
        node("StringSplit", ["joined"], ["parts", "count"], delimiter="-"),
        node("RegexFullMatch", ["joined"], ["match"], pattern=r"[a-zäö]+(-\d{1,3})*-z?"),
        node("Equal", ["low", "joined"], ["same"]),
    ]
    outputs = [info("low", S, [None]), info("parts", S, [None, None]), info("count", INT, [None]), info("match", B, [None]), info("same", B, [None])]
    m = model(nodes, [info("x", S, [None]), info("tail", S, [1])], outputs)
    for run in saved(m, tmp_path):
        assert [i.dtype for i in run.inputs] == ["string", "string"]
        low, parts, count, match, same = run(np.array(["Äpfel", "Und", "Birnen", "oder", "ÖL"]), np.array(["-7-z"]))
        assert low.tolist() == ["äpfel", "birnen", "öl"]
        assert parts.tolist() == [["äpfel", "7", "z"], ["birnen", "7", "z"], ["öl", "7", "z"]]
        assert count.numpy().tolist() == [3, 3, 3] and match.numpy().all() and not same.numpy().any()
        low, parts, count, *_ = run(np.array(["und", "oder"]), np.array([""]))
        assert low.tolist() == [""] and parts.tolist() == [[""]] and count.numpy().tolist() == [1]
        with pytest.raises((ValueError, baton.Error)):
            run(np.array([["a"]]), np.array(["b"]))


TOKENS = ["Hello World", "I love computer science !", "", " ", "a-b_c  d", "naïve café", "日本 語", "x,y;z", "ab aab b", "one\ttwo"]


@pytest.mark.parametrize("shape", [[10], [2, 5]], ids=["[C]", "[N, C]"])
@pytest.mark.parametrize("mark, least, pad", [(0, 1, "#"), (1, 1, ""), (1, 2, "pad")])
@pytest.mark.parametrize("how", [
    *[{"separators": s} for s in ([" "], ["-", "_"], ["[ ,;]+"], [r"\s"], ["a", "b"], ["aa|a"], ["日"], ["none"])],
    *[{"tokenexp": e} for e in ("[a-zA-Z]+", r"\w+", "a|aa", "[^ ]+", "a*b", "none")],
    {"separators": [""]},
], ids=str)  # fmt: skip
def test_tokenizer(shape, mark, least, pad, how):
    onnxruntime = pytest.importorskip("onnxruntime")
    if how == {"separators": [""]} and least > 1:
        pytest.skip("ONNX Runtime refuses letters of two characters")
    nodes = [helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=mark, mincharnum=least, pad_value=pad, **how)]
    graph = helper.make_graph(nodes, "tokens", [info("x", S, shape)], [info("y", S, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    m = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    x = np.array(TOKENS, dtype=object).reshape(shape)
    want = onnxruntime.InferenceSession(m).run(None, {"x": x})[0]
    got = baton.compile(m)(x)
    assert got.shape == want.shape and got.tolist() == want.tolist()


def test_tokenizer_says_what_is_wrong():
    def run(**how):
        nodes = [helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0, mincharnum=1, pad_value="", **how)]
        graph = helper.make_graph(nodes, "tokens", [info("x", S, [1])], [info("y", S, None)])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return baton.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())(np.array(["a b"], dtype=object))

    for how, message in [({}, "one of `separators` and `tokenexp`"), ({"tokenexp": "(a"}, "`tokenexp`"), ({"separators": ["", " "]}, "stands alone")]:
        with pytest.raises(baton.Error, match=message):
            run(**how)


@pytest.mark.parametrize("pattern, yes, no", [
    ("", [""], ["a"]),
    ("a*", ["", "a", "aaaa"], ["b", "aab"]),
    ("(ab|c)+d?", ["ab", "abcd", "cccd"], ["", "d", "abd "]),
    ("a{2}b{1,}c{0,2}", ["aab", "aabbcc"], ["ab", "aabccc", "aac"]),
    (r"\w+@\w+\.(com|org)", ["me@here.org"], ["me@here.net", "@here.com", "me@herexorg"]),
    ("[^a-c]x|.y", ["dx", "ay", "äx"], ["ax", "\ny", "x"]),
    ("(a*)*", ["", "aaa"], ["b"]),
    ("^(?:x|)$", ["", "x"], ["xx"]),
    (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", ["account@gmail.com", "-a@yahoo.com "], ["account@hotmail.com", "a@gmail.comx"]),
    (r"\S\s\D", ["a b", "- x"], ["a 1", " a b"]),
    (r"www.[\w.-]+.\bcom\b", ["www.google.com", "www.a-b.com"], ["www.acom", "www.a.comb"]),
    (r"a\B.*", ["ab", "a_ -"], ["a", "a b"]),
])  # fmt: skip
def test_patterns(pattern, yes, no):
    run = baton.compile(model([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [info("x", S, [None])], [info("y", B, [None])]))
    assert run(np.array(yes + no, dtype=object)).numpy().tolist() == [True] * len(yes) + [False] * len(no)
    for text in yes + no:
        assert bool(re.fullmatch(pattern, text)) == (text in yes)


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "*a", "a{3,1}", "\\", r"\q", "(?=a)", "a{2000}"])
def test_wrong_patterns(pattern):
    run = baton.compile(model([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [info("x", S, [None])], [info("y", B, [None])]))
    with pytest.raises(baton.Error, match="`pattern`: .* at byte"):
        run(np.array(["a"]))


def test_images():
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype="uint8")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    run = baton.compile(
        model([node("ImageDecoder", ["x"], ["y"], pixel_format="BGR")], [info("x", TensorProto.UINT8, [None])], [info("y", TensorProto.UINT8, [None, None, 3])])
    )
    np.testing.assert_array_equal(run(np.frombuffer(file.getvalue(), "uint8")).numpy(), pixels[:, :, ::-1])
    with pytest.raises(ValueError, match="the image cannot be read"):
        run(np.zeros(9, "uint8"))


def test_by_the_runtime_alone():
    """Cases of ONNX's suite for each function of the host that knows values which are no tensors, and each that was compiled at run time."""
    only = "^test_(sequence_(insert_at_front|map_add_1_sequence_1_tensor|map_extract_shapes)|identity_(sequence|opt)|loop13_seq|if_opt|optional_.*|"
    only += "split_to_sequence_[12]|string_(concat|split_basic)|strnormalizer_.*lower|regex_full_match_basic|equal_string|dft|stft|melweightmatrix|"
    only += "maxunpool_export_with_output_shape|col2im_5d|training_dropout_mask|flexattention_causal_mask)$"
    command = [sys.executable, HERE / "onnx_alone.py", "--alone", "--kinds", "node", "--only", only, "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parents[2] / "python")})
    passed, total = map(int, re.search(r"(\d+) of (\d+) pass", done.stdout).groups())
    assert passed == total >= 25, done.stdout + done.stderr


@pytest.mark.parametrize("wrong, said", [
    ([1, 2], "int at [0]: 1"),
    (["a", 1], "int at [1]: 1"),
    (["a", None], "NoneType at [1]"),
    ([None], "NoneType at [0]"),
    ([b"a", 2.5], "float at [1]: 2.5"),
    (np.array([1, 2]), "an array of int64"),
    (np.array([True]), "an array of bool"),
    (np.array(["a", 1], object), "int at [1]: 1"),
    ([["a"], ["b", "c"]], "differ in length"),
    ([{"a": 1}], "dict at [0]"),
    (None, "NoneType"),
    (7, "int: 7"),
    (["\ud800"], "not Unicode text at [0]"),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("kind", ["hash", "text"])
def test_what_is_no_string_is_refused(kind, wrong, said):
    """Nothing is made into strings; the error names the input, the place and what is there."""
    if kind == "hash":  # compared as a number
        attrs = {"cats_strings": ["a", "b"]}
        m = model([helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attrs)], [info("x", S, [None])], [info("y", F, None)])
        m.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    else:
        m = model([node("StringConcat", ["x", "x"], ["y"])], [info("x", S, [None])], [info("y", S, [None])])
    run = baton.compile(m)
    with pytest.raises((TypeError, ValueError)) as caught:
        run(wrong)
    assert str(caught.value).startswith("input `x`: ") and said in str(caught.value)
    for right in (["a", "b"], ("a", b"b"), np.array(["a", "b"]), np.array([b"a", b"b"]), np.array(["a", b"b"], object)):
        assert len(run(right)) == 2


@pytest.mark.parametrize("length", [6, "n"], ids=["known length", "open length"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a tensor"])
def test_a_sequence_comes_as_a_list(length, beside, tmp_path):
    """Several outputs are a tuple; a sequence is one of them, or the only one."""
    nodes = [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0), helper.make_node("Neg", ["x"], ["z"])]
    outputs = [helper.make_tensor_sequence_value_info("y", F, None), info("z", F, None)]
    m = model(nodes if beside else nodes[:1], [info("x", F, [length])], outputs[: 1 + beside])
    exe = baton.compile(m)
    exe.save(tmp_path / "m.so")
    x = np.arange(6, dtype="float32")
    for run in (exe, baton.load(tmp_path / "m.so")):
        got = run(x)
        assert isinstance(got, tuple if beside else list)
        sequence = got[0] if beside else got
        assert isinstance(sequence, list)
        assert [v.numpy().item() for v in sequence] == x.tolist()
