"""Normalised gradient descent turns softmax attention to the largest margin between optimal and other tokens.

Descent on random sequences is compared with the support vector machine of their optimal tokens. Vectors p are embedded in the
features of matrices, where they have zeros, so that both share one program.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.margin import dynamics, model


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
        sequences, shown, inputs, every, records: sizes; ``shown`` tokens per sequence.
    """

    weights: jd.Code = jd.code("vector", "matrix")
    lr: jd.Swept = jd.field(0.1, above=0)
    other: jd.Swept = 0.2
    spread: jd.Swept = jd.field(0.0, at_least=0)
    reversed: jd.Swept = 0.0
    blended: jd.Swept = 0.0
    sequences: int = jd.field(4, at_least=1)
    shown: int = jd.field(5, at_least=3)
    inputs: int = jd.field(6, at_least=2)
    every: int = jd.field(320, at_least=1)
    records: int = jd.field(8, at_least=3)

    def __post_init__(self) -> None:
        model.check(self)


def distance(p: Float[Array, " D"], q: Float[Array, " D"]) -> Float[Array, ""]:
    """1 - cosine, without cancellation."""
    return jnp.sum(jnp.square(p / jnp.linalg.norm(p) - q / jnp.linalg.norm(q))) / 2


def trial(s: Select, key: PRNGKeyArray) -> jd.Observables:
    """Directions along training, compared with that of the largest margin."""
    data, best = model.sample(s, key, s.weights == "matrix")
    # the theory: the largest margin, if there is one
    solved = dynamics.largest_margin(dynamics.differences(data.features, best))
    target = jnp.nan_to_num(solved.p / jnp.linalg.norm(solved.p), nan=1.0)
    # descent from zero
    start = jnp.zeros(s.inputs**2, jnp.float64)
    last, path = train.record(lambda p: model.step(p, data, s.lr), start, lambda p: p, samples=s.records, every=s.every)
    path = path[1:]
    # what rivals and assumptions need
    size = jnp.linalg.norm(path, axis=1)
    mean = jnp.mean(dynamics.differences(data.features, best), 0)
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


