"""Tokenizers against those of transformers, on text that is hard to take apart; what is no tokenizer is refused."""

import functools
import json
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxdyn.errors import LARGEST, UsageError
from jaxdyn.models.tokenizer import BESIDE, Tokenizer, WholeTokens, read_tokenizer
from tests.models.ggufs import REFERENCE
from tests.models.hugging import needs_models, needs_torch, quiet

pytestmark = needs_models
TEXTS = [
    *("", " ", "hello world", "  two  spaces ", "1234567890 3.14 1,000", "١٢٣ ½ ²", "naïve café", "cafe\u0301"),
    *("😀👩‍👩‍👧 🇫🇷", "a\r\nb\r\n\r\nc", "\n\n\n", "\tdef f(x):\n\t\treturn x", "漢字かな交じり文 한국어 中文", "don't we'll I'M"),
    *("<s>hello</s>", "<s><s> </s>", "a<s>b", "x" * 200, "\x00\x07", "ﬁ ﷺ", "“quotes” — dash", "a\u00a0b\u3000c"),
]
CORPUS = [*TEXTS, "the quick brown fox jumps over the lazy dog " * 3, "hello hello world, 12 24 48 years; we'll see"]


def byte_level():
    """As of GPT-2 and Pythia."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet))
    return made


def pieces():
    """As of LLaMA 2: spaces as ▁, unknown characters as bytes, a token before every text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    made.train_from_iterator(CORPUS[:4], trainers.BpeTrainer(vocab_size=330, special_tokens=special))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


KINDS = {"byte level": byte_level, "pieces": pieces}


@needs_torch
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_gives_the_same_numbers(kind, tmp_path):
    file = tmp_path / "tokenizer.json"
    KINDS[kind]().save(str(file))
    ours = read_tokenizer(file, 500)
    with quiet():
        from transformers import PreTrainedTokenizerFast

        theirs = PreTrainedTokenizerFast(tokenizer_file=str(file))
        for text in TEXTS:
            for special in (True, False):
                np.testing.assert_array_equal(ours.encode(text, special=special), theirs.encode(text, add_special_tokens=special))
            assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text), clean_up_tokenization_spaces=False)


def test_bytes_come_back(tmp_path):
    file = tmp_path / "tokenizer.json"
    byte_level().save(str(file))
    ours = read_tokenizer(file, 500)
    assert [ours.decode(ours.encode(text)) for text in TEXTS] == TEXTS
    assert ours.decode(ours.encode("<s>hello</s>"), special=False) == "hello"
    assert ours.encode("hello").dtype == np.int32 and ours.encode("").shape == (0,)
    assert 258 < ours.size <= 400
    ours.save(tmp_path / "again.json")
    assert read_tokenizer(tmp_path / "again.json", 500).size == ours.size


def test_truncation_and_padding_are_off(tmp_path):
    file, made = tmp_path / "tokenizer.json", byte_level()
    made.enable_truncation(3)
    made.enable_padding(length=10)
    made.save(str(file))
    assert [len(read_tokenizer(file, 500).encode(text)) for text in ("ЖЩЮЯЫЪ", "a")] == [12, 1]


def test_files_that_are_no_tokenizer_are_refused(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"type": "Nothing"}}), encoding="utf-8")
    with pytest.raises(UsageError, match="tokenizer.json is not a tokenizer that the library tokenizers can read"):
        read_tokenizer(file, 500)
    with pytest.raises(UsageError, match="is not a tokenizer"):
        read_tokenizer(tmp_path / "nothing.json", 500)


def plain(tmp_path, vocabulary=None, added=(), rows=LARGEST, **model):
    """A tokenizer.json of the letters a and b, with other fields of the model and added tokens, read."""
    from tokenizers import Tokenizer, models

    fields = json.loads(Tokenizer(models.BPE({"a": 0, "b": 1}, [])).to_str())
    fields["model"] |= model | ({} if vocabulary is None else {"vocab": vocabulary})
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    fields["added_tokens"] = [{"id": number, "content": token} | flags for token, number in added]
    (tmp_path / "tokenizer.json").write_text(json.dumps(fields), encoding="utf-8")
    return read_tokenizer(tmp_path / "tokenizer.json", rows)


