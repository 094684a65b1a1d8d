"""Sentencepiece models of the kind "bpe" as GGUF files hold them: tokens with scores, without a list of merges.

Of all neighbours that together form a token, those whose token has the highest score are joined first; of equal scores, the
leftmost. No list of merges expresses this rule: it would always prefer one of two tokens with equal scores, and one way to cut a
token in two, wherever they stand. A character without a token is written as its bytes; without byte tokens it becomes the unknown
token, one for a run of such characters.

Rules: arXiv:1808.06226 (sentencepiece). What surrounds the pieces follows llama.cpp, the reference reader of the format: control
tokens, the unknown token and tokens added by the authors are found in a text before it is cut, the longest first
(:class:`jaxdyn.models.tokenizer.WholeTokens`), and the text that follows one begins with a space as the whole text does. They are
written as they are: only in pieces does ``▁`` stand for a space. Where llama.cpp and sentencepiece differ about pieces,
sentencepiece counts: an unused one is cut into its parts again.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jaxdyn.errors import UsageError
from jaxdyn.models.tokenizer import WholeTokens

__all__ = ["BYTE", "CONTROL", "NORMAL", "OWN", "UNKNOWN", "UNUSED", "WHOLE", "Encoding", "Pieces"]

NORMAL, UNKNOWN, CONTROL, OWN, UNUSED, BYTE = range(1, 7)
"""Kinds of tokens; an unused one is cut into its parts again."""

WHOLE = (UNKNOWN, CONTROL, OWN)  # kinds of the tokens that are found before a text is cut

SPACE = "\u2581"  # in tokens
CACHED = 1 << 16  # words
INVALID = re.compile("[\udc80-\udcff]")  # a byte that is no part of a character, as Python escapes it


class Encoding(NamedTuple):
    """A text in token numbers."""

    ids: list[int]


@dataclasses.dataclass(frozen=True)
class Pieces:
    """A sentencepiece model, with those methods of the library tokenizers that a :class:`~jaxdyn.models.tokenizer.Tokenizer` calls.

    Args:
        tokens: by their numbers, all different.
        scores: of the tokens.
        kinds: of the tokens.
        space: whether a space is put before a text, and taken away from it again.
        before: token numbers before every text.
        after: token numbers after every text.

    Raises:
        UsageError: if some bytes have tokens and others have none, or all 256 have tokens that stand for themselves.
    """

    tokens: Sequence[str]
    scores: Sequence[float]
    kinds: Sequence[int]
    space: bool
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __post_init__(self) -> None:
        """Either all bytes have tokens, or none."""
        if self._bytes and len(self._bytes) < 256:
            lacking = next(b for b in range(256) if b not in self._bytes)
            raise UsageError(f"it has byte tokens, but none for the byte 0x{lacking:02X}")
        if whole := [self.tokens[i] for i in self._byte_of if self.kinds[i] in WHOLE]:
            raise UsageError(f"its token {whole[0]} is written like a byte, and of a kind that stands for itself")

    def encode(self, text: str, add_special_tokens: bool = True) -> Encoding:
        """Token numbers of a text.

        Raises:
            UsageError: for characters without a token, if there are neither byte tokens nor an unknown token.
        """
        ids: list[int] = []
        for part in self._whole.split(text):
            ids += [part] if isinstance(part, int) else self._fragment((SPACE * self.space + part).replace(" ", SPACE))
        return Encoding([*self.before, *ids, *self.after] if add_special_tokens else ids)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of tokens; a byte that is no part of a character is U+FFFD."""
        data = bytearray()
        for number in ids:
            kind, token = self.kinds[number], self.tokens[number]
            if number in self._byte_of:
                data.append(self._byte_of[number])
            elif kind not in WHOLE:
                data += token.replace(SPACE, " ").encode()
            elif kind == OWN or not skip_special_tokens:
                data += token.encode()
        text = INVALID.sub("\N{REPLACEMENT CHARACTER}", data.decode("utf-8", "surrogateescape"))
        return text[1:] if self.space and text.startswith(" ") else text

    def token_to_id(self, token: str) -> int | None:
        """The number of a token."""
        return self._numbers.get(token)

    def id_to_token(self, number: int) -> str | None:
        """The token of a number."""
        return self.tokens[number] if number < len(self.tokens) else None

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Tokens and their numbers."""
        return self._numbers

    def to_str(self) -> str:
        """The whole model as JSON."""
        return json.dumps(dataclasses.asdict(self))

    def save(self, file: str) -> None:
        """There is no such file: tokenizer.json has lists of merges.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"{Path(file).name} cannot hold this tokenizer: it joins tokens by their scores, not by a list of merges; "
            "save the model without a tokenizer"
        )

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    @functools.cached_property
    def _joined(self) -> dict[str, int]:
        """Tokens that neighbours may form, with their numbers."""
        return {token: i for i, token in enumerate(self.tokens) if i not in self._byte_of}

    @functools.cached_property
    def _bytes(self) -> dict[int, int]:
        """Tokens of bytes: those of this kind; in a file that lost the kinds, what is written like all of them."""
        own = {int(token[3:5], 16): i for i, token in enumerate(self.tokens) if self.kinds[i] == BYTE}
        written = {byte: self._numbers.get(f"<0x{byte:02X}>") for byte in range(256)}
        known = {byte: number for byte, number in written.items() if number is not None}
        return known if not own and len(known) == 256 else own

    @functools.cached_property
    def _byte_of(self) -> dict[int, int]:
        return {number: byte for byte, number in self._bytes.items()}

    @functools.cached_property
    def _unknown(self) -> int | None:
        return next((i for i, kind in enumerate(self.kinds) if kind == UNKNOWN), None)

    @functools.cached_property
    def _whole(self) -> WholeTokens:
        """Tokens that are found before a text is cut into pieces."""
        return WholeTokens({token: i for token, i in self._numbers.items() if self.kinds[i] in WHOLE and token})

    @functools.cached_property
    def _neighbours(self) -> set[str]:
        """Pairs of neighbouring characters of tokens."""
        return {token[i : i + 2] for token in self._joined for i in range(len(token) - 1)}

    @functools.cached_property
    def _word(self) -> Callable[[str], tuple[int, ...]]:
        return functools.lru_cache(CACHED)(self._merged)

    def _fragment(self, text: str) -> Iterator[int]:
        """The numbers of a text between recognised tokens; a run of unknown characters is one token."""
        last = None
        for word in self._words(text):
            for number in self._word(word):
                if number != self._unknown or number != last:
                    yield number
                last = number

    def _words(self, text: str) -> Iterator[str]:
        """The text cut wherever no token can cross, so that each word is merged by itself."""
        start = 0
        for i in range(1, len(text)):
            if text[i - 1 : i + 1] not in self._neighbours:
                yield text[start:i]
                start = i
        yield text[start:]

    def _merged(self, word: str) -> tuple[int, ...]:
        """The numbers of a word."""
        parts, after, before = list(word), [*range(1, len(word)), -1], [*range(-1, len(word) - 1)]
        queue: list[tuple[float, int, int, int]] = []  # the score's negative, the parts' places, their length together
        halves: dict[str, tuple[str, str]] = {}  # of unused tokens

        def enter(i: int, j: int) -> None:
            number = self._joined.get(parts[i] + parts[j]) if i >= 0 and j >= 0 else None
            if number is not None:
                heapq.heappush(queue, (-self.scores[number], i, j, len(parts[i]) + len(parts[j])))
                if self.kinds[number] == UNUSED:
                    halves[parts[i] + parts[j]] = parts[i], parts[j]

        for i in range(len(parts) - 1):
            enter(i, i + 1)
        while queue:
            _, i, j, length = heapq.heappop(queue)
            if parts[i] and parts[j] and len(parts[i]) + len(parts[j]) == length:
                parts[i], parts[j], after[i] = parts[i] + parts[j], "", after[j]
                if after[i] >= 0:
                    before[after[i]] = i
                enter(before[i], i)
                enter(i, after[i])
        return tuple(number for part in parts if part for number in self._spelled(part, halves))

    def _spelled(self, part: str, halves: dict[str, tuple[str, str]]) -> Iterator[int]:
        """A part's number; of an unused token its halves', of a character without a token its bytes'."""
        if part in halves:
            yield from (number for half in halves[part] for number in self._spelled(half, halves))
        elif part in self._joined:
            yield self._joined[part]
        elif self._bytes:
            yield from (self._bytes[byte] for byte in part.encode())
        elif self._unknown is not None:
            yield self._unknown
        else:
            raise UsageError(f"the text has the character U+{ord(part):04X}, for which the tokenizer has no token")