LATE = slice(2, None)  # records of the slope
ORDER = "order of 1 - cosine in 1/norm, mean over runs"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The direction at the end."""
    cosine = (ds.measured_direction * ds.predicted_direction).sum("entry", min_count=1)
    return [jd.at_least("cosine with the direction of the largest margin", cosine, 0.999)]


def read_order(ds: xr.Dataset) -> list[jd.Reading]:
    """How the error of the direction falls with the norm."""
    order = -stats.loglog_slope(ds["size"].isel(record=LATE), ds.away.isel(record=LATE), "record")
    return [jd.mean_reading(ORDER, order, over=list(order.dims))]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """1 - cosine of every run against the norm."""
    ax = fig.subplots()
    inside = (ds.assumed_selected > 0.99).values.ravel()
    size, away = (ds[name].stack(every=ds.status.dims).transpose("every", "record").values for name in ("size", "away"))
    for picked, color, label in ((True, "measured", "every optimal token is picked"), (False, "failed", "some are not")):
        if (runs := inside == picked).any():
            plotting.lines(ax, size[runs], away[runs], label=label, color=plotting.COLORS[color], linewidth=1, alpha=0.7)
    ax.plot(size[0], 3 / size[0] ** 2, "--", color=plotting.COLORS["theory"], label="slope -2")
    ax.set(xlabel="norm of the weights", ylabel="1 - cosine with the largest margin", xscale="log", yscale="log")


TESTED = (
    "{records} times {every} steps of normalised gradient descent, of length {lr}, from zero on the logistic loss of one softmax "
    "attention head; {sequences} sequences of {shown} Gaussian tokens in {inputs} dimensions, each with one optimal token of "
    "score 1 and the others of score {other}, give or take {spread}; {seeds} sets of sequences, those that separate with a "
    "solution of norm below 5."
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Select, weights="vector", spread=[0.0, 0.15]),
    seeds=16,
    paper_seeds=64,
    evidence="network",
    source="arXiv:2306.13596, Theorem 3; arXiv:2308.16898; sizes and bounds ours",
    tested=TESTED,
    judge=judge,
    plot=plot,
    caption="1 - cosine between the weights and the direction of the largest margin against the norm of the weights, one line "
    "per run; dashed: slope -2.",
    rivals={
        "the direction of the first step": jd.off(predicted_direction="first"),
        "the mean difference between optimal and other tokens": jd.swap(predicted_direction="mean"),
    },
)

BREACHES: dict[str, Any] = {
    "another token is optimal in one sequence": {"reversed": 1.0},
    "an optimal token is the mean of the others": jd.Control({"blended": 1.0}, every_seed=True),
}
INSIDE = (jd.above("norm", 200.0), jd.above("selected", 0.99), jd.below("optimality", 1e-6), jd.below("hardness", 5.0))

CLAIMS = (
    STUDY.claim(
        id="margin.vector",
        title="Attention turns to the support vector machine of its best tokens",
        statement="Let attention weights be the softmax of $X_i p$, with $X_i$ the tokens $x_{it}$ of a sequence, of which "
        r"$x_{i,\mathrm{opt}}$ has the highest score. Where normalised gradient descent by steps of length 0.1 from $p = 0$, on "
        r"the "
        "logistic loss of four sequences of five Gaussian tokens in six dimensions, selects this token in each sequence "
        r"and has taken p to a norm above 200, the direction of p has a cosine above 0.999 with that of $\arg\min \|p\|$ subject "
        r"to $(x_{i,\mathrm{opt}} - x_{it}) \cdot p \ge 1$ for the other tokens, if this minimum is below 5.",
        assumes=INSIDE,
        bounds=jd.tuned(on="0:16", confirmed_on="8000:8016"),
        controls=BREACHES,
    ),
    STUDY.claim(
        id="margin.matrix",
        title="A full attention matrix turns to the least norm that separates tokens",
        statement="Let attention weights be the softmax of $X_i W z_i$, with $X_i$ the tokens $x_{it}$ of a sequence, of "
        r"which $x_{i,\mathrm{opt}}$ has the highest score, and $z_i$ its query. Where normalised gradient descent by steps of "
        r"length "
        "0.1 from $W = 0$, on the logistic loss of four sequences of five Gaussian tokens in six dimensions, selects this token "
        "in each sequence and has taken W to a Frobenius norm above 200, the direction of W has a cosine above 0.999 with "
        r"that of $\arg\min \|W\|_F$ subject to $(x_{i,\mathrm{opt}} - x_{it})^\top W z_i \ge 1$ for the other tokens, if this "
        "minimum is below 5.",
        decides={
            "least": ("cosine with the direction of the largest margin", "the mean difference between optimal and other tokens")
        },
        source="arXiv:2308.16898, Theorem 3 (W-SVM); sizes and bounds ours",
        quick=jd.grid(Select, weights="matrix", spread=[0.0, 0.15]),
        assumes=INSIDE,
        bounds=jd.tuned(on="0:16", confirmed_on="8000:8016"),
        controls=BREACHES,
    ),
    STUDY.claim(
        id="margin.order",
        title="How fast attention turns to the direction of the largest margin",
        statement="With which power of 1/norm of the attention matrix W does 1 - cosine of its direction with that of the "
        "largest margin fall, in the runs of `margin.matrix`?",
        expected="measured",
        quick=jd.grid(Select, weights="matrix", spread=[0.0, 0.15]),
        judge=read_order,
        recorded={ORDER: (1.97, 1.992, 2.02)},
        assumes=INSIDE,
        controls=BREACHES,
        rivals={"the direction stays as it is": jd.off({ORDER: 0.0}), "1 - cosine falls like the inverse norm": {ORDER: 1.0}},
    ),
)
