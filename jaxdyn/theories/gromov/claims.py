r"""Claims on the constructed network: its waves, its margins, its accuracy against its width, and the width that it needs.

All widths of a run are the first nodes of one network. Letters as in ``dynamics.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.errors import given
from jaxdyn.theories.gromov import dynamics, model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Constructed", "trial"]

SOURCE = "derived here for the construction of arXiv:2301.02679, Claim I"
OFFSETS = (1, 2, 3, 4, 5)  # of the wrong classes whose margins are recorded
GOAL = 0.9  # accuracy at which widths are compared


@jd.setting
class Constructed:
    """Constructed networks for several moduli, observed after every ``step`` nodes; ``top`` free is a breach."""

    frequencies: jd.Code = jd.code("random", "cycled")  # uniform among 1 ... M-1, or 1, 2, ... modulo M
    top: jd.Code = jd.code("matched", "free")  # phases of the output: the sum of the operands', or random
    moduli: tuple[int, ...] = (11, 23, 59)
    step: int = 8
    blocks: int = 20

    def __post_init__(self) -> None:
        """Refuse moduli without the recorded offsets or with coinciding waves, and empty networks."""
        if not self.moduli or any(m <= 2 * max(OFFSETS) or m % 2 == 0 or m % 3 == 0 for m in self.moduli):
            raise jd.UsageError(f"moduli are prime to 6 and above {2 * max(OFFSETS)}, {given(self, 'moduli')}")
        if self.step < 1 or self.blocks < 1:
            raise jd.UsageError(f"step and blocks are at least 1, {given(self, 'step', 'blocks')}")


def _observe(s: Constructed, key: PRNGKeyArray, modulus: int) -> dict[str, Array]:
    """Accuracy, margins and their predictions for one modulus, at every width."""
    nodes = model.draw(key, modulus, s.step * s.blocks, s.frequencies == 1, s.top == 1)
    right = model.labels(modulus)
    columns = (right[:, None] + np.asarray((0, *OFFSETS))) % modulus

    def widen(out: Array, block: model.Nodes) -> tuple[Array, dict[str, Array]]:
        out = out + model.logits(block, modulus)
        few = jnp.take_along_axis(out, columns, 1)
        margin = few[:, :1] - few[:, 1:]
        seen = {"accuracy": jnp.mean(jnp.argmax(out, 1) == right, dtype=jnp.float64)}
        return out, seen | {"mean": jnp.mean(margin, 0), "variance": jnp.var(margin, 0)}

    blocks = jax.tree.map(lambda x: x.reshape(s.blocks, s.step), nodes)
    _, seen = jax.lax.scan(widen, jnp.zeros((modulus**2, modulus), jnp.float64), blocks)
    moments = dynamics.margin_moments(nodes.theta, jnp.asarray(OFFSETS, jnp.float64))
    mean, variance = (jnp.cumsum(m, 1)[:, s.step - 1 :: s.step].T for m in moments)
    widths = s.step * jnp.arange(1, s.blocks + 1, dtype=jnp.float64)
    predicted = {"accuracy": dynamics.accuracy(widths, modulus), "mean": mean, "variance": variance}
    sides = {f"measured_{k}": v for k, v in seen.items()} | {f"predicted_{k}": v for k, v in predicted.items()}
    return sides | {"independent": dynamics.accuracy(widths, modulus, together=False)}


def trial(s: Constructed, key: PRNGKeyArray) -> jd.Observables:
    """Everything for all moduli, and for the smallest one all logits beside their waves."""
    seen = [_observe(s, jax.random.fold_in(key, m), m) for m in s.moduli]
    both = {name: jnp.stack([x[name] for x in seen]) for name in seen[0]}
    small = min(s.moduli)
    nodes = model.draw(jax.random.fold_in(key, small), small, s.step, s.frequencies == 1, s.top == 1)
    dims = {"accuracy": "modulus nodes", "mean": "modulus nodes offset", "variance": "modulus nodes offset"}

    def side(name: str) -> dict[str, Any]:
        return {k: jd.named(both[f"{name}_{k}"], d) for k, d in dims.items()}

    return jd.observables(
        predicted={"logits": jd.named(dynamics.waves(nodes, small), "pair class"), **side("predicted")},
        measured={"logits": jd.named(model.logits(nodes, small), "pair class"), **side("measured")},
        recorded={
            "slip": jd.named(dynamics.waves(nodes, small, slip=True), "pair class"),
            "independent": jd.named(both["independent"], dims["accuracy"]),
        },
        coords={"modulus": s.moduli, "nodes": s.step * np.arange(1, s.blocks + 1), "offset": OFFSETS},
    )


def judge_waves(ds: xr.Dataset) -> list[jd.Check]:
    """Every logit of every pair."""
    return [jd.at_most("relative error of the logits", jd.relative_error(ds, "logits", "pair class"), 1e-12)]


def judge_margin(ds: xr.Dataset) -> list[jd.Check]:
    """Means over pairs, exactly; variances over pairs, in the mean over seeds; their growth with the width."""
    measured, predicted = (ds[f"{side}_variance"].mean("offset") for side in ("measured", "predicted"))
    off, ratio = stats.standard_errors(measured - predicted), (measured / predicted).mean(["seed", "modulus"])
    slope = np.log(ratio.isel(nodes=-1) / ratio.isel(nodes=0)) / np.log(ds.nodes[-1] / ds.nodes[0])
    return [
        jd.at_most("relative error of the mean margin", jd.relative_error(ds, "mean", "offset"), 1e-9),
        jd.at_most("variance off the predicted one, in standard errors", abs(off), stats.bonferroni_z(off.size, 0.99)),
        jd.within("variance over the predicted one, all widths and moduli", ratio.mean("nodes"), 0.95, 1.05),
        jd.within("power of K in the variance, less the predicted one", slope, -0.05, 0.05),
    ]


def _accuracies(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Measured and predicted, in the mean over seeds."""
    if ds.sizes["seed"] < 8:
        raise jd.Inconclusive("an accuracy in the mean over networks needs at least 8 seeds")
    return ds.measured_accuracy.mean("seed"), ds.predicted_accuracy.mean("seed")


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy at every width from 16 nodes on, and at the largest width."""
    measured, predicted = _accuracies(ds)
    off = abs(measured - predicted).where(ds.nodes >= 16)
    return [
        jd.at_most("accuracy off the predicted one", off, 0.05),
        jd.at_least("accuracy at the largest width", measured.isel(nodes=-1), 0.999),
    ]


def width(nodes: Any, accuracy: xr.DataArray, goal: float = GOAL) -> xr.DataArray:
    """The width at which the accuracy first reaches the goal, linear between recorded widths; NaN where it never does."""

    def cross(y: np.ndarray) -> float:
        above = np.flatnonzero(y >= goal)
        if len(above) == 0 or above[0] == 0:
            return np.nan
        i = above[0]
        return float(np.interp(goal, y[i - 1 : i + 1], np.asarray(nodes, float)[i - 1 : i + 1]))

    return xr.apply_ufunc(cross, accuracy, input_core_dims=[["nodes"]], vectorize=True)


def judge_width(ds: xr.Dataset) -> list[jd.Check]:
    """The width that reaches the goal, for every modulus, and how it grows from the smallest to the largest."""
    if ds.sizes["modulus"] < 3:
        raise jd.Inconclusive("growth with the modulus needs at least three moduli")
    measured, predicted = (width(ds.nodes, a) for a in _accuracies(ds))
    growth = [w.isel(modulus=-1, drop=True) / w.isel(modulus=0, drop=True) for w in (measured, predicted)]
    return [
        jd.at_most("moduli that never reach the goal", float(measured.isnull().sum()), 0.0),
        jd.within("width over the predicted one", measured / predicted, 0.9, 1.1),
        jd.within("growth of the width over the predicted one", growth[0] / growth[1], 0.9, 1.1),
    ]


def _proportional(ds: xr.Dataset) -> xr.Dataset:
    """Predicted accuracies whose widths grow in proportion to the modulus, from those of the smallest modulus."""
    first = ds.predicted_accuracy.isel(modulus=0, drop=True)
    rows = [first.interp(nodes=ds.nodes * int(ds.modulus[0]) / int(m), kwargs={"fill_value": 0.0}) for m in ds.modulus]
    return ds.assign(predicted_accuracy=xr.concat(rows, ds.modulus).assign_coords(nodes=ds.nodes))


def plot_waves(ds: xr.Dataset, fig: Figure) -> None:
    """All logits of the first network."""
    one = ds.isel(seed=0)
    plotting.scatter(fig.subplots(), one.predicted_logits, one.measured_logits, "network")


def plot_margin(ds: xr.Dataset, fig: Figure) -> None:
    """Mean and variance of margins against the width."""
    for ax, name in zip(fig.subplots(1, 2), ("mean", "variance"), strict=True):
        for modulus, color in zip((ds.modulus.values[0], ds.modulus.values[-1]), ("measured", "third"), strict=True):
            at = ds.sel(modulus=modulus)
            plotting.band(ax, ds.nodes, at[f"measured_{name}"].mean("offset"), f"M = {modulus}", color, marker="o", linestyle="")
            ends = at[f"predicted_{name}"].mean(["offset", "seed"])
            ax.plot(ds.nodes, ends, color=plotting.COLORS["theory"], label="predicted" if color == "measured" else None)
        ax.set(xlabel="nodes K", ylabel=f"{name} of the margin", xscale="log", yscale="log")


def plot_accuracy(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy against the width for every modulus; the width that reaches the goal against the modulus."""
    left, right = fig.subplots(1, 2)
    measured, predicted = ds.measured_accuracy, ds.predicted_accuracy.mean("seed")
    for i, color in zip(range(ds.sizes["modulus"]), ("measured", "third", "fourth", "fifth", "control"), strict=False):
        name = f"M = {int(ds.modulus[i])}"
        plotting.band(left, ds.nodes, measured.isel(modulus=i), name, color, marker="o", linestyle="")
        left.plot(ds.nodes, predicted.isel(modulus=i), color=plotting.COLORS["theory"], label=None if i else "predicted")
    left.set(xlabel="nodes K", ylabel="accuracy on all pairs", ylim=(0, 1.02))
    right.plot(ds.modulus, width(ds.nodes, measured.mean("seed")), "o", color=plotting.COLORS["measured"], label="measured")
    right.plot(ds.modulus, width(ds.nodes, predicted), color=plotting.COLORS["theory"], label="predicted")
    right.set(xlabel="modulus M", ylabel=f"nodes for accuracy {GOAL}", xscale="log", ylim=(0, None))
    right.set_xticks(ds.modulus.values, [str(m) for m in ds.modulus.values])
    right.set_xticks([], minor=True)


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Constructed),
    "paper": jd.grid(Constructed, moduli=(11, 23, 59, 97, 131), step=8, blocks=32),
    "seeds": 48,
    "paper_seeds": 64,
    "source": SOURCE,
}
_FREE = {"output phases of their own": {"top": "free"}}

