r"""The paths of Theorem 3: a node trained by gradient descent on samples of a mixture, against the ODE for (v, xi).

Step error and Monte Carlo error are separated: the paths of three step sizes on the same samples give the order in the step size
and its limit; independent replicates of the sample set give the standard error of that limit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting, train
from jaxdyn.theories.joma.dynamics.thm3 import mixture_field
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.mixture import Instance, coordinates, draw, features, start_weights, utility
from jaxdyn.theories.joma.trials.mixture import Mixture, sample

__all__ = ["CLAIMS", "Path", "judge_critical", "judge_path", "path_trial"]

LEVEL = 0.99  # family level of simultaneous tests


@jd.setting
class Path(Mixture):
    """The same node trained by gradient descent.

    Args:
        eta: step size.
        horizon: training time, number of steps times eta.
        replicates: independent sample sets, for the Monte Carlo error.
        records: of a run after its start.
    """

    eta: jd.Swept = 0.05
    horizon: jd.Swept = 2.0
    tokens: int = 8
    components: int = 3
    samples: int = 999
    replicates: int = 16
    records: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        jd.require(self, self.replicates >= 3, "a standard error needs at least 3 replicates", "replicates")
        jd.require(self, self.eta > 0, "eta is positive", "eta")
        steps = self.horizon / (self.records * self.eta)
        whole = steps > 1 - 1e-6 and abs(steps - round(steps)) <= 1e-6
        jd.require(self, whole, f"horizon is a whole multiple of {self.records} eta", "horizon", "eta")


def path_trial(s: Path, key: PRNGKeyArray) -> jd.Observables:
    """The path of (v, xi) by the theory's ODE, and the mean over replicates of networks trained by gradient descent."""
    k_instance, k_data = jax.random.split(key)
    one = draw(k_instance, s.tokens, s.components, 1.0, 2.0)
    each = s.samples // s.components
    x, g = sample(k_data, one, s, each * s.replicates)
    x, g = (jnp.moveaxis(a.reshape(s.components, s.replicates, each, *a.shape[2:]), 1, 0) for a in (x, g))
    paths = jax.vmap(lambda f, g: _descend(s, one, f, g))(features(one, x), g)
    start = jnp.append(one.v, one.xi)
    moves = coordinates(one, paths) - start
    ts = s.horizon * jnp.arange(s.records + 1, dtype=jnp.float64) / s.records
    solution = jax.vmap(lambda keep: _theory_path(s, one, ts, keep))(jnp.array([1.0, 0.0], jnp.float64))
    theory = jnp.concatenate([solution.ys[0], solution.ys[1][..., None]], -1) - start
    mean = jnp.mean(moves, 0)
    cosine, inside = _alignment(mean[-1, :-1] + one.v, one.centres)
    pace = jnp.linalg.norm(mean[1:, :-1] - mean[:-1, :-1], axis=-1)
    return jd.observables(
        predicted={"path": jd.named(theory[0, 1:], "time coordinate")},
        measured={"path": jd.named(mean[1:], "time coordinate"), "cosine": cosine, "in_span": inside, "pace": pace[-1] / pace[0]},
        recorded={
            "error": jd.named((jnp.std(moves, 0, ddof=1) / s.replicates**0.5)[1:], "time coordinate"),
            "without_xi": jd.named(jnp.where(jnp.isfinite(theory[1, 1:]), theory[1, 1:], jnp.nan), "time coordinate"),
            "start": jd.named(start, "coordinate"),
            "t": jd.named(ts[1:], "time"),
            "start_cosine": _alignment(one.v, one.centres)[0],
            "replicates": jnp.float64(s.replicates),
        },
        status=solution.status[0],  # without xi the ODE may run into v = 0, where it has no solution
    )


def _descend(s: Path, one: Instance, f: Float[Array, "C n D"], g: Float[Array, "C n"]) -> Float[Array, "T D"]:
    """Weights along full-batch gradient descent on one sample set, at equal times for every step size."""
    each = jax.vmap(jax.vmap(utility, (None, 0, 0, None)), (None, 0, 0, None))

    def loss(w: Float[Array, " D"]) -> Float[Array, ""]:
        return one.share @ jnp.mean(each(w, f, g, s.activation), 1)

    tx = optax.sgd(s.eta)
    every = jnp.round(s.horizon / (s.records * s.eta)).astype(jnp.int32)
    step = train.make_step(loss, tx)
    return train.record(step, train.init(tx, start_weights(one)), lambda state: state.params, samples=s.records, every=every)[1]


def _theory_path(s: Path, one: Instance, ts: Float[Array, " T"], keep_xi: Float[Array, ""]) -> flow.Solution:
    def field(_: object, y: tuple, a: Float[Array, " C"]) -> tuple:
        return mixture_field(*y, one.centres, a, s.activation, s.noise, s.spread, keep_xi=keep_xi)

    return flow.solve(field, (one.v, one.xi), ts, one.g * one.share, rtol=1e-8, atol=1e-10)


