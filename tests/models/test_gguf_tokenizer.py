"""Tokenizers of GGUF files: llama.cpp's tokens, rules of splitting, refusals; the real SmolLM2's against transformers."""

import functools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import models
from jaxdyn.errors import Absent, UsageError
from jaxdyn.models.gguf_tokenizer import ENDS, MARKERS, SHOWN, gguf_tokenizer, settled, undecided, unsupported
from jaxdyn.models.ggufs import open_gguf
from jaxdyn.models.pieces import CONTROL, NORMAL, OWN
from tests.models.ggufs import MERGES, REFERENCE, TOKENS, metadata, read, write
from tests.models.hugging import REAL, needs_models, needs_smollm2, quiet
from tests.models.test_tokenizer import TEXTS

pytestmark = needs_models
METADATA = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.token_type": [3 if token in ("<s>", "</s>") else 1 for token in TOKENS],
    "tokenizer.ggml.bos_token_id": TOKENS.index("<s>"),
}
BYTES = {each["name"]: each for each in REFERENCE["tokenizers"] if each.get("metadata", {}).get("tokenizer.ggml.model") == "gpt2"}
PIECES = next(each["metadata"] for each in REFERENCE["tokenizers"] if each["name"] == "trained")


def changed(**change):
    """The tokenizer of the metadata with other fields; None removes one."""
    fields = METADATA | {f"tokenizer.ggml.{name}": value for name, value in change.items()}
    return gguf_tokenizer("model.gguf", {name: value for name, value in fields.items() if value is not None}, 64)


def words(text, **change):
    """Tokens of a text, as they are written."""
    return [change.get("tokens", TOKENS)[i] for i in changed(**change).encode(text)]


@pytest.mark.parametrize("name", BYTES)
def test_numbers_and_texts_are_those_of_llama_cpp(name):
    ours = read(BYTES[name]["metadata"])
    assert len(BYTES[name]["cases"]) >= 5
    for case in BYTES[name]["cases"]:
        assert ours.encode(case["text"], special=False).tolist() == case["bare"], case["text"]
        assert ours.encode(case["text"]).tolist() == case["ids"], case["text"]
        assert ours.decode(case["bare"]) == case["decoded"]


@functools.cache
def once(name):
    """A tokenizer of the reference."""
    return read(BYTES[name]["metadata"])


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.sampled_from(["gpt-2", "smollm", "llama-bpe"]), st.text(max_size=30))
def test_every_text_comes_back(rule, text):
    ours = once(rule)
    assert ours.decode(ours.encode(text), special=False) == text.replace("<s>", "").replace("</s>", "")


@pytest.mark.parametrize("value", ["false", [False], 1])
def test_what_is_true_or_false_is_nothing_else(value):
    with pytest.raises(UsageError, match=r"tokenizer\.ggml\.add_bos_token=.* is not allowed: it is true or false"):
        words("hell", add_bos_token=value)


def test_kinds_of_tokens_are_numbers():
    with pytest.raises(UsageError, match="its kinds of tokens are whole numbers, and one is 1"):
        words("hell", token_type=["1"] * len(TOKENS))


def test_merges_and_control_tokens():
    assert words("hello a") == ["hell", "o", "Ġa"]
    assert words("<s>hell</s>") == ["<s>", "hell", "</s>"]
    assert words("hell", add_bos_token=True) == ["<s>", "hell"]
    assert words("hell", merges=[*MERGES[2:], "l l", "h e", "he ll", "l l", "h e"]) == ["hell"], "the first of equal merges counts"
    assert words("hel", merges=["e l", "h e", "e l"], tokens=[*TOKENS, "el"], token_type=None) == ["h", "el"]


def test_a_word_of_llama_3_that_is_a_token_is_taken_whole():
    known = {"tokens": [*TOKENS, "hello", "Ġhello"], "token_type": None}
    assert words("hello hello", **known) == ["hell", "o", "Ġ", "hell", "o"]
    assert words("hello hello hellos", pre="llama-bpe", **known) == ["<s>", "hello", "Ġhello", "Ġ", "hell", "o", "s"]


