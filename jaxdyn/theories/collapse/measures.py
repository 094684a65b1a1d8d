r"""How far features have collapsed, and how far their class means are from a simplex.

.. math:: NC_1 = \frac{\operatorname{mean}_i \|h_i - \mu_{k(i)}\|^2}{\operatorname{mean}_k \|\mu_k - \mu\|^2}

Source: arXiv:2008.08186 (NC1 by traces instead of the trace of a product with a pseudo-inverse). Letters: n features, d dimensions,
K classes, of which some may be out of use.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Collapse(NamedTuple):
    """What is measured of features and a classifier."""

    within: Float[Array, ""]  # NC1
    low: Float[Array, ""]  # least cosine of two centred class means
    high: Float[Array, ""]  # largest
    spread: Float[Array, ""]  # standard deviation over mean of the lengths of centred class means
    dual: Float[Array, ""]  # distance of centred means and centred rows of W, each over its norm
    nearest: Float[Array, ""]  # share of features whose nearest class mean is the class of the largest logit


def means(h: Float[Array, "n d"], y: Int[Array, " n"], classes: int) -> Float[Array, "K d"]:
    """Class means; zero for a class without features."""
    member = (y[:, None] == jnp.arange(classes)).astype(h.dtype)
    return member.T @ h / jnp.maximum(jnp.sum(member, 0), 1)[:, None]


def centred(rows: Float[Array, "K d"], used: Bool[Array, " K"], count: Float[Array, ""]) -> Float[Array, "K d"]:
    """Rows minus their mean over the classes in use, of which there are ``count``; zero for the others."""
    return jnp.where(used[:, None], rows - jnp.sum(jnp.where(used[:, None], rows, 0), 0) / count, 0)


def normalized(x: Float[Array, "K d"]) -> Float[Array, "K d"]:
    """A matrix over its Frobenius norm."""
    return x / jnp.maximum(jnp.sqrt(jnp.sum(x * x)), 1e-30)


def measure(
    h: Float[Array, "n d"], y: Int[Array, " n"], w: Float[Array, "K d"], logits: Float[Array, "n K"], used: Bool[Array, " K"]
) -> Collapse:
    """All of them; features of classes out of use do not count."""
    # class means
    k = used.size
    mu = means(h, y, k)
    live = used[y].astype(h.dtype)
    count = jnp.sum(used).astype(h.dtype)

    # the simplex, and features within classes
    m, v = centred(mu, used, count), centred(w, used, count)
    length = jnp.sqrt(jnp.sum(m * m, -1))
    pairs = used[:, None] & used & ~jnp.eye(k, dtype=bool)
    cosines = m @ m.T / jnp.maximum(length[:, None] * length, 1e-30)
    inside = jnp.sum(live * jnp.sum((h - mu[y]) ** 2, -1)) / jnp.sum(live)
    average = jnp.sum(length) / count
    deviation = jnp.sqrt(jnp.sum(jnp.where(used, (length - average) ** 2, 0)) / count)
    # classifier and nearest class mean
    unit_m, unit_v = normalized(m), normalized(v)
    away = jnp.where(used, jnp.sum((h[:, None] - mu) ** 2, -1), jnp.inf)
    same = jnp.argmin(away, -1) == jnp.argmax(jnp.where(used, logits, -jnp.inf), -1)
    return Collapse(
        inside / (jnp.sum(length**2) / count),
        jnp.min(jnp.where(pairs, cosines, jnp.inf)),
        jnp.max(jnp.where(pairs, cosines, -jnp.inf)),
        deviation / average,
        jnp.sqrt(jnp.sum((unit_m - unit_v) ** 2)),
        jnp.sum(live * same) / jnp.sum(live),
    )
