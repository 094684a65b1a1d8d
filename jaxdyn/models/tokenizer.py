"""Texts and token numbers, by the library tokenizers and a model's own tokenizer.json."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxdyn.errors import LARGEST, UsageError, one_line, shown
from jaxdyn.models.config import read_json
from jaxdyn.models.extras import library

__all__ = ["Tokenizer", "read_tokenizer", "refuse_unknown"]

NONE = "a token that is in no vocabulary"  # the library raises an error where it needs this token
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A model's tokenizer.

    Args:
        inner: the tokenizer of the library, or what has its methods.
        rows: number of the model's embeddings; texts with tokens beyond them are refused.
    """

    inner: Any
    rows: int = LARGEST

    @property
    def size(self) -> int:
        """One more than the largest token number."""
        return 1 + max(self.inner.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode(self, text: str, *, special: bool = True) -> Int[np.ndarray, " n"]:
        """Token numbers of a text, with the tokens that the model's authors put around one if ``special``.

        Raises:
            UsageError: for anything but a string, characters without a token, and tokens without an embedding.
        """
        if not isinstance(text, str):
            raise UsageError(f"text={shown(text)} is not allowed: it is one string")
        if found := SURROGATE.search(text):
            code = f"U+{ord(found[0]):04X}"
            raise UsageError(f"the text has {code} at place {found.start()}, half of a pair of surrogates, which is no character")
        try:
            numbers = np.asarray(self.inner.encode(text, add_special_tokens=special).ids, np.int64)
        except UsageError:
            raise
        except Exception as error:  # the library raises nothing narrower
            reason = "no token for some character of it" if NONE in str(error) else shown(error)
            raise UsageError(f"the text {one_line(text)} cannot be written in the tokenizer's tokens: {reason}") from None
        if numbers.size and numbers.max() >= self.rows:
            number = int(numbers[numbers >= self.rows][0])
            token = one_line(self.inner.id_to_token(number))
            raise UsageError(f"the text has the token {token}, number {number}; the model has embeddings of {self.rows} tokens")
        return numbers.astype(np.int32)

    def single(self, text: str) -> int | None:
        """The number of a text that is a single token with an embedding, otherwise None."""
        try:
            numbers = self.encode(text, special=False)
        except UsageError:
            return None
        return int(numbers[0]) if numbers.size == 1 else None

    def decode(self, tokens: Int[np.ndarray, " n"], *, special: bool = True) -> str:
        """The text of token numbers; without ``special``, control tokens are left out.

        Invalid bytes, such as part of a character, become U+FFFD.

        Raises:
            UsageError: for anything but one row of whole numbers, and for numbers without a token.
        """
        numbers = _row(tokens)
        for number in np.unique(numbers).tolist():
            if not (0 <= number <= LARGEST and self.inner.id_to_token(number)):
                raise UsageError(f"{number} in tokens is not allowed: the tokenizer has no token of this number")
        return "".join(
            "".join(self._own[i].content for i in run if special or not self._own[i].special)
            if own
            else str(self.inner.decode(list(run), skip_special_tokens=not special))
            for own, run in itertools.groupby(numbers.tolist(), self._own.__contains__)
        )

    def save(self, file: Path) -> None:
        """Write a tokenizer.json.

        Raises:
            UsageError: for a tokenizer that such a file cannot hold.
        """
        self.inner.save(str(file))
        file.write_text(file.read_text(encoding="utf-8").replace(f'"{NONE}"', "null"), encoding="utf-8")

    @functools.cached_property
    def _own(self) -> dict[int, Any]:
        """Added tokens of a byte-level tokenizer: the library would read their letters as bytes."""
        decoder = getattr(self.inner, "decoder", None)
        if decoder is None or not isinstance(decoder, library("tokenizers.decoders").ByteLevel):
            return {}
        return dict(self.inner.get_added_tokens_decoder())


def read_tokenizer(file: Path, vocabulary: int) -> Tokenizer:
    """The tokenizer of a model with this many tokens.

    Raises:
        UsageError: for a file that the library cannot read, or whose numbers of tokens it would change.
    """
    try:
        inner = library("tokenizers").Tokenizer.from_file(str(file))
    except UsageError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"{file} is not a tokenizer that the library tokenizers can read: {error}") from None
    inner.no_truncation()
    inner.no_padding()
    _refuse_other_numbers(file, inner)
    refuse_unknown(inner)
    return Tokenizer(inner, vocabulary)


def refuse_unknown(inner: Any) -> None:
    """Make the library raise an error for a character without a token, which it would drop silently."""
    if type(inner.model).__name__ == "BPE" and inner.model.unk_token is None:
        inner.model.unk_token = NONE


def _refuse_other_numbers(file: Path, inner: Any) -> None:
    """Refuse two tokens with one number, and added tokens that the library would renumber."""
    seen: dict[int, str] = {}
    for token, number in inner.get_vocab(with_added_tokens=True).items():
        if (other := seen.setdefault(number, token)) != token:
            raise UsageError(f"{file}: the tokens {one_line(other)} and {one_line(token)} have the same number, {number}")
    for token in read_json(file).get("added_tokens") or ():
        if (number := inner.token_to_id(token["content"])) != token["id"]:
            name = one_line(token["content"])
            raise UsageError(
                f"{file}: the added token {name} is number {token['id']} in the file; the library would make it number {number}"
            )


def _row(tokens: Any) -> Int[np.ndarray, " n"]:
    """One row of whole numbers."""
    try:
        numbers = np.asarray(tokens)
    except ValueError:  # nested lists of different lengths
        numbers = np.zeros((1, 1))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise UsageError(f"tokens={shown(tokens)} is not allowed: it is one row of token numbers")
    return numbers