CLAIMS = (
    jd.Claim(
        id="gromov.waves",
        statement=r"A node of the construction is a sum of nine waves; only $\frac12\cos\theta(a+b-c)$ has no random phase, "
        "so that it alone adds up over nodes.",
        judge=judge_waves,
        controls={"the first operand's phase in a wave of the second": lambda ds: ds.assign(predicted_logits=ds.slip)},
        plot=plot_waves,
        **(_SHARED | {"source": "arXiv:2301.02679, equation 11"}),
    ),
    jd.Claim(
        id="gromov.margin",
        statement=r"With $u = 1 - \cos\theta d$, the margin of the right class over the one d further has over all pairs the mean "
        r"$\frac12\sum_j u_j$, exactly and for any phases, and over random phases the variance $\sum_j(\frac{15}8u_j + "
        r"\frac18u_j^2)$: over all frequencies $KM/2(M-1)$ and $33KM/16(M-1)$, a signal of K against noise of $\sqrt K$.",
        judge=judge_margin,
        controls=_FREE
        | {
            "all waves alike": lambda ds: ds.assign(predicted_variance=4 * ds.predicted_mean + ds.predicted_mean**2),
        },
        plot=plot_margin,
        **_SHARED,
    ),
    jd.Claim(
        id="gromov.analytic",
        statement=r"K nodes with random frequencies and phases name the right class on a share $\int\varphi(z)\,"
        r"\Phi\bigl(\sqrt{M/(M-1)}\,(\sqrt{2K}/3 + \sqrt{2305/5832}\,z)\bigr)^{M-1}dz$ of the pairs, on all of them once K is "
        "large: the logits of right and wrong classes fluctuate together.",
        judge=judge_accuracy,
        controls=_FREE | {"independent fluctuations": lambda ds: ds.assign(predicted_accuracy=ds.independent)},
        plot=plot_accuracy,
        **_SHARED,
    ),
    jd.Claim(
        id="gromov.width",
        statement="The number of nodes that reaches a given accuracy grows with the modulus as its logarithm, not in proportion "
        "to it: at the predicted rate from M = 11 to 59.",
        judge=judge_width,
        controls=_FREE | {"in proportion to the modulus": _proportional},
        plot=plot_accuracy,
        **_SHARED,
    ),
)