def _alignment(v: Float[Array, " d"], centres: Float[Array, "C d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest cosine of v with a centre (up to sign), and the share of v's norm inside the span of the centres."""
    cosines = jnp.abs(centres @ v) / (jnp.linalg.norm(centres, axis=1) * jnp.linalg.norm(v))
    frame = linalg.qr(centres.T)[0]
    return jnp.max(cosines), jnp.linalg.norm(frame.T @ v) / jnp.linalg.norm(v)


def _size(a: xr.DataArray) -> xr.DataArray:
    return np.sqrt((a**2).sum(["time", "coordinate"], min_count=1))


def _pooled(a: xr.DataArray) -> xr.DataArray:
    return np.sqrt((_size(a) ** 2).sum("seed", min_count=1))


def _limit(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.Dataset]:
    """Extrapolated path, order of the step error over all seeds, and the runs of the smallest step."""
    ds = halving_steps(ds)
    coarse, middle, fine = (ds.measured_path.isel(eta=i, drop=True) for i in range(3))
    order = np.log2(_pooled(coarse - middle) / _pooled(middle - fine))
    return extrapolated(ds.measured_path), order, ds.isel(eta=-1, drop=True)


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """Order in the step size; then the extrapolated path against the ODE: relative, in standard errors, and pooled in size."""
    limit, order, fine = _limit(ds)
    moved = fine.predicted_path
    miss = _size(limit - moved)
    errors, dof = miss / _size(fine.error), float(fine.replicates.max()) - 1
    scale = (limit * moved).sum(["time", "coordinate"], min_count=1) / _size(moved) ** 2
    n = scale.count("seed")
    pooled = abs(scale.mean("seed") - 1) / (scale.std("seed", ddof=1) / np.sqrt(n))
    return [
        jd.within("order of the step error", order, 0.85, 1.15),
        jd.at_most("relative path error", miss / _size(fine.start + moved), 0.02),
        jd.at_most("path error, in standard errors", errors, _t_bound(errors, dof)),
        jd.at_most("size of the path pooled over seeds, in s.e.", pooled, _t_bound(pooled, float(n.min()) - 1)),
    ]


def _t_bound(values: xr.DataArray, dof: float) -> float:
    """Two-sided t quantile for all the values at once."""
    return float(scipy.stats.t.isf((1 - LEVEL) / 2 / max(int(values.count()), 1), dof))


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """Extrapolated against predicted displacement, and the error against the step size."""
    left, right = fig.subplots(1, 2)
    limit, _, fine = _limit(ds)
    for kind, color in zip(fine.activation.values, plotting.CYCLE, strict=False):
        plotting.scatter(left, fine.predicted_path.sel(activation=kind), limit.sel(activation=kind), str(kind), color, log=False)
    error = _size(ds.measured_path - limit) / _size(ds.start + ds.predicted_path)
    plotting.order(right, ds.eta, error.transpose(..., "eta"), 1.0, "step error")
    floor = _size(limit - fine.predicted_path) / _size(fine.start + fine.predicted_path)
    right.axhline(float(floor.median()), color=plotting.COLORS["control"], label="Monte Carlo error (median)")
    left.set(xlabel="displacement by the ODE", ylabel=r"trained network, $\eta \to 0$")
    right.set(ylabel="relative path error")


def judge_critical(ds: xr.Dataset) -> list[jd.Check]:
    """After long training: cosine of v with the nearest centre and its share in the span of the centres."""
    return [
        jd.at_least("median cosine with the nearest centre", float(ds.measured_cosine.median()), 0.9),
        jd.at_least("smallest cosine with the nearest centre", ds.measured_cosine, 0.9),
        jd.at_least("share of v in the span of the centres", ds.measured_in_span, 0.95),
        jd.at_most("pace at the end over pace at the start", ds.measured_pace, 0.1),
    ]


def plot_critical(ds: xr.Dataset, fig: Figure) -> None:
    """Cosine with the nearest centre, before and after training."""
    ax = fig.subplots()
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        part = ds.sel(activation=kind)
        ax.plot(np.ravel(part.start_cosine), np.ravel(part.measured_cosine), "o", color=color, label=str(kind))
    ax.axhline(1.0, color=plotting.COLORS["theory"], linestyle="--", label="heuristic: a cluster centre")
    ax.set(xlabel="start: cosine with the nearest centre", ylabel="end: cosine with the nearest centre")


CURVED = ["relu", "tanh", "gelu"]
PATHS = jd.grid(Path, activation=CURVED, eta=[0.05, 0.025, 0.0125])
STUDY = jd.Study(trial=path_trial, quick=PATHS, seeds=8, paper_seeds=64, source="arXiv:2310.00535, Theorem 3")

CLAIMS = (
    STUDY.claim(
        id="joma.thm3_path",
        statement=r"A node (ReLU, tanh or GELU) trained by gradient descent on samples of a mixture of isotropic components "
        r"follows the ODE of Theorem 3 for $(v, \xi)$: the error is first order in the step size, and its limit is within Monte "
        r"Carlo error and within 2%.",
        paper=PATHS.replace(samples=9999),
        judge=judge_path,
        controls={
            "anisotropic noise": {"anisotropy": 0.8},
            "g varies inside a component": {"g_slope": 0.5},
            "xi dropped": jd.swap(predicted_path="without_xi"),
        },
        plot=plot_path,
        caption=r"Left: displacement of $(v, \xi)$ of the trained node, extrapolated to step size 0, against the ODE; one point "
        r"per component, time and run, colours are activations. Right: relative error of the path against the step size, medians "
        r"over the runs with bars over their full range; the horizontal line is the median Monte Carlo error.",
    ),
    STUDY.claim(
        id="joma.critical_points",
        statement=r"The heuristic that training ends near a cluster centre, $v_{\rm end} \parallel \bar x_c$, measured for nodes "
        r"trained long under constant upper gradients: cosine of $v_{\rm end}$ with the nearest centre, share of $v_{\rm end}$ in "
        r"the span of the centres, and pace at the end over pace at the start.",
        source="arXiv:2310.00535, Theorem 3, discussion of critical points",
        expected="measured",
        quick=jd.grid(Path, activation=CURVED, eta=[0.25], horizon=50.0),
        judge=judge_critical,
        plot=plot_critical,
        caption=r"Largest absolute cosine of $v$ with a cluster centre, at the end of training against the start; one point per "
        r"run, colours are activations. Dashed: the heuristic, cosine 1.",
    ),
)
