"""A checkpoint before its weights are read: where it is, what network it is, where its parameters stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError
from jaxdyn.models import folder, ggufs, hub
from jaxdyn.models.archive import Archive
from jaxdyn.models.families import Family, family_of
from jaxdyn.models.fetching import PACKAGES, fetched
from jaxdyn.models.gguf_tokenizer import gguf_tokenizer, unsupported
from jaxdyn.models.reading import located
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.models.tokenizer import Tokenizer, read_tokenizer
from jaxdyn.nn import Transformer

__all__ = ["Checkpoint", "open_checkpoint", "place_of"]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose names and sizes fit its configuration.

    Args:
        path: the folder or file.
        family: the model's family.
        shape: the decoder.
        archive: the tensors.
        slices: where each parameter stands in them.
        tokenizer: texts and token numbers; None where there is none.
        context: tokens of the longest text in training; None: not known.
        note: why there is no tokenizer.
    """

    path: Path
    family: Family
    shape: Transformer
    archive: Archive
    slices: Mapping[str, TensorSlice]
    tokenizer: Tokenizer | None
    context: int | None
    note: str = ""


def open_checkpoint(model: str | Path, dtype: str = "float32") -> Checkpoint:
    """A folder, a GGUF file, a name ``org/model`` on the hub, or one that ``jaxdyn models get`` has fetched.

    Raises:
        UsageError: for what is none of these, damaged files, and configurations that disagree with their tensors.
    """
    path = place_of(model)
    if path.is_dir():
        return _of_folder(path, dtype)
    folder.refuse_pickle(path)
    if path.suffix == ".gguf":
        return _of_gguf(path, dtype)
    raise UsageError(f"{path} is not allowed: a model is a folder with config.json, a .gguf file, or a name org/model of the hub")


def place_of(model: str | Path) -> Path:
    """The folder or file of a model; a name on the hub is fetched, or found in the hub's own cache.

    Raises:
        UsageError: there is none.
    """
    path = from_home(model)
    if path.exists():
        return path
    if model in PACKAGES and (file := fetched(model)).is_file():
        return file
    if isinstance(model, str) and hub.is_name(model) and not path.suffix == ".gguf":
        return hub.download(model)
    if model in PACKAGES:
        raise UsageError(f"the model {model} is not in the cache folder: jaxdyn models get {model}")
    raise UsageError(f"there is no model {model}: it is a folder with config.json, a .gguf file, or a name org/model of the hub")


def _of_folder(path: Path, dtype: str) -> Checkpoint:
    config = folder.config(path)
    family = family_of(config)
    shape, archive = family.shape(config, dtype), folder.archive(path)
    slices, file = located(shape, family, archive), path / "tokenizer.json"
    tokenizer = read_tokenizer(file, shape.vocabulary) if file.exists() else None
    context = config.whole("n_positions" if family.name == "gpt2" else "max_position_embeddings", None)
    return Checkpoint(path, family, shape, archive, slices, tokenizer, context, "" if tokenizer else "it has no tokenizer.json")


def _of_gguf(path: Path, dtype: str) -> Checkpoint:
    gguf = ggufs.open_gguf(path)
    shape = gguf.family.shape(gguf.config, dtype)
    slices = located(shape, gguf.family, gguf.archive)
    tokenizer, note = gguf_tokenizer(path, gguf.metadata, shape.vocabulary), unsupported(gguf.metadata)
    context = gguf.config.whole("max_position_embeddings", None)
    return Checkpoint(path, gguf.family, shape, gguf.archive, slices, tokenizer, context, note)
