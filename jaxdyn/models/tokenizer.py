"""Texts and token numbers, by the library tokenizers and a model's own tokenizer.json."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxdyn.errors import UsageError
from jaxdyn.models.extras import library

__all__ = ["Tokenizer", "read_tokenizer"]


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A model's tokenizer; ``inner`` is that of the library."""

    inner: Any

    @property
    def size(self) -> int:
        """One more than the largest token number."""
        return 1 + max(self.inner.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode(self, text: str, *, special: bool = True) -> Int[np.ndarray, " n"]:
        """Token numbers of a text, with the tokens that the model's authors put around one if ``special``."""
        return np.asarray(self.inner.encode(text, add_special_tokens=special).ids, np.int32)

    def decode(self, tokens: Int[np.ndarray, " n"], *, special: bool = True) -> str:
        """The text of token numbers; without ``special``, control tokens are left out."""
        return str(self.inner.decode(np.asarray(tokens).tolist(), skip_special_tokens=not special))

    def save(self, file: Path) -> None:
        """Write a tokenizer.json."""
        self.inner.save(str(file))


def read_tokenizer(file: Path, vocabulary: int) -> Tokenizer:
    """The tokenizer of a model with this many tokens.

    Raises:
        UsageError: for a file that the library cannot read, and for a tokenizer with more tokens than the model.
    """
    try:
        inner = library("tokenizers").Tokenizer.from_file(str(file))
    except UsageError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"{file} is not a tokenizer that the library tokenizers can read: {error}") from None
    inner.no_truncation()
    inner.no_padding()
    tokenizer = Tokenizer(inner)
    fits(tokenizer, file, vocabulary)
    return tokenizer


def fits(tokenizer: Tokenizer, file: Path, vocabulary: int) -> None:
    """Raise UsageError for a tokenizer with more tokens than the model; embeddings may have spare rows."""
    if tokenizer.size > vocabulary:
        raise UsageError(f"{file} is the tokenizer of another vocabulary: it has {tokenizer.size} tokens, the model {vocabulary}")