def test_more_tokens_than_embeddings_are_refused_in_texts_that_use_them(tmp_path):
    ours = plain(tmp_path, added=[("<s>", 2), ("<pad>", 3)], rows=3)
    assert ours.size == 4 and ours.encode("ab<s>").tolist() == [0, 1, 2] and ours.decode([3]) == "<pad>"
    with pytest.raises(UsageError, match="the text has the token '<pad>', number 3; the model has embeddings of 3 tokens"):
        ours.encode("ab<pad>")


def test_words_are_taken_whole_where_the_file_says_so(tmp_path):
    words = {"a": 0, "b": 1, "ab": 2}
    whole, merged = (plain(tmp_path, words, ignore_merges=ignore).encode("ab").tolist() for ignore in (True, False))
    assert (whole, merged) == ([2], [0, 1])


def test_two_tokens_of_one_number_are_refused(tmp_path):
    with pytest.raises(UsageError, match="tokenizer.json: the tokens '[ab]' and '[ab]' have the same number, 0"):
        plain(tmp_path, {"a": 0, "b": 0})
    twice = plain(tmp_path).inner.to_str().replace('"b":1', '"a":1')
    (tmp_path / "tokenizer.json").write_text(twice, encoding="utf-8")
    with pytest.raises(UsageError, match="0 in tokens is not allowed: the tokenizer has no token of this number"):
        read_tokenizer(tmp_path / "tokenizer.json", 9).decode([0])


@pytest.mark.parametrize(("token", "number", "place"), [("<s>", 7, 2), ("a", 5, 0), ("<s>", 1, 2)])
def test_added_tokens_that_the_library_numbers_in_another_way_are_refused(token, number, place, tmp_path):
    told = f"the added token '{token}' is number {number} in the file; the library would make it number {place}"
    with pytest.raises(UsageError, match=f"tokenizer.json: {told}"):
        plain(tmp_path, added=[(token, number)])


@pytest.mark.parametrize("tokens", [[-1], [99], [0, 2], [2**31], [2**40], [-(2**40)], np.array([0, 300], np.uint16)])
def test_numbers_without_a_token_are_refused(tokens, tmp_path):
    ours = plain(tmp_path, {"a": 0, "b": 1, "c": 3})
    wrong = next(int(i) for i in tokens if i not in (0, 1, 3))
    with pytest.raises(UsageError, match=f"{wrong} in tokens is not allowed: the tokenizer has no token of this number"):
        ours.decode(tokens)
    assert ours.decode([]) == "" and ours.decode(np.array([3], np.uint8)) == "c"


@pytest.mark.parametrize("tokens", [[0.5], [[0, 1]], [[0], [0, 1]], ["a"], 0, [True], None, [2**70], "ab"])
def test_what_is_no_row_of_numbers_is_refused(tokens, tmp_path):
    with pytest.raises(UsageError, match="tokens=.* is not allowed: it is one row of token numbers"):
        plain(tmp_path).decode(tokens)


def test_half_a_pair_of_surrogates_is_refused(tmp_path):
    for ours in (plain(tmp_path), Tokenizer(byte_level()), Tokenizer(pieces())):
        for text, place in (("\ud800", 0), ("ab\udfff", 2), ("a\ud83d b", 1)):
            told = f"the text has U.{ord(text[place]):04X} at place {place}, half of a pair of surrogates, which is no character"
            with pytest.raises(UsageError, match=told):
                ours.encode(text)


@pytest.mark.parametrize("text", [None, 5, b"ab", ["a", "b"], ("a", "b"), np.array(["a"])])
def test_what_is_no_text_is_refused(text, tmp_path):
    with pytest.raises(UsageError, match="text=.* is not allowed: it is one string"):
        plain(tmp_path).encode(text)


def test_characters_without_a_token_are_refused_and_not_left_out(tmp_path):
    ours = plain(tmp_path)
    for text in ("axb", "x", "a b", "\0"):
        with pytest.raises(
            UsageError, match="the text .* cannot be written in the tokenizer's tokens: no token for some character"
        ):
            ours.encode(text)
    ours.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["model"]["unk_token"] is None
    assert plain(tmp_path, unk_token="b").encode("axa").tolist() == [0, 1, 0], "where the file names a token for them"
    with pytest.raises(UsageError, match="cannot be written in the tokenizer's tokens"):
        plain(tmp_path, unk_token="<unk>").encode("axb")


