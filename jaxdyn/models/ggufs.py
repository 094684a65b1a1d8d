"""A single GGUF file, by the library gguf: weights in any quantisation that it can undo, all else in the file's metadata.

Rows of queries and keys of LLaMA stand in the order of neighbouring rotary pairs there; they are put back into that of halves.
Names of fields and tensors are those of the format's description (ggml, docs/gguf.md); they mean what llama.cpp makes of them: in
these architectures it reads no window, and so there is none here. A field of the architecture that is not known here is refused: it
could change the network; and so are a part of a split file, and sizes of heads that llama.cpp refuses. Where the order of bytes is
not the machine's, plain floats are read; quantised blocks, which the library does not swap, are refused.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from jaxdyn import errors
from jaxdyn.engine.base.parsing import plain_file
from jaxdyn.errors import UsageError, shown
from jaxdyn.models.archive import Archive, Entry
from jaxdyn.models.config import Config
from jaxdyn.models.extras import library
from jaxdyn.models.families import FAMILIES, Family
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer
from jaxdyn.nn.rotary import Scaling

__all__ = ["GGUF", "open_gguf"]

ARCHITECTURES = ("llama", "qwen2")
FREQUENCIES = "rope_freqs.weight"
ROW = 1 << 14  # bytes
PLAIN = ("F32", "F16", "F64")
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
FIELDS = {  # of the metadata, after the architecture's name -> of config.json
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
}
BY_LAYER = ("feed_forward_length", "attention.head_count", "attention.head_count_kv")  # one number, or one for each layer
HEADS = ("rope.dimension_count", "attention.value_length")  # both are the size of a head
SCALING = ("rope.scaling.type", "rope.scaling.factor", "rope.scale_linear")
UNREAD = (  # of texts, of training, of other architectures, and of kinds of rotary scaling that are refused
    "attention.sliding_window",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "tensor_data_layout",
    "pooling_type",
)
NEUTRAL = {  # the only value of fields that describe other networks
    "rope.scaling.attn_factor": 1,
    "attention.causal": True,
    "expert_count": 0,
    "expert_used_count": 0,
}


@dataclasses.dataclass(frozen=True)
class GGUF:
    """What a GGUF file holds."""

    config: Config
    family: Family
    archive: Archive
    metadata: dict[str, Any]


def open_gguf(file: Path) -> GGUF:
    """The file, mapped into memory.

    Raises:
        UsageError: for a damaged file, and an architecture or a quantisation that is not supported.
    """
    gguf = library("gguf")
    try:
        reader = _reader(gguf)(str(plain_file(file)))
        metadata = {name: field.contents() for name, field in reader.fields.items()}
        tensors = {t.name: t for t in reader.tensors}
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
    except UsageError:
        raise
    except Exception as error:  # the library checks little: what a damaged file raises is anybody's guess
        raise UsageError(f"{file} is not a whole GGUF file: {shown(error)}") from None
    _refuse_parts(Config(file, metadata))
    _refuse_places(file, reader)
    entries = {name: Entry(file, tuple(map(int, t.shape[::-1])), t.tensor_type.name) for name, t in tensors.items()}
    if reader.endianess != (gguf.GGUFEndian.LITTLE if sys.byteorder == "little" else gguf.GGUFEndian.BIG):
        _refuse_swapped(file, entries)
    config = _config(file, metadata, entries)
    heads = config.whole("num_attention_heads") or 1
    of_keys = config.whole("num_key_value_heads", heads) or 1
    permuted = {} if config.get("model_type") == "qwen2" else {"attn_q": heads, "attn_k": of_keys}

    def read(name: str) -> Float[np.ndarray, "..."]:
        tensor, part = tensors[name], name.split(".")[-2]
        values = _floats(gguf, file, tensor).reshape(entries[name].size)
        return _halves(values, permuted[part]) if part in permuted else values

    archive = Archive(file, entries, read, (file,))
    return GGUF(config, _family(config, _scaling(Config(file, metadata), archive)), archive, metadata)


def _refuse_parts(words: Config) -> None:
    """Refuse a file that is no whole model."""
    if (count := words.whole("split.count", 1, least=0) or 1) > 1:
        words.refuse("split.count", count, "it is one part of a model; merge the parts, with llama-gguf-split --merge")
    words.choice("general.type", {"model": "model"}, "model")


def _refuse_places(file: Path, reader: Any) -> None:
    """Refuse tensors that do not lie one after another, each from a multiple of the alignment, as llama.cpp reads them."""
    if (step := int(reader.alignment)) < 1 or step & (step - 1):
        raise UsageError(f"{file}: general.alignment is {step}; a power of two is allowed")
    place = int(reader.data_offset)
    for tensor in reader.tensors:
        offset = int(tensor.field.parts[-1][0])
        if offset != place - reader.data_offset:
            raise UsageError(
                f"{file}: tensor {tensor.name} is said to begin at byte {offset} of the data, and those before it end at "
                f"{place - reader.data_offset}: the file is damaged"
            )
        place += -(-int(tensor.n_bytes) // step) * step


def _refuse_swapped(file: Path, entries: dict[str, Entry]) -> None:
    """Refuse quantised tensors of a file whose order of bytes is not the machine's."""
    if others := [name for name, entry in entries.items() if entry.kind not in PLAIN]:
        why = f"its bytes are in the order of another machine, in which {', '.join(PLAIN)} are supported"
        raise UsageError(f"{file}: {why}; tensor {others[0]} is {entries[others[0]].kind}")


