"""What is known of a family: how its config.json becomes a decoder, and where its weights stand."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from jaxdyn.errors import UsageError
from jaxdyn.models.config import Config
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer

__all__ = ["ACTIVATIONS", "KINDS", "Family", "layer_kind", "linear", "make", "norm"]

ACTIVATIONS = {  # of Hugging Face's names -> ours
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
KINDS = {"full_attention": "full_attention", "attention": "full_attention", "sliding_attention": "sliding_attention"}


@dataclasses.dataclass(frozen=True)
class Family:
    """A family.

    Args:
        name: its ``model_type``.
        shape: the decoder that a config describes, with a dtype.
        slices: where each parameter stands, by its path in ours.
        prefix: of the tensors' names; files of the bare trunk lack it.
        buffers: patterns of tensors that hold no weights.
        config: the config.json of a decoder; None: it is not written.
        heads: names of the read-out in files, any one of them.
    """

    name: str
    shape: Callable[[Config, str], Transformer]
    slices: Callable[[Transformer], dict[str, TensorSlice]]
    prefix: str
    buffers: tuple[str, ...] = ()
    config: Callable[[Transformer], dict[str, Any]] | None = None
    heads: tuple[str, ...] = ("lm_head.weight",)

    def is_buffer(self, name: str) -> bool:
        """Whether a tensor holds no weights."""
        return any(re.fullmatch(pattern, name) for pattern in self.buffers)


def make(config: Config, fields: Mapping[str, Any]) -> Transformer:
    """The decoder with these fields; refusals name the file."""
    try:
        return Transformer(**fields)
    except UsageError as error:
        raise UsageError(f"{config.file}: {error}") from None


def layer_kind(config: Config, layers: int, default: str) -> str:
    """The kind of attention of all layers, by ``layer_types``.

    Raises:
        UsageError: if the list is of another length, or its layers differ.
    """
    kinds = config.get("layer_types", None)
    if kinds is None:
        return default
    if not isinstance(kinds, list) or len(kinds) != layers or any(not isinstance(k, str) or k not in KINDS for k in kinds):
        config.refuse("layer_types", kinds, f"it is a list of {layers} words, each one of {', '.join(KINDS)}")
    if len(set(kinds)) > 1:
        config.refuse("layer_types", kinds, "all layers have the same kind of attention")
    return KINDS[kinds[0]]


def linear(shape: Transformer, ours: str, name: str) -> dict[str, TensorSlice]:
    """A block's matrix, (output, input) in the file, and its bias if it has one."""
    rows, columns = shape.weights[ours][::-1]
    bias = {f"blocks/{ours}_bias": TensorSlice(f"{name}.bias", (rows,))} if ours in shape.biases else {}
    return {f"blocks/{ours}": TensorSlice(f"{name}.weight", (rows, columns), transposed=True)} | bias


def norm(shape: Transformer, ours: str, name: str) -> dict[str, TensorSlice]:
    """The gain of a norm, and its bias if it has one."""
    bias = {f"{ours}_bias": TensorSlice(f"{name}.bias", (shape.width,))} if shape.norm == "layer" else {}
    return {ours: TensorSlice(f"{name}.weight", (shape.width,))} | bias