def test_characters_that_are_cut_are_replacement_characters():
    ours = once()
    first, second = ours.encode("Ж")
    assert [ours.decode(ids) for ids in ([first], [second], [first, second], [second, first])] == ["�", "�", "Ж", "��"]
    assert ours.decode([first, *ours.encode("<s>a")]) == "�<s>a"


def test_tokens_of_their_own_keep_their_letters():
    """Of an added token, é is a letter, and not the byte that it stands for in other tokens of a byte-level tokenizer."""
    from tokenizers import AddedToken

    made = byte_level()
    made.add_tokens([AddedToken("né"), AddedToken("<é>", special=True)])
    ours = Tokenizer(made)
    assert ours.decode(ours.encode("é né<é>")) == "é né<é>" and ours.decode(ours.encode("é né<é>"), special=False) == "é né"


@pytest.mark.parametrize("sequence", [False, True])
def test_control_tokens_that_are_left_out_cut_no_character(sequence):
    from tokenizers import decoders

    made = byte_level()
    made.decoder = decoders.Sequence([decoders.ByteLevel()]) if sequence else decoders.ByteLevel()
    ours = Tokenizer(made)
    (first, second), begin = ours.encode("Ж"), int(ours.encode("<s>")[0])
    assert (
        ours.decode([first, begin, second, begin], special=False) == "Ж"
        and ours.decode([first, begin, second]) == "\ufffd<s>\ufffd"
    )


def test_an_added_token_that_is_the_letter_of_a_byte_is_refused(tmp_path):
    """It would have the number of that byte, and the text of a token of this number could be either."""
    from tokenizers import AddedToken

    for token, other in (("é", "ñ"), ("Ð", "ÐÐ")):
        made = byte_level()
        made.add_tokens([AddedToken(token, normalized=False)])
        made.save(str(tmp_path / "tokenizer.json"))
        with pytest.raises(
            UsageError, match=f"tokenizer.json: the added token '{token}' has the number of a token of other bytes, "
        ):
            read_tokenizer(tmp_path / "tokenizer.json", 500)
        made = byte_level()
        made.add_tokens([AddedToken(f"{other}!", normalized=False)])
        made.save(str(tmp_path / "tokenizer.json"))
        ours = read_tokenizer(tmp_path / "tokenizer.json", 500)
        assert ours.decode(ours.encode(f"{other}! {other}")) == f"{other}! {other}"


@pytest.mark.parametrize(
    ("normalizer", "one", "other"),
    [
        ("NFC", "\u00e9t", "e\u0301t"),
        ("NFKC", "<1>", "<\u2460>"),
        ("StripAccents", "<e>", "<e\u0301>"),
        ("Lowercase", "<A>", "<a>"),
    ],
)
def test_added_tokens_that_the_normalizer_makes_the_same_are_refused(normalizer, one, other, tmp_path):
    """The library finds now the one, now the other, by the order of a hash."""
    from tokenizers import AddedToken, normalizers

    def written(**flags):
        made = byte_level()
        made.normalizer = getattr(normalizers, normalizer)()
        made.add_tokens([AddedToken(one, normalized=True), AddedToken(other, **flags)])
        made.save(str(tmp_path / "tokenizer.json"))
        return tmp_path / "tokenizer.json"

    with pytest.raises(UsageError, match="the tokenizer's normalizer makes the added tokens .* and .* the same$"):
        read_tokenizer(written(normalized=True), 500)
    ours = read_tokenizer(written(normalized=False), 500)  # is found before the other is
    assert ours.encode(other).tolist() == [ours.inner.token_to_id(other)]


