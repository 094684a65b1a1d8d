"""Weights and cache bytes of the MobileLLM models: counted from arrays, by the formulas, and as published."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import cache, count
from jaxdyn.nn.decoder import Decoder, init
from jaxdyn.theories.mobile.published import CONTEXT, MODELS, VOCABULARY, Model

__all__ = ["Counts", "formula", "trial"]


@jd.setting
class Counts:
    """The models, with the read-out tied to the embedding or not, and grouped queries or a key for each."""

    tied: bool = True
    grouped: bool = True


def built(m: Model, s: Counts) -> Decoder:
    """The decoder of a model; it has no weights yet."""
    groups = m.groups if s.grouped else m.heads
    return Decoder(
        vocabulary=VOCABULARY,
        width=m.width,
        layers=m.layers,
        heads=m.heads,
        groups=groups,
        hidden=m.hidden,
        tied=s.tied,
        epsilon=1e-5,
        dtype="bfloat16",
    )


def formula(m: Model) -> tuple[int, int, int]:
    r"""Weights of the tied and untied model, :math:`Vd + L(2d^2 + 2 d g e + 3 d f + 2d) + d` and Vd more, and bytes of its cache.

    The cache of the whole context takes :math:`2 L g e \cdot 2048` numbers of two bytes.
    """
    narrow = m.groups * (m.width // m.heads)
    block = 2 * m.width**2 + 2 * m.width * narrow + 3 * m.width * m.hidden + 2 * m.width
    tied = VOCABULARY * m.width + m.layers * block + m.width
    return tied, tied + VOCABULARY * m.width, 2 * m.layers * narrow * CONTEXT * 2


def trial(s: Counts, key: PRNGKeyArray) -> jd.Observables:
    """Weights and bytes by model; nothing is allocated."""
    del key
    shapes = {name: built(m, s) for name, m in MODELS.items()}
    policy = cache.Policy(kind="dense", size=CONTEXT)
    weights = [count(jax.eval_shape(lambda shape=shape: init(shape, jax.random.key(0)))) for shape in shapes.values()]
    held = [cache.bytes_held(shape, policy).keys_values for shape in shapes.values()]
    tied, untied, cached = zip(*map(formula, MODELS.values()), strict=True)

    def by_model(values: Any) -> Any:
        return jd.named(jnp.asarray(values, jnp.float64), "model")

    return jd.observables(
        predicted={"weights": by_model(tied), "bytes": by_model(cached), "published": by_model(weights)},
        measured={
            "weights": by_model(weights),
            "bytes": by_model(held),
            "published": by_model([1e6 * m.millions for m in MODELS.values()]),
        },
        recorded={
            "untied": by_model(untied),
            "every_head": by_model([b * m.heads / m.groups for b, m in zip(cached, MODELS.values(), strict=True)]),
            "rounding": by_model([1e6 * m.rounding for m in MODELS.values()]),
        },
        coords={"model": tuple(MODELS)},
    )
