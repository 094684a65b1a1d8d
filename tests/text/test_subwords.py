"""Byte-pair pieces: learnt on the training part, joined to the text they came from, and refused where they cannot be learnt."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import text
from jaxdyn.errors import UsageError
from jaxdyn.text.subwords import number_subwords

LINES = "\n".join(f"the cat number {i} sat near the <unk> and the bat" for i in range(50))


def joined(numbers, pieces):
    return "".join(pieces[i] for i in numbers).replace("▁", " ").strip()


def test_says_which_library_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(UsageError, match=r"level=bpe needs the library sentencepiece: pip install 'jaxdyn\[text\]'"):
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
    (tmp_path / "one.txt").write_text(LINES, encoding="utf-8")
    corpus = text.load(tmp_path / "one.txt", "bpe", 60)
    assert len(corpus.vocabulary) == 60
    assert joined(np.concatenate([corpus.train, corpus.valid, corpus.test]), corpus.vocabulary) == LINES.replace("\n", " ")


def test_too_large_a_vocabulary_is_refused():
    pytest.importorskip("sentencepiece")
    with pytest.raises(UsageError, match="a vocabulary of 4000 pieces is not allowed for this text"):
        number_subwords([LINES.encode()], 4000)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"])
def test_ends_of_lines_of_any_system_are_ends_of_lines(end):
    pytest.importorskip("sentencepiece")
    (numbers,), pieces = number_subwords([LINES.replace("\n", end).encode()], 60)
    (plain,), same = number_subwords([LINES.encode()], 60)
    assert pieces == same and np.array_equal(numbers, plain)


@pytest.mark.slow
def test_a_long_line_is_learnt_as_its_words_are():
    """A line of over a megabyte, which the library would leave out, has the pieces of its words on lines of their own."""
    pytest.importorskip("sentencepiece")
    short = "\n".join([LINES] * 500)
    assert len(short) > 2**20
    _, expected = number_subwords([short.encode(), b"a"], 60)
    (numbers, _), pieces = number_subwords([short.replace("\n", " ").encode(), b"a"], 60)
    assert pieces == expected and joined(numbers, pieces) == short.replace("\n", " ")


def test_a_long_word_is_kept():
    """Places in a word are numbers of 16 bits in some versions of the library, which end the process at more."""
    pytest.importorskip("sentencepiece")
    word = LINES.replace("\n", "").replace(" <unk>", "").replace(" ", "") * 60
    assert len(word) > 2**16
    (numbers, _), pieces = number_subwords([f"{LINES}\n{word}".encode(), b"a"], 60)
    assert joined(numbers, pieces) == LINES.replace("\n", " ") + " " + word


def test_the_rarest_characters_are_missing():
    """One in two thousand of all characters, as the module says, and no more."""
    pytest.importorskip("sentencepiece")
    (rare, _), pieces = number_subwords([(LINES * 20 + "ß").encode(), b"a"], 60)
    assert "ß" not in pieces and np.sum(rare == pieces.index("�")) == 1
    (kept, _), pieces = number_subwords([(LINES + "ß" * 3).encode(), b"a"], 60)
    assert "ß" in pieces and "�" not in {pieces[i] for i in kept}


@pytest.mark.parametrize(("character", "code"), [("▁", "U+2581"), ("▅", "U+2585"), ("\0", "U+0000")])
def test_characters_that_the_library_cannot_keep_are_refused(character, code):
    pytest.importorskip("sentencepiece")
    for parts in ([LINES.replace("bat", f"b{character}at")], [LINES, f"b{character}at"])[: 1 if character == "\0" else 2]:
        with pytest.raises(
            UsageError, match=f"level=bpe cannot keep the character {re.escape(code)} of this text.*use level=bytes"
        ):
            number_subwords([part.encode() for part in parts], 60)


@pytest.mark.parametrize("character", ["\t", "\x1f"])
def test_a_character_without_a_piece_is_refused_where_it_is_frequent(character):
    """Which control characters the library has no piece for depends on its version: text is kept, or refused."""
    pytest.importorskip("sentencepiece")
    line = f"the{character}bat"
    try:
        (numbers,), pieces = number_subwords(["\n".join([line] * 50).encode()], 12)
    except UsageError as error:
        assert re.search(f"cannot keep the character U[+]{ord(character):04X} of this text, which has it 45 times", str(error))
    else:
        assert joined(numbers, pieces) == " ".join([line] * 50)


@pytest.mark.parametrize("size", [0, -1, True, 60.0, "60", np.True_, float("nan")])
def test_sizes_that_are_no_counts_are_refused(size):
    pytest.importorskip("sentencepiece")
    with pytest.raises(UsageError, match="max_words=.* is not allowed: max_words is"):
        number_subwords([LINES.encode()], size)


@pytest.mark.parametrize("size", [1, 2, 10**6, 2**31, 10**20])
def test_sizes_that_no_text_of_this_length_has_are_refused(size):
    pytest.importorskip("sentencepiece")
    with pytest.raises(UsageError, match=f"a vocabulary of {size} pieces is not allowed for this text"):
        number_subwords([LINES.encode()], size)


def test_sizes_of_numpy_are_sizes():
    pytest.importorskip("sentencepiece")
    assert number_subwords([LINES.encode()], np.int64(60))[1] == number_subwords([LINES.encode()], 60)[1]


def spelling(part, known):
    """The text with lines joined and spaces counted as one; runs of other characters than the known are one mark."""
    lines = [" ".join(word for word in line.split(" ") if word) for line in part.splitlines() if line.strip()]
    words = [
        "<unk>" if word == "<unk>" else re.sub(f"[^ {re.escape(known)}]+", "�", word)
        for word in re.split("(<unk>)", " ".join(lines))
    ]
    return "".join(words).strip()


def marked(text):
    """The text with marks that stand together as one: the text's own mark next to an unknown character is part of its run."""
    return re.sub("�+", "�", text)


ANY = st.characters(exclude_categories=["Cs"]) | st.sampled_from(list("ab \n\r\t\u2028\x85\0▁▅�<>")) | st.just("<unk>")


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.lists(ANY, max_size=80).map("".join), st.lists(ANY, max_size=20).map("".join))
def test_every_text_is_spelled_by_its_pieces_or_refused(train, other):
    pytest.importorskip("sentencepiece")
    letters = {c for line in train.replace("<unk>", "").splitlines() if line.strip() for c in line} - set(" �")
    try:
        streams, pieces = number_subwords([train.encode(), other.encode()], len(letters) + 3)
    except UsageError as error:
        told = "is not allowed for this text|cannot keep the character"
        assert re.search(told, str(error)) and (set("▁▅\0\x1f\t") & set(train + other) or len(letters) < 2 or "<" in train), error
        return
    assert letters <= set(pieces), "a training part as short as this has no rare characters"
    for stream, part in zip(streams, (train, other), strict=True):
        assert marked(joined(stream, pieces)) == marked(spelling(part, "".join(letters) + "�"))