def test_what_stands_around_a_text():
    end = {"eos_token_id": TOKENS.index("</s>")}
    assert words("a", add_bos_token=True, add_eos_token=True, **end) == ["<s>", "a", "</s>"]
    assert words("", add_eos_token=True, **end) == ["</s>"] and words("a", **end) == ["a"]
    assert words("a", pre="llama-bpe") == ["<s>", "a"] and words("a", pre="llama-bpe", add_bos_token=False) == ["a"]
    odd = [token.replace("9", "$A s:1") for token in TOKENS]
    assert words("a", tokens=odd, add_bos_token=True, bos_token_id=TOKENS.index("9")) == ["$A s:1", "a"]
    for name in ("bos", "eos"):
        told = f"model.gguf: its tokenizer cannot be read: tokenizer.ggml.{name}_token_id"
        with pytest.raises(UsageError, match=f"{told} is missing"):
            changed(**{f"add_{name}_token": True, f"{name}_token_id": None})
        for wrong in (len(TOKENS), -1, "a"):
            with pytest.raises(UsageError, match=f"{told}={wrong} is not allowed: .* at most {len(TOKENS) - 1}"):
                changed(**{f"add_{name}_token": True, f"{name}_token_id": wrong})
    whole = metadata(PIECES)
    assert gguf_tokenizer("model.gguf", whole, 9999).encode("")[0] == whole["tokenizer.ggml.tokens"].index("<s>")


