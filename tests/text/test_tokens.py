"""The tokeniser against the rules applied line by line, and the numbering of words against sorting them by hand."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.text import BYTES, UNKNOWN, split_words, tokens

PATTERNS = [r"\'", r"\"", r"\.", r"<br \/>", r",", r"\(", r"\)", r"\!", r"\?", r"\;", r"\:", r"\s+"]
REPLACEMENTS = [" '  ", "", " . ", " ", " , ", " ( ", " ) ", " ! ", " ? ", " ", " ", " "]


def words_line_by_line(text: str) -> list[str]:
    words = []
    for line in text.split("\n"):
        line = line.lower()
        for pattern, replacement in zip(PATTERNS, REPLACEMENTS, strict=True):
            line = re.sub(pattern, replacement, line)
        words += line.split()
    return words


ANY_TEXT = st.text(st.sampled_from(list("aBΣςİß'\".,()!?;:<br />\n\r\t\v\x1c\x85\u2028\u3000é漢😀")), max_size=60)
WITH_BREAKS = st.lists(
    st.sampled_from(["<br />", '<b"r />', "<BR />", "<br\n/>", "ΑΣ", "ΑΣ'", "\n", '"', ".", "x", " "]), max_size=20
)


@settings(deadline=None, max_examples=300)
@given(text=ANY_TEXT | WITH_BREAKS.map("".join) | st.text(max_size=40))
def test_one_pass_is_line_by_line(text):
    assert split_words(text) == words_line_by_line(text)


def test_words_of_a_known_line():
    line = 'Don\'t say: "No." (Well, <unk> @-@ 1.5!)<br />Why?;'
    assert split_words(line) == "don ' t say no . ( well , <unk> @-@ 1 . 5 ! ) why ?".split()


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=12), size=st.integers(1, 40))
def test_pieces_end_with_lines_and_join_to_the_whole(lines, size):
    data = "\n".join(lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PIECE", size)
        cut = list(tokens.pieces(data))
        streams, words = tokens.number_words([data])
    assert b"".join(piece for _, piece in cut) == data
    assert all(data[start:].startswith(piece) for start, piece in cut)
    assert all(piece.endswith((b"\n", b"\r")) and len(piece) >= size for _, piece in cut[:-1])
    assert [words[i] for i in streams[0]] == words_line_by_line(data.decode())


def test_words_are_numbered_as_they_come_over_all_parts():
    streams, words = tokens.number_words([b"b a b", b"", b"c a"])
    assert words == ["b", "a", "c"]
    assert [s.tolist() for s in streams] == [[0, 1, 0], [], [2, 1]]
    assert all(s.dtype == np.int32 for s in streams)


@settings(deadline=None, max_examples=100)
@given(
    train=st.lists(st.sampled_from(["a", "b", "c", "d", UNKNOWN])),
    rest=st.lists(st.sampled_from("abcdef")),
    max_words=st.integers(1, 6) | st.none(),
)
def test_vocabulary_is_sorted_by_frequency_then_alphabet(train, rest, max_words):
    (first, second), words = tokens.number_words([" ".join(train).encode(), " ".join(rest).encode()])
    vocabulary, number = tokens.rank_words(words, np.bincount(first, minlength=len(words)), max_words)
    counts = Counter(train)
    del counts[UNKNOWN]
    expected = [UNKNOWN, *sorted(counts, key=lambda w: (-counts[w], w))[:max_words]]
    assert list(vocabulary) == expected
    for stream, given_words in ((first, train), (second, rest)):
        assert [vocabulary[i] for i in number[stream]] == [w if w in expected else UNKNOWN for w in given_words]


def test_bytes_have_distinct_printable_names():
    assert len(BYTES) == len(set(BYTES)) == 256
    assert all(name.isascii() and name.isprintable() and not name.isspace() for name in BYTES)
    assert BYTES[ord("a")] == "a" and BYTES[10] == "\\x0a"


@settings(deadline=None, max_examples=50)
@given(text=st.text())
def test_bytes_go_there_and_back(text):
    stream = tokens.number_bytes(text.encode())
    assert stream.dtype == np.int32
    assert bytes(stream.tolist()).decode() == text


@settings(deadline=None, max_examples=60, derandomize=True)
@given(data=st.binary(max_size=200))
def test_every_byte_goes_there_and_back(data):
    assert bytes(tokens.number_bytes(data).tolist()) == data
    assert set(tokens.number_bytes(bytes(range(256))).tolist()) == set(range(256))


@pytest.mark.parametrize("text", ["", " \n\t\r\u3000", "\ud800 a\udfff", "a\0b \0", "x" * 10**6 + " y", '"' * 1000, "\x85\u2028"])
def test_texts_at_the_edge_are_split(text):
    assert split_words(text) == words_line_by_line(text)


@pytest.mark.parametrize("part", [b"", b" \n \r\n", b"\r\n\r\n", b"one\r\rtwo\n"])
def test_parts_without_words_have_none(part):
    streams, words = tokens.number_words([part, part])
    assert words == part.decode().split() and all(len(s) == len(words) for s in streams)
