"""Trials on a published model: the setting that names the model and the text, and what such a trial gets, weights and tokens.

``@on_text`` above ``trial(setting, key, shared)``; a run is a piece of the text, drawn by its key (:func:`piece`). With
``@on_text_with_line_break`` the trial gets the number of the model's line break, too.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from jaxdyn.engine.claims.resource import resource
from jaxdyn.engine.claims.setting import setting
from jaxdyn.engine.programs.direct import modules_behind, versions_of
from jaxdyn.engine.storage.cache import content_of
from jaxdyn.errors import Absent, UsageError, require
from jaxdyn.models.checkpoint import place_of
from jaxdyn.models.extras import library
from jaxdyn.models.fetching import PACKAGES, fetched
from jaxdyn.models.loading import Model, load
from jaxdyn.models.probe_text import MANUAL, beginning, numbered, open_text
from jaxdyn.nn import Transformer

__all__ = ["SMOLLM2", "ModelAndText", "OnText", "on_text", "on_text_with_line_break", "piece", "shuffled_entries"]

TOKENS = 2**17  # of the text, from its beginning
READING = ("gguf", "numpy", "safetensors", "sentencepiece", "tokenizers", "torch")  # libraries that read weights and texts
LEAST = 64  # tokens of a piece
SMOLLM2 = (  # how claims on the default model are tested
    "the model {model} (smollm2 is SmolLM2-135M-Instruct: 30 layers of 9 heads, width 576; weights of 4 bits, sums in float32) "
    "reads {seeds} pieces of {length} tokens of the text {text} (topics is the manual of the Python interpreter)"
)


@setting
class OnText:
    """Pieces of a text, read by a published model.

    Args:
        model: ``smollm2``, a folder, a GGUF file, or a name ``org/model`` of the hub.
        text: "topics" (the interpreter's manual), or the path of a text.
        weights: "published", or "shuffled": the entries of each matrix, gain and bias in random order, layer by layer; a network of
            the same shape and sizes of weights that has learned nothing.
        words: "in order", or "shuffled": the tokens of a piece in random order.
        length: tokens of a piece, the model's beginning-of-text token among them where it has one.
        dtype: of weights and sums.
    """

    model: str = "smollm2"
    text: str = MANUAL
    weights: Literal["published", "shuffled"] = "published"
    words: Literal["in order", "shuffled"] = "in order"
    length: int = 512
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        """A piece has at least 64 tokens."""
        require(self, self.length >= LEAST, f"length is at least {LEAST}", "length")


SHARED = ["params", "tokens", "begin", "line_break"]


@functools.partial(jax.tree_util.register_dataclass, data_fields=SHARED, meta_fields=["shape"])
@dataclasses.dataclass(frozen=True)
class ModelAndText:
    """What all runs share: the decoder (static), its parameters, the text's tokens, and those that begin a text.

    ``line_break``: the token of a line break, for trials that ask for it.
    """

    shape: Transformer
    params: PyTree
    tokens: Int[Array, " total"]
    begin: Int[Array, " b"]
    line_break: Int[Array, ""] | None = None


@functools.lru_cache(maxsize=1)
def _published(model: str, dtype: str, files: str) -> Model:
    """The model of these files; for shuffled weights it is not read again."""
    return load(model, dtype=dtype)


def _load(s: OnText) -> ModelAndText:
    """The model's weights and the text in its tokens."""
    model = _published(s.model, s.dtype, _files(s))
    tokens, begin = numbered(open_text(s.text), model, TOKENS), beginning(model)
    params = model.params if s.weights == "published" else jax.tree_util.tree_map_with_path(shuffled_entries, model.params)
    return ModelAndText(model.shape, params, jnp.asarray(tokens), jnp.asarray(begin))


def _load_with_line_break(s: OnText) -> ModelAndText:
    """The same with the token of a line break; where this takes several tokens, as in SentencePiece, the last of them."""
    tokenizer = _published(s.model, s.dtype, _files(s)).tokenizer
    numbers = np.zeros(0, np.int32) if tokenizer is None else tokenizer.encode("\n", special=False)
    if numbers.size == 0:
        raise UsageError(f"model={s.model!r:.60} is not allowed: its tokenizer has no line break, which this trial puts into texts")
    return dataclasses.replace(_load(s), line_break=jnp.asarray(numbers[-1], jnp.int32))


def shuffled_entries(path: tuple[Any, ...], weight: Array) -> Array:
    """The entries in random order, those of each layer by themselves: the weights of blocks, gains and biases too, are stacked.

    Each array has an order of its own, or two of one shape would stay paired.
    """
    rng, values = np.random.default_rng([*jax.tree_util.keystr(path).encode()]), np.asarray(weight)
    rows = values.reshape(len(values) if path[0].key == "blocks" else 1, -1)
    return jnp.asarray(rng.permuted(rows, axis=1).reshape(values.shape))


def _files(s: OnText) -> str:
    """The names and contents of the model's files."""
    if s.model in PACKAGES and not Path(s.model).exists():
        library("gguf"), library("tokenizers")
        if not fetched(s.model).is_file():
            raise Absent(f"the model {s.model} is not in the cache folder: jaxdyn models get {s.model}")
        return content_of(fetched(s.model))
    path = place_of(s.model)
    if not path.is_dir():
        return content_of(path)
    return repr([(file.name, content_of(file)) for file in sorted(path.iterdir()) if file.is_file()])


def _identity(s: OnText) -> str:
    """The contents of the model's files, the text's digest, what is done to the weights, and what reads them."""
    weights = s.weights if s.weights == "published" else "shuffled layer by layer, each array in an order of its own"
    return repr((_files(s), weights, s.dtype, open_text(s.text).digest, _reading()))


def _reading() -> tuple[str, list[str]]:
    """The code that turns files into weights and tokens, and the versions of the libraries that it uses."""
    return modules_behind(load.__module__, numbered.__module__, within="jaxdyn.models"), versions_of(READING)


on_text = resource(_load, _identity)
on_text_with_line_break = resource(_load_with_line_break, _identity)


def piece(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> Int[Array, " n"]:
    """A piece of the text from a random place, after the tokens that begin a text.

    Raises:
        UsageError: for a text with no more tokens than a piece.
    """
    total = shared.tokens.size
    require(s, total > s.length, f"length is at most {total - 1}, fewer than the tokens of the text", "length")
    place, order = jax.random.split(key)
    body = s.length - shared.begin.size
    start = jax.random.randint(place, (), 0, shared.tokens.size - body)
    words = jax.lax.dynamic_slice(shared.tokens, (start,), (body,))
    if s.words == "shuffled":
        words = jax.random.permutation(order, words)
    return jnp.concatenate([shared.begin, words])
