r"""Decoders of one number of weights, from shallow and wide to deep and thin, trained on a text."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.text import language
from jaxdyn.theories.mobile import model
from jaxdyn.theories.mobile.trials.text import PARTS, Training, steps_of, trained

__all__ = ["Depth", "trial"]


@jd.setting
class Depth(Training):
    """A shape and its training.

    Args:
        shape: "layers x width"; heads have ``entries`` numbers, and the MLP as many units as the weights allow.
        weights: of every shape, but for what rounding the units takes.
        entries: numbers of a head.
    """

    shape: str = "3x32"
    weights: int = 32_800
    entries: int = 8

    def __post_init__(self) -> None:
        """Refuse shapes that the weights do not allow."""
        Training.__post_init__(self)
        jd.require(self, len(self.sizes()) == 2, "shape is layers x width, as in 3x32", "shape")
        jd.require(self, self.sizes()[1] % self.entries == 0, "the width is a multiple of entries", "shape", "entries")
        jd.require(self, self.hidden() >= 1, "there are weights left for the MLP", "shape", "weights")
        self.decoder()

    def sizes(self) -> tuple[int, ...]:
        """Layers and width."""
        parts = self.shape.split("x")
        return tuple(int(part) for part in parts) if all(part.isdigit() and int(part) for part in parts) else ()

    def hidden(self) -> int:
        r"""Units of the MLP: :math:`Vd + L(4d^2 + 3df + 2d) + d` is nearest to the weights."""
        layers, d = self.sizes()
        return round((self.weights - self.vocabulary * d - d - layers * (4 * d * d + 2 * d)) / (3 * layers * d))

    def decoder(self) -> nn.Decoder:
        """The decoder."""
        layers, width = self.sizes()
        heads = width // self.entries
        common = {"vocabulary": self.vocabulary, "std": self.std, "dtype": self.dtype, "tied": True}
        return nn.Decoder(layers=layers, width=width, heads=heads, hidden=self.hidden(), **common)


def trial(s: Depth, key: PRNGKeyArray) -> jd.Observables:
    """Train; losses along training."""
    k_init, k_data = jax.random.split(key)
    net, (layers, _) = nn.decoder(s.decoder()), s.sizes()

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        return language.loss(net, params, tokens[:, :-1], tokens[:, 1:])

    last, curve = trained(s, loss, model.started(net.init(k_init), layers), k_data)
    return jd.observables(
        predicted={},
        measured={"loss": curve[-1, 1]},
        recorded={
            "curve": jd.named(curve, "step part"),
            "layers": jnp.asarray(layers, jnp.float64),
            "count": jnp.asarray(model.weights_of(s.decoder()), jnp.float64),
        },
        status=train.finite_status(last.params),
        coords={"part": PARTS, "step": steps_of(s)},
    )
