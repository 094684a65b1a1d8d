"""Reference tokens, made by ``reference/tokens_make.py``: small tokenizers, texts, and their token numbers."""

import json
from pathlib import Path

from jaxdyn.errors import LARGEST
from jaxdyn.models.gguf_tokenizer import gguf_tokenizer
from jaxdyn.models.tokenizer import Tokenizer

REFERENCE = json.loads((Path(__file__).parent / "reference" / "tokens_cases.json").read_text())
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def metadata(short):
    """A GGUF file's metadata as they were, of their short form."""
    out = dict(short)
    for name in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        if name in out:
            out[name] = [value for value, count in out[name] for _ in range(count)]
    tokens = out["tokenizer.ggml.tokens"]
    out["tokenizer.ggml.tokens"] = [t for token in tokens for t in (BYTES if token is None else [token])]
    return out


def read(short, **change) -> Tokenizer:
    """The tokenizer of metadata in their short form, with other fields."""
    fields = metadata(short) | {f"tokenizer.ggml.{name}": value for name, value in change.items()}
    return gguf_tokenizer("model.gguf", fields, LARGEST)