def test_rules_of_splitting():
    merged = {"tokens": [*TOKENS[:-1], "12"], "merges": [*MERGES[:3], "1 2"]}
    counts = [changed(**merged, pre=pre).encode("12", special=False).size for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2")]
    assert counts == [1, 2, 1, 2], "digits one by one, or not"


def test_tokens_of_their_own_keep_their_letters():
    """Of a token that the authors added, é is a letter, and not the byte that it stands for in other tokens."""
    ours = changed(tokens=[*TOKENS, "<é>", "né"], token_type=[*METADATA["tokenizer.ggml.token_type"], 3, 4])
    assert ours.decode(ours.encode("a<é>néb")) == "a<é>néb" and ours.decode(ours.encode("a<é>néb"), special=False) == "anéb"


def test_an_added_token_that_is_the_letter_of_a_byte_is_refused():
    """No text could be told from the other; llama.cpp writes both as é."""
    with pytest.raises(UsageError, match="the added token 'é' has the number of a token of other bytes, 44"):
        changed(tokens=[*TOKENS, "é"], token_type=[*METADATA["tokenizer.ggml.token_type"], 4])
    tokens, kinds = [*TOKENS, "né", "é"], [*METADATA["tokenizer.ggml.token_type"], 4, 1]
    assert words("né", tokens=tokens, token_type=kinds) == ["né"]
    for pre in ("gpt-2", "llama-bpe"):
        merged = {"tokens": tokens, "token_type": kinds, "pre": pre}
        assert changed(**merged) is not None, "no merge makes it"
        with pytest.raises(UsageError, match="the added token 'né' has the number"):
            changed(**merged, merges=[*MERGES, "n é"])


def test_where_tokens_overlap_the_longest_is_found_first(tmp_path):
    """As in the references; what stands around a text, and that tokenizer.json cannot say this."""
    more = {"tokens": [*TOKENS, "abc", "bcda"], "token_type": [*METADATA["tokenizer.ggml.token_type"], 4, 3]}
    end = {"add_bos_token": True, "add_eos_token": True, "eos_token_id": TOKENS.index("</s>")}
    assert words("abcdabc", **more, **end) == ["<s>", "a", "bcda", "b", "c", "</s>"] and words("", **more, **end) == ["<s>", "</s>"]
    ours = changed(**more, **end)
    assert ours.before().tolist() == [TOKENS.index("<s>")] and ours.decode(ours.encode("abcda"), special=False) == "a"
    assert ours.encode("abcda", special=False).size == 2
    with pytest.raises(
        UsageError, match="tokenizer.json cannot hold this tokenizer: of tokens that overlap, such as 'abc' and 'bcda'"
    ):
        ours.save(tmp_path / "tokenizer.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="no token for some character"):
        ours.encode("abcda!")


SPLITTING = [each for each in REFERENCE["differences"] if each["name"].startswith("splitting")]


@pytest.mark.parametrize("each", SPLITTING, ids=lambda each: each["name"])
def test_a_text_is_split_as_tokenizer_json_says_where_llama_cpp_differs(each):
    ours = read(each["metadata"])
    assert each["by"] == ["tokenizers", "llama.cpp"]
    for case in each["cases"]:
        right, other = case["numbers"]
        assert ours.encode(case["text"], special=False).tolist() == right != other, case["text"]


def test_bytes_without_a_token_are_refused():
    assert words("hell<s>") == ["hell", "<s>"]
    for text in ("hell!", "Hell", "é", "hell <s>.", "a\tb"):
        with pytest.raises(
            UsageError, match="the text .* cannot be written in the tokenizer's tokens: no token for some character"
        ):
            changed().encode(text)


def test_other_kinds_have_none_and_say_so(tmp_path):
    for change in ({"model": "t5"}, {"pre": "viking"}, {"pre": None}, {"add_space_prefix": True}, {"precompiled_charsmap": [1, 2]}):
        assert changed(**change) is None
    for name in ("remove_extra_whitespaces", "precompiled_charsmap"):
        fields = metadata(PIECES) | {f"tokenizer.ggml.{name}": [1]}
        assert gguf_tokenizer("model.gguf", fields, 9999) is None
        assert unsupported(fields).startswith(f"its field tokenizer.ggml.{name} is not supported for the kind llama; the model's")
    assert gguf_tokenizer("model.gguf", metadata(PIECES) | {"tokenizer.ggml.remove_extra_whitespaces": False}, 9999) is not None
    for change, reason in (
        (
            {"general.name": "My Phi-3 mini"},
            "next to some tokens of models whose name has phi-3 in it, llama.cpp drops spaces; the",
        ),
        (
            {"tokenizer.ggml.tokens": [*TOKENS[:-2], "<PRE>", "<|prefix|>"]},
            "which of the tokens '<PRE>', '<|prefix|>' is a control",
        ),
    ):
        assert gguf_tokenizer("model.gguf", METADATA | change, 64) is None and unsupported(METADATA | change).startswith(reason)
    summary = models.describe(write(tmp_path / "model.gguf", "llama", "F32", pre="viking"))
    note = next(line for line in summary.lines() if line.startswith("tokenizer"))
    assert summary.tokens is None and "none: its kind, gpt2, viking, is not supported (gpt2 with the rule gpt-2, smollm" in note
    assert note.endswith("the model's folder with tokenizer.json works") and unsupported({}) == "the file has none"
    assert unsupported({"tokenizer.ggml.model": "t5"}).startswith("its kind, t5, is not supported")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"merges": ["q zz"]}, ""),
        ({"merges": None}, ""),
        ({"merges": ["he"]}, ""),
        ({"tokens": None}, ""),
        ({"tokens": [*TOKENS, "he"]}, f"the token 'he' occurs twice, as number {TOKENS.index('he')} and as number {len(TOKENS)}"),
        ({"token_type": [1]}, f"it has {len(TOKENS)} tokens, and 1 kind of tokens"),
    ],
)
def test_damaged_metadata_are_refused(change, words):
    with pytest.raises(UsageError, match=f"model.gguf: its tokenizer cannot be read: {words}"):
        changed(**change)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("scores", None, ""),
        ("scores", [0.0], "it has .* tokens, 1 score and .* kinds of tokens"),
        ("token_type", None, ""),
        ("scores", [float("nan")] * len(metadata(PIECES)["tokenizer.ggml.tokens"]), "a score is NaN"),
        (
            "tokens",
            ["a"] * len(metadata(PIECES)["tokenizer.ggml.tokens"]),
            "the token 'a' occurs twice, as number 0 and as number 1",
        ),
    ],
)
def test_damaged_pieces_are_refused(name, value, words):
    fields = {key: x for key, x in (metadata(PIECES) | {f"tokenizer.ggml.{name}": value}).items() if x is not None}
    with pytest.raises(UsageError, match=f"model.gguf: its tokenizer cannot be read: {words}"):
        gguf_tokenizer("model.gguf", fields, 9999)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(Absent, match="needs the library tokenizers"):
        changed()


