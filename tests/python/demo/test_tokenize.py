# SPDX-License-Identifier: Apache-2.0
"""The plain WordPiece equals the `tokenizers` library, on real text and on what breaks tokenizers."""

import unicodedata

import pytest

from baton.demo import DemoError
from baton.demo.corpus import standard_library
from baton.demo.tokenize import WordPiece, load_tokenizer, load_word_piece

ODD = [
    "",
    " \t\n\r\x0b\x0c\x1c\u2028\u3000\xa0",
    "It's so sunny outside!",
    "20°C costs $5 + 3€ ~ `x^y` <tag> a_b|c",
    "Crème brûlée, Ångström, naïve İstanbul ẞ Straße Ωmega ﬁne",
    "漢字とひらがな、カタカナ. 한국어 中文",
    "emoji 🙂🏳️‍🌈 zero\u200bwidth joiner\u200d soft\xadhyphen",
    "nul\0bell\x07 replacement\ufffd",
    "x" * 100,
    "x" * 101,
    "antidisestablishmentarianism floccinaucinihilipilification zzzqqqxyzzy",
    "[CLS] special [MASK] tokens [SEP]in text [PAD][UNK] [cls] [ MASK ]",
    "«quotes» “curly” ‘single’ – dash — … ¿qué? ‽",
    "e\u0301 combining \u0301 alone, वि हिन्दी, עברית עִם, العَرَبِيَّة",
    "\ud83d lone surrogate".encode("utf-8", "replace").decode(),
    "word " * 1000,
]


@pytest.fixture(scope="module")
def pair(trained):
    pytest.importorskip("tokenizers")
    return load_word_piece(trained.folder), load_tokenizer(trained.folder)


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_equals_library_on_odd_text(pair, text):
    plain, library = pair
    assert not isinstance(library, WordPiece)
    assert plain.encode(text) == library.encode(text)


def test_equals_library_on_the_corpus(pair):
    plain, library = pair
    for name, text in standard_library().items():
        assert plain.encode(text) == library.encode(text), name


def test_every_single_character(pair):
    plain, library = pair
    # Characters that are what they were in Unicode 3.2: each side has tables of its own year. One call for many,
    # each stands alone between letters.
    known = [c for c in map(chr, range(0x3000)) if unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) != "Cn"]
    wrong = []
    for start in range(0, len(known), 50):
        chars = known[start : start + 50]
        text = " ".join(f"a{char}b" for char in chars)
        if plain.encode(text) != library.encode(text):
            wrong += [hex(ord(c)) for c in chars if plain.encode(f"a{c}b") != library.encode(f"a{c}b")]
    assert len(known) > 7000 and not wrong


def test_known_pieces():
    vocab = {t: i for i, t in enumerate("[PAD] [UNK] [CLS] [SEP] [MASK] un ##aff ##able a ! ##a".split())}
    encode = WordPiece(vocab).encode
    assert encode("Unaffable!") == [2, 5, 6, 7, 9, 3]
    assert encode("unaffordable a") == [2, 1, 8, 3]
    assert WordPiece(vocab, max_tokens=4).encode("a a a a") == [2, 8, 8, 3]


def test_bad_vocabulary(tmp_path):
    with pytest.raises(DemoError, match=r"\[CLS\]"):
        WordPiece({"[PAD]": 0, "[UNK]": 1})
    for text in ("", "{}", '{"model": 3}', "[]"):
        (tmp_path / "tokenizer.json").write_text(text)
        with pytest.raises(DemoError, match="not usable"):
            load_word_piece(tmp_path)