@pytest.mark.parametrize(
    ("flags", "normalizer"), [({}, "Strip"), ({"single_word": True, "lstrip": True}, "Strip"), ({}, "Replace")]
)
def test_added_tokens_of_which_the_normalizer_leaves_nothing_are_refused(flags, normalizer, tmp_path):
    """The library would find them everywhere: it does not end, or stops within a character."""
    from tokenizers import AddedToken, Regex, normalizers

    made = byte_level()
    made.normalizer = normalizers.Strip() if normalizer == "Strip" else normalizers.Replace(Regex("\\s"), "")
    made.add_tokens([AddedToken("\n", normalized=True, **flags)])
    made.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UsageError, match="tokenizer.json: the tokenizer's normalizer leaves nothing of the added token .{4}$"):
        read_tokenizer(tmp_path / "tokenizer.json", 500)
    made.add_tokens([AddedToken(" a ", normalized=True)])
    fields = json.loads(made.to_str())
    fields["added_tokens"] = [token | {"normalized": token["content"] != "\n"} for token in fields["added_tokens"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(fields), encoding="utf-8")
    assert read_tokenizer(tmp_path / "tokenizer.json", 500).encode("漢\n漢").size > 0


class Panicking:
    """A tokenizer that stops as libraries written in Rust do: by no Exception."""

    Panic = type("PanicException", (BaseException,), {})

    def encode(self, text, add_special_tokens):
        raise self.Panic("byte index 4 is not a char boundary")

    def id_to_token(self, number):
        return "a"

    def decode(self, ids, skip_special_tokens):
        raise self.Panic("byte index 4 is not a char boundary")


def test_a_panic_of_the_library_is_one_sentence():
    ours = Tokenizer(Panicking())
    with pytest.raises(
        UsageError, match="the text '漢' cannot be written in the tokenizer's tokens: the library stopped: byte index 4"
    ):
        ours.encode("漢")
    with pytest.raises(UsageError, match=r"tokens=\[3\] cannot be written as a text: the library stopped: byte index 4 is not a"):
        ours.decode([3])


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.text(max_size=40))
def test_every_text_comes_back(text):
    ours = once()
    assert ours.decode(ours.encode(text)) == text


@functools.cache
def once():
    """A byte-level tokenizer."""
    return Tokenizer(byte_level())


def test_long_words():
    ours = once()
    assert ours.decode(ours.encode("ab" * 10**5)) == "ab" * 10**5


def test_a_sentencepiece_model_of_the_kind_unigram(tmp_path):
    """Numbers and texts are those of sentencepiece, through a tokenizer.json that says the same."""
    each = next(each for each in REFERENCE["tokenizers"] if each["name"] == "unigram")
    (tmp_path / "tokenizer.json").write_text(json.dumps(each["file"]), encoding="utf-8")
    ours = read_tokenizer(tmp_path / "tokenizer.json", LARGEST)
    assert len(each["cases"]) > 15
    for case in each["cases"]:
        assert ours.encode(case["text"], special=False).tolist() == case["bare"], case["text"]
        assert ours.decode(case["bare"]) == case["decoded"]


DIGITS = {str(i): i for i in range(10)} | {"<bos>": 10, "<unk>": 11, "<eos>": 12}


