"""A small model in a folder, without torch, and how to damage it."""

import json

import numpy as np

from jaxdyn import models
from jaxdyn.nn import Transformer
from tests.nn.drawn import weights

SHAPE = Transformer(vocabulary=13, width=12, layers=2, heads=3, hidden=10, std=0.6)
TOKENS = np.random.default_rng(0).integers(0, 13, (2, 9))


def saved(folder, shape=SHAPE, family="llama", **more):
    """Write the model."""
    return models.save(folder, shape, weights(shape), family=family, **{"context": 2048, **more})


def spoken(folder):
    """The model with a tokenizer of 13 words, and a text of 400 of them, as fields of a setting; and the text's numbers."""
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel

    inner = Tokenizer(WordLevel({f"w{i}": i for i in range(13)}, "w0"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    saved(folder / "model", tokenizer=models.Tokenizer(inner))
    ids = np.random.default_rng(1).integers(0, 13, 400)
    (folder / "text.txt").write_text(" ".join(f"w{i}" for i in ids), encoding="utf-8")
    return {"model": str(folder / "model"), "text": str(folder / "text.txt")}, ids


def tensors(folder):
    """All tensors of a folder with one file."""
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def rewritten(folder, change):
    """Write the tensors anew after ``change``, a function of their dict."""
    from safetensors.numpy import save_file

    values = tensors(folder)
    change(values)
    save_file(values, folder / "model.safetensors")


def sharded(folder):
    """Cut the model into two shards with their index; returns the index file."""
    from safetensors.numpy import save_file

    values = tensors(folder)
    (folder / "model.safetensors").unlink()
    names = sorted(values)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: values[name] for name in some}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"metadata": {}, "weight_map": {name: file for file, some in parts.items() for name in some}}), encoding="utf-8"
    )
    return index


def edited(file, **changes):
    """Change fields of a JSON file; None removes one."""
    fields = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}), encoding="utf-8")