def test_a_tokenizer_of_more_tokens_than_embeddings_is_read(tmp_path):
    more = [*TOKENS, *(f"more{i}" for i in range(40)), "<pad>"]
    file = write(tmp_path / "model.gguf", "llama", "F32", tokens=more)
    assert models.describe(file).tokens == 85
    ours = models.load(file).tokenizer
    assert ours.encode("hell").tolist() == [TOKENS.index("hell")] and ours.decode([84]) == "<pad>"
    wide = changed(tokens=more, token_type=[*METADATA["tokenizer.ggml.token_type"], *[1] * 40, 3])
    with pytest.raises(UsageError, match="the text has the token '<pad>', number 84; the model has embeddings of 64 tokens"):
        wide.encode("hell<pad>")


@needs_smollm2
@pytest.mark.slow
def test_the_real_tokenizer_is_that_of_transformers():
    ours = gguf_tokenizer(REAL, open_gguf(REAL).metadata, 49152)
    with quiet():
        from transformers import AutoTokenizer

        theirs = AutoTokenizer.from_pretrained(REAL.parent, gguf_file=REAL.name)
        for text in (*TEXTS, "<|im_start|>user\nHi 123<|im_end|>\n"):
            if "½" not in text:  # transformers' reading of GGUF leaves out the rule that cuts before every numeral
                np.testing.assert_array_equal(ours.encode(text), theirs.encode(text), err_msg=repr(text))
            assert ours.decode(ours.encode(text)) == text


@pytest.mark.parametrize("begins", [False, True])
def test_what_stands_before_every_text(begins):
    """Of either kind; what stands after a text is not part of it."""
    eos = {"eos_token_id": TOKENS.index("</s>"), "add_eos_token": True}
    assert changed(add_bos_token=begins, **eos).before().tolist() == [TOKENS.index("<s>")] * begins
    assert read(PIECES, add_bos_token=begins, add_eos_token=True).before().tolist() == [1] * begins


NAMES = [*ENDS, *SHOWN, *(name for names in MARKERS.values() for name in names)]


def test_kinds_are_those_of_llama_cpp():
    known = 0
    for case in REFERENCE["kinds"]:
        left_open = "left open" in undecided(case["fields"])
        assert left_open or settled(case["fields"]) == case["kinds"], case
        known += not left_open
    alone = {case["fields"]["tokens"][3] for case in REFERENCE["kinds"] if len(case["kinds"]) == 4}
    assert set(NAMES) <= alone and known > 150


def test_a_marker_that_the_metadata_name_is_not_looked_for():
    fields = {"tokens": ["a", "<PRE>", "<|prefix|>"]}
    assert undecided(fields).startswith("which of the tokens '<PRE>', '<|prefix|>' is a control token is left open")
    for name in ("fim_pre_token_id", "prefix_token_id"):
        assert settled(fields | {name: 0}) == [NORMAL] * 3 and not undecided(fields | {name: 0})
    assert undecided(fields | {"fim_pre_token_id": 3}), "there is no token of this number"
    assert not undecided(fields | {"token_type": [NORMAL, CONTROL, CONTROL]}), "either way they are control tokens"
    assert settled({"tokens": ["a", "<PRE>"]}) == [NORMAL, CONTROL]


def test_equally_long_tokens_that_overlap_have_no_order():
    def told(tokens):
        return undecided({"tokens": tokens, "token_type": [OWN] * len(tokens)})

    assert told(["abc", "bcd"]).startswith("of the tokens 'abc' and 'bcd', which overlap and are equally long, neither comes first")
    assert told(["ab", "bé"]) == "" and told(["aé", "éb"]) != "", "by bytes"
    assert not any(map(told, (["aba"], ["abc", "bcda"], ["abc", "xyz"], ["ab", "abc", "abcd"], ["abc", "b", ""])))
