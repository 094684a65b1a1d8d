"""What a transformer looks like: sizes, and the few choices in which the published networks differ."""

from __future__ import annotations

import dataclasses

from jaxdyn.errors import UsageError, given
from jaxdyn.nn.attention import KINDS

__all__ = ["DROPS", "Shape"]

DROPS = ("embedding", "attention", "residual", "mlp")
CHOICES = {
    "norm": ("post", "pre", "none"),
    "position": ("none", "learned", "sinusoidal", "rotary"),
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
    length: int = 0  # most positions, for learned positions
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
        if min(self.vocabulary, self.width, self.layers, self.heads, self.hidden, self.logits) < 1:
            raise UsageError("sizes are positive, " + given(self, "vocabulary", "width", "layers", "heads", "hidden", "outputs"))
        if self.width % self.heads:
            raise UsageError("the width is a multiple of heads, " + given(self, "width", "heads"))
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} is one of {', '.join(allowed)}, " + given(self, name))
        if not 0 <= self.dropout < 1:
            raise UsageError("dropout is at least 0 and below 1, " + given(self, "dropout"))
        if set(self.drops) - set(DROPS):
            raise UsageError(f"drops are among {', '.join(DROPS)}, " + given(self, "drops"))
        if self.position == "learned" and self.length < 1:
            raise UsageError("learned positions need the most positions there can be, " + given(self, "length"))
        if self.tied and self.outputs not in (None, self.vocabulary):
            raise UsageError("a tied read-out has one output for each token, " + given(self, "outputs", "vocabulary"))
        if self.position == "rotary" and (self.width // self.heads) % 2:
            raise UsageError("rotary positions need an even number of entries per head, " + given(self, "width", "heads"))

    @property
    def logits(self) -> int:
        """Number of outputs."""
        return self.vocabulary if self.outputs is None else self.outputs
