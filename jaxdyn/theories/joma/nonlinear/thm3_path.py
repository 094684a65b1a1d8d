r"""The paths of Theorem 3: a node trained by gradient descent on samples of a mixture, against the ODE for (v, xi).

The network is in ``mixture.py``. Step error and Monte Carlo error are separated: the paths of three step sizes on the same samples
give the order in the step size and its limit; independent replicates of the sample set, each with a network of its own, give the
Monte Carlo error of that limit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting, stats, train
from jaxdyn.theories.joma.dynamics.nonlinear import mixture_field
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.nonlinear.model import (
    Instance,
    Mixture,
    coordinates,
    features,
    sample,
    sample_instance,
    start_weights,
    utility,
)


@jd.setting
class Path(Mixture):
    """The same node trained by gradient descent.

    Args:
        eta: step size.
        horizon: training time, number of steps times eta.
        replicates: independent sample sets, from which the error of the mean path is estimated.
        records: of a run after its start.
    """

    eta: jd.Swept = jd.field(0.05, above=0)
    horizon: jd.Swept = 1.6
    tokens: int = 8
    components: int = 3
    samples: int = 3126
    replicates: int = jd.field(32, at_least=8)
    records: int = 8

    def __post_init__(self) -> None:
        """Refuse what the mixture refuses, and records between steps."""
        super().__post_init__()
        steps = self.horizon / (self.records * self.eta)
        whole = steps > 1 - 1e-6 and abs(steps - round(steps)) <= 1e-6
        jd.require(self, whole, f"horizon is a whole multiple of {self.records} eta", "horizon", "eta")


def path_trial(s: Path, key: PRNGKeyArray) -> jd.Observables:
    """The path of (v, xi) by the theory's ODE, and the mean over replicates of networks trained by gradient descent."""
    # descent on every sample set
    k_instance, k_data = jax.random.split(key)
    one = sample_instance(k_instance, s.tokens, s.components, 1.0, 2.0)
    each = s.samples // s.components
    x, g = sample(k_data, one, s, each * s.replicates)
    x, g = (jnp.moveaxis(a.reshape(s.components, s.replicates, each, *a.shape[2:]), 1, 0) for a in (x, g))
    paths = jax.vmap(lambda f, g: descend(s, one, f, g))(features(one, x), g)
    start = jnp.append(one.v, one.xi)
    moves = coordinates(one, paths) - start
    # the ODE, with and without xi
    ts = s.horizon * jnp.arange(s.records + 1, dtype=jnp.float64) / s.records
    solution = jax.vmap(lambda keep: _theory_path(s, one, ts, keep))(jnp.array([1.0, 0.0], jnp.float64))
    theory = jnp.concatenate([solution.ys[0], solution.ys[1][..., None]], -1) - start
    # the mean path, and where it ends
    mean = jnp.mean(moves, 0)
    cosine, inside = _alignment(mean[-1, :-1] + one.v, one.centres)
    pace = jnp.linalg.norm(mean[1:, :-1] - mean[:-1, :-1], axis=-1)
    return jd.observables(
        predicted={"path": jd.named(theory[0, 1:], "time coordinate")},
        measured={"path": jd.named(mean[1:], "time coordinate"), "cosine": cosine, "in_span": inside, "pace": pace[-1] / pace[0]},
        recorded={
            "paths": jd.named(moves[:, 1:], "replicate time coordinate"),
            "without_xi": jd.named(jnp.where(jnp.isfinite(theory[1, 1:]), theory[1, 1:], jnp.nan), "time coordinate"),
            "t": jd.named(ts[1:], "time"),
            "start_cosine": _alignment(one.v, one.centres)[0],
            "start_in_span": _alignment(one.v, one.centres)[1],
        },
        status=solution.status[0],  # without xi the ODE may run into v = 0, where it has no solution
    )


def descend(s: Path, one: Instance, f: Float[Array, "C n D"], g: Float[Array, "C n"]) -> Float[Array, "T D"]:
    """Weights along full-batch gradient descent on one sample set, at equal times for every step size."""
    each = jax.vmap(jax.vmap(utility, (None, 0, 0, None)), (None, 0, 0, None))

    def loss(w: Float[Array, " D"]) -> Float[Array, ""]:
        return one.share @ jnp.mean(each(w, f, g, s.activation), 1)

    tx = optax.sgd(s.eta)
    every = jnp.round(s.horizon / (s.records * s.eta)).astype(jnp.int32)
    step = train.make_step(loss, tx)
    return train.record(step, train.init(tx, start_weights(one)), lambda state: state.params, samples=s.records, every=every)[1]


