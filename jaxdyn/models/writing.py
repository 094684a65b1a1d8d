"""Networks of our own in Hugging Face's layout: config.json, model.safetensors and tokenizer.json, as transformers reads them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree, Shaped

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError, shown
from jaxdyn.models.config import Config
from jaxdyn.models.extras import library
from jaxdyn.models.families import FAMILIES, Family
from jaxdyn.models.tensor_slice import inserted, sizes
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.nn.decoder import Decoder

__all__ = ["save"]


def save(
    folder: str | Path,
    shape: Decoder,
    params: PyTree,
    *,
    family: str,
    tokenizer: Tokenizer | None = None,
    context: int = 2048,
) -> Path:
    """Write a network as a model of a family, and return the folder; nothing is overwritten.

    Args:
        folder: a new or empty folder.
        shape: the network.
        params: its parameters, written in their own dtype.
        family: the layout: llama, mistral, qwen2 or gpt_neox.
        tokenizer: texts and token numbers, written as tokenizer.json.
        context: tokens of the longest text in training.

    Raises:
        UsageError: for a network that the layout cannot describe, and a folder that holds something.
    """
    folder, known = from_home(folder), [name for name, each in FAMILIES.items() if each.config is not None]
    if family not in known:
        raise UsageError(f"family={shown(family)} is not allowed: it is one of {', '.join(known)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; nothing is overwritten, choose another folder")
    numpy = library("safetensors.numpy")
    config, tensors = _config(shape, FAMILIES[family], context), _tensors(shape, FAMILIES[family], params)
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(folder / "tokenizer.json")
    atomic_write(folder / "model.safetensors", numpy.save(tensors, metadata={"format": "pt"}))
    atomic_write(folder / "config.json", json.dumps(config, indent=2) + "\n")  # last: what has one is whole
    return folder


def _config(shape: Decoder, family: Family, context: int) -> dict[str, Any]:
    """The config.json, if what is read from it is this network."""
    assert family.config is not None
    config = {"model_type": family.name, "max_position_embeddings": context, "dtype": shape.dtype} | family.config(shape)
    try:
        again = _plain(family.shape(Config(Path("config.json"), config), shape.dtype))
    except UsageError as error:
        raise UsageError(f"this network is not allowed as family={family.name}: {error}") from None
    differ = [f.name for f in dataclasses.fields(shape) if getattr(again, f.name) != getattr(_plain(shape), f.name)]
    if differ:
        fields = ", ".join(f"{name}={getattr(shape, name)}" for name in differ)
        raise UsageError(f"this network is not allowed as family={family.name}: its layout has no place for {fields}")
    return config


def _plain(shape: Decoder) -> Decoder:
    """The same network with defaults written out, and without what its parameters do not show."""
    rotary = shape.rotated if shape.position == "rotary" else None
    return dataclasses.replace(shape, groups=shape.key_heads, head_size=shape.entries, rotary=rotary, std=0.02, scan=True)


def _tensors(shape: Decoder, family: Family, params: PyTree) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The tensors under the family's names."""
    dtype, slices = jnp.dtype(shape.dtype), family.slices(shape)
    tensors: dict[str, np.ndarray] = {}
    for path, size in sizes(shape).items():
        stacked = path.startswith("blocks/")
        own = params["blocks"][path.removeprefix("blocks/")] if stacked else params[path]
        values = np.asarray(jax.device_get(own))
        if values.shape != ((shape.layers, *size) if stacked else size):
            raise UsageError(f"these weights are of another network: {path} has the size {'x'.join(map(str, values.shape))}")
        for layer, value in enumerate(values if stacked else values[None]):
            name = slices[path].name.replace("{i}", str(layer))
            tensor = tensors.setdefault(name, np.zeros(slices[path].size, dtype))
            inserted(slices[path], tensor, value)
    return tensors
