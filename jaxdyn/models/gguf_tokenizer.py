"""The tokenizer in a GGUF file's metadata.

Files of GPT-2's kind ("gpt2") hold tokens, their kinds and merges, and name the rule by which a text is first split. The rules are
those of the published tokenizer.json of the models named. What the metadata leave out follows llama.cpp, the reference reader of
the format: with the rule of LLaMA 3, a word that is a token is taken whole, and a token stands before every text.

Files of LLaMA 2's kind ("llama") hold a sentencepiece model, with scores and without merges (:mod:`jaxdyn.models.pieces`).

Of well-known control tokens llama.cpp knows the kind better than the file, and so does this module: ``</s>`` or ``<|im_end|>`` is
one whatever the file says, or if it says nothing. Of the names of one marker of code, such as ``<|fim_prefix|>`` and ``<PRE>``, it
takes the one that the metadata name, or the only one; which of several depends on the order of a hash table, and such files have no
tokenizer here. Nor have files with tokens of equal length that overlap, of which an unstable sort puts one first.

How a text is split follows tokenizer.json where llama.cpp departs from it: with Qwen2's rule a text is first brought into Unicode's
normal form C, and with LLaMA 3's and Qwen2's ``'ſ`` is a contraction like ``'s``, of which ſ (U+017F) is another form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.errors import Absent, UsageError, one_line, shown, whole
from jaxdyn.models.extras import library, panics
from jaxdyn.models.pieces import CONTROL, NORMAL, OWN, WHOLE, Pieces
from jaxdyn.models.tokenizer import Tokenizer, WholeTokens, refuse_unknown, shared_number
from jaxdyn.wording import plural

__all__ = ["ENDS", "MARKERS", "SHOWN", "gguf_tokenizer", "settled", "undecided", "unsupported"]

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
STRIPPING = ("phi-3", "phi3", "modern-bert")  # in names of models for which llama.cpp drops spaces next to some tokens
ENDS = (
    *("<|eot_id|>", "<|im_end|>", "<|ifm|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<|eom_id|>"),
    *("<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]", "<EOT>", "_<EOT>", "[EOT]", "[e~["),
    *("<end_of_utterance>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>"),
)
SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # taken for tokens added by the authors
MARKERS = {  # of code to be filled in: fields of the metadata that name one -> its names
    ("fim_pre", "prefix"): (
        *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>"),
        *("<|prefix|>", "<|plamo:fim_prefix|>"),
    ),
    ("fim_suf", "suffix"): (
        *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>"),
        *("<|suffix|>", "<|plamo:fim_suffix|>"),
    ),
    ("fim_mid", "middle"): (
        *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>"),
        *("<|middle|>", "<|plamo:fim_middle|>"),
    ),
    ("fim_pad",): ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    ("fim_rep",): ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ("fim_sep",): ("<|file_sep|>", "<|plamo:file_separator|>"),
}


def gguf_tokenizer(file: str | Path, metadata: dict[str, Any], vocabulary: int) -> Tokenizer | None:
    """The tokenizer of a model with this many tokens; None for one that is not supported, and without one.

    Raises:
        UsageError: for metadata that are no tokenizer.
    """
    if unsupported(metadata):
        return None
    fields = _fields(metadata)
    try:
        if damage := _damage(fields):
            raise UsageError(damage)
        with panics():
            tokenizer = Tokenizer(_pieces(fields), vocabulary) if fields["model"] == "llama" else _byte_level(fields, vocabulary)
    except Absent:
        raise
    except Exception as error:  # the library raises nothing narrower
        reason = error if isinstance(error, UsageError) else shown(error)
        raise UsageError(f"{file}: its tokenizer cannot be read: {reason}") from None
    return tokenizer


def _fields(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("tokenizer.ggml."): value for name, value in metadata.items() if name.startswith("tokenizer.ggml.")}


def unsupported(metadata: dict[str, Any]) -> str:
    """Why there is no tokenizer, and what works; "" if there is one."""
    kind, rule = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind is None:
        return "the file has none"
    way_out = "the model's folder with tokenizer.json works"
    if kind != "llama" and (kind != "gpt2" or rule not in RULES):
        name = f"{kind}, {rule}" if kind == "gpt2" and rule is not None else str(kind)
        return f"its kind, {name}, is not supported (gpt2 with the rule {', '.join(RULES)}, and llama); {way_out}"
    if asked := [name for name in REFUSED[kind] if metadata.get(f"tokenizer.ggml.{name}")]:
        return f"its field tokenizer.ggml.{asked[0]} is not supported for the kind {kind}; {way_out}"
    if named := [name for name in STRIPPING if name in str(metadata.get("general.name")).lower()]:
        return f"next to some tokens of models whose name has {named[0]} in it, llama.cpp drops spaces; {way_out}"
    fields = _fields(metadata)
    reason = "" if _damage(fields) else undecided(fields)
    return f"{reason}; {way_out}" if reason else ""


def _damage(fields: dict[str, Any]) -> str:
    """What is wrong with the list of tokens and their kinds; an empty token is none, and may occur twice."""
    tokens, kinds, numbers = fields.get("tokens"), fields.get("token_type"), dict[str, int]()
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return "it has no list of tokens"
    for i, token in enumerate(tokens):
        if token and numbers.setdefault(token, i) != i:
            return f"the token {one_line(token)} occurs twice, as number {numbers[token]} and as number {i}"
    if kinds is not None and len(kinds) != len(tokens):
        return f"it has {plural(len(tokens), 'token')}, and {plural(len(kinds), 'kind')} of tokens"
    if kinds is not None and (strange := [kind for kind in kinds if not isinstance(kind, int) or isinstance(kind, bool)]):
        return f"its kinds of tokens are whole numbers, and one is {shown(strange[0])}"
    return ""


def settled(fields: Mapping[str, Any]) -> list[int]:
    """The kinds of all tokens, from the metadata without their prefix; those of :func:`undecided` are left as they are."""
    numbers = {token: number for number, token in enumerate(fields["tokens"])}
    kinds = list(fields.get("token_type") or [NORMAL] * len(numbers))

    def become(names: Sequence[str], kind: int) -> None:
        for name in names:
            if name in numbers:
                kinds[numbers[name]] = kind

    for names in _markers_of(fields, numbers):
        become(names if len(names) == 1 else (), CONTROL)
    become(ENDS, CONTROL)
    become(SHOWN, OWN)
    calls = "<|call|>" in numbers or "<|calls|>" in numbers
    if calls and ("<|return|>" in numbers or "<|flush|>" in numbers):
        become(["<|end|>"], OWN)
    ends = {fields.get(f"{name}_token_id") for name in ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")}
    if "<|tool_response>" in numbers or numbers.get("<|plamo:eos|>", -1) in ends:
        become(["</s>"], NORMAL)
    return kinds


def undecided(fields: Mapping[str, Any]) -> str:
    """Which tokens llama.cpp takes for what, or where, only by the order of a hash table or of an unstable sort; "" if none."""
    numbers, kinds = {token: number for number, token in enumerate(fields["tokens"])}, settled(fields)
    for names in _markers_of(fields, numbers):
        if len(names) > 1 and any(kinds[numbers[name]] != CONTROL for name in names):
            return f"which of the tokens {', '.join(map(one_line, names))} is a control token is left open"
    whole = WholeTokens({token: i for token, i in numbers.items() if kinds[i] in WHOLE and token})
    for one, other in whole.overlapping:
        if len(one.encode()) == len(other.encode()):
            return f"of the tokens {one_line(one)} and {one_line(other)}, which overlap and are equally long, neither comes first"
    return ""


def _markers_of(fields: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[list[str]]:
    """The names of each marker that is not named in the metadata, as far as they are tokens."""
    for keys, names in MARKERS.items():
        known = (fields.get(f"{key}_token_id") for key in keys)
        if not any(isinstance(number, int) and 0 <= number < len(fields["tokens"]) for number in known):
            yield [name for name in names if name in numbers]


def _flag(fields: dict[str, Any], name: str, default: bool) -> bool:
    """A field that is true or false."""
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"tokenizer.ggml.{name}={shown(value)} is not allowed: it is true or false")
    return value


def _around(fields: dict[str, Any], name: str, default: bool) -> tuple[int, ...]:
    """The number of the token that stands before ("bos") or after ("eos") every text, if there is one."""
    key = f"{name}_token_id"
    if not _flag(fields, f"add_{name}_token", default):
        return ()
    number = fields.get(key, NUMBERS[fields["model"]].get(name))
    if number is None:
        raise UsageError(f"tokenizer.ggml.{key} is missing, although tokenizer.ggml.add_{name}_token is true or taken for granted")
    return (whole(f"tokenizer.ggml.{key}", number, least=0, most=len(fields["tokens"]) - 1),)


def _pieces(fields: dict[str, Any]) -> Pieces:
    """A sentencepiece model."""
    count, scores, kinds = len(fields["tokens"]), fields["scores"], fields["token_type"]
    if not len(scores) == len(kinds) == count:
        raise UsageError(
            f"it has {plural(count, 'token')}, {plural(len(scores), 'score')} and {plural(len(kinds), 'kind')} of tokens"
        )
    if any(score != score for score in scores):
        raise UsageError("a score is NaN")
    around = _around(fields, "bos", True), _around(fields, "eos", False)
    return Pieces(fields["tokens"], scores, settled(fields), _flag(fields, "add_space_prefix", True), *around)


def _byte_level(fields: dict[str, Any], vocabulary: int) -> Tokenizer:
    """Pairs of letters that stand for bytes, by the library.

    It takes the leftmost of tokens that are found first; where these overlap, they are found here, as llama.cpp finds them.
    """
    parts, processors, made = library("tokenizers.pre_tokenizers"), library("tokenizers.processors"), library("tokenizers")
    rule, tokens, kinds = RULES[fields["pre"]], fields["tokens"], settled(fields)
    pairs = dict.fromkeys(tuple(merge.split(" ", 1)) for merge in fields["merges"])  # the first of equal ones counts
    numbers = {token: number for number, token in enumerate(tokens)}
    inner = made.Tokenizer(library("tokenizers.models").BPE(numbers, list(pairs), ignore_merges=rule.llama3))
    steps = [parts.Digits(individual_digits=True)] if rule.digits else []
    steps += [parts.Split(made.Regex(rule.pattern), "isolated")] if rule.pattern else []
    inner.pre_tokenizer = parts.Sequence([*steps, parts.ByteLevel(add_prefix_space=False, use_regex=not rule.pattern)])
    inner.decoder = library("tokenizers.decoders").ByteLevel()
    if rule.normal:
        inner.normalizer = library("tokenizers.normalizers").NFC()
    own = {token: number for token, number in numbers.items() if token and kinds[number] in WHOLE}
    inner.add_tokens([made.AddedToken(token, special=kinds[number] != OWN, normalized=False) for token, number in own.items()])
    if reason := shared_number(inner):
        raise UsageError(reason)
    refuse_unknown(inner)
    before, after = _around(fields, "bos", rule.llama3), _around(fields, "eos", False)
    around = {"before": before, "after": after}
    if before or after:
        named = [{"id": name, "ids": ids, "tokens": [tokens[i] for i in ids]} for name, ids in around.items() if ids]
        single = ["before"] * len(before) + ["$A"] + ["after"] * len(after)
        inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=named)
    whole = WholeTokens(own)
    return Tokenizer(inner, vocabulary, whole if whole.overlapping else None)
