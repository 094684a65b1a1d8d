"""What a transformer looks like: sizes, and the few choices in which the published networks differ."""

from __future__ import annotations

import dataclasses

from jaxdyn.errors import require
from jaxdyn.nn.attention import KINDS

__all__ = ["DROPS", "Shape"]

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
    (:mod:`jaxdyn.nn.start`).
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
        for name in ("vocabulary", "width", "layers", "heads", "hidden"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        require(self, self.logits >= 1, "outputs is at least 1", "outputs")
        require(self, self.width % self.heads == 0, "width is a multiple of heads", "width", "heads")
        for name, allowed in CHOICES.items():
            require(self, getattr(self, name) in allowed, f"{name} is one of {', '.join(allowed)}", name)
        require(self, 0 <= self.dropout < 1, "dropout is at least 0 and below 1", "dropout")
        require(self, not set(self.drops) - set(DROPS), f"drops are among {', '.join(DROPS)}", "drops")
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
