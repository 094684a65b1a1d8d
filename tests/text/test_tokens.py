"""Texts, their tokens and batches."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import text
from jaxdyn.errors import UsageError
from jaxdyn.text import BYTES, UNKNOWN, columns, split_words, tokens, window, windows_in
from jaxdyn.text.corpus import split

# The tokeniser against the rules applied line by line, and the numbering of words against sorting them by hand.


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


# What a corpus refuses, and how a stream is split.


def test_corpus_refuses_what_is_no_stream():
    good = np.array([0, 1])
    for vocabulary in ((), ("a", ""), ("a", "a")):
        with pytest.raises(UsageError, match="at least one word, none twice and none empty"):
            text.Corpus("c", good, good, good, vocabulary)
    for bad, message in (
        (np.array([0.0, 1.0]), "whole numbers, not float64"),
        (good[None], r"not int64 of shape \(1, 2\)"),
        (good[:1], "too short"),
        (np.array([0, 2]), "tokens are 0 to 1, the valid part has 0 to 2"),
        (np.array([-1, 0]), "tokens are 0 to 1"),
    ):
        with pytest.raises(UsageError, match=message):
            text.Corpus("c", good, bad, good, ("a", "b"))


def test_split_is_90_5_5_percent():
    assert [len(part) for part in split(np.arange(205))] == [184, 10, 11]
    np.testing.assert_array_equal(np.concatenate(split(np.arange(205))), np.arange(205))


def test_corpus_refuses_what_are_no_words():
    good = np.array([0, 1])
    for vocabulary in ("ab", ["a", "b"], ("a", 1), (b"a", b"b"), (None, "a")):
        with pytest.raises(UsageError, match="a vocabulary is a tuple of words, each a string"):
            text.Corpus("c", good, good, good, vocabulary)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_streams_of_any_whole_numbers_are_one_text(dtype):
    base = text.Corpus("c", *[np.array([0, 1])] * 3, ("a", "\ud800"))
    assert text.Corpus("c", *[np.array([0, 1], dtype)] * 3, ("a", "\ud800")).digest == base.digest
    for wrong in (np.array([True, False]), np.array(["0", "1"])):
        with pytest.raises(UsageError, match="a stream is one row of whole numbers"):
            text.Corpus("c", wrong, *[np.array([0, 1])] * 2, ("a", "b"))


# Columns and windows against loops over single tokens.


sliced = jax.jit(window, static_argnums=2)


@settings(deadline=None, max_examples=100)
@given(size=st.integers(2, 200), count=st.integers(1, 20))
def test_columns_are_contiguous_text(size, count):
    stream = np.arange(size, dtype=np.int32)
    if size // count < 2:
        with pytest.raises(UsageError, match="too short for"):
            columns(stream, count)
        return
    cut = columns(stream, count)
    length = size // count
    assert cut.shape == (count, length) and cut.dtype == np.int32
    assert cut.tolist() == [[stream[c * length + t] for t in range(length)] for c in range(count)]


@settings(deadline=None, max_examples=60)
@given(total=st.integers(2, 40), length=st.integers(1, 40))
def test_number_of_windows(total, length):
    cut = np.zeros((2, total), np.int32)
    full = sum(start + length <= total - 1 for start in range(0, total, length))
    if full == 0:
        with pytest.raises(UsageError, match="too short for a window"):
            windows_in(cut, length)
    else:
        assert windows_in(cut, length) == full


@pytest.mark.parametrize(("total", "length"), [(21, 5), (20, 5), (9, 8), (7, 1)])
def test_windows_are_those_of_the_loop(total, length):
    cut = columns(np.random.default_rng(0).integers(0, 99, 3 * total).astype(np.int32), 3)
    for index in range(windows_in(cut, length)):
        places = range(index * length, (index + 1) * length)
        inputs, targets = window(cut, index, length)
        assert inputs.tolist() == [[cut[c, t] for t in places] for c in range(3)]
        assert targets.tolist() == [[cut[c, t + 1] for t in places] for c in range(3)]
        assert inputs.dtype == targets.dtype == np.int32


@pytest.mark.parametrize("wide", [False, True])
def test_traced_index_under_jit_and_vmap(wide):
    cut = columns(np.arange(100, dtype=np.int32), 4)
    with jax.enable_x64(wide):
        alone = [window(cut, index, 6) for index in range(4)]
        batched = jax.vmap(lambda index: window(cut, index, 6))(np.arange(4))
        for index, (inputs, targets) in enumerate(alone):
            traced = sliced(cut, np.int32(index), 6)
            assert np.array_equal(traced[0], inputs) and np.array_equal(traced[1], targets)
            assert np.array_equal(batched[0][index], inputs) and np.array_equal(batched[1][index], targets)


def test_traced_index_is_moved_inside():
    cut = columns(np.arange(26, dtype=np.int32), 1)
    assert sliced(cut, np.int32(99), 5)[1].tolist() == [[21, 22, 23, 24, 25]]


def test_wrong_sizes():
    cut = np.zeros((2, 11), np.int32)
    with pytest.raises(UsageError, match="count=0 is not allowed: count is at least 1"):
        columns(cut[0], 0)
    for call in (lambda: windows_in(cut, 0), lambda: window(cut, 0, 0)):
        with pytest.raises(UsageError, match="length=0 is not allowed: length is at least 1"):
            call()
    with pytest.raises(UsageError, match="too short for a window of 11 inputs"):
        window(cut, 0, 11)
    for index in (-1, 2, np.int64(2)):
        with pytest.raises(UsageError, match=f"index={index} is not allowed: index is at least 0 and at most 1"):
            window(cut, index, 5)


NUMBERS = [int, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.array, jnp.asarray, lambda i: np.array(i, np.int8)]


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_of_any_library_is_a_number(kind):
    """Also a narrow one, whose product with the length it cannot hold."""
    cut = columns(np.arange(1000, dtype=np.int32), kind(1))
    assert windows_in(cut, kind(5)) == 199
    for index in (0, 30, 127):
        assert window(cut, kind(index), kind(5))[0].tolist() == [list(range(5 * index, 5 * index + 5))]
    with pytest.raises(UsageError, match="index=.* is not allowed"):
        window(cut, kind(100), kind(20))


@pytest.mark.parametrize("wrong", [True, np.True_, 2.0, np.float32(2), "2", None, [2], np.array([1, 2]), float("nan")])
def test_what_is_no_whole_number_is_refused(wrong):
    cut = columns(np.arange(100, dtype=np.int32), 1)
    calls = (
        lambda: columns(cut[0], wrong),
        lambda: windows_in(cut, wrong),
        lambda: window(cut, 0, wrong),
        lambda: window(cut, wrong, 5),
    )
    for name, call in zip(("count", "length", "length", "index"), calls, strict=True):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is a whole number"):
            call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("index", [-(2**31), -1, 0, 3, 4, 99, 200, 10**9, 2**31 - 1, 2**32 - 1])
def test_traced_numbers_outside_give_the_first_or_the_last_window(dtype, index):
    facts = np.iinfo(dtype)
    if not facts.min <= index <= facts.max:
        return
    cut = columns(np.arange(28, dtype=np.int32), 1)  # five windows, and two tokens more
    expected = window(cut, min(max(index, 0), 4), 5)
    for found, right in zip(sliced(cut, jnp.asarray(index, dtype), 5), expected, strict=True):
        assert found.tolist() == right.tolist()


def test_streams_and_columns_of_other_shapes_are_refused():
    with pytest.raises(UsageError, match="a stream is one row of tokens"):
        columns(np.zeros((4, 5), np.int32), 2)
    for wrong in (np.zeros(5, np.int32), np.zeros((1, 2, 3), np.int32)):
        with pytest.raises(UsageError, match="columns have two axes"):
            windows_in(wrong, 1)
    with pytest.raises(UsageError, match="a stream of 0 tokens is too short for 1 columns"):
        columns(np.zeros(0, np.int32), 1)
