"""Sentencepiece models: reference tokens of sentencepiece and llama.cpp, the rule done slowly, and what is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.models.pieces import BYTE, CONTROL, NORMAL, OWN, UNKNOWN, UNUSED, Pieces
from jaxdyn.models.tokenizer import Tokenizer
from tests.models.ggufs import BYTES, REFERENCE, read

MODELS = [each for each in REFERENCE["tokenizers"] if each.get("metadata", {}).get("tokenizer.ggml.model") == "llama"]


def model(words, scores=None, kinds=None, *, byte=False, space=False, before=(), after=(), unknown=True):
    """A model of these words, after an unknown token, a control token and, if asked for, those of bytes."""
    first = ["<unk>"] * unknown + ["<s>"] + BYTES * byte
    kinds = [UNKNOWN] * unknown + [CONTROL] + [BYTE] * (256 * byte) + list(kinds or [NORMAL] * len(words))
    scores = [0.0] * len(first) + list(scores or [0.0] * len(words))
    return Pieces([*first, *words], scores, kinds, space, before, after)


def spelled(made, text):
    """The tokens of a text, as they are written."""
    return [made.tokens[i] for i in made.encode(text, add_special_tokens=False).ids]


def slowly(made, text):
    """Parts of a text: join the neighbours whose token has the highest score, the leftmost of equals, until none form a token."""
    parts, numbers = list(text.replace(" ", "▁")), {token: i for i, token in enumerate(made.tokens) if made.kinds[i] == NORMAL}
    while True:
        pairs = [
            (-made.scores[numbers[a + b]], i) for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False)) if a + b in numbers
        ]
        if not pairs:
            return parts
        _, i = min(pairs)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@pytest.mark.parametrize("each", MODELS, ids=lambda each: each["name"])
def test_numbers_and_texts_are_those_of_llama_cpp_and_sentencepiece(each):
    ours = read(each["metadata"])
    assert len(each["cases"]) >= 6
    for case in each["cases"]:
        assert ours.encode(case["text"], special=False).tolist() == case["bare"], case["text"]
        assert ours.encode(case["text"]).tolist() == case.get("ids", ours.encode(case["text"]).tolist())
        if "no bytes" not in each["name"]:  # there, sentencepiece writes the unknown token in a way of its own
            assert ours.decode(case["bare"]) == case["decoded"]


def test_what_counts_where_llama_cpp_and_sentencepiece_differ():
    """An unused piece is cut again, as by sentencepiece; an added token is written as it is, as by llama.cpp."""
    unused, added = (
        next(d for d in REFERENCE["differences"] if d["name"] == n) for n in ("unused pieces", "decoding of added tokens")
    )
    assert (unused["by"][0], added["by"][0]) == ("sentencepiece", "llama.cpp") and len(unused["cases"]) > 5
    for case in unused["cases"]:
        assert read(unused["metadata"]).encode(case["text"], special=False).tolist() == case["numbers"][0] != case["numbers"][1]
    for case in added["cases"]:
        assert read(added["metadata"]).decode(case["ids"]) == case["texts"][0] != case["texts"][1]


def test_bytes_that_are_no_character_are_those_of_sentencepiece():
    ours = read(REFERENCE["cut"]["metadata"], add_space_prefix=False)
    assert [ours.decode(case["ids"]) for case in REFERENCE["cut"]["cases"]] == [c["decoded"] for c in REFERENCE["cut"]["cases"]]
    assert ours.decode(ours.encode("€", special=False)[:-1]) == "��"


WORDS = st.lists(st.text("ab▁c", min_size=1, max_size=4), min_size=1, max_size=25, unique=True)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(WORDS, st.data(), st.text("abc d", max_size=25))
def test_parts_are_those_of_the_rule_done_slowly(words, data, text):
    scores = data.draw(st.lists(st.sampled_from([0.0, -1.0, -1.5]), min_size=len(words), max_size=len(words)))
    made = model(words, scores)
    parts = [part if part in words else "<unk>" for part in slowly(made, text)]
    fused = [part for i, part in enumerate(parts) if part != "<unk>" or parts[i - 1 : i] != ["<unk>"]]
    assert spelled(made, text) == fused


@settings(deadline=None, max_examples=120, derandomize=True)
@given(WORDS, st.booleans(), st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab c"), max_size=30))
def test_every_text_comes_back(words, space, text):
    """Among them such with added tokens, of which ▁ is a letter like others."""
    ours = Tokenizer(model({"▁": 0, **dict.fromkeys(words, 0)}, byte=True, space=space, before=(1,)))
    own = [word for word in words if len(word) > 1]
    kinds = [NORMAL, *(OWN if word in own else NORMAL for word in words if word != "▁")]
    added = Tokenizer(model(list({"▁": 0, **dict.fromkeys(words, 0)}), None, kinds, byte=True, space=space, before=(1,)))
    if own and space is False and "▁" not in text and "<s>" not in text and "<unk>" not in text:
        mixed = text + own[0] + text
        assert added.decode(added.encode(mixed), special=False) == mixed
    if "▁" not in text and "<s>" not in text and "<unk>" not in text:
        assert ours.decode(ours.encode(text), special=False) == text


def test_of_equal_scores_the_leftmost_pair_is_joined_first():
    assert spelled(model(["a", "b", "c", "bc", "ab"]), "abc") == ["ab", "c"]
    assert spelled(model(["a", "aa", "aaa"], [-9, -1, -2]), "aaaaa") == ["aa", "aaa"]
    assert spelled(model(["a", "b", "c", "bc", "ab"], [0, 0, 0, -1, -2]), "abc") == ["a", "bc"]
    assert spelled(model(["ab"]), "abab") == ["ab", "ab"], "letters that are no tokens are joined, too"


def test_unused_tokens_are_cut_again():
    kinds = [NORMAL, NORMAL, UNUSED, NORMAL]
    assert spelled(model(["a", "b", "ab", "aba"], [0, 0, 0, -1], kinds), "ab") == ["a", "b"]
    assert spelled(model(["a", "b", "ab", "aba"], [0, 0, 0, -1], kinds), "aba") == ["aba"]


def test_characters_without_a_token():
    assert spelled(model(["a"]), "zaéé") == ["<unk>", "a", "<unk>"]
    assert spelled(model(["a"], byte=True), "aé") == ["a", "<0xC3>", "<0xA9>"]
    with pytest.raises(UsageError, match=r"the text has the character U\+00E9, for which the tokenizer has no token"):
        Tokenizer(model(["a"], unknown=False)).encode("aé")
    with pytest.raises(UsageError, match="it has byte tokens, but none for the byte 0x01"):
        Pieces(["<0x00>"], [0.0], [BYTE], True, (), ())


def test_bytes_of_a_file_that_lost_the_kinds():
    """As in llama.cpp, which looks for them by how they are written: in 'aé' the é is its two bytes."""
    tokens = ["<unk>", "<s>", *BYTES, "a", "\u2581", "\u2581a"]
    scores = [0.0] * 258 + [-1.0, -2.0, -3.0]
    model = Pieces(tokens, scores, [UNKNOWN, CONTROL] + [NORMAL] * 259, True, (), ())
    assert model.encode("aé").ids == [260, 2 + 0xC3, 2 + 0xA9]
    assert model.decode(model.encode("aé").ids) == "aé"
    with pytest.raises(UsageError, match="its token <0x00> is written like a byte"):
        Pieces(tokens, scores, [UNKNOWN, CONTROL] + [OWN] * 256 + [NORMAL] * 3, True, (), ())


def test_tokens_that_stand_for_themselves():
    own = model(["a", "b", "▁", "▁a", "(a", "(ab"], kinds=[*[NORMAL] * 4, OWN, OWN], space=True)
    assert spelled(own, "a<s>a(ab(ab <unk>") == ["▁a", "<s>", "▁a", "(ab", "(ab", "▁", "▁", "<unk>"]
    assert spelled(own, "(a") == ["(a"], "no space where there is no other text"
    ours = Tokenizer(own)
    assert ours.decode(ours.encode("<s>a<s>")) == "<s> a<s>" and ours.decode(ours.encode("<s>a<s>"), special=False) == "a"
    assert spelled(model(["<s", ">"], kinds=[NORMAL, NORMAL]), "<s>") == ["<s>"]


def test_what_stands_around_a_text():
    made = Tokenizer(model(["a"], before=(1,), after=(2,)))
    assert (
        made.encode("a").tolist() == [1, 2, 2] and made.encode("").tolist() == [1, 2] and made.encode("", special=False).size == 0
    )


def test_long_words_are_merged_whole():
    made = model(["a", "aa", "aaa", "b"], [-3, -1, -2, 0])
    assert len(made.encode("a" * 30000 + "b").ids) - 1 == len(made.encode("aa" * 15000).ids) == 15000


def test_it_says_what_it_is_and_is_not_written_as_merges(tmp_path):
    made = model(["a", "b"])
    assert json.loads(made.to_str())["tokens"] == ["<unk>", "<s>", "a", "b"] and made.to_str() != model(["a", "c"]).to_str()
    assert made.token_to_id("b") == 3 and made.token_to_id("c") is None and made.get_vocab()["a"] == 2
    with pytest.raises(UsageError, match="tokenizer.json cannot hold this tokenizer: it joins tokens by their scores"):
        Tokenizer(made).save(tmp_path / "tokenizer.json")
    assert not list(tmp_path.iterdir())
