r"""Normalised gradient descent on keys and queries apart, :math:`W = KQ^\top`, beside two machines of the optimal tokens.

The factors start from Gaussian entries. Recorded are the cosines of W with the separating matrix of least nuclear norm and with
that of least Frobenius norm.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.theories.margin import model
from jaxdyn.theories.margin.dynamics import nuclear, svm
from jaxdyn.theories.margin.trials import sequences

__all__ = ["Factored", "trial"]


@jd.setting
class Factored:
    """Sequences and training.

    Args:
        lr: length of a step of both factors together.
        size: standard deviation of their entries at the start.
        other: score of the tokens that are not optimal.
        spread: half the width of the range of their scores around it.
        reversed: 1 makes another token of the first sequence the optimal one, of which the theory does not know.
        blended: 1 makes the optimal token of the first sequence the mean of the others, which no W can select.
        sequences, shown, inputs, every, records: sizes; ``shown`` tokens a sequence, factors of ``inputs`` by ``inputs``.
    """

    lr: jd.Swept = 0.1
    size: jd.Swept = 0.1
    other: jd.Swept = 0.2
    spread: jd.Swept = 0.0
    reversed: jd.Swept = 0.0
    blended: jd.Swept = 0.0
    sequences: int = 4
    shown: int = 5
    inputs: int = 6
    every: int = 1280
    records: int = 8

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0 and self.size > 0, "lr and size are positive", "lr", "size")
        sequences.check(self)
        jd.require(self, self.every >= 1 and self.records >= 3, "every >= 1, records >= 3", "every", "records")


def unit(w: Float[Array, "*b d d"]) -> Float[Array, "*b d d"]:
    """Matrices of norm 1."""
    return w / jnp.linalg.norm(w, axis=(-2, -1), keepdims=True)


def trial(s: Factored, key: PRNGKeyArray) -> jd.Observables:
    """Directions along training, beside those of both machines."""
    k_data, k_start = jax.random.split(key)
    data, best = sequences.draw(s, k_data, True)
    d = s.inputs
    rows = svm.differences(data.features, best)
    constraints = rows.reshape(-1, d, d)
    solved, frobenius = nuclear.least_nuclear(constraints), svm.largest_margin(rows)
    target = jnp.nan_to_num(unit(solved.w), nan=1.0)
    other = jnp.nan_to_num(unit(frobenius.p.reshape(d, d)), nan=1.0)
    start = s.size * jax.random.normal(k_start, (2, d, d), jnp.float64)

    def product(factors: Float[Array, "2 d d"]) -> Float[Array, "d d"]:
        return factors[0] @ factors[1].T

    def step(factors: Float[Array, "2 d d"]) -> Float[Array, "2 d d"]:
        down = model.direction(product(factors).ravel(), data).reshape(d, d)
        move = jnp.stack([down @ factors[1], down.T @ factors[0]])
        return factors + s.lr * move / jnp.linalg.norm(move)

    _, path = train.record(step, start, product, samples=s.records, every=s.every)
    path = path[1:]
    values = linalg.singular_values(path)
    ways = {"direction": target, "frobenius": other}
    cosines = {name: jnp.einsum("rij,ij->r", unit(path), way) for name, way in ways.items()}
    return jd.observables(
        predicted={"direction": jd.named(target, "row column")},
        measured={"direction": jd.named(unit(path), "record row column")},
        recorded={
            "frobenius": jd.named(other, "row column"),
            "first": jd.named(model.direction(jnp.zeros(d * d), data).reshape(d, d), "row column"),
            "to_frobenius": jd.named(cosines["frobenius"], "record"),
            "norm": jd.named(jnp.sum(values, -1), "record"),
            "singular": jd.named(values[-1] / jnp.sum(values[-1]), "rank"),
            "least": jd.named(solved.singular / jnp.sum(solved.singular), "rank"),
        },
        assumed={
            "selected": jnp.mean(jnp.argmax(data.features @ path[-1].ravel(), -1) == best, dtype=jnp.float64),
            "gap": jnp.nan_to_num(solved.gap, nan=1.0),
            "optimality": jnp.nan_to_num(frobenius.error, nan=1.0),
        },
        status=train.finite_status(path),
    )
