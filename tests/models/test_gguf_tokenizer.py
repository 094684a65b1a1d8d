"""Tokenizers of GGUF files: rules of splitting against published ones, the real SmolLM2's against transformers."""

import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models.gguf_tokenizer import gguf_tokenizer
from jaxdyn.models.ggufs import open_gguf
from tests.models.ggufs import MERGES, TOKENS, write
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


def words(text, **change):
    """Tokens of a text, as they are written."""
    tokenizer = gguf_tokenizer("model.gguf", METADATA | {f"tokenizer.ggml.{name}": value for name, value in change.items()})
    return [TOKENS[i] for i in tokenizer.encode(text)]


def test_merges_and_control_tokens():
    assert words("hello a") == ["hell", "o", "Ġa"]
    assert words("<s>hell</s>") == ["<s>", "hell", "</s>"]
    assert words("hell", add_bos_token=True) == ["<s>", "hell"]


def test_rules_of_splitting():
    merged = {"tokens": [*TOKENS[:-1], "12"], "merges": [*MERGES[:3], "1 2"]}
    merged = METADATA | {f"tokenizer.ggml.{name}": value for name, value in merged.items()}

    def count(pre):
        return len(gguf_tokenizer("model.gguf", merged | {"tokenizer.ggml.pre": pre}).encode("12"))

    assert [count(pre) for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2")] == [1, 2, 1, 2], "digits one by one, or not"


def test_other_kinds_have_none_and_say_so(tmp_path):
    assert gguf_tokenizer("model.gguf", METADATA | {"tokenizer.ggml.model": "llama"}) is None
    assert gguf_tokenizer("model.gguf", METADATA | {"tokenizer.ggml.pre": "viking"}) is None
    summary = models.describe(write(tmp_path / "model.gguf", "llama", "F32", pre="viking"))
    assert summary.tokens is None and "tokenizer  none: its tokenizer is of a kind that is not supported" in summary.lines()


def test_damaged_metadata_are_refused(tmp_path):
    with pytest.raises(UsageError, match="model.gguf: its tokenizer cannot be read"):
        gguf_tokenizer("model.gguf", METADATA | {"tokenizer.ggml.merges": ["q zz"]})
    with pytest.raises(UsageError, match="is the tokenizer of another vocabulary: it has 90 tokens, the model 64"):
        models.describe(write(tmp_path / "model.gguf", "llama", "F32", tokens=[*TOKENS, *(f"more{i}" for i in range(46))]))


@needs_smollm2
@pytest.mark.slow
def test_the_real_tokenizer_is_that_of_transformers():
    ours = gguf_tokenizer(REAL, open_gguf(REAL).metadata)
    with quiet():
        from transformers import AutoTokenizer

        theirs = AutoTokenizer.from_pretrained(REAL.parent, gguf_file=REAL.name)
        for text in (*TEXTS, "<|im_start|>user\nHi 123<|im_end|>\n"):
            if "½" not in text:  # transformers' reading of GGUF leaves out the rule that cuts before every numeral
                np.testing.assert_array_equal(ours.encode(text), theirs.encode(text), err_msg=repr(text))
            assert ours.decode(ours.encode(text)) == text
