"""The text that a probe reads: a file, Python's own manual, or token numbers; and the pieces that it is cut into."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from jaxdyn import text as texts
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError, shown, whole
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from jaxdyn.models.loading import Model

__all__ = ["LEAST", "MANUAL", "RawText", "cut", "numbered", "open_text"]

MANUAL, MARKOV = "topics", "markov"
LEAST = 64  # tokens of a piece
LETTERS = 16  # of a token, at most, for almost all texts


@dataclasses.dataclass(frozen=True)
class RawText:
    """A text before it is numbered: its letters, or token numbers from Python."""

    name: str
    letters: str | None
    numbers: Int[np.ndarray, " n"] | None
    digest: str


def open_text(text: Any) -> RawText:
    """A file's text, a folder's test part, the interpreter's manual (None or "topics"), the text "markov", or token numbers.

    Raises:
        UsageError: as of :func:`jaxdyn.text.read`, and for arrays that are no row of whole numbers.
    """
    if text is None or isinstance(text, str | os.PathLike):
        name = MANUAL if text is None else text
        if name == MARKOV:
            return _generated()
        corpus = texts.load(name, "bytes")
        folder = name != MANUAL and from_home(name).is_dir()
        parts = [corpus.test] if folder else [corpus.train, corpus.valid, corpus.test]
        letters = np.concatenate(parts).astype(np.uint8).tobytes().decode("utf-8", "replace")
        title = "the interpreter's manual" if name == MANUAL else str(name)
        return RawText(title, letters, None, hashlib.sha256(letters.encode()).hexdigest()[:12])
    try:
        numbers = np.asarray(text)
    except ValueError:  # lists of different lengths
        numbers = np.zeros(())
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise UsageError(f"text={shown(text)} is not allowed: it is the path of a text, or one row of token numbers")
    numbers = numbers.astype(np.int64)
    return RawText("token numbers", None, numbers, hashlib.sha256(numbers.tobytes()).hexdigest()[:12])


def _generated() -> RawText:
    """The text markov, its words with spaces between them."""
    corpus = texts.load(MARKOV)
    letters = " ".join(corpus.vocabulary[i] for part in (corpus.train, corpus.valid, corpus.test) for i in part)
    return RawText("the generated text markov", letters, None, hashlib.sha256(letters.encode()).hexdigest()[:12])


def numbered(raw: RawText, model: Model, tokens: int) -> Int[np.ndarray, " n"]:
    """The text's first token numbers, without special tokens; at most so many.

    Raises:
        UsageError: for a model without tokenizer, unless the text is numbers; for numbers that are no tokens of the model; and as
        of :meth:`jaxdyn.models.tokenizer.Tokenizer.encode`.
    """
    if raw.numbers is not None:
        used = raw.numbers[:tokens]
        if used.size and not 0 <= used.min() <= used.max() < model.shape.vocabulary:
            raise UsageError(f"text={shown(used)} is not allowed: token numbers are from 0 to {model.shape.vocabulary - 1}")
        return used.astype(np.int32)
    if model.tokenizer is None:
        note = f" ({model.summary.note})" if model.summary is not None and model.summary.note else ""
        raise UsageError(f"this model has no tokenizer{note}: give token numbers from Python, jaxdyn.probe(model, text=numbers)")
    letters = raw.letters or ""
    ids = model.tokenizer.encode(letters[: LETTERS * tokens], special=False)
    if ids.size < tokens + LEAST and len(letters) > LETTERS * tokens:  # the last word may be cut
        ids = model.tokenizer.encode(letters, special=False)
    return ids[:tokens]


def beginning(model: Model) -> Int[np.ndarray, " b"]:
    """The tokens that the model's tokenizer puts before a text."""
    return np.zeros(0, np.int32) if model.tokenizer is None else model.tokenizer.before()


def cut(raw: RawText, model: Model, tokens: Any, length: Any) -> Int[np.ndarray, "piece n"]:
    """Pieces of equal length, one after another, each after the tokens that begin a text.

    A piece is no longer than the model's context, and no longer than a quarter of the tokens, so that there are four or more.

    Raises:
        UsageError: as of :func:`numbered`; for fewer than 256 tokens, pieces of fewer than 64, and a text or context that is
        shorter.
    """
    tokens, length = whole("tokens", tokens, least=4 * LEAST), whole("length", length, least=LEAST)
    ids = numbered(raw, model, tokens)
    context = None if model.summary is None else model.summary.context
    room = min(
        context or length, model.shape.length - model.shape.sink_token if model.shape.position == "learned" else length, length
    )
    if room < LEAST:
        raise UsageError(f"this model reads texts of {plural(room, 'token')}; a piece has {LEAST} or more")
    if ids.size < 4 * LEAST:
        raise UsageError(f"{raw.name} has {plural(ids.size, 'token')}; a probe reads {4 * LEAST} or more, in four pieces")
    begin = beginning(model)
    size = min(room, ids.size // 4 + begin.size)
    body = size - begin.size
    count = ids.size // body
    pieces = ids[: count * body].reshape(count, body)
    return np.concatenate([np.broadcast_to(begin, (count, begin.size)), pieces], 1).astype(np.int32)
