"""A published model in memory: the decoder, its parameters, its tokenizer, and what it is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
from jax.sharding import Mesh
from jaxtyping import PyTree

from jaxdyn.errors import UsageError, shown
from jaxdyn.models.checkpoint import open_checkpoint
from jaxdyn.models.reading import parameters
from jaxdyn.models.sharding import placer
from jaxdyn.models.summary import Summary, summary_of
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.nn import Transformer

__all__ = ["Model", "load"]

DTYPES = ("float32", "bfloat16", "float64")


class Model(NamedTuple):
    """A model; ``jaxdyn.nn.transformer.apply(model.shape, model.params, tokens)`` gives its logits."""

    shape: Transformer
    params: PyTree
    tokenizer: Tokenizer | None
    summary: Summary


def load(model: str | Path, *, dtype: str = "float32", mesh: Mesh | None = None) -> Model:
    """Read a model; :func:`jaxdyn.models.describe` says before what that costs.

    Files are mapped into memory, and each parameter is cast and stacked by layer as it is read. Nothing in a model's folder is run.

    Args:
        model: a folder in Hugging Face's layout, a GGUF file, a name ``org/model`` on the hub, or ``smollm2`` after
            ``jaxdyn models get smollm2``.
        dtype: of the parameters, among float32, bfloat16 and float64 (inside ``jax.enable_x64(True)``).
        mesh: devices with an axis ``model`` over which the parameters are cut (:mod:`jaxdyn.models.sharding`).

    Raises:
        UsageError: for what is no model, families that are not supported, pickled or damaged files, and configurations that
            disagree with their tensors.
    """
    if dtype not in DTYPES:
        raise UsageError(f"dtype={shown(dtype)} is not allowed: it is one of {', '.join(DTYPES)}")
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise UsageError("dtype=float64 is not allowed outside of jax.enable_x64(True): JAX would make it float32")
    checkpoint = open_checkpoint(model, dtype)
    params = parameters(checkpoint.shape, checkpoint.slices, checkpoint.archive, placer(mesh))
    return Model(checkpoint.shape, params, checkpoint.tokenizer, summary_of(checkpoint))
