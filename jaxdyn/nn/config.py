"""What a transformer looks like: sizes, and the few choices in which the published networks differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from jaxdyn.errors import UsageError, flag, number, require, shown, whole
from jaxdyn.nn.attention import KINDS

__all__ = ["DROPS", "DTYPES", "Shape", "validate"]

DTYPES = ("float32", "float64", "bfloat16", "float16")
DROPS = ("embedding", "attention", "residual", "mlp")
CHOICES = {
    "norm": ("post", "pre", "none"),
    "position": ("none", "learned", "sinusoidal", "rotary", "alibi"),
    "activation": ("relu", "gelu", "linear"),
    "attention": KINDS,
    "start": ("encoder", "gpt2", "fan_in"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """A transformer without its weights; hashable, so that it can be a static argument.

    Every block is attention and then a two-layer MLP, each with a residual. ``start`` names the rule by which weights are drawn
    (:mod:`jaxdyn.nn.init`).
    """

    vocabulary: int
    width: int
    layers: int = 1
    heads: int = 1
    hidden: int  # units of the MLP
    outputs: int | None = None  # logits; None: one for each token
    length: int = 0  # largest number of positions, for learned ones
    norm: str = "post"
    position: str = "none"
    activation: str = "relu"
    attention: str = "softmax"
    causal: bool = True
    tied: bool = False  # the read-out is the embedding
    scale: float = 1.0  # factor on the embedding
    attention_bias: bool = True  # of queries, keys, values and the attention's output
    head_bias: bool = True
    project: bool = True  # a matrix after the heads
    copies: bool = False  # all layers start as copies of one
    dropout: float = 0.0
    drops: tuple[str, ...] = DROPS
    epsilon: float = 1e-5
    start: str = "fan_in"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive, heads that do not divide the width, and unknown choices."""
        sizes = dict.fromkeys(("vocabulary", "width", "layers", "heads", "hidden", "outputs"), 1) | {"length": 0}
        numbers = {"scale": {}, "dropout": {"least": 0, "below": 1}, "epsilon": {"least": 0}}
        validate(self, sizes, numbers, ("causal", "tied", "attention_bias", "head_bias", "project", "copies"))
        require(self, self.width % self.heads == 0, "width is a multiple of heads", "width", "heads")
        for name, allowed in CHOICES.items():
            require(self, getattr(self, name) in allowed, f"{name} is one of {', '.join(allowed)}", name)
        drops = isinstance(self.drops, tuple | list) and all(name in DROPS for name in self.drops)
        require(self, drops, f"drops are among {', '.join(DROPS)}", "drops")
        object.__setattr__(self, "drops", tuple(self.drops))
        learned = self.position != "learned" or self.length >= 1
        require(self, learned, "learned positions need length, the largest number of positions", "length")
        tied = not self.tied or self.outputs in (None, self.vocabulary)
        require(self, tied, "a tied read-out has one output for each token", "outputs", "vocabulary")
        rotary = self.position != "rotary" or self.width // self.heads % 2 == 0
        require(self, rotary, "rotary positions need an even number of entries per head", "width", "heads")

    @property
    def logits(self) -> int:
        """Number of outputs."""
        return self.vocabulary if self.outputs is None else self.outputs


def validate(shape: Any, sizes: Mapping[str, int], numbers: Mapping[str, Mapping[str, float]], flags: Sequence[str] = ()) -> None:
    """Check the fields of a frozen dataclass, and put Python's own numbers in their places.

    NumPy's scalars would make a program of their own, and in 64-bit mode a float64 network of a float32 one.

    Args:
        shape: the dataclass; its ``dtype`` becomes a name among :data:`DTYPES`.
        sizes: whole numbers and the smallest that is allowed; None stays where it is the field's default.
        numbers: finite numbers and their bounds, as of :func:`jaxdyn.errors.number`.
        flags: what is True or False.

    Raises:
        UsageError: for any other value.
    """
    optional = {field.name for field in dataclasses.fields(shape) if field.default is None}
    for name, least in sizes.items():
        value = getattr(shape, name)
        if value is not None or name not in optional:
            object.__setattr__(shape, name, whole(name, value, least=least))
    for name, bounds in numbers.items():
        object.__setattr__(shape, name, number(name, getattr(shape, name), **bounds))
    for name in flags:
        object.__setattr__(shape, name, flag(name, getattr(shape, name)))
    object.__setattr__(shape, "dtype", _dtype(shape.dtype))


def _dtype(value: Any) -> str:
    """The name of a dtype; None would be float64, and so no dtype."""
    try:
        name = "" if value is None else jnp.dtype(value).name
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise UsageError(f"dtype={shown(value)} is not allowed: dtype is one of {', '.join(DTYPES)}")
    return name
