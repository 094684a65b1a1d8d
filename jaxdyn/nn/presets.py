"""The networks of the experiments, by name."""

from __future__ import annotations

from jaxdyn.errors import whole
from jaxdyn.nn.config import Shape

__all__ = ["encoder_lm", "gpt2", "tree_network"]


def encoder_lm(
    vocabulary: int, *, width: int = 200, hidden: int = 200, layers: int = 1, dropout: float = 0.2, **more: object
) -> Shape:
    r"""The causal encoder language model of JoMA's and Scan & Snap's text experiments.

    Embedding times :math:`\sqrt d` plus sinusoidal positions, post-norm blocks with one head and a ReLU MLP, all blocks starting as
    copies of one, a read-out of its own; dropout after the positions, on the attention, on both residual branches and in the MLP.
    Source: released code of arXiv:2310.00535 (section 5) and arXiv:2305.16380 (figure 7).
    """
    width = whole("width", width, least=1)
    return Shape(
        vocabulary=vocabulary,
        width=width,
        hidden=hidden,
        layers=layers,
        dropout=dropout,
        **{"position": "sinusoidal", "scale": width**0.5, "copies": True, "start": "encoder"} | more,
    )


def gpt2(
    vocabulary: int,
    *,
    width: int = 768,
    layers: int = 12,
    heads: int = 12,
    length: int = 1024,
    dropout: float = 0.1,
    **more: object,
) -> Shape:
    """A GPT-2 style decoder: pre-norm, GELU (tanh form), MLP of four widths, learned positions, read-out tied to the embedding.

    Source: Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.3, and its released code.
    """
    width = whole("width", width, least=1)
    options = {"hidden": 4 * width, "norm": "pre", "position": "learned", "activation": "gelu", "tied": True, "head_bias": False}
    drops = ("embedding", "attention", "residual")
    options |= {"start": "gpt2", "drops": drops} | more
    return Shape(vocabulary=vocabulary, width=width, layers=layers, heads=heads, length=length, dropout=dropout, **options)


def tree_network(
    vocabulary: int, classes: int, *, width: int = 1024, hidden: int | None = None, layers: int = 3, **more: object
) -> Shape:
    """The three-block network of JoMA's Table 1: post-norm, one head, no positions, no biases and no output matrix in attention.

    The MLP has four units for each token; the logits of the last position are those of the classes.
    Source: released code of arXiv:2310.00535, section 6.
    """
    options = {"attention_bias": False, "project": False} | more
    hidden = 4 * whole("vocabulary", vocabulary, least=1) if hidden is None else hidden
    return Shape(vocabulary=vocabulary, outputs=classes, width=width, hidden=hidden, layers=layers, **options)
