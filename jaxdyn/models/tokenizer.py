"""Texts and token numbers, by the library tokenizers and a model's own tokenizer.json.

Files next to it (:data:`BESIDE`) may name tokens that it lacks, or give flags to those that it has: these are added as the library
transformers adds them. What contradicts it, and is settled by versions of transformers in different ways, is refused.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
import itertools
import json
import operator
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Integer, Shaped

from jaxdyn.engine.base.parsing import plain_file
from jaxdyn.errors import LARGEST, UsageError, one_line, shown
from jaxdyn.models.config import Config, read_json
from jaxdyn.models.extras import library, panics

__all__ = ["BESIDE", "Tokenizer", "WholeTokens", "read_tokenizer", "refuse_unknown", "shared_number"]

BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
LISTS = ("extra_special_tokens", "additional_special_tokens")  # fields of the first two that name several tokens
NAMED = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))  # these first, in this order
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")  # of an added token
AROUND = ("add_bos_token", "add_eos_token")
USUAL = {  # what classes that heed such fields take for granted without them
    "LlamaTokenizer": {"add_bos_token": True, "add_eos_token": False},
    "GPTNeoXTokenizer": {"add_bos_token": False, "add_eos_token": False, "add_prefix_space": False},
    "GPT2Tokenizer": {"add_prefix_space": False},
    "Qwen2Tokenizer": {"add_prefix_space": False},
}
END = "<|endoftext|>"
SENTENCES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
TAKEN = {  # control tokens that classes take for granted: they are added where no file names others, nor null
    "GPT2Tokenizer": dict.fromkeys(("bos_token", "eos_token", "unk_token"), END),
    "GPTNeoXTokenizer": dict.fromkeys(("bos_token", "eos_token", "unk_token"), END) | {"pad_token": "<|padding|>"},
    "Qwen2Tokenizer": dict.fromkeys(("eos_token", "unk_token", "pad_token"), END),
    "LlamaTokenizer": SENTENCES,
    "CodeLlamaTokenizer": SENTENCES,
}
CLASSES = {"gpt2": "GPT2Tokenizer", "opt": "GPT2Tokenizer", "gpt_neox": "GPTNeoXTokenizer", "qwen2": "Qwen2Tokenizer"}
"""Of models whose files do not name the class."""

NONE = "a token that is in no vocabulary"  # the library raises an error where it needs this token
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class WholeTokens:
    """Tokens that are found in a text before the rest of it is cut into others, as llama.cpp finds them.

    The longest is found first, in bytes, even where a shorter one begins to the left of it.

    Args:
        numbers: the tokens and their numbers.
    """

    numbers: Mapping[str, int]

    def split(self, text: str) -> list[str | int]:
        """The text's parts: what stands between these tokens, and their numbers."""
        parts: list[str | int] = [text]
        for token in self._by_length:
            if token in text:
                parts = [more for part in parts for more in (self._cut_at(token, part) if isinstance(part, str) else [part])]
        return [part for part in parts if part != ""]

    def _cut_at(self, token: str, part: str) -> Iterator[str | int]:
        first, *others = part.split(token)
        yield first
        for other in others:
            yield self.numbers[token]
            yield other

    @functools.cached_property
    def _by_length(self) -> list[str]:
        return sorted(self.numbers, key=lambda token: (-len(token.encode()), self.numbers[token]))

    @functools.cached_property
    def overlapping(self) -> list[tuple[str, str]]:
        """Pairs of which the first may begin to the left of the second, overlap it, and give way to it, as it is no longer."""
        beginnings: dict[str, list[str]] = {}
        for token in self.numbers:
            for i in range(1, len(token)):
                beginnings.setdefault(token[:i], []).append(token)
        return [
            (one, other)
            for one in self.numbers
            for i in range(1, len(one))
            for other in beginnings.get(one[i:], ())
            if other != one and len(one.encode()) <= len(other.encode())
        ]


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A model's tokenizer.

    Args:
        inner: the tokenizer of the library, or what has its methods.
        rows: number of the model's embeddings; texts with tokens beyond them are refused.
        whole: tokens that are found in a text before ``inner`` is given the rest, where it would not find them in this way.
    """

    inner: Any
    rows: int = LARGEST
    whole: WholeTokens | None = None

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
            with panics():
                numbers = np.asarray(self._numbers(text, special), np.int64)
        except UsageError:
            raise
        except Exception as error:  # the library raises nothing narrower
            reason = "no token for some character of it" if NONE in str(error) else shown(error)
            raise UsageError(f"the text {one_line(text)} cannot be written in the tokenizer's tokens: {reason}") from None
        return self._embedded("the text has", numbers)

    def before(self) -> Int[np.ndarray, " b"]:
        """The tokens that the model's authors put before every text.

        Raises:
            UsageError: for tokens without an embedding, and as of :meth:`around`.
        """
        return self._embedded("a text begins with", np.asarray(self.around()[0], np.int64))

    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens that the model's authors put before and after every text.

        Found without a text, of which letters may have no token, or that of the beginning: the library puts them around any token.

        Raises:
            UsageError: where the library puts nothing around a token.
        """
        try:
            with panics():
                return self._around() if hasattr(self.inner, "post_process") else (self.inner.before, [])
        except Exception as error:  # the library raises nothing narrower
            raise UsageError(f"the tokens before a text are not known: {shown(error)}") from None

    def _numbers(self, text: str, special: bool) -> list[int]:
        """Token numbers of a text, before they are checked."""
        if self.whole is None:
            return list(self.inner.encode(text, add_special_tokens=special).ids)
        numbers: list[int] = []
        for part in self.whole.split(text):
            numbers += [part] if isinstance(part, int) else self.inner.encode(part, add_special_tokens=False).ids
        before, after = self._around() if special else ([], [])
        return [*before, *numbers, *after]

    def _around(self) -> tuple[list[int], list[int]]:
        """What the library puts before and after a text."""
        around = self.inner.post_process(_token(), None, True)
        place = around.special_tokens_mask.index(0)  # what the library has added has a 1
        return around.ids[:place], around.ids[place + 1 :]

    def _embedded(self, where: str, numbers: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The numbers, if the model has embeddings of all."""
        if numbers.size and numbers.max() >= self.rows:
            number = int(numbers[numbers >= self.rows][0])
            token = one_line(self.inner.id_to_token(number))
            raise UsageError(f"{where} the token {token}, number {number}; the model has embeddings of {self.rows} tokens")
        return numbers.astype(np.int32)

    @property
    def prefix(self) -> bool | None:
        """Whether a space is put before a text that is cut into bytes; None for a tokenizer that cuts it in another way."""
        steps = [] if self.inner.pre_tokenizer is None else [json.loads(self.inner.pre_tokenizer.__getstate__())]
        while steps:
            step = steps.pop(0)
            if step.get("type") == "ByteLevel":
                return bool(step["add_prefix_space"])
            steps = [*step.get("pretokenizers", ()), *steps]
        return None

    def single(self, text: str) -> int | None:
        """The number of a text that is a single token with an embedding, otherwise None, as where it is written as unknown."""
        number = self._alone(text)
        return None if number == self._unknown else number

    def _alone(self, text: str) -> int | None:
        """The number of a text that is a single token, unknown or not."""
        try:
            numbers = self.encode(text, special=False)
        except UsageError:
            return None
        return int(numbers[0]) if numbers.size == 1 else None

    @functools.cached_property
    def _unknown(self) -> int | None:
        """The token of unknown texts, if there is one: what two letters of private use have in common, or two runes.

        No vocabulary has the former, which some normalizers take out of a text; few have both of the latter as letters.
        """
        pairs = ((self._alone(one), self._alone(other)) for one, other in ("\ue000\ue001", "\u16a0\u16a2"))
        return next((one for one, other in pairs if one == other is not None), None)

    def decode(self, tokens: Sequence[int] | Integer[np.ndarray, " n"], *, special: bool = True) -> str:
        """The text of token numbers; without ``special``, control tokens are left out.

        Invalid bytes, such as part of a character, become U+FFFD.

        Raises:
            UsageError: for anything but one row of whole numbers, for numbers without a token, and where the library stops.
        """
        numbers = _row(tokens)
        for number in np.unique(numbers).tolist():
            if not (0 <= number <= LARGEST and self.inner.id_to_token(number)):
                raise UsageError(f"{number} in tokens is not allowed: the tokenizer has no token of this number")
        written = [i for i in numbers.tolist() if special or i not in self._own or not self._own[i].special]
        try:
            with panics():
                return "".join(
                    self._text(list(run), own, special) for own, run in itertools.groupby(written, self._own.__contains__)
                )
        except Exception as error:  # the library raises nothing narrower
            raise UsageError(f"tokens={shown(tokens)} cannot be written as a text: {shown(error)}") from None

    def _text(self, run: list[int], own: bool, special: bool) -> str:
        """The text of a run of added tokens of a byte-level tokenizer, or of others."""
        if own:
            return "".join(self._own[i].content for i in run)
        return str(self.inner.decode(run, skip_special_tokens=not special))

    def save(self, file: Path) -> None:
        """Write a tokenizer.json.

        Raises:
            UsageError: for a tokenizer that such a file cannot hold.
        """
        if self.whole is not None:
            one, other = map(one_line, self.whole.overlapping[0])
            raise UsageError(
                f"{file.name} cannot hold this tokenizer: of tokens that overlap, such as {one} and {other}, it finds the leftmost "
                "one, not the longest; save the model without a tokenizer"
            )
        self.inner.save(str(file))
        file.write_text(file.read_text(encoding="utf-8").replace(f'"{NONE}"', "null"), encoding="utf-8")

    @functools.cached_property
    def _own(self) -> dict[int, Any]:
        """Added tokens of a byte-level tokenizer: the library would read their letters as bytes."""
        return dict(self.inner.get_added_tokens_decoder()) if _of_bytes(self.inner) else {}


def read_tokenizer(file: Path, vocabulary: int) -> Tokenizer:
    """The tokenizer of a model with this many tokens, without truncation, padding and chance (the dropout of merges).

    Raises:
        UsageError: for a file that the library cannot read, or whose numbers of tokens it would change; for an added token of which
            the normalizer leaves nothing; for one that is the letter of a byte; for files next to it that contradict it.
    """
    config, named = _beside(file.parent)
    try:
        with panics():
            inner = library("tokenizers").Tokenizer.from_file(str(plain_file(file)))
            _add(inner, _completed(config, inner), named)
            reason = _lost(inner) or shared_number(inner)
    except UsageError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"{file} is not a tokenizer that the library tokenizers can read: {error}") from None
    if reason:
        raise UsageError(f"{file}: {reason}")
    _refuse_chance(inner)
    inner.no_truncation()
    inner.no_padding()
    _refuse_other_numbers(file, inner)
    _refuse_contradictions(config, named, Tokenizer(inner))
    refuse_unknown(inner)
    return Tokenizer(inner, vocabulary)


def _beside(folder: Path) -> tuple[Config, list[tuple[int, dict[str, Any]]]]:
    """What the files next to a tokenizer.json say: all fields, and the added tokens with their numbers, in their order.

    The first file counts for both where it lists added tokens; otherwise fields of the second file replace its own, and the third
    lists tokens.
    """
    files = [folder / name for name in BESIDE]
    config, special, added = (read_json(file) if file.exists() else {} for file in files)
    own = Config(files[0], config)
    if "added_tokens_decoder" in config:
        listed = own.get("added_tokens_decoder")
        if not isinstance(listed, dict) or not all(number.isdecimal() and _is_token(token) for number, token in listed.items()):
            own.refuse("added_tokens_decoder", listed, "it has a token with its flags for each number")
        return own, sorted(((int(number), token) for number, token in listed.items()), key=operator.itemgetter(0))
    for name in LISTS:
        if name in config and name in special and config[name] != special[name]:
            own.refuse(
                name, config[name], f"{files[1].name} has another list, and versions of transformers take the one or the other"
            )
    own = Config(files[0], config | special)
    known = {token["content"] for token in _special(own)}
    for token, number in added.items():
        if not isinstance(number, int) or not _is_token({"content": token}):
            raise UsageError(f"{files[2]}: {one_line(token)}={shown(number)} is not allowed: it is the number of a token")
    flags = {token: {"special": token in known, "normalized": token not in known} for token in added}
    return own, [(added[token], {"content": token} | flags[token]) for token in sorted(added, key=added.__getitem__)]


def _completed(config: Config, inner: Any) -> Config:
    """The same fields with the token of tokenizer.json's padding, and those that the tokenizer's class takes for granted.

    Of letters that stand for bytes, LLaMA's class takes nothing for granted.
    """
    name = _class(config)
    taken = TAKEN.get(name, {}) if name in CLASSES.values() or not _of_bytes(inner) else {}
    taken = ({} if inner.padding is None else {"pad_token": inner.padding["pad_token"]}) | taken
    return Config(config.file, {**taken, **config.values})


def _class(config: Config) -> str:
    """The tokenizer's class, by its files or by the kind of the model."""
    model = config.file.parent / "config.json"
    fields = read_json(model) if model.exists() else {}
    named = (values.get("tokenizer_class") for values in (config.values, fields))
    return next((str(name).removesuffix("Fast") for name in named if name), CLASSES.get(str(fields.get("model_type")), ""))


def _is_token(token: Any) -> bool:
    """Whether this describes an added token."""
    if not isinstance(token, dict) or not all(isinstance(token.get(flag, False), bool) for flag in FLAGS):
        return False
    content = token.get("content")
    return isinstance(content, str) and content != "" and not SURROGATE.search(content)


def _special(config: Config, known: Container[str] | None = None) -> list[dict[str, Any]]:
    """The control tokens that fields of a configuration name, such as ``pad_token``.

    Of those that the tokenizer knows (None: all of them), its own ``normalized`` stands, whatever is said here.
    """
    names = [name for name in config.values if name.endswith("_token") and name not in NAMED]
    found = [config.get(name, None) for name in (*NAMED, *names)]
    extra, other = (config.get(name, None) for name in LISTS)
    if isinstance(extra, list) and other not in (None, extra):
        config.refuse(LISTS[0], extra, f"{LISTS[1]} is another list, and versions of transformers take the one or the other")
    for several in (extra, () if extra == other else other):
        found += several.values() if isinstance(several, dict) else several if isinstance(several, list) else ()
    tokens = [token for one in found if _is_token(token := {"content": one} if isinstance(one, str) else one)]
    once: dict[str, dict[str, Any]] = {}
    for token in tokens:
        if known is None or token["content"] in known:
            token = token | {"normalized": False}
        if _flags(first := once.setdefault(token["content"], token)) != _flags(token):
            config.refuse("a control token", first["content"], "it is named twice, with other flags")
    return list(once.values())


def _flags(token: Mapping[str, Any]) -> list[bool]:
    """What is said of a control token."""
    return [bool(token.get(flag)) for flag in FLAGS if flag != "special"]


def _add(inner: Any, config: Config, named: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Give a tokenizer the tokens that it lacks, and the flags of those that it knows.

    Tokens of added_tokens.json are only those that tokenizer.json does not know.
    """
    made, old = library("tokenizers").AddedToken, "added_tokens_decoder" not in config.values

    def flags(token: Any) -> tuple[Any, ...]:
        return (token.content, *(getattr(token, flag) for flag in FLAGS))

    own = {flags(token) for token in inner.get_added_tokens_decoder().values()}
    known, control = {token for token, *_ in own}, {token for token, *_, special in own if special}
    described = [one | ({"special": True} if one["content"] in control else {}) for _, one in named]  # once is for ever
    tokens = [made(one["content"], **{flag: one[flag] for flag in FLAGS if flag in one}) for one in described]
    inner.add_tokens([token for token in tokens if flags(token) not in own and not (old and token.content in known)])
    there = {token.content: token for token in inner.get_added_tokens_decoder().values()}
    for one in _special(config, there):
        before = there.get(one["content"])
        if before is None:
            inner.add_tokens([made(one["content"], **{flag: one[flag] for flag in FLAGS if flag in one} | {"special": True})])
        elif not before.special:
            before.special = True
            inner.add_tokens([before])


def _refuse_contradictions(config: Config, named: Sequence[tuple[int, dict[str, Any]]], tokenizer: Tokenizer) -> None:
    """Refuse files that say of a tokenizer what tokenizer.json does not say."""
    for number, token in named:
        if (given := tokenizer.inner.token_to_id(token["content"])) != number:
            name = one_line(token["content"])
            raise UsageError(f"{config.file.parent}: the added token {name} is number {number}, by tokenizer.json number {given}")
    config.fixed(split_special_tokens=False)
    if type(tokenizer.inner.model).__name__ != "BPE" and config.get("clean_up_tokenization_spaces", None):
        config.fixed(clean_up_tokenization_spaces=False)
    if config.get("model_specific_special_tokens", None):
        named_too = config.get("model_specific_special_tokens")
        config.refuse("model_specific_special_tokens", named_too, "some versions of transformers add them, and some do not")
    name = _class(config)
    if name in CLASSES.values() and not _of_bytes(tokenizer.inner):
        config.refuse("tokenizer_class", name, "it cuts texts into bytes, and tokenizer.json does not")
    if name in CLASSES.values() and named and "added_tokens_decoder" in config.values:
        own, listed = tokenizer.inner.get_vocab(with_added_tokens=False), [number for number, _ in named]
        for number, token in tokenizer.inner.get_added_tokens_decoder().items():
            if number < max(listed) and number not in listed and token.content not in own:
                config.refuse("added_tokens_decoder", listed, f"tokenizer.json has {one_line(token.content)}, number {number}, too")
    usual = USUAL.get(name, {})
    if name == "GPTNeoXTokenizer":  # from version 5 on transformers puts nothing around a text, whatever they say
        config.fixed(**{around: False for around in AROUND if config.get(around, None)})
    there = {} if tokenizer.prefix is None else {"add_prefix_space": tokenizer.prefix}
    if usual.keys() >= set(AROUND):
        there |= dict(zip(AROUND, map(bool, tokenizer.around()), strict=True))
    for name, value in there.items():
        given = config.get(name, None)
        if (said := usual.get(name, value) if given is None else given) != value:
            config.refuse(name, said, "tokenizer.json says something else")


@functools.cache
def _token() -> Any:
    """A text of one token, of a tokenizer that has no other."""
    tokenizers = library("tokenizers")
    return tokenizers.Tokenizer(library("tokenizers.models").WordLevel({"a": 0}, "a")).encode("a", add_special_tokens=False)


def _refuse_chance(inner: Any) -> None:
    """Make a text the same numbers every time: in training BPE may leave out merges, and Unigram draw from its pieces."""
    for name in ("dropout", "alpha", "nbest_size"):
        if getattr(inner.model, name, None) is not None:
            setattr(inner.model, name, None)


def refuse_unknown(inner: Any) -> None:
    """Make the library raise an error for a character without a token, which it would drop silently."""
    if type(inner.model).__name__ == "BPE" and inner.model.unk_token is None:
        inner.model.unk_token = NONE


def _lost(inner: Any) -> str:
    """Which added token the normalizer loses; "" if none.

    Of nothing at all, the library would find it everywhere; of two that become the same, it would find now the one, now the other.
    """
    there: dict[str, str] = {}
    for token in inner.get_added_tokens_decoder().values() if inner.normalizer is not None else ():
        if not token.normalized:
            continue
        if not (left := inner.normalizer.normalize_str(token.content)):
            return f"the tokenizer's normalizer leaves nothing of the added token {one_line(token.content)}"
        if (other := there.setdefault(left, token.content)) != token.content:
            return f"the tokenizer's normalizer makes the added tokens {one_line(other)} and {one_line(token.content)} the same"
    return ""


def shared_number(inner: Any) -> str:
    """Which added token of a byte-level tokenizer has the number of a token of other bytes; "" if none.

    ``é`` is the letter of the byte 0xE9: as an added token of its own it would have that token's number, and no text could be told
    from the other.
    """
    for number, token in inner.get_added_tokens_decoder().items() if _of_bytes(inner) else ():
        text = token.content
        if not text.isascii() and set(text) <= _letters().keys() and _writes(inner.model, text, number):
            return f"the added token {one_line(text)} has the number of a token of other bytes, {number}"
    return ""


def _writes(model: Any, letters: str, number: int) -> bool:
    """Whether some text has bytes that the model itself, without added tokens, writes by this token of these letters."""
    data, looks_up = bytes(_letters()[letter] for letter in letters), getattr(model, "ignore_merges", False)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data.lstrip(bytes(range(0x80, 0xC0))))  # it may begin or end in a character
    except UnicodeDecodeError:
        return False
    try:
        if looks_up:  # words, which are whole characters
            model.ignore_merges = "\ufffd" not in data.decode(errors="replace")
        return [part.id for part in model.tokenize(letters)] == [number]
    finally:
        if looks_up:
            model.ignore_merges = True


@functools.cache
def _letters() -> dict[str, int]:
    """The bytes that letters of tokens stand for: themselves, as far as these are printed, and U+0100, U+0101, … for the others."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _of_bytes(inner: Any) -> bool:
    """Whether letters of tokens stand for bytes."""
    decoders, decoder = library("tokenizers.decoders"), getattr(inner, "decoder", None)
    if isinstance(decoder, decoders.Sequence):
        return {part["type"] for part in json.loads(decoder.__getstate__())["decoders"]} == {"ByteLevel"}
    return isinstance(decoder, decoders.ByteLevel)


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


def _row(tokens: Any) -> Shaped[np.ndarray, " n"]:
    """One row of whole numbers; without any, of whichever dtype."""
    try:
        numbers = np.asarray(tokens)
    except ValueError:  # nested lists of different lengths
        numbers = np.zeros((1, 1))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise UsageError(f"tokens={shown(tokens)} is not allowed: it is one row of token numbers")
    return numbers