def _config(file: Path, metadata: dict[str, Any], entries: dict[str, Entry]) -> Config:
    """The metadata in the words of config.json, but for the rescaling of rotary rates."""
    words = Config(file, metadata)
    name = words.choice("general.architecture", {each: each for each in ARCHITECTURES}, None)
    own = {key.removeprefix(f"{name}."): value for key, value in metadata.items() if key.startswith(f"{name}.")}
    own |= {key: _same(words, f"{name}.{key}", own.get("block_count")) for key in BY_LAYER if key in own}
    fields = {ours: own[theirs] for theirs, ours in FIELDS.items() if theirs in own}
    if "token_embd.weight" in entries:  # the tokenizer may have more tokens, or fewer
        fields.setdefault("vocab_size", entries["token_embd.weight"].size[0])
    if "num_attention_heads" in fields:
        fields.setdefault("num_key_value_heads", fields["num_attention_heads"])
    words.get(f"{name}.attention.layer_norm_rms_epsilon")
    fields |= {"model_type": name, "hidden_act": "silu", "tie_word_embeddings": "output.weight" not in entries}
    config = Config(file, fields)
    width, heads = config.whole("hidden_size") or 0, config.whole("num_attention_heads") or 1
    plain = width // heads
    head = config.whole("head_dim", plain)
    if head != plain and name == "qwen2":
        words.refuse(
            f"{name}.attention.key_length", head, f"in this architecture a head has {plain} entries, its share of the width"
        )
    if head != plain and "attention.value_length" not in own:
        words.refuse(f"{name}.attention.key_length", head, f"without {name}.attention.value_length a head has {plain} entries")
    for key, value in own.items():
        if key in HEADS and value != head:
            words.refuse(f"{name}.{key}", value, f"a head has {head} entries, and all are turned")
        if key in NEUTRAL:
            words.fixed(**{f"{name}.{key}": NEUTRAL[key]})
        elif key not in (*FIELDS, *HEADS, *SCALING, *UNREAD):
            words.refuse(f"{name}.{key}", value, "this field is not supported")
    return config


def _same(words: Config, key: str, layers: Any) -> Any:
    """A number, or the one that a list has for all layers."""
    value = words.get(key)
    if not isinstance(value, list):
        return value
    if len(value) != layers or any(each != value[0] for each in value):
        words.refuse(key, value, "all layers have the same")
    return value[0]


def _scaling(words: Config, archive: Archive) -> Scaling | None:
    """How rotary rates are rescaled: divided by a factor, of which 0 means 1, and by a table's divisors, where there are any."""
    name = words.get("general.architecture")
    kind = words.choice(f"{name}.rope.scaling.type", {"linear": "linear", "none": "none"}, "linear")
    keys = [f"{name}.{key}" for key in SCALING[1:] if f"{name}.{key}" in words.values]  # the older name counts without the newer
    factor = words.checked(lambda: errors.number(keys[0], words.get(keys[0]), least=0)) if keys else 0.0
    factor = 1.0 if kind == "none" or factor == 0 else factor
    if FREQUENCIES not in archive.entries:
        return None if factor == 1 else Scaling(kind="linear", factor=factor)
    table = archive.read(FREQUENCIES, archive.entries[FREQUENCIES].size)
    return words.checked(lambda: Scaling(kind="table", table=tuple(factor * float(x) for x in table.ravel())))


def _family(config: Config, scaling: Scaling | None) -> Family:
    """The family, with the names of this format."""
    family = FAMILIES[config.get("model_type")]

    def shape(config: Config, dtype: str) -> Transformer:
        plain = family.shape(config, dtype)
        try:
            return dataclasses.replace(plain, scaling=scaling)
        except UsageError as error:
            raise UsageError(f"{config.file}: {FREQUENCIES}: {error}") from None

    def slices(shape: Transformer) -> dict[str, TensorSlice]:
        return {ours: at._replace(name=_renamed(at.name)) for ours, at in family.slices(shape).items()}

    buffers = (re.escape(FREQUENCIES),) if family.name != "qwen2" else ()
    return dataclasses.replace(family, shape=shape, slices=slices, prefix="", buffers=buffers, config=None, heads=())


def _renamed(name: str) -> str:
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _reader(gguf: Any) -> Any:
    """The library's reader, whose map of the file is a plain array.

    It slices the map several times for each of the tokenizer's 10^5 strings, and a slice of a ``memmap`` costs several times
    that of an array.
    """

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        @property
        def data(self) -> np.ndarray:
            return self._data

        @data.setter
        def data(self, mapped: np.ndarray) -> None:
            self._data = np.asarray(mapped)

    return Reader


def _floats(gguf: Any, file: Path, tensor: Any) -> Float[np.ndarray, "..."]:
    """The tensor's numbers without quantisation."""
    kind = tensor.tensor_type.name
    if kind in PLAIN:
        data = np.asarray(tensor.data)
        return data.astype(data.dtype.newbyteorder("="), copy=False)
    try:
        return np.asarray(gguf.quants.dequantize(_long_rows(np.asarray(tensor.data)), tensor.tensor_type))
    except NotImplementedError:
        known = ", ".join([*PLAIN, *sorted(each.name for each in gguf.quants._type_traits)])
        raise UsageError(f"{file}: tensor {tensor.name} is quantised as {kind}; supported are {known}") from None


def _long_rows(data: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "rows columns"]:
    """The tensor in fewer and longer rows, which the library undoes 16 at a time: blocks of a quantisation never cross rows."""
    rows = data.reshape(-1, data.shape[-1])
    count = len(rows)
    while count % 2 == 0 and rows.nbytes // count < ROW:
        count //= 2
    return rows.reshape(count, -1)


def _halves(rows: Float[np.ndarray, "..."], heads: int) -> Float[np.ndarray, "..."]:
    """Rows of queries or keys from the order of neighbouring pairs (0, 1), (2, 3), ... into that of halves (0, e/2), ..."""
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)
