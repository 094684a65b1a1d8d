r"""A linear model on features with a power-law spectrum, whose scaling law is known.

A linear model whose features have a power-law spectrum, trained by gradient descent on its population loss.

.. math:: L(w) = \sum_{j \le N} \lambda_j (w_j - w_j^*)^2 + \sum_{j > N} \lambda_j (w_j^*)^2, \qquad
   \lambda_j = j^{-p} e^{-cj}, \quad \lambda_j (w_j^*)^2 = j^{-q}

Its features are uncorrelated, so that the model of the first N of them is a part of the largest one: each weight's path is the same
in all.
With c > 0 the spectrum is no power law. Letters: j features, N of them in a model, t time = rate times steps.

A linear model whose scaling law is known: its loss, the best use of compute, and what the additive fit makes of it.

Trained by gradient descent; the best number of features at budgets :math:`C = Nt` by three approaches.

The loss is recorded along training at times that are even in their logarithm; at a budget every size has its time C/N, at which
ln L is interpolated linearly in ln t. Parabolas go through the sizes within a factor of 4 of the best; approach 1 takes
the lowest curve; the parametric fit has the same points as the parabolas.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jax.scipy.special import zeta
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.theories.scal import fits, optima
from jaxdyn.theories.scal.dynamics import laws, whitebox
from jaxdyn.theories.scal.dynamics.whitebox import MOST


def spectrum(count: int, p: Any, cut: Any = 0.0) -> Float[Array, " j"]:
    """Eigenvalues of the features' covariance."""
    j = jnp.arange(1, count + 1, dtype=jnp.float64)
    return j**-p * jnp.exp(-cut * j)


def target(eigenvalues: Float[Array, " j"], q: Any) -> Float[Array, " j"]:
    """Weights of the target: what a feature explains falls as its number to the power -q."""
    j = jnp.arange(1, eigenvalues.size + 1, dtype=jnp.float64)
    return jnp.sqrt(j**-q / eigenvalues)


def loss(w: Float[Array, " j"], eigenvalues: Float[Array, " j"], goal: Float[Array, " j"]) -> Float[Array, ""]:
    """Half of the population's mean square error that the features can explain; its gradient is the error of each weight's path."""
    return 0.5 * jnp.sum(eigenvalues * (w - goal) ** 2)


def losses(w: Float[Array, " j"], eigenvalues: Float[Array, " j"], goal: Float[Array, " j"], q: Any) -> Float[Array, " j"]:
    """Mean square errors of the models of the first 1, 2, ... features, with all that no feature of theirs explains."""
    count = jnp.arange(1, w.size + 1, dtype=jnp.float64)
    return jnp.cumsum(eigenvalues * (w - goal) ** 2) + zeta(q, count + 1)


APPROACHES = ("envelope", "parabolas", "additive fit")
RATE = 0.5  # of gradient descent; the largest eigenvalue is 1
SIZES = tuple(int(round(2 ** (i / 8))) for i in range(24, 89))  # 8 to 2048
BUDGETS = tuple(10 ** (4 + i / 8) for i in range(17))
STEPS = tuple(int(s) for s in np.unique(np.round(2 ** (np.arange(0, 129) / 8))))  # steps at which the loss is recorded
NEAR = float(np.log(4.0))


@jd.setting
class Whitebox:
    """The spectrum.

    Args:
        p: exponent of the eigenvalues.
        q: exponent of what each feature explains.
        cut: rate at which the eigenvalues fall below the power law; theory has 0.
    """

    p: jd.Swept = jd.field(1.5, above=0)
    q: jd.Swept = jd.field(1.75, above=1)
    cut: jd.Swept = jd.field(0.0, at_least=0, at_most=0.01)


def trained(s: Whitebox) -> Float[Array, "t s"]:
    """Losses of all sizes along training."""
    eigenvalues = spectrum(MOST, s.p, s.cut)
    goal = target(eigenvalues, s.q)
    step = train.make_step(lambda w: loss(w, eigenvalues, goal), optax.sgd(RATE))
    counts = jnp.diff(jnp.asarray((0, *STEPS), jnp.int32))
    at = jnp.asarray(SIZES) - 1

    def advance(state: train.State, count: Array) -> tuple[train.State, Array]:
        state = jax.lax.fori_loop(0, count, lambda _, state: step(state), state)
        return state, losses(state.params, eigenvalues, goal, s.q)[at]

    return jax.lax.scan(advance, train.init(optax.sgd(RATE), jnp.zeros(MOST, jnp.float64)), counts)[1]


