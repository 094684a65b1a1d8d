"""The tokenizer in a GGUF file's metadata, as one of the library tokenizers.

The metadata hold tokens, their kinds and merges, and name the rule by which a text is first split. Rules: those of the published
tokenizer.json of the models named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxdyn.errors import UsageError, shown
from jaxdyn.models.extras import library
from jaxdyn.models.tokenizer import Tokenizer

__all__ = ["UNSUPPORTED", "gguf_tokenizer"]

CONTROL, OWN = 3, 4  # kinds of tokens: never in a text by themselves; added by the model's authors
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {  # name of the rule -> a regular expression, "" for GPT-2's; digits one by one before it or not; Unicode's normal form C
    "gpt-2": ("", False, False),
    "smollm": ("", True, False),
    "llama-bpe": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}{{1,3}}|{REST}", False, False),
    "qwen2": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}|{REST}", False, True),
}
UNSUPPORTED = "its tokenizer is of a kind that is not supported"


def gguf_tokenizer(file: Path, metadata: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer; None for a kind that is not supported, and without one.

    Raises:
        UsageError: for metadata that are no tokenizer.
    """
    rule = SPLITS.get(metadata.get("tokenizer.ggml.pre", ""))
    if metadata.get("tokenizer.ggml.model") != "gpt2" or rule is None:
        return None
    tokens, merges = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.merges")
    try:
        pairs = [tuple(merge.split(" ", 1)) for merge in merges or ()]
        vocabulary = {token: number for number, token in enumerate(tokens or ())}
        inner = library("tokenizers").Tokenizer(library("tokenizers.models").BPE(vocabulary, pairs))
    except UsageError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"{file}: its tokenizer cannot be read: {shown(error)}") from None
    _split(inner, *rule)
    _add(inner, metadata, list(vocabulary))
    return Tokenizer(inner)


def _split(inner: Any, pattern: str, digits: bool, normal: bool) -> None:
    """How a text is split and bytes are written."""
    parts, library_ = library("tokenizers.pre_tokenizers"), library("tokenizers")
    steps = [parts.Digits(individual_digits=True)] if digits else []
    if pattern:
        steps.append(parts.Split(library_.Regex(pattern), "isolated"))
    steps.append(parts.ByteLevel(add_prefix_space=False, use_regex=not pattern))
    inner.pre_tokenizer = parts.Sequence(steps)
    inner.decoder = library("tokenizers.decoders").ByteLevel()
    if normal:
        inner.normalizer = library("tokenizers.normalizers").NFC()


def _add(inner: Any, metadata: dict[str, Any], tokens: list[str]) -> None:
    """Control tokens, and the token that begins a text if the model has one."""
    added = library("tokenizers").AddedToken
    for token, kind in zip(tokens, metadata.get("tokenizer.ggml.token_type") or (), strict=False):
        if kind in (CONTROL, OWN):
            inner.add_tokens([added(token, special=kind == CONTROL, normalized=False)])
    number = metadata.get("tokenizer.ggml.bos_token_id")
    if metadata.get("tokenizer.ggml.add_bos_token") and number is not None and number < len(tokens):
        name = tokens[number]
        template = library("tokenizers.processors").TemplateProcessing
        inner.post_processor = template(single=f"{name} $A", special_tokens=[(name, int(number))])
