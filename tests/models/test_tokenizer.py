"""Tokenizers against those of transformers, on text that is hard to take apart; what is no tokenizer is refused."""

import json

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.tokenizer import read_tokenizer
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


def test_other_vocabularies_and_files_are_refused(tmp_path):
    file = tmp_path / "tokenizer.json"
    byte_level().save(str(file))
    size = read_tokenizer(file, 500).size
    with pytest.raises(UsageError, match=f"is the tokenizer of another vocabulary: it has {size} tokens, the model {size - 1}"):
        read_tokenizer(file, size - 1)
    file.write_text(json.dumps({"model": {"type": "Nothing"}}), encoding="utf-8")
    with pytest.raises(UsageError, match="tokenizer.json is not a tokenizer that the library tokenizers can read"):
        read_tokenizer(file, 500)
    with pytest.raises(UsageError, match="is not a tokenizer"):
        read_tokenizer(tmp_path / "nothing.json", 500)
