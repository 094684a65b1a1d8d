r"""Normalised gradient descent on random sequences beside the support vector machine of their optimal tokens.

Vectors p are embedded in the features of matrices, where they have zeros, so that both share one program.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.margin import model
from jaxdyn.theories.margin.dynamics import svm
from jaxdyn.theories.margin.trials import sequences

__all__ = ["Select", "distance", "trial"]


@jd.setting
class Select:
    """Sequences and training.

    Args:
        weights: a vector p, or a matrix W with a query for every sequence.
        lr: length of a step.
        other: score of the tokens that are not optimal.
        spread: half the width of the range of their scores around it.
        reversed: 1 makes another token of the first sequence the optimal one, of which the theory does not know.
        blended: 1 makes the optimal token of the first sequence the mean of the others, which no p can select.
        sequences, shown, inputs, every, records: sizes; ``shown`` tokens a sequence.
    """

    weights: jd.Code = jd.code("vector", "matrix")
    lr: jd.Swept = 0.1
    other: jd.Swept = 0.2
    spread: jd.Swept = 0.0
    reversed: jd.Swept = 0.0
    blended: jd.Swept = 0.0
    sequences: int = 4
    shown: int = 5
    inputs: int = 6
    every: int = 320
    records: int = 8

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        sequences.check(self)
        jd.require(self, self.every >= 1 and self.records >= 3, "every >= 1, records >= 3", "every", "records")


def distance(p: Float[Array, " D"], q: Float[Array, " D"]) -> Float[Array, ""]:
    """One less the cosine, without cancellation."""
    return jnp.sum(jnp.square(p / jnp.linalg.norm(p) - q / jnp.linalg.norm(q))) / 2


def trial(s: Select, key: PRNGKeyArray) -> jd.Observables:
    """Directions along training, beside that of the largest margin."""
    data, best = sequences.draw(s, key, s.weights == "matrix")
    solved = svm.largest_margin(svm.differences(data.features, best))
    target = jnp.nan_to_num(solved.p / jnp.linalg.norm(solved.p), nan=1.0)
    start = jnp.zeros(s.inputs**2, jnp.float64)
    last, path = train.record(lambda p: model.step(p, data, s.lr), start, lambda p: p, samples=s.records, every=s.every)
    path = path[1:]
    size = jnp.linalg.norm(path, axis=1)
    mean = jnp.mean(svm.differences(data.features, best), 0)
    picked = jnp.mean(jnp.argmax(data.features @ last, -1) == best, dtype=jnp.float64)
    first = model.direction(start, data)
    return jd.observables(
        predicted={"direction": jd.named(target, "entry")},
        measured={"direction": jd.named(last / size[-1], "entry")},
        recorded={
            "away": jd.named(jax.vmap(lambda p: distance(p, target))(path), "record"),
            "size": jd.named(size, "record"),
            "first": jd.named(first, "entry"),
            "mean": jd.named(mean / jnp.linalg.norm(mean), "entry"),
            "tokens": jd.named(data.features.reshape(*data.scores.shape, s.inputs, s.inputs), "sequence token input query"),
            "attention": jd.named(jax.nn.softmax(data.features @ last, -1), "sequence token"),
            "best": jd.named(best.astype(jnp.float64), "sequence"),
        },
        assumed={
            "selected": picked,
            "norm": size[-1],
            "optimality": jnp.nan_to_num(solved.error, nan=1.0),
            "hardness": jnp.nan_to_num(jnp.linalg.norm(solved.p), nan=1e9),
        },
        status=train.finite_status(path),
    )
