"""Co-occurrence in a hierarchical latent tree: Theorem 5 against sampled sequences, sum-product and the limit 1 - H/L."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.data import trees
from jaxdyn.plotting import COLORS, RAMP, order
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.hierarchy.hblt import Limit, limit_trial

BATCH = 4096
REFERENCE = (0.871, 0.745, 0.621, 0.500, 0.381, 0.265, 0.151)  # the formula at rho = rho0 = 0.99, L = 8, evaluated elsewhere


@jd.setting
class Sampling:
    """Sequences of one tree with rho = rho0 = 1 - eps."""

    eps: jd.Swept = 0.01
    depth: int = 8
    batches: int = 16


def trial(s: Sampling, key: jax.Array) -> jd.Observables:
    """P(y_l = 1 | y_m = 1) by H, over sequences and over all tokens l of a height; m is the first token."""
    rho = 1 - s.eps
    prior = jnp.stack([(1 + rho) / 2, (1 - rho) / 2])
    tree = trees.Tree(prior, jnp.array([[1.0, -1.0]], jnp.float64), trees.symmetric(rho, s.depth - 1))
    height = jnp.asarray(trees.cla_heights(s.depth - 1))[0]
    member = (height[:, None] == jnp.arange(1, s.depth)).astype(jnp.float64)

    def batch(k: jax.Array) -> tuple[jax.Array, jax.Array]:
        leaves = trees.sample(tree, k, BATCH)[1][:, 0].astype(jnp.float64)
        return jnp.sum(leaves[:, 0]), leaves[:, 0] @ leaves @ member

    count, both = (jnp.sum(x, 0) for x in jax.lax.map(batch, jax.random.split(key, s.batches)))
    return jd.observables(
        predicted={"conditional": jd.named(theory.conditional(rho, rho, s.depth, jnp.arange(1.0, s.depth)), "height")},
        measured={"conditional": jd.named(both / (count * jnp.sum(member, 0)), "height")},
        coords={"height": range(1, s.depth)},
    )


def run(scale: str, out: Path) -> None:
    """Sample, evaluate, print the table at rho = rho0 = 0.99 and draw the figure."""
    eps = [0.1, 0.03, 0.01]
    grid = jd.grid(Sampling, eps=eps, batches=256 if scale == "paper" else 16)
    sampled = experiment.sweep(out, "sampled", trial, grid, 64 if scale == "paper" else 16)
    fine = [0.03, 0.01, 0.003, 0.001]
    limits = experiment.sweep(out, "limit", limit_trial, jd.grid(Limit, eps=fine, depth=[4, 6, 8, 10]), 1)
    one, tree = sampled.sel(eps=0.01), limits.sel(eps=0.01, depth=8.0).isel(seed=0)
    error = one.measured_conditional.std("seed", ddof=1) / np.sqrt(one.sizes["seed"])
    rows = [
        {
            "H": h,
            "formula": float(one.predicted_conditional.isel(seed=0).sel(height=h)),
            "reference": REFERENCE[h - 1],
            "sum-product": float(tree.measured_limit.sel(height=h)),
            "sampled": float(one.measured_conditional.mean("seed").sel(height=h)),
            "s.e.": float(error.sel(height=h)),
            "1 - H/L": float(tree.predicted_limit.sel(height=h)),
        }
        for h in one.height.values.tolist()
    ]
    experiment.table(out, "table", rows, "P(y_l = 1 | y_m = 1) at rho = rho0 = 0.99, L = 8")
    experiment.save(out, "sampled", sampled)
    experiment.save(out, "limit", limits)

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        heights = sampled.height.values
        for i, e in enumerate(eps):
            of_eps, color = sampled.sel(eps=e), RAMP(i / (len(eps) - 1))
            left.plot(heights, of_eps.predicted_conditional.isel(seed=0), color=color, label=rf"$\rho=\rho_0={1 - e:g}$")
            left.plot(heights, of_eps.measured_conditional.mean("seed"), "o", color=color)
        left.plot(heights, 1 - heights / 8, ":", color=COLORS["control"], label="1 - H/L")
        left.set(xlabel="H", ylabel=r"$P(y_l=1\,|\,y_m=1)$", title="Theorem 5 (lines), sampled (points), L = 8")
        left.legend()
        cut = np.minimum(limits.height, limits.depth - 1)
        distance = np.abs(limits.measured_limit - limits.predicted_limit).where(2 * cut != limits.depth)
        order(right, limits.eps, distance, 1.0, "L = 4..10, all H but L/2")
        right.set(xlabel=r"$\epsilon = 1-\rho = 1-\rho_0$", ylabel="distance from 1 - H/L")
        right.legend()

    experiment.figure(out, "figure", draw)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