def trial(s: Whitebox, key: PRNGKeyArray) -> jd.Observables:
    """Exponents of the best size in the budget, by approach; and the loss next to its law."""
    del key
    # losses of every size at every budget
    curves = trained(s)
    n, t = jnp.log(jnp.asarray(SIZES, jnp.float64)), RATE * jnp.asarray(STEPS, jnp.float64)
    budget = jnp.log(jnp.asarray(BUDGETS, jnp.float64))
    time = budget[:, None] - n
    at = jax.vmap(lambda x, curve: jnp.interp(x, jnp.log(t), jnp.log(curve)), (1, 1), 1)(time, curves)
    # the best size by three approaches
    middle = optima.vertices(n, at, NEAR)
    lowest = optima.envelope(n, at)
    inside = (time <= jnp.log(t[-1])) & (jnp.abs(n - middle[:, None]) <= NEAR)
    p = fits.Points(jnp.tile(n, len(BUDGETS)), time.ravel(), at.ravel(), inside.ravel().astype(float))
    law = fits.as_law(fits.fitted(p))
    # the law
    predicted = jax.lax.map(lambda at_time: whitebox.loss(jnp.asarray(SIZES), at_time, s.p, s.q, RATE), t)
    slopes = [optima.slope(budget, lowest), optima.slope(budget, middle), laws.exponent(law)]
    return jd.observables(
        predicted={
            "exponent": jd.named(jnp.full(3, whitebox.exponent(s.p)), "approach"),
            "loss": jd.named(predicted, "time size"),
        },
        measured={"exponent": jd.named(jnp.stack(slopes), "approach"), "loss": jd.named(curves, "time size")},
        recorded={
            "best": jd.named(jnp.exp(jnp.stack([lowest, middle])), "way budget"),
            "isoflop": jd.named(jnp.exp(at), "budget size"),
            "sum_of_limits": jd.named(whitebox.late(jnp.exp(n), s.q) + whitebox.large(t[:, None], s.p, s.q), "time size"),
            "still": jd.named(jnp.zeros(3), "approach"),
            "start": jd.named(jnp.full_like(curves, zeta(s.q, 1.0)), "time size"),
            "parameters": jd.named(jnp.stack([law.e, law.a, law.b, law.alpha, law.beta]), "parameter"),
        },
        coords={
            "approach": APPROACHES,
            "time": tuple(float(RATE * x) for x in STEPS),
            "size": SIZES,
            "budget": BUDGETS,
            "way": APPROACHES[:2],
            "parameter": ("E", "A", "B", "alpha", "beta"),
        },
    )


