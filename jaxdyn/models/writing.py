"""Networks of our own in Hugging Face's layout: config.json, model.safetensors and tokenizer.json, as transformers reads them.

What it would otherwise take for granted is written, too: which tokens stand before and after a text, and that of tokenizer.json
nothing is replaced by the rules of the family's usual tokenizer. Of Qwen2 version 5 replaces them nevertheless (docs/models.md).
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree, Shaped

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import LARGEST, UsageError, shown, whole
from jaxdyn.models.config import Config
from jaxdyn.models.extras import library
from jaxdyn.models.families import FAMILIES, Family
from jaxdyn.models.tensor_slice import inserted, sizes
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.nn import Transformer

__all__ = ["save"]

UNSEEN = ("start", "std", "copies", "dropout", "drops", "scan")  # fields that logits without dropout do not show

DTYPES = ("float32", "bfloat16", "float16", "float64")


def save(
    folder: str | Path,
    shape: Transformer,
    params: PyTree,
    *,
    family: str,
    context: int,
    tokenizer: Tokenizer | None = None,
) -> Path:
    """Write a network as a model of a family, and return the folder; nothing is overwritten.

    Args:
        folder: a new or empty folder.
        shape: the network.
        params: its parameters, finite, written in their own dtype whatever that of the shape is; parts of one tensor in one that
            holds both.
        family: the layout: llama, mistral, qwen2 or gpt_neox.
        context: tokens of the longest text in training; of a model that was read, ``model.summary.context``.
        tokenizer: texts and token numbers, written as tokenizer.json, with a tokenizer_config.json. A warning says where
            transformers would cut texts in another way.

    Raises:
        UsageError: for a network that the layout cannot describe, weights of another network or that are not finite, and a folder
            that holds something.
    """
    context = whole("context", context, least=1, most=LARGEST)
    folder, known = from_home(folder), [name for name, each in FAMILIES.items() if each.config is not None]
    if family not in known:
        raise UsageError(f"family={shown(family)} is not allowed: it is one of {', '.join(known)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; nothing is overwritten, choose another folder")
    numpy = library("safetensors.numpy")
    config, tensors = _config(shape, FAMILIES[family], context), _tensors(shape, FAMILIES[family], params)
    config |= {"dtype": _wide(tensors.values()).name}
    if tokenizer is not None and family == "qwen2" and not _like_qwen2(tokenizer):
        warnings.warn(QWEN2, stacklevel=2)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")  # a kill leaves nothing under the folder's own name
    try:
        part.mkdir()
        if tokenizer is not None:
            tokenizer.save(part / "tokenizer.json")
            atomic_write(part / "tokenizer_config.json", json.dumps(_reader(tokenizer), indent=2) + "\n")
        atomic_write(part / "model.safetensors", numpy.save(tensors, metadata={"format": "pt"}))
        atomic_write(part / "config.json", json.dumps(config | _ends(tokenizer), indent=2) + "\n")
        if folder.exists():
            folder.rmdir()  # it is empty
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def _config(shape: Transformer, family: Family, context: int) -> dict[str, Any]:
    """The config.json, if what is read from it is this network."""
    assert family.config is not None
    config = {"model_type": family.name, "max_position_embeddings": context} | family.config(shape)
    try:
        again = _plain(family.shape(Config(Path("config.json"), config), shape.dtype))
    except UsageError as error:
        raise UsageError(f"this network is not allowed as family={family.name}: {error}") from None
    differ = [f.name for f in dataclasses.fields(shape) if getattr(again, f.name) != getattr(_plain(shape), f.name)]
    if differ:
        fields = ", ".join(f"{name}={getattr(shape, name)}" for name in differ)
        raise UsageError(f"this network is not allowed as family={family.name}: its layout has no place for {fields}")
    return config


def _reader(tokenizer: Tokenizer) -> dict[str, Any]:
    """How transformers is to read tokenizer.json: as it is, not by the rules of the family's usual tokenizer."""
    prefix = {} if tokenizer.prefix is None else {"add_prefix_space": tokenizer.prefix}
    return {"tokenizer_class": "PreTrainedTokenizerFast"} | prefix


QWEN2 = (
    "from version 5 on transformers cuts the texts of a qwen2 model by the rules of Qwen2's own tokenizer, which this one is not: "
    "there, numbers of tokens may be others than here"
)


def _like_qwen2(tokenizer: Tokenizer) -> bool:
    """Whether texts are brought into the normal form NFC, split by one rule, and then cut into bytes."""
    parts = (getattr(tokenizer.inner, name, None) for name in ("normalizer", "pre_tokenizer"))
    normal, cut = (json.loads(part.__getstate__()) if part is not None else {} for part in parts)
    return normal.get("type") == "NFC" and [one["type"] for one in cut.get("pretokenizers", ())] == ["Split", "ByteLevel"]


def _ends(tokenizer: Tokenizer | None) -> dict[str, int | None]:
    """The tokens before and after a text, where there is one: transformers takes others for granted, and stops at the last."""
    around = ((), ()) if tokenizer is None else tokenizer.around()
    first, last = (numbers[0] if len(numbers) == 1 else None for numbers in around)
    return {"bos_token_id": first, "eos_token_id": last}


def _plain(shape: Transformer) -> Transformer:
    """The same network with defaults written out, and without what its parameters do not show."""
    rotary = shape.rotated if shape.position == "rotary" else None
    written: dict[str, Any] = {"groups": shape.key_heads, "head_size": shape.entries, "rotary": rotary, "outputs": shape.logits}
    unseen: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(shape) if f.name in UNSEEN}
    return dataclasses.replace(shape, **written, **unseen)


def _tensors(shape: Transformer, family: Family, params: PyTree) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The tensors under the family's names."""
    slices, tensors = family.slices(shape), dict[str, np.ndarray]()
    own = _checked(shape, params)
    for path, values in own.items():
        at = slices[path]
        dtype = _wide(own[other] for other in slices if slices[other].name == at.name)
        for layer, value in enumerate(values if path.startswith("blocks/") else values[None]):
            tensor = tensors.setdefault(at.name.replace("{i}", str(layer)), np.zeros(at.size, dtype))
            inserted(at, tensor, value)
    return tensors


def _checked(shape: Transformer, params: PyTree) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The parameters on the host, by their paths."""
    rows: list[Any] = jax.tree_util.tree_leaves_with_path(params)
    own = {"/".join(str(getattr(step, "key", step)) for step in path): np.asarray(jax.device_get(leaf)) for path, leaf in rows}
    wanted = sizes(shape)
    if others := sorted(own.keys() ^ wanted.keys()):
        has = "have" if others[0] in own else "lack"
        raise UsageError(f"these weights are of another network: they {has} {others[0]}")
    for path, size in wanted.items():
        values = own[path]
        if values.shape != ((shape.layers, *size) if path.startswith("blocks/") else size):
            raise UsageError(f"these weights are of another network: {path} has the size {'x'.join(map(str, values.shape))}")
        if values.dtype.name not in DTYPES:
            raise UsageError(f"weights of {values.dtype.name} ({path}) are not allowed: they are {', '.join(DTYPES)}")
        if not np.isfinite(values).all():
            raise UsageError(f"the weights {path} are not allowed: they have numbers that are not finite")
    return own


def _wide(arrays: Iterable[Shaped[np.ndarray, "..."]]) -> np.dtype:
    """The narrowest dtype that holds all of them."""
    names = {array.dtype.name for array in arrays}
    return np.dtype(jnp.dtype(names.pop())) if len(names) == 1 else np.dtype("float64" if "float64" in names else "float32")
