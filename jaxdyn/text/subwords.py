"""Byte-pair encoding of a text, with pieces learnt from its training part by the library sentencepiece (extra ``text``).

The pieces spell the text, but for three things: all ends of lines, and all runs of spaces, are one space; a character that the
training part lacks is ``MISSING``; and so are its rarest characters, one in two thousand of all, which is where the library stops.
What else the library would lose without a word is met or refused here (its trainer_interface.cc, bpe_model_trainer.h): it leaves
out lines longer than a limit, ends the process at a word of more than 2**16 characters (to version 0.2.2), leaves out lines that
have ``▅``, takes ``▁`` for a space, and has no piece for some control characters, which ones depends on its version.
"""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxdyn.errors import UsageError, missing, whole

__all__ = ["PIECES", "number_subwords"]

PIECES = 1024  # of a vocabulary, unless asked for otherwise
MISSING = "\N{REPLACEMENT CHARACTER}"  # a character that no piece has
UNKNOWN = "<unk>"  # one piece, as WikiText has it for rare words
WORD = 2**16 - 1  # characters of a word in training; with the space before it a place in it is a number of 16 bits
LINE = 2**20  # bytes: a longer line would be left out; a word has no more
COVERED = 0.9995  # of all characters of the training part, the most frequent ones: the library's default
RESERVED = {"▁": "the library writes it for a space", "▅": "the library leaves out lines that have it"}


def number_subwords(parts: Sequence[bytes], size: int | None = None) -> tuple[list[Int[np.ndarray, " n"]], tuple[str, ...]]:
    """Each part (UTF-8) in numbers of pieces, and the pieces; a space before a word is written ``▁``, lines are joined.

    Pieces are learnt from the first part, or from the first 90 percent of the lines if there is only one part. A line ends where
    :meth:`str.splitlines` ends it; one without a word is dropped. Source: arXiv:1508.07909 (byte-pair encoding); arXiv:1808.06226
    (sentencepiece).

    Args:
        parts: texts; the first is the training part.
        size: of the vocabulary, :data:`PIECES` by default.

    Raises:
        UsageError: if the library is not installed; the text has too many characters or too few pairs for the size; or it has
            characters that the library cannot keep.
    """
    library = _library()
    lines = [[line for line in part.decode().splitlines() if line.strip()] for part in parts]
    _refuse_reserved(lines)
    learnt = lines[0] if len(parts) > 1 else lines[0][: max(1, len(lines[0]) * 90 // 100)]
    size = whole("max_words", PIECES if size is None else size, least=1)
    pieces = _learn(library, learnt, size)
    _refuse_lost_characters(pieces, learnt)
    streams = [np.asarray([number for line in pieces.encode(some) for number in line], np.int32) for some in lines]
    return streams, tuple(pieces.id_to_piece(i) for i in range(size))


def _library() -> Any:
    try:
        return importlib.import_module("sentencepiece")
    except ImportError:
        raise missing("level=bpe", "sentencepiece", "text") from None


def _refuse_reserved(parts: Sequence[Sequence[str]]) -> None:
    """Refuse characters that the library uses itself."""
    for character, reason in RESERVED.items():
        if any(character in line for lines in parts for line in lines):
            code = f"U+{ord(character):04X}"
            raise UsageError(f"level=bpe cannot keep the character {code} of this text ({reason}): replace it, or use level=bytes")


def _learn(library: Any, lines: Sequence[str], size: int) -> Any:
    """The library's processor, with pieces learnt from the lines."""
    room = sum(map(len, lines))
    if size > room + len(lines) + 3:  # a piece is a character, the space before each line, a pair joined somewhere, or special
        raise UsageError(f"a vocabulary of {size} pieces is not allowed for this text: its training part has {room} characters")
    model = io.BytesIO()
    try:
        library.SentencePieceTrainer.train(
            sentence_iterator=_short(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            num_threads=1,
            bos_id=-1,
            eos_id=-1,
            unk_piece=MISSING,
            user_defined_symbols=[UNKNOWN],
            normalization_rule_name="identity",
            character_coverage=COVERED,
            max_sentence_length=LINE,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise UsageError(f"a vocabulary of {size} pieces is not allowed for this text: {_reason(error)}") from None
    return library.SentencePieceProcessor(model_proto=model.getvalue())


def _short(lines: Sequence[str]) -> Iterator[str]:
    """The lines; a long one word by word, which is all that counts in training, and a long word in parts."""
    for line in lines:
        if len(line) <= WORD:
            yield line
        else:
            yield from (word[i : i + WORD] for word in line.split(" ") for i in range(0, len(word), WORD))


def _reason(error: RuntimeError) -> str:
    """What the library says, without the place in its sources."""
    return str(error).rpartition("] ")[2].split(". ")[0].strip() or "its text is too short"


def _refuse_lost_characters(pieces: Any, lines: Sequence[str]) -> None:
    """Refuse a training part of which the library keeps less than it promises."""
    counts = Counter("\n".join(lines).replace(UNKNOWN, ""))
    missing = pieces.unk_id()
    lost = {c: n for c, n in counts.items() if c not in f" \n{MISSING}" and pieces.piece_to_id(c) == missing}
    if sum(lost.values()) > 2 * (1 - COVERED) * counts.total():
        worst = max(lost, key=lost.__getitem__)
        raise UsageError(
            f"level=bpe cannot keep the character U+{ord(worst):04X} of this text, which has it {lost[worst]} times: "
            "replace it, or use level=bytes"
        )
