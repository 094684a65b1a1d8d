"""A text as three streams of numbers and the vocabulary they point into."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json

import numpy as np
from jaxtyping import Int

from jaxdyn.errors import UsageError

__all__ = ["PARTS", "Corpus", "split"]

PARTS = ("train", "valid", "test")


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """A text in numbers; the arrays are kept as read-only int32, since loaded texts are shared.

    Args:
        name: what results call the text.
        train: numbers of the training tokens, one stream.
        valid: the same of the validation part.
        test: the same of the test part.
        vocabulary: the word of each number, ``<unk>`` first where there are unknown words.

    Raises:
        UsageError: unless each stream is a row of whole numbers within the vocabulary, at least two of them (one to read and one
            to predict); if the vocabulary is empty, repeats a word, has an empty one, or what is no string.
    """

    name: str
    train: Int[np.ndarray, " n"] = dataclasses.field(repr=False)
    valid: Int[np.ndarray, " m"] = dataclasses.field(repr=False)
    test: Int[np.ndarray, " k"] = dataclasses.field(repr=False)
    vocabulary: tuple[str, ...] = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        """Check the vocabulary and the streams."""
        words = self.vocabulary
        if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
            raise UsageError(f"text {self.name}: a vocabulary is a tuple of words, each a string")
        if not words or not all(words) or len(set(words)) < len(words):
            raise UsageError(f"text {self.name}: a vocabulary has at least one word, none twice and none empty")
        for part in PARTS:
            object.__setattr__(self, part, self._stream(part))

    def _stream(self, part: str) -> Int[np.ndarray, " n"]:
        """The checked, read-only stream of a part."""
        values = np.asarray(getattr(self, part))
        if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
            raise UsageError(
                f"text {self.name}: a stream is one row of whole numbers, not {values.dtype} of shape {values.shape} ({part})"
            )
        if len(values) < 2:
            raise UsageError(f"text {self.name} is too short: each part needs 2 tokens or more, the {part} part has {len(values)}")
        if values.min() < 0 or values.max() >= len(self.vocabulary):
            raise UsageError(
                f"text {self.name}: tokens are 0 to {len(self.vocabulary) - 1}, "
                f"the {part} part has {values.min()} to {values.max()}"
            )
        stream = values.astype(np.int32)
        stream.setflags(write=False)
        return stream

    @functools.cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of streams and vocabulary, whatever the name: ties results to a text."""
        sha = hashlib.sha256(json.dumps([self.vocabulary, [len(getattr(self, part)) for part in PARTS]]).encode())
        for part in PARTS:
            sha.update(getattr(self, part).astype("<i4").tobytes())
        return sha.hexdigest()[:12]


def split(stream: Int[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"], Int[np.ndarray, " c"]]:
    """The first 90 percent, the next 5, and the rest."""
    train, valid = len(stream) * 90 // 100, len(stream) * 95 // 100
    return stream[:train], stream[train:valid], stream[valid:]
