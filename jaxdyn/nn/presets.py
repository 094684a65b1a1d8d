"""The networks of the experiments, by name."""

from __future__ import annotations

from typing import Any

from jaxdyn.errors import UsageError, whole
from jaxdyn.nn.config import Transformer

__all__ = ["LLAMA", "encoder_lm", "gpt2", "llama", "tree_network"]

LLAMA = {  # width, units, heads, layers; the talks print heads and layers of 1B exchanged
    "9M": (128, 352, 4, 4),
    "20M": (256, 688, 4, 4),
    "60M": (512, 1376, 8, 8),
    "130M": (768, 2048, 12, 12),
    "350M": (1024, 2736, 16, 24),
    "1B": (2048, 5461, 32, 24),
    "7B": (4096, 11008, 32, 32),
}
ATTENTION, MLP = ("q", "k", "v", "o"), ("up", "down")  # matrices with a bias
POST: dict[str, Any] = {"norm": "layer", "norm_place": "post", "mlp": "plain", "activation": "relu", "epsilon": 1e-5}


def llama(name: str, *, vocabulary: int = 32_000, **more: Any) -> Transformer:
    """One of the decoders of GaLore's tables. Source: arXiv:2403.03507, table 5 and its code.

    Raises:
        UsageError: for a name that is none of :data:`LLAMA`.
    """
    if name not in tuple(LLAMA):
        raise UsageError(f"llama={name!r} is not allowed: it is one of {', '.join(LLAMA)}")
    width, hidden, heads, layers = LLAMA[name]
    return Transformer(**{"vocabulary": vocabulary, "width": width, "hidden": hidden, "heads": heads, "layers": layers} | more)


def encoder_lm(
    vocabulary: int, *, width: int = 200, hidden: int = 200, layers: int = 1, dropout: float = 0.2, **more: Any
) -> Transformer:
    r"""The causal encoder language model of JoMA's and Scan & Snap's text experiments.

    Embedding times :math:`\sqrt d` plus sinusoidal positions, post-norm blocks with one head and a ReLU MLP, all blocks starting as
    copies of one, a read-out of its own; dropout after the positions, on the attention, on both residual branches and in the MLP.
    Source: released code of arXiv:2310.00535 (section 5) and arXiv:2305.16380 (figure 7).
    """
    width = whole("width", width, least=1)
    sizes = {"vocabulary": vocabulary, "width": width, "hidden": hidden, "layers": layers, "dropout": dropout}
    own: dict[str, Any] = {"position": "sinusoidal", "scale": width**0.5, "copies": True, "start": "encoder"}
    return Transformer(**POST | own | sizes | {"biases": (*ATTENTION, *MLP, "head")} | more)


def gpt2(
    vocabulary: int, *, width: int = 768, layers: int = 12, heads: int = 12, length: int = 1024, dropout: float = 0.1, **more: Any
) -> Transformer:
    """A GPT-2 style decoder: pre-norm, GELU (tanh form), MLP of four widths, learned positions, read-out tied to the embedding.

    Source: Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.3, and its released code.
    """
    width = whole("width", width, least=1)
    sizes = {"vocabulary": vocabulary, "width": width, "layers": layers, "heads": heads, "length": length, "dropout": dropout}
    own: dict[str, Any] = {
        "hidden": 4 * width,
        "norm": "layer",
        "mlp": "plain",
        "activation": "gelu_tanh",
        "epsilon": 1e-5,
        "position": "learned",
    }
    own |= {"biases": (*ATTENTION, *MLP), "tied": True, "start": "gpt2", "drops": ("embedding", "attention", "residual")}
    return Transformer(**own | sizes | more)


def tree_network(
    vocabulary: int, classes: int, *, width: int = 1024, hidden: int | None = None, layers: int = 3, **more: Any
) -> Transformer:
    """The three-block network of JoMA's Table 1: post-norm, one head, no positions, no biases and no output matrix in attention.

    The MLP has four units for each token; the logits of the last position are those of the classes.
    Source: released code of arXiv:2310.00535, section 6.
    """
    hidden = 4 * whole("vocabulary", vocabulary, least=1) if hidden is None else hidden
    sizes = {"vocabulary": vocabulary, "outputs": classes, "width": width, "hidden": hidden, "layers": layers}
    own: dict[str, Any] = {"position": "none", "project": False, "biases": (*MLP, "head"), "start": "fan_in"}
    return Transformer(**POST | own | sizes | more)