POWERS = (1.2, 1.5, 2.0)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses against their law; the exponents of approaches 1 and 2."""
    jd.need(ds, p=POWERS)
    error = abs(ds.measured_exponent - ds.predicted_exponent)
    return [
        jd.at_most("loss against its law, relative, all sizes and times", jd.relative_error(ds, "loss"), 1e-9),
        *(jd.at_most(f"exponent minus 1/(1+p), {name}", error.sel(approach=name), 0.01) for name in APPROACHES[:2]),
    ]


MISSED, FLOOR = "exponent of the additive fit minus 1/(1+p), p = {:g}", "E of the additive fit, p = {:g}"


def judge_fit(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """How far the additive fit's exponent is from the law's, and its floor; nothing here is random."""
    jd.need(ds, p=POWERS)
    change = (ds.measured_exponent - ds.predicted_exponent).sel(approach=APPROACHES[2])
    groups = {MISSED: change, FLOOR: ds.parameters.sel(parameter="E")}
    return [jd.Reading(name.format(p), float(x.sel(p=p).mean())) for name, x in groups.items() for p in POWERS]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """IsoFLOP curves at one p, and exponents by approach over p."""
    left, right = fig.subplots(1, 2)
    one = ds.isel({d: 0 for d in ds.status.dims if d != "p"})
    shown = one.sel(p=1.5) if "p" in one.dims and 1.5 in one.p else one.isel(p=0) if "p" in one.dims else one
    plotting.lines(left, ds["size"], [shown.isoflop.isel(budget=k) for k in range(0, ds.sizes["budget"], 4)])
    left.set(xscale="log", yscale="log", xlabel="features N", ylabel="loss at C = Nt")
    p = np.atleast_1d(one.p.values)
    right.plot(p, 1 / (1 + p), "--", color=plotting.COLORS["theory"], label="1/(1+p)")
    for name, mark in zip(APPROACHES, "o^s", strict=True):
        right.plot(p, np.atleast_1d(one.measured_exponent.sel(approach=name)), mark, label=name)
    right.set(xlabel="p", ylabel="exponent of the best N")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Whitebox, p=list(POWERS)),
    evidence="network",
    bounds="derived: for the losses rounding, added up over 65,536 steps; for the exponents the step of 2^(1/8) from size to size, "
    "since errors of up to half of it at each of 17 budgets move a slope over two decades by .0043 (standard deviation)",
    source="derived; the model of arXiv:2402.01092 without its noise",
    tested="A linear model with $p$ = {p} and $q$ = {q}, trained by full-batch gradient descent on the population loss for up "
    "to 65,536 steps at rate 1/2, at sizes from 8 to 2048; nothing is random.",
    plot=plot,
    caption="Left: loss over the number of features at budgets from $10^4$ to $10^6$, each four times the one before. Right: "
    "exponent of the best number of features by approach, and the law's.",
)
MODEL = (
    "Let the features of a linear model have eigenvalues $j^{-p}$ and explain $j^{-q}$ of the target's variance, and train it from "
    "zero weights by gradient descent on half the population's mean square error."
)

CLAIMS = (
    STUDY.claim(
        id="scal.whitebox",
        title="A linear model trained by gradient descent has a known scaling law",
        statement=rf"{MODEL} The mean square error of $N$ features after $n$ steps at rate $\eta = 1/2$ is "
        rf"$\sum_{{j \le N}} j^{{-q}}(1 - \eta "
        r"j^{-p})^{2n} + \sum_{j > N} j^{-q}$ to a relative $10^{-9}$, and at compute $C = N n\eta$ from $10^4$ to $10^6$ the "
        "best $N$ grows with an exponent within 0.01 of $1/(1+p)$, by the minimum over curves and by isoFLOP parabolas.",
        judge=judge,
        holds={"p": (1.2, 2.0), "q": (1.75, 3.5)},
        controls={"eigenvalues $j^{-p} e^{-j/200}$": {"cut": 0.005}},
        rivals={
            "training changes nothing": jd.off(predicted_loss="start", predicted_exponent="still"),
            "the loss is the sum of its limits": jd.swap(predicted_loss="sum_of_limits"),
            "size and time grow alike, a = 1/2": jd.swap(predicted_exponent=0.5),
        },
    ),
    STUDY.claim(
        id="scal.whitebox_additive",
        title="By how much does the additive fit miss the exponent of a known law?",
        statement=rf"{MODEL} How far from the true $1/(1+p)$ is the exponent that a fit of $E + AN^{{-\alpha}} + Bt^{{-\beta}}$ "
        r"with parameters $E, A, B, \alpha, \beta$ gives (losses after time $t = n\eta$ within a factor of 4 of the best $N$ at "
        r"compute $Nt$ from $10^4$ to $10^6$), and "
        "how large is its floor $E$, which the law does not have?",
        expected="measured",
        recorded={
            "exponent of the additive fit minus 1/(1+p), p = 1.2": -0.006582821,
            "exponent of the additive fit minus 1/(1+p), p = 1.5": -0.03204881,
            "exponent of the additive fit minus 1/(1+p), p = 2": -0.0490049,
            "E of the additive fit, p = 1.2": 0.006801102,
            "E of the additive fit, p = 1.5": 0.01324354,
            "E of the additive fit, p = 2": 0.02600903,
        },
        judge=judge_fit,
        controls={"eigenvalues $j^{-p} e^{-j/200}$": {"cut": 0.005}},
        rivals={
            "training changes nothing": jd.off({FLOOR.format(p): lambda ds: float(ds.start.mean()) for p in POWERS}),
            "the fit finds the law's exponent and no floor": {name.format(p): 0.0 for name in (MISSED, FLOOR) for p in POWERS},
        },
    ),
)