def words(unknown="<unk>", single="<bos> $A", normalizer=None, rows=LARGEST):
    """Digits as words, and tokens that stand around a text."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import models, pre_tokenizers, processors

    inner = Inner(models.WordLevel(DIGITS, unknown))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<bos>", 10), ("<eos>", 12)])
    if normalizer is not None:
        inner.normalizer = normalizer
    return Tokenizer(inner, rows)


@pytest.mark.parametrize("unknown", ["<unk>", "<bos>", "none"])
def test_what_is_written_by_the_unknown_token_is_no_token_of_its_own(unknown):
    ours = words(unknown)
    assert [ours.single(text) for text in ("0", "7", "17", "x", "1 2")] == [0, 7, None, None, None]


@pytest.mark.parametrize("unknown", ["<unk>", "<bos>", "none"])
@pytest.mark.parametrize(
    ("single", "before"),
    [("<bos> $A", [10]), ("$A", []), ("$A <eos>", []), ("<bos> $A <eos>", [10]), ("<bos> <bos> $A <bos>", [10, 10])],
)
def test_what_stands_before_every_text(unknown, single, before):
    """Also where letters are the token that begins a text, or have none."""
    ours = words(unknown, single)
    assert ours.before().tolist() == before and ours.before().dtype == np.int32
    assert ours.encode("1 2").tolist()[: len(before)] == before


def test_what_stands_before_a_text_whose_letters_are_removed():
    from tokenizers import Regex, normalizers

    ours = words(normalizer=normalizers.Replace(Regex("[^0-9 ]"), ""))
    assert ours.before().tolist() == [10] and ours.encode("a", special=False).size == 0


def test_processors_of_other_kinds():
    from tokenizers import processors

    ours = words()
    for processor, before in (
        (processors.ByteLevel(), []),
        (processors.RobertaProcessing(("<eos>", 12), ("<bos>", 10)), [10]),
        (processors.BertProcessing(("<eos>", 12), ("<bos>", 10)), [10]),
        (None, []),
    ):
        if processor is None:
            ours = Tokenizer(byte_level())
        else:
            ours.inner.post_processor = processor
        assert ours.before().tolist() == before


def test_a_beginning_without_an_embedding_is_refused():
    with pytest.raises(UsageError, match="a text begins with the token '<bos>', number 10; the model has embeddings of 10 tokens"):
        words(rows=10).before()


def test_dropout_of_merges_is_off(tmp_path):
    """A text has the numbers of all its merges, every time; the library alone would draw them."""
    from tokenizers import Tokenizer as Inner

    file, made = tmp_path / "tokenizer.json", byte_level()
    made.save(str(file))
    expected = read_tokenizer(file, 500).encode(CORPUS[-1])
    made.model.dropout = 0.5
    made.save(str(file))
    library = Inner.from_file(str(file))
    assert len({tuple(library.encode(CORPUS[-1]).ids) for _ in range(20)}) > 1
    ours = read_tokenizer(file, 500)
    for _ in range(20):
        np.testing.assert_array_equal(ours.encode(CORPUS[-1]), expected)


def slowly(tokens, text):
    """Each token, the longest first, wherever it stands, letter by letter; what is left stands between them."""
    letters = list(text)
    for token in sorted(tokens, key=lambda token: (-len(token.encode()), tokens[token])):
        i = 0
        while i < len(letters):
            if letters[i : i + len(token)] == list(token):
                letters[i : i + len(token)] = [tokens[token]]
            i += 1
    out = []
    for part in letters:
        out = [*out[:-1], out[-1] + part] if isinstance(part, str) and out and isinstance(out[-1], str) else [*out, part]
    return out


OVERLAPPING = st.lists(st.text("abcé", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)
LETTERS = st.text("abcé ", max_size=20)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(OVERLAPPING, LETTERS)
def test_the_longest_is_found_first(tokens, text):
    numbers = {token: i for i, token in enumerate(tokens)}
    assert WholeTokens(numbers).split(text) == slowly(numbers, text)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(OVERLAPPING, LETTERS)
def test_without_overlaps_it_is_the_leftmost(tokens, text):
    """What a library that takes the leftmost and longest finds: it is asked where no pair is listed."""
    whole = WholeTokens({token: i for i, token in enumerate(tokens)})
    assume(not whole.overlapping)
    pattern = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
    parts = [whole.numbers.get(part, part) if i % 2 else part for i, part in enumerate(re.split(f"({pattern})", text))]
    assert whole.split(text) == [part for part in parts if part != ""]


@pytest.mark.parametrize(
    ("tokens", "pairs"),
    [
        (["abc", "bcda"], [("abc", "bcda")]),
        (["abcd", "bcd"], []),
        (["aaa"], []),
        (["abcde", "deab"], [("deab", "abcde")]),
        (["<a>", "<b>", "<abc>"], []),
    ],
)
def test_pairs_of_which_the_first_gives_way(tokens, pairs):
    assert WholeTokens({token: i for i, token in enumerate(tokens)}).overlapping == pairs


def control(content, **flags):
    """An added token as the files describe one."""
    return (
        {"content": content} | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True} | flags
    )


CONFIG, MAP, ADDED = BESIDE
MODEL = "config.json"
TOKENS = "tokenizer.json"
PADDED = {"strategy": "BatchLongest", "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "<x>"}
LACKING = ([0, 5, 2, 4, 3, 5, 6, 5, 1], [2, 4, 3, 2, 1, 3], [1, 6, 1])
"""Numbers of three texts where <a> is token 6, and <x> and <b> are none."""
NEXT_TO_IT = {  # what stands next to a tokenizer.json, and what transformers makes of the texts
    "nothing": ({}, LACKING),
    "listed": (
        {CONFIG: {"added_tokens_decoder": {"8": control("<b>"), "7": control("<x>")}}},
        ([0, 5, 7, 5, 6, 5, 1], [7, 8], [1, 6, 1]),
    ),
    "flags": (
        {CONFIG: {"added_tokens_decoder": {"6": control("<a>", lstrip=True, rstrip=True)}}},
        ([0, 5, 2, 4, 3, 6, 1], [2, 4, 3, 2, 1, 3], [1, 6, 1]),
    ),
    "whole words": (
        {CONFIG: {"added_tokens_decoder": {"6": control("<a>", single_word=True)}}},
        ([0, 5, 2, 4, 3, 5, 6, 5, 1], [2, 4, 3, 2, 1, 3], [1, 2, 0, 3, 1]),
    ),
    "named": ({CONFIG: {"pad_token": "<x>", "eos_token": "<a>"}}, ([0, 5, 7, 5, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1])),
    "described": (
        {CONFIG: {"pad_token": {"__type": "AddedToken"} | control("<x>", lstrip=True)}},
        ([0, 7, 5, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1]),
    ),
    "in order": ({CONFIG: {"pad_token": "<x>", "bos_token": "<b>"}}, ([0, 5, 8, 5, 6, 5, 1], [8, 7], [1, 6, 1])),
    "several": ({CONFIG: {"additional_special_tokens": ["<x>"], "mask_token": "<b>"}}, ([0, 5, 8, 5, 6, 5, 1], [8, 7], [1, 6, 1])),
    "by name": ({CONFIG: {"extra_special_tokens": {"image_token": "<x>"}}}, ([0, 5, 7, 5, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1])),
    "by name first": (
        {CONFIG: {"additional_special_tokens": ["<b>"], "extra_special_tokens": {"image_token": "<x>"}}},
        ([0, 5, 7, 5, 6, 5, 1], [7, 8], [1, 6, 1]),
    ),
    "one list": (
        {CONFIG: {"additional_special_tokens": ["<x>"]}, MAP: {"extra_special_tokens": ["<x>"]}},
        ([0, 5, 7, 5, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1]),
    ),
    "map": (
        {CONFIG: {"pad_token": "<b>"}, MAP: {"pad_token": control("<x>", rstrip=True)}},
        ([0, 5, 7, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1]),
    ),
    "map unread": ({CONFIG: {"added_tokens_decoder": {"6": control("<a>")}}, MAP: {"pad_token": "<x>"}}, LACKING),
    "added": ({CONFIG: {"pad_token": "<b>"}, ADDED: {"<a>": 6, "<x>": 7}}, ([0, 5, 7, 5, 6, 5, 1], [7, 8], [1, 6, 1])),
    "control after all": ({CONFIG: {"eos_token": "<a>"}, ADDED: {"<a>": 6}}, LACKING),
    "padding": ({TOKENS: {"padding": PADDED}}, ([0, 5, 7, 5, 6, 5, 1], [7, 2, 1, 3], [1, 6, 1])),
    "other padding": (
        {TOKENS: {"padding": PADDED}, CONFIG: {"pad_token": "<b>"}},
        ([0, 5, 2, 4, 3, 5, 6, 5, 1], [2, 4, 3, 7], [1, 6, 1]),
    ),
    "added unread": ({CONFIG: {"added_tokens_decoder": {}}, ADDED: {"<x>": 7}}, LACKING),
}


def next_to_it(folder, files, **fields):
    """A tokenizer.json of a few letters and the token <a>, with other files next to it."""
    letters = {letter: number for number, letter in enumerate("ab<>x ")}
    plain(folder, letters, [("<a>", 6)])
    file = folder / "tokenizer.json"
    whole = json.loads(file.read_text(encoding="utf-8")) | fields | files.get(TOKENS, {})
    written = files | {file.name: whole}
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return file


THREE = ("a <x> <a> b", "<x><b>", "b<a>b")


@pytest.mark.parametrize("case", NEXT_TO_IT)
def test_files_next_to_it_name_tokens(case, tmp_path):
    files, expected = NEXT_TO_IT[case]
    ours = read_tokenizer(next_to_it(tmp_path, files), 9)
    assert tuple(ours.encode(text).tolist() for text in THREE) == expected


@needs_torch
@pytest.mark.parametrize("case", NEXT_TO_IT)
def test_transformers_finds_the_same_tokens(case, tmp_path):
    files, expected = NEXT_TO_IT[case]
    files = files | {CONFIG: files.get(CONFIG, {}) | {"tokenizer_class": "PreTrainedTokenizerFast"}}
    next_to_it(tmp_path, files | {"config.json": {"model_type": "llama"}})
    with quiet():
        from transformers import AutoTokenizer

        theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert tuple(theirs.encode(text) for text in THREE) == expected


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL}
SPACE = BYTES | {"pre_tokenizer": BYTE_LEVEL | {"add_prefix_space": True}}
EACH_DIGIT = {"type": "Digits", "individual_digits": True}
AFTER_DIGITS = BYTES | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [EACH_DIGIT, BYTE_LEVEL]}}
BEGUN = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<a>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<a>": {"id": "<a>", "ids": [6], "tokens": ["<a>"]}},
    }
}


@pytest.mark.parametrize(
    ("files", "fields", "words"),
    [
        ({CONFIG: {"split_special_tokens": True}}, {}, "split_special_tokens=True is not allowed: only split_special_tokens=False"),
        (
            {CONFIG: {"added_tokens_decoder": {"7": control("<a>")}}},
            {},
            "the added token '<a>' is number 7, by tokenizer.json number 6",
        ),
        (
            {CONFIG: {"added_tokens_decoder": {"9": control("<x>")}}},
            {},
            "the added token '<x>' is number 9, by tokenizer.json number 7",
        ),
        (
            {CONFIG: {"added_tokens_decoder": {"7": "<x>"}}},
            {},
            "added_tokens_decoder=.* is not allowed: it has a token with its flags",
        ),
        ({CONFIG: {"added_tokens_decoder": {"7": control("<x>", lstrip=1)}}}, {}, "added_tokens_decoder=.* is not allowed"),
        ({ADDED: {"<x>": "7"}}, {}, "added_tokens.json: '<x>'=7 is not allowed: it is the number of a token"),
        ({ADDED: {"<x>": 7, "<b>": 7}}, {}, "the added token '<b>' is number 7, by tokenizer.json number 8"),
        ({ADDED: {"": 7}}, {}, "added_tokens.json: ''=7 is not allowed"),
        ({CONFIG: {"add_prefix_space": True}}, BYTES, "add_prefix_space=True is not allowed: tokenizer.json says something else"),
        ({CONFIG: {"add_prefix_space": True}}, AFTER_DIGITS, "add_prefix_space=True is not allowed: tokenizer.json says something"),
        ({CONFIG: {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True}}, {}, "add_bos_token=True is not allowed"),
        ({CONFIG: {"tokenizer_class": "GPT2TokenizerFast"}}, SPACE, "add_prefix_space=False is not allowed"),
        ({CONFIG: {"tokenizer_class": "LlamaTokenizer"}}, {}, "add_bos_token=True is not allowed"),
        ({CONFIG: {"tokenizer_class": "GPTNeoXTokenizer"}}, BYTES | BEGUN, "add_bos_token=False is not allowed"),
        ({CONFIG: {"tokenizer_class": "GPTNeoXTokenizer", "add_eos_token": True}}, BYTES, "add_eos_token=True is not allowed"),
        (
            {CONFIG: {"tokenizer_class": "GPT2Tokenizer"}},
            {},
            "tokenizer_class=GPT2Tokenizer is not allowed: it cuts texts into bytes",
        ),
        ({MODEL: {"model_type": "qwen2"}}, {}, "tokenizer_class=Qwen2Tokenizer is not allowed: it cuts texts into bytes"),
        (
            {CONFIG: {"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"7": control("<x>")}}},
            BYTES,
            "added_tokens_decoder=.* is not allowed: tokenizer.json has '<a>', number 6, too",
        ),
        (
            {CONFIG: {"extra_special_tokens": []}, MAP: {"additional_special_tokens": ["<x>"]}},
            {},
            "extra_special_tokens=.* is not allowed: additional_special_tokens is another list",
        ),
        (
            {CONFIG: {"additional_special_tokens": ["<b>"]}, MAP: {"additional_special_tokens": ["<x>"]}},
            {},
            "additional_special_tokens=.* is not allowed: special_tokens_map.json has another",
        ),
        (
            {CONFIG: {"mask_token": control("<x>", lstrip=True), "additional_special_tokens": ["<x>"]}},
            {},
            "a control token=.*<x>.* is not allowed: it is named twice, with other flags",
        ),
        (
            {MAP: {"eos_token": "<y>", "pad_token": control("<y>", normalized=True)}},
            {},
            "a control token=.*<y>.* is not allowed: it is named twice, with other flags",
        ),
        (
            {CONFIG: {"model_specific_special_tokens": {"image_token": "<x>"}}},
            {},
            "model_specific_special_tokens=.* is not allowed",
        ),
        (
            {CONFIG: {"tokenizer_class": "GPTNeoXTokenizer", "add_bos_token": True}},
            BYTES | BEGUN,
            "add_bos_token=True is not allowed",
        ),
        ({CONFIG: []}, {}, "tokenizer_config.json cannot be read: it holds no JSON object"),
    ],
)
def test_files_that_contradict_a_tokenizer_are_refused(files, fields, words, tmp_path):
    with pytest.raises(UsageError, match=words):
        read_tokenizer(next_to_it(tmp_path, files, **fields), 9)


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ({"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": None}, {}),
        ({"tokenizer_class": "GPTNeoXTokenizerFast"}, BYTES),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True}, {}),  # which no version heeds
        ({"add_prefix_space": False, "split_special_tokens": False, "pad_token": None}, BYTES),
        ({"add_prefix_space": True}, {}),
        ({"tokenizer_class": "GPT2Tokenizer"}, BYTES),
    ],
)
def test_files_that_say_the_same_are_read(said, fields, tmp_path):
    assert read_tokenizer(next_to_it(tmp_path, {CONFIG: said}, **fields), 9).encode("a<a>").tolist() == [0, 6]


END = "<|endoftext|>"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({CONFIG: {"tokenizer_class": "GPT2TokenizerFast"}}, [END]),
        ({CONFIG: {}, MODEL: {"model_type": "gpt2"}}, [END]),
        ({MODEL: {"model_type": "opt"}}, [END]),
        ({MODEL: {"model_type": "gpt_neox"}}, [END, "<|padding|>"]),
        ({CONFIG: {"tokenizer_class": "Qwen2Tokenizer", "extra_special_tokens": ["<x>"]}}, [END, "<x>"]),
        (
            {CONFIG: {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {"6": control("<a>"), "7": control("<x>")}}},
            ["<x>", END],
        ),
        ({CONFIG: {"tokenizer_class": "GPT2Tokenizer", "bos_token": None, "eos_token": "<x>", "unk_token": None}}, ["<x>"]),
        ({CONFIG: {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<x>"}}, [END, "<x>"]),
        ({CONFIG: {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False}}, []),
        ({CONFIG: {"tokenizer_class": "PreTrainedTokenizerFast"}, MODEL: {"model_type": "gpt2"}}, []),
        ({MODEL: {"model_type": "llama"}}, []),
        ({MODEL: {"model_type": "gpt2", "tokenizer_class": "PreTrainedTokenizerFast"}}, []),
        ({MODEL: {"model_type": "llama", "tokenizer_class": "GPT2Tokenizer"}}, [END]),
    ],
)
def test_what_a_class_takes_for_granted_is_added(files, expected, tmp_path):
    """As transformers 5.24 adds it; tokens that are added later have the numbers after it."""
    ours = read_tokenizer(next_to_it(tmp_path, files, **BYTES), 99)
    assert [ours.inner.id_to_token(number) for number in range(7, ours.size)] == expected


def test_sentencepiece_classes_take_others_for_granted(tmp_path):
    said = {CONFIG: {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": False}}
    ours = read_tokenizer(next_to_it(tmp_path, said), 99)
    assert [ours.inner.id_to_token(number) for number in range(7, ours.size)] == ["<s>", "</s>", "<unk>"]


def test_what_files_call_a_control_token_is_left_out_of_a_text(tmp_path):
    """Whatever tokenizer.json says of it, as in transformers 4.57 and 5.24."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    plainly = {"added_tokens": [{"id": 6, "content": "<a>"} | flags]}
    ours = read_tokenizer(next_to_it(tmp_path, {CONFIG: {"eos_token": "<a>"}}, **BYTES, **plainly), 9)
    assert ours.decode([0, 6, 1], special=False) == "ab" and ours.decode([0, 6, 1]) == "a<a>b"
    said = {CONFIG: {"added_tokens_decoder": {"6": control("<a>") | {"special": False}}}}
    again = read_tokenizer(next_to_it(tmp_path, said, **BYTES), 9)
    assert again.decode([0, 6, 1], special=False) == "ab"


def test_spaces_before_punctuation_are_left_as_they_are(tmp_path):
    words = {"model": {"type": "WordLevel", "vocab": {"a": 0, ".": 1}, "unk_token": "a"}}
    with pytest.raises(UsageError, match="clean_up_tokenization_spaces=True is not allowed"):
        read_tokenizer(next_to_it(tmp_path, {CONFIG: {"clean_up_tokenization_spaces": True}}, **words, added_tokens=[]), 9)
