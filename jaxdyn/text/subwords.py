"""Byte-pair encoding of a text, with pieces learnt from its training part by the library sentencepiece (extra ``text``)."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxdyn.errors import UsageError

__all__ = ["PIECES", "number_subwords"]

PIECES = 1024  # of a vocabulary, unless asked for otherwise
MISSING = "\N{REPLACEMENT CHARACTER}"  # a character that no piece has
UNKNOWN = "<unk>"  # one piece, as WikiText has it for rare words


def number_subwords(parts: Sequence[bytes], size: int | None = None) -> tuple[list[Int[np.ndarray, " n"]], tuple[str, ...]]:
    """Each part (UTF-8) in numbers of pieces, and the pieces; a space before a word is written ``▁``, lines are joined.

    Pieces are learnt from the first part, or from the first 90 percent of the lines if there is only one part. Source:
    arXiv:1508.07909 (byte-pair encoding); arXiv:1808.06226 (sentencepiece).

    Args:
        parts: texts; the first is the training part.
        size: of the vocabulary, :data:`PIECES` by default.

    Raises:
        UsageError: if the library is not installed, or the text has too many characters or too few pairs for the size.
    """
    size = PIECES if size is None else size
    library = _library()
    lines = [[line for line in part.decode().split("\n") if line.strip()] for part in parts]
    learnt = lines[0] if len(parts) > 1 else lines[0][: max(1, len(lines[0]) * 90 // 100)]
    model = io.BytesIO()
    try:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(learnt),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            num_threads=1,
            bos_id=-1,
            eos_id=-1,
            unk_piece=MISSING,
            user_defined_symbols=[UNKNOWN],
            normalization_rule_name="identity",
            max_sentence_length=2**20,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise UsageError(f"a vocabulary of {size} pieces is not allowed for this text: {_reason(error)}") from None
    pieces = library.SentencePieceProcessor(model_proto=model.getvalue())
    streams = [np.asarray([number for line in pieces.encode(some) for number in line], np.int32) for some in lines]
    return streams, tuple(pieces.id_to_piece(i) for i in range(size))


def _library() -> Any:
    try:
        return importlib.import_module("sentencepiece")
    except ImportError:
        raise UsageError("level=bpe needs the library sentencepiece: install jaxdyn[text], or use level=bytes") from None


def _reason(error: RuntimeError) -> str:
    """What the library says, without the place in its sources."""
    return str(error).rpartition("] ")[2].split(". ")[0].strip() or "its text is too short"
