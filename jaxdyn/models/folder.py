"""A folder in Hugging Face's layout: config.json, model.safetensors or shards with their index, tokenizer.json.

Files are mapped into memory by the library safetensors and read tensor by tensor. Pickled weights are refused: reading one may run
code. Nothing in the folder is executed.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from jaxdyn.engine.base.parsing import plain_file
from jaxdyn.engine.storage.cache import state_of
from jaxdyn.errors import UsageError, shown
from jaxdyn.models.archive import FLOATS, Archive, Entry
from jaxdyn.models.config import Config, read_json
from jaxdyn.models.extras import library

__all__ = ["archive", "config", "refuse_pickle"]

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
NAMED = "transformers_weights"  # of config.json: the file that is read in their place
ADAPTER = "adapter_config.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
WAY_OUT = "save the model again with save_pretrained of transformers, which writes safetensors"


def config(folder: Path) -> Config:
    """The folder's config.json.

    Raises:
        UsageError: if there is none.
    """
    file = folder / "config.json"
    if not file.exists():
        raise UsageError(f"{folder} holds no model: it has no config.json")
    return Config(file, read_json(file))


def refuse_pickle(file: Path) -> None:
    """Raise UsageError for a file of pickled weights."""
    if file.suffix in PICKLES:
        raise UsageError(f"{file} is not allowed: reading pickled weights may run code; {WAY_OUT}")


def archive(folder: Path) -> Archive:
    """The folder's tensors, as transformers reads them: of the file that config.json names, else the single file, else the shards.

    Raises:
        UsageError: for pickled weights, files that are damaged or missing, an index that does not describe its shards, and a folder
            with an adapter, which transformers would add to the weights.
    """
    if (folder / ADAPTER).exists():
        raise UsageError(
            f"{folder} has an adapter ({ADAPTER}), which is not supported: merge it into the weights (merge_and_unload)"
        )
    if (named := _named(folder)) is not None:
        file = folder / named
        if not file.exists():
            raise UsageError(f"{folder / 'config.json'} names the weights {named}, which are not there")
        return _sharded(file) if named.endswith(".json") else _single(file)
    single, index = folder / SINGLE, folder / INDEX
    if single.exists():
        return _single(single)
    if index.exists():
        return _sharded(index)
    for file in sorted(folder.iterdir()):
        refuse_pickle(file)
    others = sorted(folder.glob("*.safetensors"))
    if others:
        raise UsageError(f"{folder} has {others[0].name}, but neither {SINGLE} nor {INDEX}")
    raise UsageError(f"{folder} holds no weights: it has neither {SINGLE} nor {INDEX}")


def _named(folder: Path) -> str | None:
    """The file of weights that config.json names, if it names one."""
    file = folder / "config.json"
    name = read_json(file).get(NAMED) if file.exists() else None
    if name is None or (isinstance(name, str) and re.fullmatch(r"[\w.-]+\.safetensors(\.index\.json)?", name)):
        return name
    raise UsageError(f"{file}: {NAMED}={shown(name)} is not allowed: it is a file of the same folder, *.safetensors or its index")


def _single(file: Path) -> Archive:
    return _archive(file, {name: file for name in _opened(file).keys()})  # noqa: SIM118


def _sharded(index: Path) -> Archive:
    """The tensors of all shards, each in the shard that the index names."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UsageError(f"{index} cannot be read: it has no weight_map")
    for file in places.values():
        if not isinstance(file, str) or not re.fullmatch(r"[\w.-]+\.safetensors", file):
            raise UsageError(f"{index}: {shown(file)} is not allowed: a shard is a file of the same folder, *.safetensors")
        if not (index.parent / file).exists():
            raise UsageError(f"{index} names the shard {file}, which is not there")
    inside = {file: set(_opened(index.parent / file).keys()) for file in sorted(set(places.values()))}
    for name, file in places.items():
        if name not in inside[file]:
            raise UsageError(f"{index.parent / file} has no tensor {name}, which the index places there")
    for file, names in inside.items():
        if missing := sorted(name for name in names if places.get(name) != file):
            raise UsageError(f"{index} has no entry for the tensor {missing[0]} of {file}")
    return _archive(index, {name: index.parent / file for name, file in places.items()})


def _archive(listing: Path, places: dict[str, Path]) -> Archive:
    slices = {name: (file, _opened(file).get_slice(name)) for name, file in places.items()}
    entries = {name: Entry(file, tuple(part.get_shape()), str(part.get_dtype())) for name, (file, part) in slices.items()}

    def reader(name: str) -> Shaped[np.ndarray, "..."]:
        entry = entries[name]
        if entry.kind not in FLOATS:
            raise UsageError(f"{entry.file}: tensor {name} is of {entry.kind}, only {', '.join(FLOATS)} are supported")
        return np.asarray(_opened(entry.file).get_tensor(name))

    return Archive(listing, entries, reader, tuple(sorted(set(places.values()))))


def _opened(file: Path) -> Any:
    """The file, mapped into memory; a changed file is opened anew."""
    return _memory_map(plain_file(file), state_of(file))


@functools.lru_cache(maxsize=64)
def _memory_map(file: Path, state: tuple[int, ...]) -> Any:
    safetensors = library("safetensors")
    try:
        return safetensors.safe_open(str(file), "np")
    except (safetensors.SafetensorError, OSError) as error:
        raise UsageError(f"{file} is not a whole safetensors file: {error}") from None
