# SPDX-License-Identifier: Apache-2.0
"""Text to token numbers: BERT's uncased WordPiece.

The `tokenizers` library is used where it is installed; `WordPiece` is the same in plain Python, and tests hold the
two equal. Source: BERT (Devlin et al., arXiv 1810.04805), its released tokenization, and `tokenizer.json` of the
model.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

from . import DemoError

_MAX_CHARS_PER_WORD = 100
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def _is_space(char: str) -> bool:
    return char in "\t\n\r" or char.isspace()


def _is_control(char: str) -> bool:
    return char not in "\t\n\r" and unicodedata.category(char).startswith("C")


def _is_punctuation(char: str) -> bool:
    # ASCII symbols such as $ and + count as punctuation; other symbols, such as the degree sign, do not.
    code = ord(char)
    ascii_symbol = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_symbol or unicodedata.category(char).startswith("P")


def _is_cjk(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _CJK)


class WordPiece:
    """`encode(text)` gives the token numbers, [CLS] first and [SEP] last, at most `max_tokens` of them."""

    def __init__(self, vocab: dict[str, int], max_tokens: int = 256):
        self.vocab, self.max_tokens = vocab, max_tokens
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        missing = [token for token in special if token not in vocab]
        if missing:
            raise DemoError(f"the vocabulary lacks {', '.join(missing)}")
        self._special = re.compile("(" + "|".join(map(re.escape, special)) + ")")

    def encode(self, text: str) -> list[int]:
        out = []
        for part in self._special.split(text):  # special tokens are taken from the raw text
            if self._special.fullmatch(part):
                out.append(self.vocab[part])
            else:
                for word in self._words(part):
                    out += self._pieces(word)
        return [self.vocab["[CLS]"], *out[: self.max_tokens - 2], self.vocab["[SEP]"]]

    @staticmethod
    def _words(text: str) -> list[str]:
        chars = []
        for char in text:
            if char in "\0\ufffd" or _is_control(char):
                continue
            chars.append(" " if _is_space(char) else f" {char} " if _is_cjk(char) else char)
        plain = unicodedata.normalize("NFD", "".join(chars))
        plain = "".join(char for char in plain if unicodedata.category(char) != "Mn").lower()
        return "".join(f" {char} " if _is_punctuation(char) else char for char in plain).split()

    def _pieces(self, word: str) -> list[int]:
        """Longest known prefix first, then the longest known continuations; a word with an unknown rest is [UNK]."""
        if len(word) > _MAX_CHARS_PER_WORD:
            return [self.vocab["[UNK]"]]
        out, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.vocab:
                    out.append(self.vocab[piece])
                    start = end
                    break
            else:
                return [self.vocab["[UNK]"]]
        return out


class _Library:
    """The `tokenizers` library behind the same face."""

    def __init__(self, file: Path, max_tokens: int):
        import tokenizers

        self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids


def load_word_piece(folder: Path, max_tokens: int = 256) -> WordPiece:
    """The plain Python tokenizer over the model's `tokenizer.json`."""
    try:
        spec = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        return WordPiece(spec["model"]["vocab"], max_tokens)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DemoError(f"`{folder}/tokenizer.json` is not usable: {error}") from None


def load_tokenizer(folder: Path, max_tokens: int = 256):
    """The `tokenizers` library if installed, else WordPiece; both have `encode(text) -> list[int]`."""
    try:
        return _Library(folder / "tokenizer.json", max_tokens)
    except ImportError:
        return load_word_piece(folder, max_tokens)
