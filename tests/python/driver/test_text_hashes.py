# SPDX-License-Identifier: Apache-2.0
"""Strings of an input become hashes: many at a time, and each text once."""

import numpy as np
import pytest

from baton.driver import forms


@pytest.mark.parametrize("count", [0, 1, 7, 8, 500])
def test_many_at_a_time_are_those_of_one(count):
    rng = np.random.default_rng(count)
    texts = [rng.bytes(int(n)) for n in rng.integers(0, 40, count)]
    assert forms._hashes_of(texts) == [forms.text_hash(text) for text in texts]


def test_an_array_of_any_kind():
    form = forms.Form({"kind": "hashes", "texts": []})
    want = np.array([[forms.text_hash("a"), forms.text_hash("é")], [forms.text_hash(""), forms.text_hash("a")]])
    texts = [["a", "é"], ["", "a"]]
    for value in (texts, np.array(texts), np.array(texts, object), np.char.encode(np.array(texts), "utf-8"), [[t.encode() for t in row] for row in texts]):
        np.testing.assert_array_equal(form.encode(value), want)
    assert form.encode(np.zeros((0, 3), object)).shape == (0, 3)


@pytest.mark.parametrize("wrong, said", [(["a", 1], r"got int at \[1\]: 1"), (["a", None], "got NoneType"), (np.array([1.0]), "got an array of float64")])
def test_what_is_no_string(wrong, said):
    form = forms.Form({"kind": "hashes", "texts": []})
    for _ in range(2):
        with pytest.raises(TypeError, match=said):
            form.encode(wrong)


def test_text_that_is_no_unicode():
    with pytest.raises(ValueError, match=r"not Unicode text at \[1\]"):
        forms.Form({"kind": "hashes", "texts": []}).encode(["a", "\ud800"])


def test_texts_that_are_always_new_are_not_kept(monkeypatch):
    monkeypatch.setattr(forms._Hashes, "most", 10)
    known = forms._Hashes()
    for round_ in range(5):
        texts = [f"{round_} {i}" for i in range(8)]
        assert known.of(texts + texts) == [forms.text_hash(text) for text in texts + texts]
        assert len(known) <= 10
    many = [str(i) for i in range(30)]
    assert known.of(many) == [forms.text_hash(text) for text in many]
    assert len(known) <= 10
