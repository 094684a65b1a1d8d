"""The variants of a small decoder, trained on a text; all variants of one size share one program."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.text import language
from jaxdyn.theories.mobile import model
from jaxdyn.theories.mobile.trials.text import PARTS, Training, steps_of, trained

__all__ = ["Variants", "trial"]


@jd.setting
class Variants(Training):
    """A variant of a decoder and its training.

    Args:
        variant: one of :data:`jaxdyn.theories.mobile.model.VARIANTS`.
        width, hidden, layers, heads: of the variant "base". With :math:`V = 4d + 3f + 2` a block has as many weights as a read-out.
    """

    variant: jd.Code = jd.code(*model.VARIANTS)
    width: int = 32
    hidden: int = 42
    layers: int = 3
    heads: int = 4

    def __post_init__(self) -> None:
        """Refuse sizes that are not allowed."""
        Training.__post_init__(self)
        jd.require(self, self.heads % 2 == 0, "heads is even: two of them can share keys and values", "heads")
        jd.require(self, self.layers >= 2, "layers is at least 2: one of them is given up for a read-out", "layers")
        self.base()

    def base(self) -> nn.Decoder:
        """The decoder of the variant "base"."""
        sizes = {name: getattr(self, name) for name in ("vocabulary", "width", "hidden", "layers", "heads", "std", "dtype")}
        return nn.Decoder(tied=True, **sizes)


def trial(s: Variants, key: PRNGKeyArray) -> jd.Observables:
    """Train; losses along training, and what the variant costs."""
    k_init, k_data = jax.random.split(key)
    base = s.base()
    f = model.variant(s.variant.index, base)

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        x, head = model.trunk(base, f, params, tokens[:, :-1]), model.read_out(f, params)
        shift = jnp.zeros(head.shape[0], head.dtype)
        return language.cross_entropy(x.reshape(-1, x.shape[-1]), head, shift, tokens[:, 1:].reshape(-1))

    last, curve = trained(s, loss, model.started(nn.decoder(model.wide(base)).init(k_init), f.depth), k_data)
    shapes = [model.shape_of(name, base) for name in model.VARIANTS]

    def of_variant(values: list[int]) -> Float[Array, ""]:
        return jnp.asarray(values, jnp.float64)[s.variant.index]

    size = jnp.dtype(s.dtype).itemsize
    return jd.observables(
        predicted={"bytes": of_variant([2 * x.depth * x.key_heads * x.entries * s.length * size for x in shapes])},
        measured={"loss": curve[-1, 1], "bytes": of_variant([model.bytes_of(x, s.length) for x in shapes])},
        recorded={
            "curve": jd.named(curve, "step part"),
            "weights": of_variant([model.weights_of(x) for x in shapes]),
            "every_head": of_variant([2 * x.depth * x.width * s.length * size for x in shapes]),
        },
        status=train.finite_status(last.params),
        coords={"part": PARTS, "step": steps_of(s)},
    )
