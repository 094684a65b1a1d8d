"""The tokenizer in a GGUF file's metadata, as one of the library tokenizers.

The metadata hold tokens, their kinds and merges, and name the rule by which a text is first split. Rules: those of the published
tokenizer.json of the models named.

Files of LLaMA 2's kind ("llama") hold a sentencepiece model instead, with scores and without merges. There, whichever neighbours
make the token with the highest score are joined first, the leftmost of equals: every way to cut a token in two is a merge, and
merges are ordered by the score of what they make. A letter that is no token is written as its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdyn.errors import UsageError, shown
from jaxdyn.models.extras import library
from jaxdyn.models.tokenizer import Tokenizer

__all__ = ["gguf_tokenizer", "unsupported"]

UNKNOWN, CONTROL, OWN = 2, 3, 4  # kinds of tokens: for any other letter; never in a text by themselves; added by the authors
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {  # name of the rule -> a regular expression, "" for GPT-2's; digits one by one before it or not; Unicode's normal form C
    "gpt-2": ("", False, False),
    "smollm": ("", True, False),
    "llama-bpe": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}{{1,3}}|{REST}", False, False),
    "qwen2": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}|{REST}", False, True),
}
SPACE = "\u2581"  # in tokens of sentencepiece


def gguf_tokenizer(file: Path, metadata: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer; None for a kind that is not supported, and without one.

    Raises:
        UsageError: for metadata that are no tokenizer.
    """
    pieces, rule = metadata.get("tokenizer.ggml.model") == "llama", SPLITS.get(metadata.get("tokenizer.ggml.pre", ""))
    if not pieces and (metadata.get("tokenizer.ggml.model") != "gpt2" or rule is None):
        return None
    tokens = metadata.get("tokenizer.ggml.tokens") or ()
    try:
        inner = _pieces(metadata, tokens) if pieces else _bytes(metadata, tokens)
    except UsageError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise UsageError(f"{file}: its tokenizer cannot be read: {shown(error)}") from None
    if not pieces and rule is not None:
        _split(inner, *rule)
    _add(inner, metadata, list(tokens), begins=pieces)
    return Tokenizer(inner)


def unsupported(metadata: dict[str, Any]) -> str:
    """Why there is no tokenizer, and what works."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind is None:
        return "the file has none"
    name = f"{kind}, {metadata['tokenizer.ggml.pre']}" if kind == "gpt2" and "tokenizer.ggml.pre" in metadata else str(kind)
    known = f"gpt2 with the rule {', '.join(SPLITS)}, and llama"
    return f"its kind, {name}, is not supported ({known}); the model's folder with tokenizer.json works"


def _bytes(metadata: dict[str, Any], tokens: Sequence[str]) -> Any:
    """Byte-level pairs."""
    pairs = [tuple(merge.split(" ", 1)) for merge in metadata.get("tokenizer.ggml.merges") or ()]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return library("tokenizers").Tokenizer(library("tokenizers.models").BPE(vocabulary, pairs))


def _pieces(metadata: dict[str, Any], tokens: Sequence[str]) -> Any:
    """Pairs of a sentencepiece model, and how spaces are written."""
    scores, kinds = metadata["tokenizer.ggml.scores"], metadata["tokenizer.ggml.token_type"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    order = sorted(range(len(tokens)), key=lambda number: -scores[number])
    cuts = ((token[:i], token[i:]) for token in (tokens[number] for number in order) for i in range(1, len(token)))
    pairs = [(a, b) for a, b in cuts if a in vocabulary and b in vocabulary]
    unknown = next((token for token, kind in zip(tokens, kinds, strict=True) if kind == UNKNOWN), None)
    model = library("tokenizers.models").BPE(vocabulary, pairs, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    inner, before = library("tokenizers").Tokenizer(model), metadata.get("tokenizer.ggml.add_space_prefix", True)
    rules, back = library("tokenizers.normalizers"), library("tokenizers.decoders")
    inner.normalizer = rules.Sequence([rules.Prepend(SPACE)] * before + [rules.Replace(" ", SPACE)])
    inner.decoder = back.Sequence([back.Replace(SPACE, " "), back.ByteFallback(), back.Fuse()] + [back.Strip(" ", 1, 0)] * before)
    return inner


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


def _add(inner: Any, metadata: dict[str, Any], tokens: list[str], begins: bool) -> None:
    """Control tokens, and the token that begins a text if the model has one; ``begins`` unless the metadata say otherwise."""
    added = library("tokenizers").AddedToken
    for token, kind in zip(tokens, metadata.get("tokenizer.ggml.token_type") or (), strict=False):
        if kind in (CONTROL, OWN):
            inner.add_tokens([added(token, special=kind == CONTROL, normalized=False)])
    number = metadata.get("tokenizer.ggml.bos_token_id")
    if metadata.get("tokenizer.ggml.add_bos_token", begins) and number is not None and number < len(tokens):
        name = tokens[number]
        template = library("tokenizers.processors").TemplateProcessing
        inner.post_processor = template(single=f"{name} $A", special_tokens=[(name, int(number))])
