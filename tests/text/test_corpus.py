"""What a corpus refuses, and how a stream is split."""

import numpy as np
import pytest

from jaxdyn import text
from jaxdyn.errors import UsageError
from jaxdyn.text.corpus import split


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
