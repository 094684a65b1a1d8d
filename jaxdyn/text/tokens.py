"""Tokens of a text: words by the rules called "basic English", or bytes; and the numbering of words by frequency."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

__all__ = ["BYTES", "UNKNOWN", "number_bytes", "number_words", "pieces", "rank_words", "split_words"]

UNKNOWN = "<unk>"
BYTES = tuple(chr(b) if 0x21 <= b < 0x7F else f"\\x{b:02x}" for b in range(256))
"""A printable, distinct name for every byte."""

LINE_END = re.compile(rb"[\r\n]")
PIECE = 1 << 24  # bytes tokenised at once: a list of words takes some thirty times the memory of their numbers
RULES = (
    ("'", " '  "),
    ('"', ""),  # before <br />, which it may lay bare
    (".", " . "),
    ("<br />", " "),
    (",", " , "),
    ("(", " ( "),
    (")", " ) "),
    ("!", " ! "),
    ("?", " ? "),
    (";", " "),
    (":", " "),
)


def split_words(text: str) -> list[str]:
    """Lower-cased words and marks of punctuation; quotation marks, colons and semicolons are dropped.

    Source: the ``basic_english`` rules of torchtext, there applied line by line. Here in one pass over many lines, with the same
    result: no rule, nor the lower case of a letter, looks across the end of a line.
    """
    text = text.lower()
    for mark, replacement in RULES:
        text = text.replace(mark, replacement)
    return text.split()


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The data cut after ends of lines, in pieces of at least ``PIECE`` bytes, each with its place; no character is cut."""
    start = 0
    while start < len(data):
        end = LINE_END.search(data, start + PIECE - 1)
        stop = end.end() if end else len(data)
        yield start, data[start:stop]
        start = stop


def number_words(parts: Sequence[bytes]) -> tuple[list[Int[np.ndarray, " n"]], list[str]]:
    """The words of each part (UTF-8), numbered from 0 in order of first occurrence; and the words in that order."""
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    streams = []
    for part in parts:
        words = (split_words(piece.decode()) for _, piece in pieces(part))
        streams.append(np.concatenate([np.zeros(0, np.int32), *(np.array([number[w] for w in some], np.int32) for some in words)]))
    return streams, list(number)


def rank_words(
    words: Sequence[str], counts: Int[np.ndarray, " n"], max_words: int | None
) -> tuple[tuple[str, ...], Int[np.ndarray, " n"]]:
    """The vocabulary, and the number in it of each word.

    First ``UNKNOWN``, then the words that were counted, by falling frequency and then alphabetically, ``max_words`` of them if
    that is given. All others have the number of ``UNKNOWN``, 0.
    """
    counted = [i for i in np.flatnonzero(counts).tolist() if words[i] != UNKNOWN]
    ranked = sorted(counted, key=lambda i: (-counts[i], words[i]))[:max_words]
    number = np.zeros(len(words), np.int32)
    number[ranked] = np.arange(1, len(ranked) + 1)
    return (UNKNOWN, *(words[i] for i in ranked)), number


def number_bytes(part: bytes) -> Int[np.ndarray, " n"]:
    """The bytes as numbers 0 to 255; ``bytes(stream.tolist())`` is the inverse."""
    return np.frombuffer(part, np.uint8).astype(np.int32)
