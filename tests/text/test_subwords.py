"""Byte-pair pieces: learnt on the training part, joined to the text they came from, and refused where they cannot be learnt."""

import sys

import numpy as np
import pytest

from jaxdyn import text
from jaxdyn.errors import UsageError
from jaxdyn.text.subwords import number_subwords

LINES = "\n".join(f"the cat number {i} sat near the <unk> and the bat" for i in range(50))


def joined(numbers, pieces):
    return "".join(pieces[i] for i in numbers).replace("▁", " ").strip()


def test_says_which_library_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(UsageError, match=r"level=bpe needs the library sentencepiece: install jaxdyn\[text\], or use level=bytes"):
        number_subwords([b"a text"])


def test_pieces_spell_the_text():
    pytest.importorskip("sentencepiece")
    (train, other), pieces = number_subwords([LINES.encode(), b"the bat sat\n\nnear <unk>\n"], 60)
    assert len(pieces) == 60 and len(set(pieces)) == 60
    assert joined(train, pieces) == LINES.replace("\n", " ")
    assert joined(other, pieces) == "the bat sat near <unk>"
    assert train.dtype == np.int32 and len(train) < len(LINES) / 2
    assert pieces.index("<unk>") in other and "▁the" in pieces, "a rare word's mark is one piece; frequent words are learnt"


def test_pieces_are_learnt_from_the_training_part_alone():
    pytest.importorskip("sentencepiece")
    _, pieces = number_subwords([LINES.encode(), b"quartz quartz quartz"], 60)
    (_, other), again = number_subwords([LINES.encode(), b"onyx onyx"], 60)
    assert pieces == again
    assert any("�" == pieces[i] for i in other), "letters that the training part lacks are unknown"


def test_load_gives_a_corpus_of_pieces(tmp_path):
    pytest.importorskip("sentencepiece")
    (tmp_path / "one.txt").write_text(LINES)
    corpus = text.load(tmp_path / "one.txt", "bpe", 60)
    assert len(corpus.vocabulary) == 60
    assert joined(np.concatenate([corpus.train, corpus.valid, corpus.test]), corpus.vocabulary) == LINES.replace("\n", " ")


def test_too_large_a_vocabulary_is_refused():
    pytest.importorskip("sentencepiece")
    with pytest.raises(UsageError, match="a vocabulary of 4000 pieces is not allowed for this text"):
        number_subwords([LINES.encode()], 4000)
