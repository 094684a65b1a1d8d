"""The tokenizer in a GGUF file's metadata.

Files of GPT-2's kind ("gpt2") hold tokens, their kinds and merges, and name the rule by which a text is first split. The rules are
those of the published tokenizer.json of the models named. What the metadata leave out follows llama.cpp, the reference reader of
the format: with the rule of LLaMA 3, a word that is a token is taken whole, and a token stands before every text.

Files of LLaMA 2's kind ("llama") hold a sentencepiece model, with scores and without merges (:mod:`jaxdyn.models.pieces`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.errors import Absent, UsageError, one_line, shown, whole
from jaxdyn.models.extras import library
from jaxdyn.models.pieces import CONTROL, OWN, UNKNOWN, Pieces
from jaxdyn.models.tokenizer import Tokenizer, refuse_unknown

__all__ = ["gguf_tokenizer", "unsupported"]

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


class Rule(NamedTuple):
    """How a text is split, and what follows from the rule's name."""

    pattern: str = ""  # a regular expression; none: GPT-2's
    digits: bool = False  # one by one, before the pattern
    normal: bool = False  # Unicode's normal form C
    llama3: bool = False  # a word that is a token is taken whole, and a token stands before every text


RULES = {
    "gpt-2": Rule(),
    "smollm": Rule(digits=True),
    "llama-bpe": Rule(rf"{CONTRACTIONS}|{WORDS}|\p{{N}}{{1,3}}|{REST}", llama3=True),
    "qwen2": Rule(rf"{CONTRACTIONS}|{WORDS}|\p{{N}}|{REST}", normal=True),
}
NUMBERS: dict[str, dict[str, int]] = {"llama": {"bos": 1, "eos": 2}, "gpt2": {}}  # of tokens, where the metadata lack them
REFUSED = {  # fields that some programs follow and others ignore
    "llama": ("remove_extra_whitespaces", "precompiled_charsmap"),
    "gpt2": ("add_space_prefix", "precompiled_charsmap"),
}


def gguf_tokenizer(file: Path, metadata: dict[str, Any], vocabulary: int) -> Tokenizer | None:
    """The tokenizer of a model with this many tokens; None for one that is not supported, and without one.

    Raises:
        UsageError: for metadata that are no tokenizer.
    """
    if unsupported(metadata):
        return None
    fields = {name.removeprefix("tokenizer.ggml."): value for name, value in metadata.items()}
    try:
        _refuse_twice(fields["tokens"])
        inner = _pieces(fields) if fields["model"] == "llama" else _byte_level(fields)
    except Absent:
        raise
    except Exception as error:  # the library raises nothing narrower
        reason = error if isinstance(error, UsageError) else shown(error)
        raise UsageError(f"{file}: its tokenizer cannot be read: {reason}") from None
    return Tokenizer(inner, vocabulary)


def unsupported(metadata: dict[str, Any]) -> str:
    """Why there is no tokenizer, and what works; "" if there is one."""
    kind, rule = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind is None:
        return "the file has none"
    way_out = "the model's folder with tokenizer.json works"
    if kind != "llama" and (kind != "gpt2" or rule not in RULES):
        name = f"{kind}, {rule}" if kind == "gpt2" and rule is not None else str(kind)
        return f"its kind, {name}, is not supported (gpt2 with the rule {', '.join(RULES)}, and llama); {way_out}"
    asked = [name for name in REFUSED[kind] if metadata.get(f"tokenizer.ggml.{name}")]
    return f"its field tokenizer.ggml.{asked[0]} is not supported for the kind {kind}; {way_out}" if asked else ""


def _refuse_twice(tokens: list[str]) -> None:
    """Refuse a token with two numbers; an empty one is no token."""
    numbers: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if token and numbers.setdefault(token, i) != i:
            raise UsageError(f"the token {one_line(token)} occurs twice, as number {numbers[token]} and as number {i}")


def _around(fields: dict[str, Any], name: str, default: bool) -> tuple[int, ...]:
    """The number of the token that stands before ("bos") or after ("eos") every text, if there is one."""
    key = f"{name}_token_id"
    if not fields.get(f"add_{name}_token", default):
        return ()
    number = fields.get(key, NUMBERS[fields["model"]].get(name))
    if number is None:
        raise UsageError(f"tokenizer.ggml.{key} is missing, although tokenizer.ggml.add_{name}_token is true or taken for granted")
    return (whole(f"tokenizer.ggml.{key}", number, least=0, most=len(fields["tokens"]) - 1),)


def _pieces(fields: dict[str, Any]) -> Pieces:
    """A sentencepiece model."""
    count, scores, kinds = len(fields["tokens"]), fields["scores"], fields["token_type"]
    if not len(scores) == len(kinds) == count:
        raise UsageError(f"it has {count} tokens, {len(scores)} scores and {len(kinds)} kinds of tokens")
    if any(score != score for score in scores):
        raise UsageError("a score is NaN")
    around = _around(fields, "bos", True), _around(fields, "eos", False)
    return Pieces(fields["tokens"], scores, kinds, bool(fields.get("add_space_prefix", True)), *around)


def _byte_level(fields: dict[str, Any]) -> Any:
    """Pairs of letters that stand for bytes, by the library."""
    parts, processors, made = library("tokenizers.pre_tokenizers"), library("tokenizers.processors"), library("tokenizers")
    rule, tokens, kinds = RULES[fields["pre"]], fields["tokens"], fields.get("token_type")
    if kinds is not None and len(kinds) != len(tokens):
        raise UsageError(f"it has {len(tokens)} tokens, and {len(kinds)} kinds of tokens")
    pairs = dict.fromkeys(tuple(merge.split(" ", 1)) for merge in fields["merges"])  # the first of equal ones counts
    numbers = {token: number for number, token in enumerate(tokens)}
    inner = made.Tokenizer(library("tokenizers.models").BPE(numbers, list(pairs), ignore_merges=rule.llama3))
    refuse_unknown(inner)
    steps = [parts.Digits(individual_digits=True)] if rule.digits else []
    steps += [parts.Split(made.Regex(rule.pattern), "isolated")] if rule.pattern else []
    inner.pre_tokenizer = parts.Sequence([*steps, parts.ByteLevel(add_prefix_space=False, use_regex=not rule.pattern)])
    inner.decoder = library("tokenizers.decoders").ByteLevel()
    if rule.normal:
        inner.normalizer = library("tokenizers.normalizers").NFC()
    for token, kind in zip(tokens, kinds or (), strict=False):
        if token and kind in (UNKNOWN, CONTROL, OWN):
            inner.add_tokens([made.AddedToken(token, special=kind != OWN, normalized=False)])
    before, after = _around(fields, "bos", rule.llama3), _around(fields, "eos", False)
    around = {"before": before, "after": after}
    if before or after:
        named = [{"id": name, "ids": ids, "tokens": [tokens[i] for i in ids]} for name, ids in around.items() if ids]
        single = ["before"] * len(before) + ["$A"] + ["after"] * len(after)
        inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=named)
    return inner