def _theory_path(s: Path, one: Instance, ts: Float[Array, " T"], keep_xi: Float[Array, ""]) -> flow.Solution:
    def field(_: object, y: tuple[Array, Array], a: Float[Array, " C"]) -> tuple[Array, Array]:
        return mixture_field(*y, one.centres, a, s.activation, s.noise, s.spread, keep_xi=keep_xi)

    return flow.solve(field, (one.v, one.xi), ts, one.g * one.share, rtol=1e-8, atol=1e-10)


def _alignment(v: Float[Array, " d"], centres: Float[Array, "C d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest cosine of v with a centre (up to sign), and the share of v's norm inside the span of the centres."""
    cosines = jnp.abs(centres @ v) / (jnp.linalg.norm(centres, axis=1) * jnp.linalg.norm(v))
    frame = linalg.qr(centres.T)[0]
    return jnp.max(cosines), jnp.linalg.norm(frame.T @ v) / jnp.linalg.norm(v)


DISTANCE = 0.02  # of the mean path from the ODE's, over the displacement, root mean square over runs
ALONG = 0.01  # the same along the path itself, where it is measured more sharply
BLOCK = 4  # replicates from which one estimate of the squared distance is made


def _size(a: stats.Labelled) -> stats.Labelled:
    return np.sqrt((a**2).sum(["time", "coordinate"], min_count=1))


def _pooled(a: stats.Labelled) -> stats.Labelled:
    return np.sqrt((_size(a) ** 2).sum("seed", min_count=1))


def _limit(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.Dataset]:
    """Extrapolated path, order of the step error over all seeds, and the runs of the smallest step."""
    ds = halving_steps(ds)
    coarse, middle, fine = (ds.measured_path.isel(eta=i, drop=True) for i in range(3))
    order = np.log2(_pooled(coarse - middle) / _pooled(middle - fine))
    return extrapolated(ds.measured_path), order, ds.isel(eta=-1, drop=True)


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """The path extrapolated to step size 0 against the ODE: its distance, and how far it is ahead, from the replicates."""
    limit, order, fine = _limit(ds)
    miss = extrapolated(halving_steps(ds).paths) - fine.predicted_path
    over = ["time", "coordinate"]
    moved = (limit**2).sum(over, skipna=False)
    runs = [d for d in moved.dims if d != "seed"]
    squares = (squared_distance(miss).mean("seed") / moved.mean("seed")).mean(runs)  # runs of one seed share their random numbers
    along = ((miss * limit).sum(over, skipna=False).mean("seed") / moved.mean("seed")).mean(runs)
    return [
        jd.gate("order of the step error", order, at_least=0.85, at_most=1.15),
        jd.rms_within("distance of the mean path from the ODE's / displacement", squares, over="block", high=DISTANCE),
        jd.mean_within("the same along the path", along, over="replicate", low=-ALONG, high=ALONG),
    ]


def squared_distance(miss: xr.DataArray) -> xr.DataArray:
    r"""Independent unbiased estimates, one per block of four replicates, of the squared length of a mean vector.

    .. math:: \frac1{R(R-1)}\sum_{r \ne s} x_r\cdot x_s

    Letters: x_r, the vector (time, coordinate) of a replicate; R = 4. The Monte Carlo error of the mean, which would add to its
    length, is not in it.
    """
    blocks = miss.isel(replicate=slice(miss.sizes["replicate"] // BLOCK * BLOCK)).coarsen(replicate=BLOCK)
    each = blocks.construct(replicate=("block", "replicate"))
    pairs = each.sum("replicate", skipna=False) ** 2 - (each**2).sum("replicate", skipna=False)
    return pairs.sum(["time", "coordinate"], skipna=False) / (BLOCK * (BLOCK - 1))


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """Extrapolated against predicted displacement, and the error against the step size."""
    left, right = fig.subplots(1, 2)
    limit, _, fine = _limit(ds)
    for kind, color in zip(fine.activation.values, plotting.CYCLE, strict=False):
        plotting.scatter(left, fine.predicted_path.sel(activation=kind), limit.sel(activation=kind), str(kind), color, log=False)
    error = _size(ds.measured_path - limit) / _size(ds.predicted_path)
    plotting.order(right, ds.eta, error.transpose(..., "eta"), 1.0, "step error")
    floor = _size(limit - fine.predicted_path) / _size(fine.predicted_path)
    right.axhline(float(floor.median()), color=plotting.COLORS["control"], label="error of the limit (median)")
    left.set(xlabel="displacement by the ODE", ylabel=r"trained network, $\eta \to 0$")
    right.set(ylabel="path error over the displacement")


NEAREST, INSIDE, SLOWER = (
    "cosine with the nearest centre",
    "share of v in the span of the centres",
    "share of runs that slow down tenfold",
)


def judge_critical(ds: xr.Dataset) -> list[jd.Reading]:
    """Over all runs: cosine of v with the nearest centre, share of v in the span of the centres, and the pace."""
    slower = (ds.measured_pace < 0.1).where(ds.measured_pace.notnull())
    every = [str(d) for d in ds.measured_cosine.dims]
    return [
        jd.mean_reading(NEAREST, ds.measured_cosine, over=every),
        jd.mean_reading(INSIDE, ds.measured_in_span, over=every),
        jd.share_reading(SLOWER, slower, over=every),
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
PATHS = jd.grid(Path, activation=CURVED, eta=[0.1, 0.05, 0.025])
STUDY = jd.Study(
    trial=path_trial,
    quick=PATHS,
    seeds=4,
    paper_seeds=64,
    evidence="network",
    tested="One node with "
    "{activation} activation "
    "under uniform attention "
    "and given upper "
    "gradients, constant "
    "within each of the "
    "{components} components "
    "of a mixture over "
    "{tokens} tokens, trained "
    "by full-batch gradient "
    "descent on each of "
    "{replicates} sets of "
    "{samples} samples; steps "
    "of {eta} for a time of "
    "{horizon}; seeds: "
    "{seeds}.",
    source="arXiv:2310.00535, Theorem 3",
)

CLAIMS = (
    STUDY.claim(
        id="joma.thm3_path",
        talks=("training:joma-theorem-3",),
        title="Trained on a mixture, nonlinear nodes follow Theorem 3's equation",
        bounds=jd.tuned(on="0:4", confirmed_on="31000000:31000004"),
        statement="Nodes under uniform attention with a given upper gradient that is constant within each component of an "
        "isotropic mixture, each trained on samples of its own, follow the ODE of Theorem 3 for the weights $v$ and the bias "
        r"$\xi$ of the residual path in the mean over nodes: extrapolated to step size 0, the mean path is within 2% of the "
        "displacement of the ODE's (root mean square over runs and times, Monte Carlo error removed), and within 1% along "
        "the path.",
        judge=judge_path,
        controls={"anisotropic noise": jd.Control({"anisotropy": 0.8}, breaks="isotropic mixture")},
        rivals={"nothing moves": jd.off(predicted_path=0.0), "no residual path: xi dropped": jd.swap(predicted_path="without_xi")},
        plot=plot_path,
        caption=r"Left: mean displacement of $(v, \xi)$ of the trained nodes, extrapolated to step size 0, against the ODE; one "
        r"point per component, time and run, colours are activations. Right: error of the path over the displacement against the "
        r"step size, medians over the runs with bars over their full range; the horizontal line is the median error of the limit.",
    ),
    STUDY.claim(
        id="joma.critical_points",
        talks=("training:joma-critical-point",),
        title="How near to a cluster centre a node's weights end",
        statement="When a nonlinear node under uniform attention is trained long under constant upper gradients on a mixture "
        r"with centres $\bar x_c$, how near are its weights $v$ to a centre in the end (absolute cosine with the nearest), "
        "which share of their norm lies in the span of the centres, and how many runs have slowed down to a tenth of their "
        "first pace?",
        source="arXiv:2310.00535, Theorem 3, discussion of critical points",
        expected="measured",
        recorded={
            "cosine with the nearest centre": (0.635, 0.7096, 0.784),
            "share of v in the span of the centres": (0.842, 0.9048, 0.968),
            "share of runs that slow down tenfold": (0.321, 0.5208, 0.714),
        },
        quick=jd.grid(Path, activation=CURVED, eta=[0.5], horizon=48.0),
        seeds=48,
        judge=judge_critical,
        rivals={
            "nothing moves": jd.off(
                {
                    NEAREST: lambda ds: float(ds.start_cosine.mean()),
                    INSIDE: lambda ds: float(ds.start_in_span.mean()),
                    SLOWER: 0.0,
                }
            ),
            "training ends at a cluster centre": {NEAREST: 1.0, INSIDE: 1.0},
            "training ends at right angles to all centres, and always slowly": {NEAREST: 0.0, INSIDE: 0.0, SLOWER: 1.0},
        },
        plot=plot_critical,
        caption=r"Largest absolute cosine of $v$ with a cluster centre, at the end of training against the start; one point per "
        r"run, colours are activations. Dashed: the heuristic, cosine 1.",
    ),
)
